#!/usr/bin/env python3
"""Draws the figures of this folder from the result files of tests/data, and writes its README: docs/gallery/make.py

A figure that cannot be drawn, for example because kernels were not counted, is named and left out."""

import os
import shlex
import subprocess
import sys
import textwrap

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAPER, EIGHT = "tests/data/paper_h100.nc", "tests/data/roofs_8xh200.nc"
ALGORITHMS, LOOPS = "tests/data/algorithms_h100.nc", "tests/data/loops_h100.nc"
REPLICATE = "tests/data/node_4xh200.nc"
TRAINING, CORE = "tests/data/training_h100.nc", "tests/data/training_cpu.nc"
BY_HAND, ENERGY = "tests/data/handwritten_h100.nc", "tests/data/energy_h100.nc"
FRAMEWORKS, PARTS = "tests/data/paper_frameworks_h100.nc", "tests/data/guide_h200.nc"
# One layout and one cache mode.
ONE = "layout=nhwc cache=hot"
FILTERS = f"{PAPER} --labels conv2d-filters --where pass=forward {ONE}"
STEP = "--labels product registers shared step --where cache=hot --series workload implementation"
# Parameters of the paper's layers at their defaults.
DEFAULTS = {
    "conv2d": {"batch": 16, "filters": 64, "kernel": 3, "stride": 2},
    "lstm": {"batch": 16, "sequence": 16, "features": 32, "hidden": 16},
}
# The paper's figure 2 is a sketch; any layer serves.
PLANE = f"{PAPER} --labels conv2d-filters --where pass=forward layout=nhwc cache=cold"

PAGE = """# Gallery

`docs/gallery/make.py` draws these figures from the result files of `tests/data/`. Figures 1 to 10 show the
same axes and the same pass as the paper's figures; the caches were flushed before each iteration. Their bytes
are counted in device memory; results that stay in L2 are not counted.
[findings](../findings.md) and [frameworks](../frameworks.md) compare the numbers with the paper's.
"""


def of_paper(number, title, kind, layer, axis, way, precision):
    """Returns a row of FIGURES for a figure of the paper, with flushed caches and bytes of device memory. The figure
    compares frameworks, or layouts of cuDNN if the file of the frameworks is missing."""
    fixed = " ".join(f"{name}={value}" for name, value in DEFAULTS[layer].items() if name != axis)
    series = " ".join(["precision"] * ("," in precision) + ["pass"] * ("," in way))
    labels = " ".join(f"{name}-{layer}" for name in ("cudnn", "torch", "jax"))
    passes = {"conv2d": way.replace("backward", "backward-data,backward-filter"), "lstm": way}[layer]
    both = f"pass={passes} " * (way != "both")
    own = f"{kind} {PAPER} --labels {layer}-{axis} --where {both}precision={precision} cache=cold --level dram"
    own += f" --series {'layout ' * (layer == 'conv2d')}{series or 'precision'}" + " pass" * (passes != way)
    beside = f"{kind} {FRAMEWORKS} --labels {labels} --where pass={way} precision={precision} cache=cold {fixed}"
    return (
        f"figure{number}",
        f"Figure {number}: {title}",
        f"{beside} --by {axis} --level dram --series label axis_mode {series}",
        own,
    )


