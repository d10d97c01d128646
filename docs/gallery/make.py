#!/usr/bin/env python3
"""Draws the figures of this folder from the result files of tests/data, and writes its README: docs/gallery/make.py"""

import os
import shlex
import subprocess
import sys
import textwrap

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../postproc"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests"))

import frameworks
import roofsweep_post
from roofsweep_post import cli, figures
from roofsweep_post.figures import frame, planes, style

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAPER = "tests/data/paper_h200.nc"
ALGORITHMS, LOOPS = "tests/data/algorithms_h200.nc", "tests/data/loops_h200.nc"
REPLICATE = "tests/data/node_4xh200.nc"
TRAINING, CPU = "tests/data/training_h200.nc", "tests/data/training_cpu.nc"
BY_HAND, ENERGY = "tests/data/handwritten_h200.nc", "tests/data/energy_h200.nc"
FRAMEWORKS, PARTS = "tests/data/paper_frameworks_h200.nc", "tests/data/guide_h200.nc"
# Selects one layout and one cache mode.
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

`docs/gallery/make.py` draws these figures. Figures 1 to 10 have the axes, lines, boxes and passes of the paper's
figures, and rows with cold caches. [Findings](../findings.md) tests the paper's claims. Bytes are those of device
memory, without results that stay in L2.

