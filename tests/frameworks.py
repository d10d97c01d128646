#!/usr/bin/env python3
"""cuDNN, PyTorch and JAX beside each other, and the findings of Wang et al., 2020, that are about frameworks.

Usage: frameworks.py [FILE] [--write | --check | --agree]

FILE is a result file of sweeps/frameworks.ini; without one, the newest committed one. Prints the page
docs/frameworks.md; --write renews it; --check: status 1 if it is not that of the file. --agree: prints which kernels
cuDNN and frameworks share; status 1 if their FLOPs differ, or times in CUDA graphs by more than 5 %; 77 if they share
none."""

import os
import re
import sys
from itertools import product

import numpy as np
import pandas
from evidence import FASTER, PRESERVED, ROOT, UNKNOWN, File, better, markdown, page_hand_over, share, verdict

FILE = "tests/data/frameworks_h200.nc"
CASE = ["batch", "config_precision", "pass"]
SHAPE_OF_LAUNCH = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"] + ["dynamic_shared", "registers"]
GRAPHS_DIFFER = 0.05  # of times in CUDA graphs, of the same kernels
NAMES = {"cudnn": "cuDNN", "torch": "PyTorch", "jax": "JAX"}


def series(row):
    """What stands beside what: the framework, and how it ran."""
    words = [NAMES.get(str(row.label).split("-")[0], str(row.label))]
    if row.get("launch") == "graph":
        words.append("graph")
    if row.get("axis_mode"):
        words.append(row.axis_mode)
    if row.get("axis_benchmark") == "on":
        words.append("tuned")
    if row.get("axis_autotune"):
        words.append(f"autotune {row.axis_autotune}")
    return ", ".join(words)


class Frameworks(File):
    """Rows of the two layers, with the name of their series, and what they have by level of memory."""

    def __init__(self, path):
        super().__init__(path)
        table, data = self.rows.copy(), self.data
        for level, name in enumerate(self.levels):
            table[f"bytes_{name}"] = data.bytes_counted.values[table.row, level]
            table[f"ai_{name}"] = table.flops_counted / table[f"bytes_{name}"]
        table["series"] = [series(row) for _, row in table.iterrows()]
        table["framework"] = table.series.str.split(",").str[0]
        table["box"] = self.overhead(table) / table.time_median
        table["main"] = [self.main_kernel(row) for row in table.row]
        self.table = table
        layer = table.label.str.split("-").str[-1]
        self.conv2d, self.lstm = table[layer == "conv2d"], table[layer == "lstm"]

    def overhead(self, table):
        """Launches times the gap between empty kernels: of a program that replays a graph, that within a graph."""
        graph = self.data.device_roof_name.values == "launch gap graph"
        gaps = dict(
            zip(self.data.device_roof_device.values[graph], self.data.device_roof_time.values[graph], strict=True)
        )
        within = table.get("axis_mode", "") == "graph"
        return np.where(within, table.launches * table.config_device.map(gaps), table.overhead_time)

    def main_kernel(self, row):
        """The name of the kernel in which most of the time goes by."""
        mine = np.flatnonzero(self.data.kernel_config.values == row)
        if not len(mine):
            return ""
        return str(self.data.kernel_name.values[mine[np.argmax(self.data.kernel_time.values[mine])]])

    def launches_of(self, row):
        """Kernels of a row with their grids, and how often each is launched."""
        mine = np.flatnonzero(self.data.kernel_config.values == row)
        names = ["kernel_name", "kernel_count", "kernel_grid_x", "kernel_grid_y", "kernel_grid_z"]
        return sorted(tuple(self.data[name].values[i] for name in names) for i in mine)

    def word(self, name, value):
        """The word that a flag stands for; "" where it is missing."""
        return self.words(name).get(value, "")

    def tuned(self, framework, axis, values):
        """Pairs of rows that differ in one axis alone: without, and with tuning."""
        part = self.conv2d[(self.conv2d.framework == framework) & (self.conv2d.get("axis_mode", "") != "graph")]
        if axis not in part:
            return
        for names, rows in part.groupby(CASE):
            pair = [rows[rows[axis] == value] for value in values]
            if framework == "PyTorch":
                pair = [rows[rows.axis_mode == "eager"] for rows in pair]
            if all(len(rows) == 1 for rows in pair):
                yield names, pair[0].iloc[0], pair[1].iloc[0]


