#!/usr/bin/env python3
"""Draws this folder's figures from the result files of tests/data, and its README: docs/gallery/make.py

A figure that a file cannot give (kernels that were not counted, say) is named and left out."""

import os
import shlex
import subprocess
import sys

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAPER, EIGHT = "tests/data/paper_h200.nc", "tests/data/roofs_8xh200.nc"
ALGORITHMS, LOOPS = "tests/data/algorithms_h200.nc", "tests/data/loops_h200.nc"
REPLICATE = "tests/data/node_4xh200.nc"
TRAINING, CORE = "tests/data/training_h200.nc", "tests/data/training_cpu.nc"
BY_HAND = "tests/data/handwritten_h200.nc"
# One of the layouts and of the cache modes that the file may have.
ONE = "layout=nhwc cache=hot"
FILTERS = f"{PAPER} --labels conv2d-filters --where pass=forward {ONE}"

# name, what it shows, the arguments of `roofsweep-post plot`
FIGURES = [
    ("classic", "Classic Roofline with the ceilings of launch overhead (the paper's figure 2a)", f"classic {FILTERS}"),
    ("levels", "The same at every memory level, the levels of a row joined", f"classic {FILTERS} --level all"),
    ("complexity", "Complexity plane (2b)", f"complexity {FILTERS}"),
    ("time", "Time plane (2c)", f"time {FILTERS}"),
    ("four", "Complexity and time in one plane (2d)", f"four {FILTERS}"),
    (
        "passes",
        "All passes, at the width of a page (3)",
        f"four {PAPER} --labels conv2d-filters --where {ONE} --width page",
    ),
    (
        "kernel",
        "Size of the convolution's kernel (6)",
        f"classic {PAPER} --labels conv2d-kernel --where pass=forward {ONE}",
    ),
    ("stride", "Stride, half precision (7)", f"four {PAPER} --labels conv2d-stride --where precision=fp16 {ONE}"),
    ("lstm_batch", "LSTM, batch size (9)", f"four {PAPER} --labels lstm-batch --where pass=forward cache=hot"),
    (
        "lstm_sequence",
        "LSTM, length of the sequence (10)",
        f"four {PAPER} --labels lstm-sequence --where pass=forward cache=hot",
    ),
    (
        "bars",
        "Run time, its gaps, and a caller's time (1)",
        f"bars {PAPER} --labels conv2d-filters --where precision=fp16 {ONE}",
    ),
    ("counted", "Counted against modelled", f"counted {PAPER} --labels conv2d-filters --where {ONE} --width page"),
    ("waves", "Waves and tail of the kernels", f"waves {FILTERS} precision=fp32"),
    ("kernels", "Kernels on the Roofline", f"kernels {FILTERS} precision=fp32"),
    (
        "training",
        "A training step by hand and by the library, beside work that is known",
        f"classic {TRAINING} --labels product registers shared step --series workload implementation --level all",
    ),
    (
        "devices",
        "The same on a GPU and on a core of a CPU",
        f"classic {TRAINING} {CORE} --labels product registers shared step --series workload implementation"
        " --width page",
    ),
    (
        "handwritten",
        "Convolutions by hand beside the library's",
        f"classic {BY_HAND} --labels default stages points --where precision=fp16 --series implementation --level l2",
    ),
    ("roofs", "Roofs of a GPU against theory", f"roofs {PAPER}"),
    ("map", "Eight GPUs, each roof against the median", f"map {EIGHT} --width page"),
    (
        "strip",
        "Four GPUs on the same configurations",
        f"strip {REPLICATE} --width page",
    ),
    ("history", "One GPU over the sessions of several files", f"history {PAPER} {ALGORITHMS} {LOOPS}"),
]


def small(path):
    """A third of the bytes, and no difference to see."""
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, kmeans=1).save(path, optimize=True)


def main():
    os.chdir(ROOT)
    page = ["# Gallery\n", "All of it is drawn by `docs/gallery/make.py` from the result files of `tests/data/`.\n"]
    for name, title, arguments in FIGURES:
        path = f"docs/gallery/{name}.png"
        command = ["postproc/roofsweep-post", "plot", *arguments.split(), "--output", path]
        drawn = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
        if drawn.returncode:
            print(f"{name}: left out: {drawn.stderr.strip()}")
            if os.path.exists(path):
                os.remove(path)
            continue
        small(path)
        print(f"{path}: {os.path.getsize(path)} bytes")
        files = 3 + sum(word.endswith(".nc") for word in command)
        first, rest = shlex.join(command[:files]), shlex.join(command[files:-2])
        lines = f"{first} \\\n    {rest}" if rest else first
        page.append(f"## {title}\n\n```\n{lines}\n```\n\n![{name}]({name}.png)\n")
    with open(os.path.join(HERE, "README.md"), "w", encoding="utf-8") as stream:
        stream.write("\n".join(page))


if __name__ == "__main__":
    main()