{table}
"""
# {figure: (the paper's result, the result here)}
BESIDE = {
    "figure1": (
        "TensorFlow 2 is slowest backward",
        "each finds the same algorithm; JAX is idle for {jax} % of the time",
    ),
    "figure3ab": ("same intensity at each batch", "in fp16; in fp32 results of a small batch stay in L2"),
    "figure3c": ("TensorFlow 1: tensor units only at larger batches", "tensor units at each batch"),
    "figure4": ("intensity rises, except in PyTorch", "rises in PyTorch, too"),
    "figure5": ("compute-bound at 512 filters", "compute-bound from {balanced} filters on, JAX from {jax_balanced}"),
    "figure6": ("PyTorch keeps its FLOP/s in fp32", "its FLOP/s fall from kernel size {falls} on"),
    "figure7": ("same bytes, fewer FLOPs with the stride", "fewer FLOPs and fewer bytes"),
    "figure8": ("FLOP/s drop where tensor units are not used", "PyTorch and JAX drop at stride 3, with tensor units"),
    "figure9": (
        "in the box, same time",
        "in the box; PyTorch is idle for {torch} % of the time, JAX runs the forward pass, too",
    ),
    "figure10": ("in the box, same intensity", "in the box; JAX alone launches kernels for each step"),
}


def of_paper(number, title, kind, layer, axis, way, precision):
    """Returns a row of FIGURES for a figure of the paper, with flushed caches and bytes of device memory."""
    fixed = " ".join(f"{name}={value}" for name, value in DEFAULTS[layer].items() if name != axis)
    where = f"--where pass={way} precision={precision} cache=cold {fixed} --by {axis}"
    series = "label axis_mode" + " precision" * ("," in precision)
    return f"figure{number}", f"Figure {number}: {title}", f"{kind} {FRAMEWORKS} {where} --series {series}"


# (name, title, arguments of `roofsweep-post plot`)
FIGURES = [
    (
        "figure1",
        "Figure 1: run time of a conv2d with 256 filters, fp16, forward and backward",
        f"bars {FRAMEWORKS} --where filters=256 precision=fp16 cache=cold --by pass --series label axis_mode",
    ),
    (
        "classic",
        "Figure 2a: classic Roofline with its four regions and the ceilings of launch overhead",
        f"regions {PLANE} precision=fp16",
    ),
    ("complexity", "Figure 2b: complexity plane", f"complexity {PLANE} --level dram"),
    ("time", "Figure 2c: time plane", f"time {PLANE} --level dram"),
    ("four", "Figure 2d: both, complexity closed and time open", f"four {PLANE}"),
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
    ("levels", "All memory levels, with a line through the levels of a row", f"classic {FILTERS} --level all"),
    ("counted", "Counted against modelled", f"counted {PAPER} --labels conv2d-filters --where {ONE} --width page"),
    ("waves", "Waves and tail of the kernels", f"waves {FILTERS} precision=fp32"),
    ("parts", "Parts of the time of the guide's operations", f"parts {PARTS}"),
    (
        "network",
        "ResNet-50, batch 16: its layers, and their total time",
        "network tests/data/resnet50_h200.nc --labels resnet50 --width page",
    ),
    ("kernels", "Kernels on the Roofline", f"kernels {FILTERS} precision=fp32"),
    (
        "training",
        "A training step by hand and by the library, beside known work",
        f"classic {TRAINING} {STEP} --level all",
    ),
    (
        "devices",
        "A training step on a GPU and on a CPU",
        f"classic {TRAINING} {CPU} {STEP} --width page",
    ),
    (
        "handwritten",
        "Convolutions by hand beside the library's",
        f"classic {BY_HAND} --labels default stages points --where precision=fp16 --series implementation --level l2",
    ),
    ("energy", "Energy of a FLOP: measured, and at the energy roofs", f"energy {ENERGY} --labels products"),
    ("roofs", "Roofs of a GPU against theory", f"roofs {PAPER}"),
    ("map", "Four GPUs: each roof against its median", f"map {REPLICATE} --where condition=together --width page"),
    (
        "strip",
        "Four GPUs on the same configurations",
        f"strip {REPLICATE} --width page",
    ),
    ("history", "One GPU over the sessions of several files", f"history {PAPER} {ALGORITHMS} {LOOPS}"),
]


def numbers(arguments):
    """Returns four numbers of a figure: longest / shortest time of the frameworks at one point, largest / smallest
    intensity of a series, launch overhead in us, and the rows in its box."""
    options = cli.arguments(["plot", *arguments.split()])
    how = {name: getattr(options, name) for name in ("where", "series", "by", "labels")}
    scene = figures.scene([roofsweep_post.load(path) for path in options.files], **how)
    table, overhead = scene.rows, scene.rows["overhead_time"]
    (width, peak), _ = planes.balance_of(scene)
    time = table.groupby(list(dict.fromkeys([scene.chosen_by, "precision", "pass"])))["time_median"]
    intensity = [series.rows["intensity_at"] for series in scene.series]
    ends = [time.max() / time.min(), [own.max() / own.min() for own in intensity], 1e6 * overhead]
    boxed = (table["flops"] / peak < overhead) & (table["bytes_at"] / width < overhead)
    return [*(f"{min(own):.2f} to {max(own):.2f}" for own in ends), f"{boxed.sum()} of {len(table)}"]


def facts(balance):
    """Returns the numbers of the texts in BESIDE. balance: FLOP/B of the device."""
    f = frameworks.Frameworks(os.path.join(ROOT, FRAMEWORKS))
    half = f.conv2d.query("precision == 'fp16'")
    over = half[half.flops > balance * half.memory_bytes]
    over = over.query("`pass` == 'backward' and batch == 16 and stride == 2 and filter_height == 3")
    layers = f.conv2d.query("precision == 'fp32' and `pass` == 'forward' and filters == 64 and stride == 2")
    torch = layers.query("batch == 16 and series == 'PyTorch, eager'").sort_values("filter_height")
    steps = f.lstm.query("precision == 'fp16' and `pass` == 'backward' and axis_mode == 'eager'")
    idle = {"jax": half.query("filters == 256 and series == 'JAX'"), "torch": steps}
    found = {name: 100 * (1 - (rows.busy_time / rows.time_median).median()) for name, rows in idle.items()}
    found |= {"balanced": over[over.series != "JAX"].filters.min(), "jax_balanced": over.filters.min()}
    found["falls"] = torch.filter_height[torch.rate.diff() < 0].min()
    return {name: f"{value:.0f}" for name, value in found.items()}


def beside():
    """Returns a text and a table that compare the paper's results with the results here."""
    own = {name: arguments for name, _, arguments in FIGURES}
    data = roofsweep_post.load(FRAMEWORKS)
    (width, peak), _ = planes.balance_of(figures.scene(data))
    names, times = data["device_roof_name"].values, 1e6 * data["device_roof_time"].values
    gap, within = (float(np.median(times[names == name])) for name in ("launch gap", "launch gap graph"))
    text = f"""The paper compares PyTorch 1.5, TensorFlow 1.15 and 2.2 on a V100 of 130 FLOP/B; here cuDNN, PyTorch and
JAX run on an {data["device_model"].values[0]} of {peak / width:.0f} FLOP/B. A box is a row's launch overhead:
{gap:.2f} us for each launch, or {within:.2f} us within a CUDA graph. In the paper a launch takes 4.2 us. The "time of
frameworks" is the longest time at one point divided by the shortest. The "intensity on the axis" is the largest
intensity of a series divided by the smallest."""
    head = "| figure | in the paper | here | time of frameworks | intensity on the axis | overhead, us | in a box |"
    lines = [" | ".join([name.removeprefix("figure"), *told, *numbers(own[name])]) for name, told in BESIDE.items()]
    lines = [line.format(**facts(peak / width)) for line in lines]
    return "\n".join([textwrap.fill(text, 120), "", head, "|---" * 7 + "|", *(f"| {line} |" for line in lines)])


