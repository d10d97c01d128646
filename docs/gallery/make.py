#!/usr/bin/env python3
"""Draws this folder's figures from the result files of tests/data, and its README: docs/gallery/make.py

A figure that a file cannot give (kernels that were not counted, say) is named and left out."""

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
FRAMEWORKS = "tests/data/paper_frameworks_h100.nc"
# One of the layouts and of the cache modes that the file may have.
ONE = "layout=nhwc cache=hot"
FILTERS = f"{PAPER} --labels conv2d-filters --where pass=forward {ONE}"
STEP = "--labels product registers shared step --where cache=hot --series workload implementation"
# The paper's layers: what does not vary.
DEFAULTS = {
    "conv2d": {"batch": 16, "filters": 64, "kernel": 3, "stride": 2},
    "lstm": {"batch": 16, "sequence": 16, "features": 32, "hidden": 16},
}
# Figure 2 is of no particular layer.
PLANE = f"{PAPER} --labels conv2d-filters --where pass=forward layout=nhwc cache=cold"


def of_paper(number, title, told, kind, layer, axis, way, precision):
    """One of the paper's figures, with flushed caches and bytes of device memory: by framework, and until there is that
    file by the layouts of cuDNN itself. told: what the paper saw, and what is seen here."""
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
        told,
        f"{beside} --by {axis} --level dram --series label axis_mode {series}",
        own,
    )


# name, what it shows, what the paper saw and what is seen here, the arguments of `roofsweep-post plot`; of several the
# first is drawn whose files are there
FIGURES = [
    (
        "figure1",
        "Figure 1: run time of a conv2d with 256 filters, fp16, forward and backward",
        "The paper: TensorFlow 2 is slow backward. Here: all are within a tenth, backward too.",
        f"bars {FRAMEWORKS} --labels cudnn-conv2d torch-conv2d jax-conv2d --where filters=256 precision=fp16 cache=cold"
        " --by pass --series label axis_mode",
        f"bars {PAPER} --labels conv2d-filters --where filters=256 precision=fp16 cache=cold --by pass --series layout",
    ),
    (
        "classic",
        "Figure 2a: classic Roofline with its four regions and the ceilings of launch overhead",
        "The paper: a sketch. Here: a conv2d by filters.",
        f"regions {PLANE} precision=fp16",
    ),
    ("complexity", "Figure 2b: complexity plane", "", f"complexity {PLANE} --level dram"),
    ("time", "Figure 2c: time plane", "", f"time {PLANE} --level dram"),
    ("four", "Figure 2d: both, complexity closed and time open", "", f"four {PLANE} --level dram"),
    of_paper(
        "3ab",
        "conv2d by batch, forward",
        "The paper: each framework keeps its intensity; PyTorch moves as much in fp32 as in fp16. Here: each keeps"
        " it in fp16; fp32 moves at least 5 times the data, in PyTorch too.",
        *("four", "conv2d", "batch", "forward", "fp16,fp32"),
    ),
    of_paper(
        "3c",
        "conv2d by batch, backward, fp16",
        "The paper: boxes of overhead differ, padding and shuffling cost time. Here: JAX has the larger box, and"
        " moves fewer bytes at batch 16.",
        *("four", "conv2d", "batch", "backward", "fp16"),
    ),
    of_paper(
        4,
        "conv2d by filters, forward, fp32",
        "The paper: more filters, more FLOP/s and intensity, but not in PyTorch. Here: in each, on the same line.",
        *("four", "conv2d", "filters", "forward", "fp32"),
    ),
    of_paper(
        5,
        "conv2d by filters, backward, fp16",
        "The paper: algorithms change all the time, at 512 filters all are compute-bound."
        " Here: at 512 all are bound by memory, near the balance.",
        *("four", "conv2d", "filters", "backward", "fp16"),
    ),
    of_paper(
        6,
        "conv2d by size of the kernel, forward",
        "The paper: intensity and FLOP/s rise, but PyTorch's FLOP/s in fp32. Here: in fp32 FLOP/s fall from 5 on.",
        *("classic", "conv2d", "kernel", "forward", "fp16,fp32"),
    ),
    of_paper(
        7,
        "conv2d by stride, forward, fp16",
        "The paper: a larger stride does fewer FLOPs on about the same bytes. Here: from stride 2 to 3 the bytes stay.",
        *("four", "conv2d", "stride", "forward", "fp16"),
    ),
    of_paper(
        8,
        "conv2d by stride, backward, fp16",
        "The paper: FLOP/s drop where no tensor unit is used. Here: all use them; PyTorch falls most at stride 3.",
        *("classic", "conv2d", "stride", "backward", "fp16"),
    ),
    of_paper(
        9,
        "LSTM by batch, backward, fp16",
        "The paper: within the box of overhead, always as long. Here: as long at each batch; JAX and PyTorch take about"
        " ten times as long as cuDNN.",
        *("four", "lstm", "batch", "backward", "fp16"),
    ),
    of_paper(
        10,
        "LSTM by sequence, forward",
        "The paper: time grows with the sequence, the intensity stays. Here: so does JAX; of cuDNN and PyTorch by"
        " less.",
        *("four", "lstm", "sequence", "forward", "fp16,fp32"),
    ),
    ("levels", "Every memory level, the levels of a row joined", "", f"classic {FILTERS} --level all"),
    ("counted", "Counted against modelled", "", f"counted {PAPER} --labels conv2d-filters --where {ONE} --width page"),
    ("waves", "Waves and tail of the kernels", "", f"waves {FILTERS} precision=fp32"),
    ("kernels", "Kernels on the Roofline", "", f"kernels {FILTERS} precision=fp32"),
    (
        "training",
        "A training step by hand and by the library, beside work that is known",
        "",
        f"classic {TRAINING} {STEP} --level all",
    ),
    (
        "devices",
        "The same on a GPU and on a core of a CPU",
        "",
        f"classic {TRAINING} {CORE} {STEP} --width page",
    ),
    (
        "handwritten",
        "Convolutions by hand beside the library's",
        "",
        f"classic {BY_HAND} --labels default stages points --where precision=fp16 --series implementation --level l2",
    ),
    ("energy", "Energy of a FLOP, measured and by the energy roofs", "", f"energy {ENERGY} --labels products"),
    ("roofs", "Roofs of a GPU against theory", "", f"roofs {PAPER}"),
    ("map", "Eight GPUs, each roof against the median", "", f"map {EIGHT} --width page"),
    (
        "strip",
        "Four GPUs on the same configurations",
        "",
        f"strip {REPLICATE} --width page",
    ),
    ("history", "One GPU over the sessions of several files", "", f"history {PAPER} {ALGORITHMS} {LOOPS}"),
]