def number(value, form):
    return form.format(value) if np.isfinite(value) else "-"


def case(names):
    """Batch, precision and pass, as they are shown."""
    batch, *others = names
    return [f"{batch:.0f}", *others]


def brief(kernels):
    """Names of kernels without what is in brackets, each of them once."""
    names = [name.split("<")[0].split("(")[0].split("::")[-1] for name in kernels.split(" + ")]
    return ", ".join(f"`{name.replace('void ', '')[:100]}`" for name in dict.fromkeys(names))


def beside(f, rows):
    """One case, a line for each series."""
    lines = []
    for _, r in rows.sort_values("series").iterrows():
        levels = [number(r.get(f"ai_{level}", np.nan), "{:.3g}") for level in ("l1", "l2", "dram")]
        lines.append(
            [r.series, f"{1e6 * r.time_median:.2f}", number(1e6 * r.busy_time, "{:.2f}"), f"{r.launches:.0f}"]
            + [number(r.zero_flop_launches, "{:.0f}"), number(r.flops_counted / 1e6, "{:.6g}"), ", ".join(levels)]
            + [f"{100 * r.box:.0f} %", f.word("bound", r.bound), f.word("limiter", r.limiter)]
        )
    head = ["series", "time, us", "kernels alone", "launches", "without FLOPs", "MFLOP counted"]
    return markdown([*head, "AI at L1, L2, DRAM", "overhead box", "bound", "limiter"], lines)


# ---- the findings: each returns what was looked at, as truths, and its figures ----


def batch_forward(f):
    """The arithmetic intensity is preserved in each framework, whatever the batch."""
    rows, parts = [], []
    part = f.conv2d[(f.conv2d["pass"] == "forward") & (f.conv2d.config_precision == "fp16")]
    for name, r in part.groupby("series"):
        if r.batch.nunique() < 2 or not np.isfinite(r.ai_l2).all():
            continue
        r = r.sort_values("batch")
        parts.append(r.ai_l2.max() / r.ai_l2.min() <= PRESERVED)
        rows.append([name, ", ".join(f"{v:.0f}" for v in r.batch), ", ".join(f"{v:.3g}" for v in r.ai_l2)])
        rows[-1].append("yes" if r.kernels.nunique() == 1 else "no")
    text = f"AI is preserved if the largest is at most {PRESERVED} times the smallest."
    return parts, [text, "", *markdown(["series", "batch", "AI at L2", "same kernels"], rows)]


def bytes_by_precision(f):
    """From half to single precision twice the data is moved; in PyTorch it stays the same."""
    rows, parts = [], []
    for names, r in f.conv2d.groupby(["framework", "series", "batch", "pass"]):
        half, single = (r[r.config_precision == precision].bytes_l2 for precision in ("fp16", "tf32"))
        if len(half) != 1 or len(single) != 1:
            continue
        grown = single.iloc[0] / half.iloc[0]
        parts.append(grown < 1.2 if names[0] == "PyTorch" else 1.6 <= grown <= 2.4)
        rows.append([names[1], f"{names[2]:.0f}", names[3], f"{grown:.2f}"])
    return parts, markdown(["series", "batch", "pass", "bytes at L2 in tf32 / in fp16"], rows)


def invocations(f):
    """Backward, frameworks differ in the number of launches."""
    rows, parts = [], []
    for names, r in f.conv2d[f.conv2d["pass"] != "forward"].groupby(CASE):
        parts.append(r.launches.nunique() > 1)
        rows.append([*case(names), "; ".join(f"{s}: {n:.0f}" for s, n in zip(r.series, r.launches, strict=True))])
    return parts, markdown(["batch", "precision", "pass", "launches"], rows)


