#!/usr/bin/env python3
"""cuDNN, PyTorch and JAX beside each other, and the findings of Wang et al., 2020, that are about frameworks.

Usage: frameworks.py [FILE] [--write | --check | --agree]

FILE is a result file of sweeps/frameworks.ini; without one, the newest committed one. Prints the page
docs/frameworks.md; --write renews it; --check: status 1 if it is not that of the file. --agree: prints which kernels
cuDNN and frameworks share; status 1 if their FLOPs differ, or times in CUDA graphs by more than 5 %; 77 if they share
none."""

import os
import sys
from itertools import product

import numpy as np
import pandas
from evidence import FASTER, PRESERVED, ROOT, File, better, listed, markdown, page_hand_over, ratio, share, told

FILE = "tests/data/frameworks_h200.nc"
CASE = ["batch", "precision", "pass"]
SHAPE_OF_LAUNCH = ["blocks", "threads"]
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
    """Rows of the two layers, with the name of their series."""

    def __init__(self, path):
        super().__init__(path)
        table, data = self.rows.copy(), self.data
        table["bytes_l2"] = data.bytes_counted.values[table.row, self.levels.index("l2")]
        table["ai_l2"] = table.flops_counted / table.bytes_l2
        table["series"] = [series(row) for _, row in table.iterrows()]
        table["framework"] = table.series.str.split(",").str[0]
        table["main"] = [self.main_kernel(row) for row in table.row]
        layer = table.label.str.split("-").str[-1]
        self.conv2d, self.lstm = table[layer == "conv2d"], table[layer == "lstm"]

    def kernels_of(self, row):
        return np.flatnonzero(self.data.kernel_config.values == row)

    def main_kernel(self, row):
        """The name of the kernel in which most of the time goes by."""
        mine = self.kernels_of(row)
        return (
            str(self.data.kernel_name.values[mine[np.argmax(self.data.kernel_time.values[mine])]]) if len(mine) else ""
        )

    def launches_of(self, row):
        """Kernels of a row with their blocks, and how often each is launched."""
        names = ["kernel_name", "kernel_count", "kernel_blocks"]
        return sorted(tuple(self.data[name].values[i] for name in names) for i in self.kernels_of(row))

    def tuned(self, framework, axis, values):
        """Pairs of rows that differ in one axis alone: without, and with tuning."""
        part = self.conv2d[(self.conv2d.framework == framework) & (self.conv2d.get("axis_mode", "") != "graph")]
        for _, rows in part.groupby(CASE) if axis in part else []:
            pair = [rows[rows[axis] == value] for value in values]
            if framework == "PyTorch":
                pair = [rows[rows.axis_mode == "eager"] for rows in pair]
            if all(len(rows) == 1 for rows in pair):
                yield pair[0].iloc[0], pair[1].iloc[0]


# ---- the findings: each returns what was looked at, as truths, and its figures ----


def batch_forward(f):
    """The arithmetic intensity is preserved in each framework, whatever the batch."""
    part = f.conv2d[(f.conv2d["pass"] == "forward") & (f.conv2d.precision == "fp16")]
    found = [(name, r.sort_values("batch")) for name, r in part.groupby("series") if r.batch.nunique() > 1]
    texts = [f"{name} {listed(r.ai_l2, '{:.1f}')}" for name, r in found]
    return [ratio(r.ai_l2) <= PRESERVED for _, r in found], f"AI at L2, batch 16 and 64: {'; '.join(texts)}"


def bytes_by_precision(f):
    """From half to single precision twice the data is moved; in PyTorch it stays the same."""
    parts, texts = [], []
    for names, r in f.conv2d.groupby(["framework", "series", "batch", "pass"]):
        half, single = (r[r.precision == precision].bytes_l2 for precision in ("fp16", "tf32"))
        if len(half) == len(single) == 1:
            grown = single.iloc[0] / half.iloc[0]
            parts.append(grown < 1.2 if names[0] == "PyTorch" else 1.6 <= grown <= 2.4)
            texts.append(f"{names[1]} {grown:.2f}")
    return parts, f"bytes at L2 in tf32 over fp16: {'; '.join(texts)}"


def invocations(f):
    """Backward, frameworks differ in the number of launches."""
    cases = [r for _, r in f.conv2d[f.conv2d["pass"] != "forward"].groupby(CASE)]
    text = "; ".join(
        f"{name} {listed(r.launches.unique(), '{:.0f}')}" for c in cases for name, r in c.groupby("framework")
    )
    return [r.launches.nunique() > 1 for r in cases], f"launches: {text}"