def small(path):
    """A third of the bytes, and no difference to see."""
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, kmeans=1).save(path, optimize=True)


def chosen(alternatives):
    """The arguments that can be drawn, and which files others wait for."""
    files = [[word for word in one.split() if word.endswith(".nc")] for one in alternatives]
    missing = [[path for path in own if not os.path.exists(path)] for own in files]
    found = [one for one, files in zip(alternatives, missing) if not files]
    return found[0] if found else "", sorted({path for files in missing for path in files})


def main():
    os.chdir(ROOT)
    page = ["# Gallery\n", "All of it is drawn by `docs/gallery/make.py` from the result files of `tests/data/`."]
    page.append("Figures 1 to 10 have the paper's axes, pass, flushed cache and bytes of device memory, as counted:")
    page.append("what of a result is left in L2 is not among them. [findings](../findings.md) has the numbers.\n")
    waiting = {}
    for name, title, told, *alternatives in FIGURES:
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
        page.append(f"## {title}\n" + f"\n{textwrap.fill(told, 120)}\n" * bool(told))
        page.append(f"```\n{lines}\n```\n\n![{name}]({name}.png)\n")
    for file, names in waiting.items():
        print(f"{', '.join(names)} with {file}: waits for it")
        page.append(f"{len(names)} of these wait for `{file}`: with it they show cuDNN, PyTorch and JAX.\n")
    with open(os.path.join(HERE, "README.md"), "w", encoding="utf-8") as stream:
        stream.write("\n".join(page))


if __name__ == "__main__":
    main()