def movers(f):
    """Who has fewer kernels without FLOPs (padding, other layouts) has the shorter kernels' time."""
    rows, parts = [], []
    for names, r in f.conv2d.groupby(CASE):
        r = r[np.isfinite(r.zero_flop_launches)]
        with_, without = (r[(r.zero_flop_launches > 0) == some].busy_time for some in (True, False))
        if len(with_) and len(without):
            parts.append(with_.min() > without.min())
        cells = [f"{1e6 * times.min():.2f} us of {len(times)}" if len(times) else "none" for times in (without, with_)]
        rows.append([*case(names), *cells])
    return parts, markdown(["batch", "precision", "pass", "shortest without such kernels", "with them"], rows)


def same_kernels(f):
    """All frameworks use the same convolution kernel; PyTorch adds one for another layout."""
    rows, parts = [], []
    for names, r in f.conv2d[f.conv2d["pass"] == "forward"].groupby(CASE):
        parts.append(r.main.nunique() == 1)
        parts.append(
            any(s.startswith("PyTorch") and n > 0 for s, n in zip(r.series, r.zero_flop_launches, strict=True))
        )
        rows += [
            [*case(names), "; ".join(sorted(r[r.kernels == kernels].series)), brief(kernels)]
            for kernels in sorted(set(r.kernels))
        ]
    return parts, markdown(["batch", "precision", "pass", "series", "kernels"], rows)


def tensor_units(f):
    """The fast rows use tensor units, by functions of cuDNN."""
    rows, parts = [], []
    for names, r in f.conv2d[f.conv2d.config_precision == "fp16"].groupby(CASE):
        fast = r.busy_time <= 2 * r.busy_time.min()
        parts += list(r[fast].tensor_flops > 0)
        rows.append([*case(names), share(r[fast].tensor_flops > 0), share(r[~fast].tensor_flops > 0)])
    head = [
        "batch",
        "precision",
        "pass",
        "of the fast rows, on tensor units",
        "of those that take twice as long and more",
    ]
    return parts, markdown(head, rows)


def lstm_overhead(f):
    """An LSTM is overhead-bound in each framework."""
    rows, parts = [], []
    for _, r in f.lstm.iterrows():
        bound = f.word("bound", r.bound)
        parts += [] if bound == "unknown" else [bound == "overhead"]
        idle = 1 - r.busy_time / r.time_median
        rows.append([r.series, r["pass"], f"{100 * r.box:.0f} %", number(100 * idle, "{:.0f} %")])
        rows[-1] += [bound, f.word("limiter", r.limiter)]
    text = [
        "So few FLOPs and bytes take less than their launches cost, by the roofs: that is *bound*. Whether launches or",
        "the latency within the kernels take the time in fact is told by *limiter*.",
        "",
    ]
    return parts, text + markdown(["series", "pass", "overhead box", "no kernel runs", "bound", "limiter"], rows)


def lstm_launches(f):
    """PyTorch's LSTM, forward, has 36 launches, two of them without FLOPs."""
    rows, parts = [], []
    for _, r in f.lstm[f.lstm["pass"] == "forward"].iterrows():
        rows.append([r.series, f"{r.launches:.0f}", number(r.zero_flop_launches, "{:.0f}"), brief(r.kernels)])
        if r.framework == "PyTorch":
            parts.append(r.launches == 36)
    return parts, markdown(["series", "launches", "without FLOPs", "kernels"], rows)


def fewest_launches(f):
    """The framework with the fewest launches is the fastest."""
    rows, parts = [], []
    for names, r in [*f.conv2d.groupby(CASE), *f.lstm.groupby(CASE)]:
        fast = r.loc[r.time_median.idxmin()]
        parts.append(fast.launches == r.launches.min())
        rows.append([fast.label.split("-")[-1], f"{names[0]:.0f}", *names[1:], fast.series])
        rows[-1] += [f"{fast.launches:.0f}", f"{r.launches.min():.0f} to {r.launches.max():.0f}"]
    return parts, markdown(["layer", "batch", "precision", "pass", "fastest", "its launches", "launches of all"], rows)