def movers(f):
    """Who has fewer kernels that only move data (padding, other layouts) has the shorter kernels' time."""
    parts, texts = [], []
    for _, r in f.conv2d.groupby(CASE):
        r = r[np.isfinite(r.data_movement_launches)]
        with_, without = (r[(r.data_movement_launches > 0) == some].busy_time for some in (True, False))
        if len(with_) and len(without):
            parts.append(with_.min() > without.min())
            texts.append(f"{1e6 * with_.min():.1f} to {1e6 * without.min():.1f}")
    return parts, f"shortest with such kernels to without, us: {'; '.join(texts)}"


def same_kernels(f):
    """All frameworks use the same convolution kernel; PyTorch adds one for another layout."""
    parts, counts, forward = [], [], f.conv2d[f.conv2d["pass"] == "forward"]
    for _, r in forward.groupby(CASE):
        added = r[r.series.str.startswith("PyTorch")].data_movement_launches > 0
        parts += [r.main.nunique() == 1, added.any()]
        counts.append(r.main.nunique())
    moving = forward.groupby("framework").data_movement_launches.max()
    others = "; ".join(f"{name} {n:.0f}" for name, n in moving.items())
    return parts, f"{listed(counts, '{}')} convolution kernels in {len(counts)} cases; others, at most: {others}"


def tensor_units(f):
    """The fast rows use tensor units, by functions of cuDNN."""
    half = f.conv2d[f.conv2d.precision == "fp16"]
    fast = half.busy_time <= 2 * half.groupby(CASE).busy_time.transform("min")
    slow = half[~fast].tensor_flops > 0
    return half[fast].tensor_flops > 0, f"of those that take more than twice as long as the fastest {share(slow)}"


def lstm_overhead(f):
    """An LSTM is overhead-bound in each framework."""
    idle = f.lstm.assign(idle=100 * (1 - f.lstm.busy_time / f.lstm.time_median)).groupby("series").idle.max()
    texts = [f"{name} {value:.0f} %" for name, value in idle.items()]
    return idle > 50, f"no kernel runs, of the time: {'; '.join(texts)}"


def lstm_launches(f):
    """PyTorch's LSTM, forward, has 36 launches, two of them of no work."""
    r = f.lstm[(f.lstm["pass"] == "forward") & (f.lstm.framework == "PyTorch")]
    idle = listed(r.data_movement_launches.unique(), "{:.0f}")
    return r.launches == 36, f"{listed(r.launches.unique(), '{:.0f}')} launches, {idle} that only move data"


def fewest_launches(f):
    """The framework with the fewest launches is the fastest."""
    parts = []
    for _, r in [*f.conv2d.groupby(CASE), *f.lstm.groupby(CASE)]:
        parts.append(r.loc[r.time_median.idxmin()].launches == r.launches.min())
    return parts, f"in {share(parts)} cases"


def auto_tuning(f):
    """Auto-tuning changes the algorithm, to the better."""
    parts, texts = [], []
    for framework, axis, values in (("PyTorch", "axis_benchmark", ("off", "on")), ("JAX", "axis_autotune", ("0", "4"))):
        for without, tuned in f.tuned(framework, axis, values):
            parts.append(better(without.kernels != tuned.kernels, without.busy_time, tuned.busy_time, FASTER))
            texts.append(f"{framework} {1e6 * without.busy_time:.1f} to {1e6 * tuned.busy_time:.1f}")
    own = f.conv2d[(f.conv2d.framework == "cuDNN") & np.isfinite(f.conv2d.get("heuristic_time", np.nan))]
    parts += list(better(own.algorithm_id != own.heuristic_id, own.heuristic_time, own.search_time, own.search_noise))
    texts += [f"cuDNN {1e6 * r.heuristic_time:.1f} to {1e6 * r.search_time:.1f}" for _, r in own.iterrows()]
    return parts, f"in {share(parts)} cases; us without to with: {'; '.join(texts)}"


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
        for kernel in f.kernels_of(r.row):
            each = data.kernel_flops_counted.values[kernel] / data.kernel_count.values[kernel]
            shape = tuple(int(data[f"kernel_{name}"].values[kernel]) for name in SHAPE_OF_LAUNCH)
            own = {"kernel": str(data.kernel_name.values[kernel]), "launch": shape, "flops": round(each)}
            lines += [{name: r[name] for name in (*CASE, "framework")} | own] if each > 0 else []
    return pandas.DataFrame(lines, columns=[*CASE, "framework", "kernel", "launch", "flops"])


