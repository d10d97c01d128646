#!/usr/bin/env python3
"""Draws every figure of docs/gallery by the command on its page, and checks that it is readable;
compares the numbers of the page's table with the files.

Usage: check_gallery.py ROOT"""

import importlib.util
import os
import sys

import readable
from roofsweep_post import cli, plot
from roofsweep_post.figures import style


def gallery():
    found = importlib.util.spec_from_file_location("make", "docs/gallery/make.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def main():
    os.chdir(sys.argv[1])
    drawn = []
    plot.save = lambda figure, *_: drawn.append(figure)
    wrong = []
    module = gallery()
    with open("docs/gallery/README.md", encoding="utf-8") as page:
        assert module.beside() in page.read(), module.beside()
    with style.settings():
        readable.check(module.curve())
    for name, _, arguments in module.FIGURES:
        words = ["plot", *arguments.split(), "--output", f"{name}.png"]
        assert cli.run(cli.arguments(words)) == 0, name
        try:
            with style.settings():
                readable.check(drawn[-1])
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
        style.plt.close("all")
    sys.exit("\n".join(wrong) or 0)


main()
