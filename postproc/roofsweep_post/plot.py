"""The command `plot` draws figures: time-based Rooflines, kernels, nodes."""

import argparse
import os

from . import selection
from .arguments import whole, writing
from .dataset import load
from .texts import Refused, plain

HELP = "figures: Rooflines, time planes, bars, kernels, nodes"
FORMATS = ["pdf", "svg", "png"]


def description():
    from .figures import KINDS

    kinds = "\n".join(f"{name:12} {module.HELP}" for name, module in KINDS.items())
    return f"""Draws one figure into FILE.pdf, .svg or .png, at the width of a journal's column or page.

{kinds}

Points are joined in the order of one parameter (--by). A series is all rows with the same precision, pass,
implementation, algorithm, layout and cache (--series chooses other variables). A second file is
drawn lighter."""


DESCRIPTION = description


def renaming(text):
    old, equals, new = text.partition("=")
    if not old or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is no OLD=NEW")
    return old, new


def add_options(parser):
    from .figures import KINDS

    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("files", nargs="+", metavar="file", help="result file of roofsweep; several are drawn together")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: KIND.pdf")
    parser.add_argument("-w", "--where", nargs="+", metavar="TERM", default=[], help=selection.HELP)
    parser.add_argument("-l", "--labels", nargs="+", metavar="LABEL", help="only rows of these labels")
    parser.add_argument("-s", "--series", nargs="+", metavar="NAME", help="variables that tell series apart")
    parser.add_argument(
        "--order", nargs="+", metavar="WORD", default=[], help="values whose series come first, in order"
    )
    parser.add_argument("--title", default="", help="text above the figure")
    parser.add_argument(
        "--rename", nargs="+", type=renaming, metavar="OLD=NEW", default=[], help="other words in legends, labels, axes"
    )
    parser.add_argument("-b", "--by", metavar="PARAMETER", help="the parameter that orders and joins points")
    parser.add_argument(
        "--level",
        type=str.lower,
        help="memory level; `row`: each row's own; `all` (default: dram; losses, complexity, time, network: row)",
    )
    parser.add_argument("--width", choices=["column", "page"], default="column", help="default: column")
    parser.add_argument(
        "--annotate",
        choices=["auto", "all", "ends", "none"],
        default="auto",
        help="points that are labelled (default: auto, all of a few, else the ends of each series)",
    )
    parser.add_argument(
        "--caption", choices=["yes", "no"], default="yes", help="no: print the caption instead (default: yes)"
    )
    parser.add_argument("--dpi", type=whole(30), default=300, help="pixels an inch of a .png (default: 300)")
    parser.add_argument("--style", metavar="SHEET", default="", help="style sheet of matplotlib, a name or a file")


def default_output(options):
    return f"{options.kind}.pdf"


def run(options):
    from . import figures
    from .figures.scene import NEEDS

    output = options.output
    if os.path.splitext(output)[1][1:] not in FORMATS:
        raise Refused(f"--output {output}: its name ends in none of {', '.join(FORMATS)}")
    files = [load(path, getattr(figures.KINDS[options.kind], "NEEDS", NEEDS)) for path in options.files]
    names = ("where", "series", "by", "level", "width", "annotate", "labels", "order", "title")
    how = {name: getattr(options, name) for name in names}
    axes = figures.draw(
        files, options.kind, **how, caption=options.caption == "yes", sheet=options.style, rename=dict(options.rename)
    )
    figure = axes[0].figure
    if max(figure.get_size_inches()) * options.dpi >= 2**16:
        raise Refused(f"--dpi {options.dpi}: the figure would have more than {2**16} pixels on a side; take fewer")
    save(figure, output, options.dpi)
    for line in [*figure.notes, *([figure.caption] if options.caption == "no" else [])]:
        print(line)
    return 0


def save(figure, path, dpi=300):
    with writing(path):  # metadata without a date, so that equal figures are equal files
        metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(path.rsplit(".", 1)[-1])
        figure.savefig(path, metadata=metadata, dpi=dpi)
    print(plain(path))