def curve():
    """Draws the operating curve of the gate, which docs/measurements.md has as a table."""
    with open("docs/measurements.md", encoding="utf-8") as page:
        table = page.read().split("<!-- curve of the gate -->")[1].split("<!-- end -->")[0]
    (_, *sizes), *rows = (line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| "))
    with style.settings():
        figure, (axes,) = frame.page("column", 2.2)
        axes.set(xlabel="slower by (%)", ylabel="found (%)", ylim=(-5, 105))
        for number, (name, *shares) in enumerate(rows):
            how = {"marker": style.MARKERS[number], "color": style.COLOURS[number % len(style.COLOURS)], "label": name}
            x = [float(size.split()[0]) + 0.06 * (number - len(rows) / 2) for size in sizes]
            axes.plot(x, [float(share.split()[0]) for share in shares], linewidth=0.6, gid=f"{name}|curve", **how)
        text = "GPUs that the gate finds, and for the right reason. Symbols of one size stand side by side."
        frame.settle(figure, [axes], 2.2, axes.get_lines(), text)
    return figure


def small(path):
    """Reduces the colours of an image, which saves two thirds of the bytes without a visible difference."""
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, kmeans=1).save(path, optimize=True)


def main():
    os.chdir(ROOT)
    page = [PAGE.format(table=beside())]
    for name, title, arguments in FIGURES:
        path = f"docs/gallery/{name}.png"
        command = ["postproc/roofsweep-post", "plot", *arguments.split(), "--output", path]
        subprocess.run([sys.executable, *command], check=True)
        small(path)
        files = 3 + sum(word.endswith(".nc") for word in command)
        first, rest = shlex.join(command[:files]), shlex.join(command[files:-2])
        rest = textwrap.wrap(rest, 112, break_long_words=False, break_on_hyphens=False)
        lines = " \\\n    ".join([first, *rest])
        page.append(f"## {title}\n\n```\n{lines}\n```\n\n![{name}]({name}.png)\n")
    curve().savefig("docs/gallery/gate.png", dpi=style.DPI)
    small("docs/gallery/gate.png")
    page.append("## Operating curve of the gate\n\n[Table](../measurements.md).\n\n![gate](gate.png)\n")
    with open(os.path.join(HERE, "README.md"), "w", encoding="utf-8") as stream:
        stream.write("\n".join(page))


if __name__ == "__main__":
    main()