def shared_kernels(f):
    """Kernels that are in rows of several frameworks, in one grid: (kernel, launch, FLOPs of a launch in all of them).
    cuDNN may launch one kernel in several grids, and tiles that stand out over the result are counted, too."""
    found = []
    for (*_, kernel, launch), same in launches(f).groupby([*CASE, "kernel", "launch"]):
        if same.framework.nunique() > 1:
            found.append((kernel, launch, sorted(set(same.flops))))
    return found


def graphs_beside(f):
    """Times of PyTorch's graphs over those of cuDNN's calls within a graph of several iterations: (layer, series,
    difference, whether it is of the same kernels and grids). A graph may hold more than kernels, as its idle time
    tells: PyTorch takes one of several ways by its own timing."""
    found = []
    for layer, table in (("conv2d", f.conv2d), ("LSTM", f.lstm)):
        for _, r in table.groupby(CASE):
            torch = r[(r.framework == "PyTorch") & r.series.str.contains("graph")]
            own = r[(r.framework == "cuDNN") & np.isfinite(r.graph_time)]
            for (_, one), (_, other) in product(torch.iterrows(), own.iterrows()):
                same = f.launches_of(one.row) == f.launches_of(other.row)
                busy = one.busy_time / one.time_median >= 1 - GRAPHS_DIFFER
                found.append((layer, one.series, one.time_median / other.graph_time - 1, same and busy))
    return found


def agreement(f):
    """Status, with what there is on standard output."""
    shared = shared_kernels(f)
    wrong = [line for line in shared if len(line[2]) > 1]
    wrong += [line for line in graphs_beside(f) if line[3] and abs(line[2]) > GRAPHS_DIFFER]
    print(*shared, *graphs_beside(f), "wrong:", *wrong, sep="\n")
    return 1 if wrong else 0 if shared else 77


# ---- the page ----

PAGE = """# cuDNN, PyTorch and JAX beside each other

The layers of Wang et al., *Time-Based Roofline for Deep Learning Performance Analysis*, 2020, through cuDNN itself,
through PyTorch (eager, compiled, as a CUDA graph) and through JAX, in one sweep: what a framework adds to the kernels.
`tests/frameworks.py --write` writes this page from `{file}`, a file of
`sweeps/frameworks.ini` on {devices} with {library}, of {day}.
[programs.md](programs.md) says how a program is measured, [findings.md](findings.md) has the paper's other findings,
[measurements.md](measurements.md#programs) the versions of the frameworks. PyTorch and JAX bring a cuDNN of their own.

## The paper's findings

{findings}

## The layers

*Kernels* is the time in which a kernel runs, traced. What is more in *time* is the host's, or of gaps. *Tuned* is
`torch.backends.cudnn.benchmark`, *autotune* `--xla_gpu_autotune_level`. Caches are hot.

{layers}

## The same kernels

{agreement}
"""


def layers(f):
    lines = []
    for title, table in (("conv2d", f.conv2d), ("LSTM", f.lstm)):
        for names, rows in table.groupby(CASE):
            case = f"{title}, batch {names[0]:.0f}, {names[1]}, {names[2]}"
            for _, r in rows.sort_values("series").iterrows():
                numbers = [f"{1e6 * r.time_median:.1f}", f"{1e6 * r.busy_time:.1f}", f"{r.launches:.0f}"]
                lines.append([case, r.series, *numbers, f.words("limiter").get(r.limiter, "")])
                case = ""
    return markdown(["layer", "series", "time, us", "kernels, us", "launches", "limiter"], lines)


def page(f):
    """The whole page."""
    shared, wrong = shared_kernels(f), [line for line in shared_kernels(f) if len(line[2]) > 1]
    graphs = [
        f"{layer}, {name} {100 * difference:+.1f} %" for layer, name, difference, same in graphs_beside(f) if same
    ]
    findings = [[place, test.__doc__.rstrip("."), test] for place, test in FINDINGS]
    findings = [[place, claim, f"**{told(test, f)[0]}**", told(test, f)[1]] for place, claim, test in findings]
    return PAGE.format(
        file=os.path.relpath(f.path, ROOT),
        devices=f"{len(f.data.device_model)} x {f.data.device_model.values[0]}",
        library=f.data.device_library_version.values[0],
        day=str(f.rows.start_time.min())[:10],
        findings="\n".join(markdown(["in the paper", "finding", "here", "figures"], findings)),
        layers="\n".join(layers(f)),
        agreement=f"{len(shared)} kernels run in the same grid in rows of several frameworks. They do "
        + ("NOT " if wrong else "")
        + "the same FLOPs in all, to the last digit.\n"
        + "Time of PyTorch's graphs beside that of cuDNN's calls in a graph, same kernels: "
        + f"{'; '.join(graphs)}.",
    )


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