def auto_tuning(f):
    """Auto-tuning changes the algorithm, to the better."""
    rows, parts = [], []
    for framework, axis, values in (("PyTorch", "axis_benchmark", ("off", "on")), ("JAX", "axis_autotune", ("0", "4"))):
        for names, without, tuned in f.tuned(framework, axis, values):
            changed = without.kernels != tuned.kernels
            parts.append(better(changed, without.busy_time, tuned.busy_time, FASTER))
            rows.append([framework, *case(names), "yes" if changed else "no"])
            rows[-1] += [f"{1e6 * r.busy_time:.2f}" for r in (without, tuned)]
    own = f.conv2d[(f.conv2d.framework == "cuDNN") & np.isfinite(f.conv2d.get("heuristic_time", np.nan))]
    for _, r in own.iterrows():
        changed = r.algorithm_id != r.heuristic_id
        parts.append(better(changed, r.heuristic_time, r.search_time, r.search_noise))
        rows.append([r.series, *case(r[CASE]), "yes" if changed else "no"])
        rows[-1] += [f"{1e6 * r.heuristic_time:.2f}", f"{1e6 * r.search_time:.2f}"]
    head = ["by", "batch", "precision", "pass", "other kernels", "kernels' us without", "with"]
    return parts, [
        "It counts for the claim if other kernels are faster by more than the search's noise, of a program by more",
        f"than {100 * FASTER:.0f} %.",
        "Where nothing changes it counts against it.",
        "",
        *markdown(head, rows),
    ]


FINDINGS = [
    ("IV-A.1, forward", batch_forward),
    ("IV-A.1, forward", bytes_by_precision),
    ("IV-A.1, backward", invocations),
    ("IV-A.1, backward", movers),
    ("IV-A.2, forward", same_kernels),
    ("IV-B.1", lstm_overhead),
    ("IV-B.1", lstm_launches),
    ("V", tensor_units),
    ("V", fewest_launches),
    ("I and IV", auto_tuning),
]


# ---- what must agree ----


def launches(f):
    """Of kernels in rows of convolutions: one line for each that does FLOPs, with the FLOPs of one launch."""
    data, lines = f.data, []
    for _, r in f.conv2d.iterrows():
        for kernel in np.flatnonzero(data.kernel_config.values == r.row):
            each = data.kernel_flops_counted.values[kernel] / data.kernel_count.values[kernel]
            shape = [int(data[f"kernel_{name}"].values[kernel]) for name in SHAPE_OF_LAUNCH]
            if each > 0:
                lines.append(
                    {name: r[name] for name in (*CASE, "framework", "series")}
                    | {"kernel": str(data.kernel_name.values[kernel]), "launch": tuple(shape), "flops": round(each)}
                )
    return pandas.DataFrame(lines, columns=[*CASE, "framework", "series", "kernel", "launch", "flops"])


def threads(launch):
    return int(np.prod(launch[:6]))