# (name, title, arguments of `roofsweep-post plot`, maybe other arguments if a file of the first arguments is missing)
FIGURES = [
    (
        "figure1",
        "Figure 1: run time of a conv2d with 256 filters, fp16, forward and backward",
        f"bars {FRAMEWORKS} --labels cudnn-conv2d torch-conv2d jax-conv2d --where filters=256 precision=fp16 cache=cold"
        " --by pass --series label axis_mode",
        f"bars {PAPER} --labels conv2d-filters --where filters=256 precision=fp16 cache=cold --by pass --series layout",
    ),
    (
        "classic",
        "Figure 2a: classic Roofline with its four regions and the ceilings of launch overhead",
        f"regions {PLANE} precision=fp16",
    ),
    ("complexity", "Figure 2b: complexity plane", f"complexity {PLANE} --level dram"),
    ("time", "Figure 2c: time plane", f"time {PLANE} --level dram"),
    ("four", "Figure 2d: both, complexity closed and time open", f"four {PLANE} --level dram"),
    of_paper(
        "3ab",
        "conv2d by batch, forward",
        *("four", "conv2d", "batch", "forward", "fp16,fp32"),
    ),
    of_paper(
        "3c",
        "conv2d by batch, backward, fp16",
        *("four", "conv2d", "batch", "backward", "fp16"),
    ),
    of_paper(
        4,
        "conv2d by filters, forward, fp32",
        *("four", "conv2d", "filters", "forward", "fp32"),
    ),
    of_paper(
        5,
        "conv2d by filters, backward, fp16",
        *("four", "conv2d", "filters", "backward", "fp16"),
    ),
    of_paper(
        6,
        "conv2d by size of the kernel, forward",
        *("classic", "conv2d", "kernel", "forward", "fp16,fp32"),
    ),
    of_paper(
        7,
        "conv2d by stride, forward, fp16",
        *("four", "conv2d", "stride", "forward", "fp16"),
    ),
    of_paper(
        8,
        "conv2d by stride, backward, fp16",
        *("classic", "conv2d", "stride", "backward", "fp16"),
    ),
    of_paper(
        9,
        "LSTM by batch, backward, fp16",
        *("four", "lstm", "batch", "backward", "fp16"),
    ),
    of_paper(
        10,
        "LSTM by sequence, forward",
        *("four", "lstm", "sequence", "forward", "fp16,fp32"),
    ),
    ("levels", "Every memory level, the levels of a row joined", f"classic {FILTERS} --level all"),
    ("counted", "Counted against modelled", f"counted {PAPER} --labels conv2d-filters --where {ONE} --width page"),
    ("waves", "Waves and tail of the kernels", f"waves {FILTERS} precision=fp32"),
    ("parts", "Parts of the time of the guide's operations", f"parts {PARTS}"),
    ("kernels", "Kernels on the Roofline", f"kernels {FILTERS} precision=fp32"),
    (
        "training",
        "A training step by hand and by the library, beside work that is known",
        f"classic {TRAINING} {STEP} --level all",
    ),
    (
        "devices",
        "The same on a GPU and on a core of a CPU",
        f"classic {TRAINING} {CORE} {STEP} --width page",
    ),
    (
        "handwritten",
        "Convolutions by hand beside the library's",
        f"classic {BY_HAND} --labels default stages points --where precision=fp16 --series implementation --level l2",
    ),
    ("energy", "Energy of a FLOP, measured and by the energy roofs", f"energy {ENERGY} --labels products"),
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
    """Reduces the colours of an image, which saves two thirds of the bytes without a visible difference."""
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, kmeans=1).save(path, optimize=True)


def chosen(alternatives):
    """Returns the first arguments whose files exist, and the missing files."""
    files = [[word for word in one.split() if word.endswith(".nc")] for one in alternatives]
    missing = [[path for path in own if not os.path.exists(path)] for own in files]
    found = [one for one, files in zip(alternatives, missing) if not files]
    return found[0] if found else "", sorted({path for files in missing for path in files})


def main():
    os.chdir(ROOT)
    page = [PAGE]
    waiting = {}
    for name, title, *alternatives in FIGURES:
        arguments, files = chosen(alternatives)
        for file in files:
            waiting.setdefault(file, []).append(name)
        if not arguments:
            continue
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
        rest = textwrap.wrap(rest, 112, break_long_words=False, break_on_hyphens=False)
        lines = " \\\n    ".join([first, *rest])
        page.append(f"## {title}\n")
        page.append(f"```\n{lines}\n```\n\n![{name}]({name}.png)\n")
    for file, names in waiting.items():
        print(f"{', '.join(names)}: drawn from another file, {file} is missing")
        page.append(f"With `{file}` {len(names)} of these would show cuDNN, PyTorch and JAX.\n")
    with open(os.path.join(HERE, "README.md"), "w", encoding="utf-8") as stream:
        stream.write("\n".join(page))


if __name__ == "__main__":
    main()