def of_one_tile(f, names, kernel):
    """FLOPs that a forward pass by an implicit matrix product does for a tile of its result: of each number a product
    for each weight, and 2 for its scale. And how many tiles the result has. None: another sort of kernel."""
    found = re.search(r"fprop_implicit_gemm.*tilesize(\d+)x(\d+)x", kernel)
    own = f.conv2d[(f.conv2d.framework == "cuDNN") & (f.conv2d[CASE] == list(names)).all(axis=1)]
    if not found or own.empty or own.iloc[0].padding != "same":
        return None
    r, pixels, filters = own.iloc[0], int(found[1]), int(found[2])
    results = r.batch * np.prod([(r[size] - 1) // r.stride + 1 for size in ("height", "width")])
    weights = r.channels / r.groups * r.kernel_height * r.kernel_width
    tiles = np.ceil(results / pixels) * np.ceil(r.filters / r.groups / filters) * r.groups
    return round(2 * pixels * filters * (weights + 1)), round(tiles)


def tiles_of(f, names, kernel, launch, flops):
    """How many tiles a launch computes, of how many, as a text. "": its FLOPs are not of whole tiles and 3 a thread."""
    one = of_one_tile(f, names, kernel)
    if one is None:
        return "-"
    tiles, rest = divmod(flops - 3 * threads(launch), one[0])
    return f"{tiles} of {one[1]}" if rest == 0 and tiles >= one[1] else ""


def shared_kernels(f):
    """Kernels that are in rows of cuDNN and of a framework: lines of a table; how many of their launches have the same
    shape in several; and what is wrong."""
    lines, alike, wrong = [], 0, []
    table = launches(f)
    for (*names, kernel), one in table.groupby([*CASE, "kernel"]):
        if one.framework.nunique() < 2:
            continue
        for launch, same in one.groupby("launch"):
            alike += same.framework.nunique() > 1
            flops = sorted(set(same.flops))
            tiles = [tiles_of(f, names, kernel, launch, n) for n in flops]
            if len(flops) > 1 or "" in tiles:
                wrong.append(f"{kernel} {launch}: {flops}, {tiles}")
            grid = " x ".join(str(n) for n in launch[:3])
            lines.append([*case(names), brief(kernel), grid, "; ".join(sorted(set(same.series)))])
            lines[-1] += ["; ".join(str(n) for n in flops), "; ".join(str(n - 3 * threads(launch)) for n in flops)]
            lines[-1].append("; ".join(tiles))
    return lines, alike, wrong


def flops_agree(f):
    """The same kernels in rows of cuDNN and of a framework, and whether their FLOPs are the same."""
    lines, alike, wrong = shared_kernels(f)
    if not lines:
        return ["No kernel is in rows of several frameworks."]
    kernels = len({(*line[:3], line[3]) for line in lines})
    text = [
        f"{kernels} kernels are in rows of several frameworks, {alike} of their launches with the same grid.",
        "The same kernel in the same grid does "
        + ("NOT " if wrong else "")
        + "the same FLOPs in all, to the last digit.",
        "",
        "cuDNN may launch one kernel in several grids, and which one it takes is a matter of its version and of luck.",
        "A kernel computes its result by tiles. Where a grid does not fit their number, tiles beyond the result are",
        "computed as well, and counted. Each thread does 3 FLOPs more, whatever it computes.",
        "",
    ]
    head = [
        "batch",
        "precision",
        "pass",
        "kernel",
        "grid",
        "series",
        "FLOPs of a launch",
        "without 3 a thread",
        "tiles",
    ]
    return [*text, *markdown(head, lines)]


def graphs_beside(f):
    """Times of PyTorch's graphs beside those of cuDNN's calls within a graph of several iterations: lines of a table,
    of those with the same kernels and grids the differences. A graph may hold more than kernels, as its idle time
    tells: PyTorch takes one of several ways by its own timing."""
    lines, differences = [], []
    for layer, table in (("conv2d", f.conv2d), ("lstm", f.lstm)):
        for names, r in table.groupby(CASE):
            torch = r[(r.framework == "PyTorch") & r.series.str.contains("graph")]
            own = r[(r.framework == "cuDNN") & np.isfinite(r.graph_time)]
            for (_, one), (_, other) in product(torch.iterrows(), own.iterrows()):
                difference = one.time_median / other.graph_time - 1
                same = f.launches_of(one.row) == f.launches_of(other.row)
                idle = 1 - one.busy_time / one.time_median
                differences += [difference] if same and idle <= GRAPHS_DIFFER else []
                alike = (
                    f"yes, but idle for {100 * idle:.0f} %"
                    if same and idle > GRAPHS_DIFFER
                    else "yes"
                    if same
                    else "no"
                )
                lines.append([layer, *case(names), one.series, f"{1e6 * one.time_median:.2f}", other.series])
                lines[-1] += [f"{1e6 * other.graph_time:.2f}", f"{100 * difference:+.1f} %", alike]
    return lines, differences


def graphs_agree(f):
    """Times of PyTorch's graphs beside those of cuDNN's calls within a graph of several iterations."""
    head = ["layer", "batch", "precision", "pass", "series", "us", "beside", "us in a graph", "difference"]
    return markdown([*head, "same kernels and grids"], graphs_beside(f)[0])


def agreement(f):
    """Status, with what there is on standard output."""
    lines, _, wrong = shared_kernels(f)
    _, differences = graphs_beside(f)
    print("\n".join([*flops_agree(f), "", *graphs_agree(f)]))
    wrong += [f"times in CUDA graphs differ by {100 * d:.1f} %" for d in differences if abs(d) > GRAPHS_DIFFER]
    print("\n".join(wrong))
    return 1 if wrong else 0 if lines else 77


def told(test, f):
    """What a test says: the verdict, how many of what it looked at agree, and the figures. A file without the rows that
    it needs tells nothing."""
    try:
        parts, figures = test(f)
    except (AttributeError, IndexError, KeyError, ValueError, ZeroDivisionError) as error:
        return UNKNOWN, "-", [f"The file lacks what this needs ({type(error).__name__})."]
    return verdict(parts), share(parts), figures


def page(f):
    """The whole page, as lines."""
    data, day = f.data, str(f.rows.start_time.min())[:10]
    lines = [
        "# cuDNN, PyTorch and JAX beside each other",
        "",
        "The layers of Wang et al., *Time-Based Roofline for Deep Learning Performance Analysis*, 2020, through cuDNN",
        "itself, through PyTorch (eager, compiled, as a CUDA graph) and through JAX, in one sweep: what a framework",
        "adds to the kernels. `tests/frameworks.py --write` writes this page from the result file.",
        "[programs.md](programs.md) says how a program is measured, [findings.md](findings.md) has the paper's other",
        "findings, [measurements.md](measurements.md#programs) the versions of the frameworks.",
        "",
        *markdown(
            ["file", "of", "devices", "libraries of roofsweep itself", "measured"],
            [
                [
                    f"`{os.path.relpath(f.path, ROOT)}`",
                    "`sweeps/frameworks.ini`",
                    f"{len(data.device_model)} x {data.device_model.values[0]}",
                ]
                + [str(data.device_library_version.values[0]), day]
            ],
        ),
        "",
        "- *kernels alone*: time in which a kernel runs, traced. What is more in *time* is the host's, or of gaps.",
        "- *without FLOPs*: launches of kernels that move data alone. `-`: the kernels were not counted one by one.",
        "- *overhead box*: launches times the cost of one, as a share of the time. The paper draws it as a box. Of",
        "  rows that replay a CUDA graph it is the cost of a launch within a graph.",
        "- *bound* is the paper's: what would take longest by the roofs. *limiter* is told from the measured times.",
        "  For *bound* a program's launch costs what it does without a graph.",
        "- *tuned*: `torch.backends.cudnn.benchmark`. *autotune*: `--xla_gpu_autotune_level`. Caches are hot.",
        "- PyTorch and JAX bring a cuDNN of their own. It may be of another version than roofsweep's.",
        "",
        "## The paper's findings",
        "",
        "*agree*: how many of the rows, pairs of rows or layers that tell of it agree. They are in the tables below.",
        "",
    ]
    results = [(place, test, *told(test, f)) for place, test in FINDINGS]
    lines += markdown(
        ["in the paper", "finding", "here", "agree", "test"],
        [[place, test.__doc__, f"**{word}**", agree, f"`{test.__name__}`"] for place, test, word, agree, _ in results],
    )
    for title, table in (("conv2d", f.conv2d), ("LSTM", f.lstm)):
        for names, rows in table.groupby(CASE):
            lines += ["", f"## {title}, batch {names[0]:.0f}, {names[1]}, {names[2]}", "", *beside(f, rows)]
    lines += ["", "## The same convolution kernel in several frameworks", "", *flops_agree(f)]
    lines += ["", "## CUDA graphs of PyTorch, and cuDNN in a graph", "", *graphs_agree(f)]
    for place, test, word, _, figures in results:
        lines += ["", f"## {test.__doc__.rstrip('.')}", "", f"{place}. Here: **{word}**.", "", *figures]
    return "\n".join(lines) + "\n"


def main():
    options = {word for word in sys.argv[1:] if word.startswith("--")}
    paths = [word for word in sys.argv[1:] if word not in options] or [os.path.join(ROOT, FILE)]
    if options - {"--write", "--check", "--agree"}:
        raise SystemExit(__doc__)
    if "--agree" in options:
        return agreement(Frameworks(paths[0]))
    return page_hand_over(page(Frameworks(paths[0])), "frameworks", options)


if __name__ == "__main__":
    sys.exit(main())
