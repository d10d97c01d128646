#!/usr/bin/env python3
"""Compares cuDNN, PyTorch and JAX, and tests the findings of Wang et al., 2020, about frameworks.

Usage: frameworks.py [FILE] [--write | --check | --agree]

Prints the page docs/frameworks.md, made from the committed files of sweeps/frameworks.ini and paper_frameworks.ini.
--write renews the page. With --check the exit status is 1 if the page differs. --agree prints the kernels that rows of
cuDNN and of frameworks share; the exit status is 1 if their FLOPs differ, or their times in CUDA graphs by more than
5 %, and 77 if they share none."""

import os
import sys
from itertools import combinations, product

import evidence
import numpy as np
import pandas
from evidence import ALIKE, DEFAULTS, FASTER, PRESERVED, SHAPE, File, better, listed, ratio, share, span

FILE, PAPER = "tests/data/frameworks_h100.nc", "tests/data/paper_frameworks_h100.nc"
CASE = [*SHAPE, "precision", "pass"]
AXES = {"conv2d": SHAPE[:4], "lstm": ["batch", *SHAPE[4:]]}
GRAPHS_DIFFER = 0.05  # relative difference between times of the same kernels in CUDA graphs
NAMES = {"cudnn": "cuDNN", "torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}


def series(row):
    """Returns the name of a row's series: the framework, and how it ran."""
    words = [NAMES.get(str(row.label).split("-")[0], str(row.label))]
    words += ["graph"] if row.get("launch") == "graph" else []
    words += [row.axis_mode] if row.get("axis_mode") else []
    words += ["tuned"] if row.get("axis_benchmark") == "on" else []
    words += [f"autotune {row.axis_autotune}"] if row.get("axis_autotune") else []
    return ", ".join(words)


class Frameworks(File):
    """Rows of the two layers, with the name of their series."""

    def __init__(self, path):
        super().__init__(path)
        table = self.rows.fillna({name: DEFAULTS[name] for name in SHAPE})
        table["series"] = [series(row) for _, row in table.iterrows()]
        table["framework"] = table.series.str.split(",").str[0]
        table["main"] = [self.main_kernel(row) for row in table.row]
        layer = table.label.str.split("-").str[-1]
        self.conv2d, self.lstm = table[layer == "conv2d"], table[layer == "lstm"]

    def kernels_of(self, row):
        return np.flatnonzero(self.data.kernel_config.values == row)

    def main_kernel(self, row):
        mine = self.kernels_of(row)
        times = self.data.kernel_time.values[mine]
        return str(self.data.kernel_name.values[mine[np.argmax(times)]]) if len(mine) else ""

    def launches_of(self, row):
        """Returns (name, launches, blocks) for each kernel of a row."""
        names = ["kernel_name", "kernel_count", "kernel_blocks"]
        return sorted(tuple(self.data[name].values[i] for name in names) for i in self.kernels_of(row))

    def tuned(self, framework, axis, values):
        """Yields pairs of rows, without and with tuning, that differ in this axis alone."""
        part = self.conv2d[(self.conv2d.framework == framework) & (self.conv2d.get("axis_mode", "") != "graph")]
        for _, rows in part.groupby(CASE) if axis in part else []:
            pair = [rows[rows[axis] == value] for value in values]
            if framework == "PyTorch":
                pair = [rows[rows.axis_mode == "eager"] for rows in pair]
            if all(len(rows) == 1 for rows in pair):
                yield pair[0].iloc[0], pair[1].iloc[0]


# ---- findings ----

finding = evidence.Claims()


def along(table, axis):
    """Yields (names, rows sorted by the axis) for each series; all other parameters have the paper's defaults."""
    others = [name for name in SHAPE if name != axis]
    table = table[(table[others] == pandas.Series(DEFAULTS)[others]).all(axis=1)]
    for names, rows in table.groupby(["series", "precision", "pass"]):
        if rows[axis].nunique() > 1:
            yield names, rows.sort_values(axis)


def cases(table):
    """Yields the fastest row of each framework, for each layer that several frameworks have."""
    for _, rows in table.groupby(CASE):
        best = rows.loc[rows.groupby("framework").time_median.idxmin()]
        if len(best) > 1:
            yield best


@finding("IV-A.1, forward")
def batch_forward(f):
    """The arithmetic intensity is preserved in each framework, whatever the batch."""
    found = [(names, r) for names, r in along(f.conv2d, "batch") if names[2] == "forward"]
    texts = [f"{name} {precision} {listed(r.ai, '{:.1f}')}" for (name, precision, _), r in found]
    return [ratio(r.ai) <= PRESERVED for _, r in found], f"AI at {f.level} as the batch grows: {'; '.join(texts)}"


@finding("IV-A.1, forward")
def bytes_by_precision(f):
    """From half to single precision twice the data is moved; in PyTorch it stays the same."""
    forward, grown = f.conv2d[f.conv2d["pass"] == "forward"], {}
    for names, r in forward.groupby(["framework", "series", *SHAPE]):
        half, single = (r[r.precision.isin(words)].bytes for words in (["fp16"], ["tf32", "fp32"]))
        if len(half) == len(single) == 1:
            grown.setdefault(names[:2], []).append(single.iloc[0] / half.iloc[0])
    parts = [one < 1.2 if names[0] == "PyTorch" else 1.6 <= one <= 2.4 for names, own in grown.items() for one in own]
    texts = [f"{names[1]} {span(own)}" for names, own in grown.items()]
    return parts, f"bytes at {f.level}, single over half: {'; '.join(texts)}"


@finding("IV-A.1, backward")
def invocations(f):
    """Backward, frameworks differ in the number of launches."""
    backward = f.conv2d[f.conv2d["pass"] != "forward"]
    texts = [f"{name} {span(own, '{:.0f}')}" for name, own in backward.groupby("framework").launches]
    return [r.launches.nunique() > 1 for r in cases(backward)], f"launches: {'; '.join(texts)}"


@finding("IV-A.1, backward")
def movers(f):
    """Rows with fewer kernels that only move data (padding, other layouts) have the shorter kernel time."""
    grown = []
    for _, r in f.conv2d[np.isfinite(f.conv2d.data_movement_launches)].groupby(CASE):
        with_, without = (r[(r.data_movement_launches > 0) == some].busy_time for some in (True, False))
        grown += [with_.min() / without.min()] if len(with_) and len(without) else []
    return [one > 1 for one in grown], f"shortest with such kernels over without: {span(grown)} times"


@finding("IV-A.2, forward")
def same_kernels(f):
    """All frameworks use the same convolution kernel; PyTorch adds one for another layout."""
    parts, counts, forward = [], [], f.conv2d[f.conv2d["pass"] == "forward"]
    for _, r in forward.groupby(CASE):
        added = r[r.series.str.startswith("PyTorch")].data_movement_launches > 0
        parts += [r.main.nunique() == 1, added.any()]
        counts.append(r.main.nunique())
    moving = forward.groupby("framework").data_movement_launches.max()
    others = "; ".join(f"{name} {n:.0f}" for name, n in moving.items())
    return parts, f"{span(counts, '{:.0f}')} convolution kernels in {len(counts)} cases; others, at most: {others}"


@finding("IV-A.2, forward")
def trendlines(f):
    """In half precision, FLOPs and bytes grow alike in all frameworks along every axis."""
    parts, texts = [], []
    for layer, axis in [(layer, axis) for layer, axes in AXES.items() for axis in axes]:
        ways, alike = {}, []
        for (_, precision, way), r in along(getattr(f, layer), axis):
            if precision == "fp16":
                ways.setdefault(way, []).append([r[name].iloc[-1] / r[name].iloc[0] for name in ("flops", "bytes")])
        for grown in ways.values():
            alike += [ratio(one) <= ALIKE for one in zip(*grown)] if len(grown) > 1 else []
        texts += [f"{layer} {axis.replace('filter_height', 'kernel')} {share(alike)}"] if alike else []
        parts += alike
    return parts, f"within {ALIKE}: {', '.join(texts)}"


@finding("IV-A.2, backward")
def busiest(f):
    """Backward in fp16, the framework with the highest FLOP/s and intensity takes longest."""
    found = cases(f.conv2d[(f.conv2d["pass"] != "forward") & (f.conv2d.precision == "fp16")])
    firsts = [(r.rate.idxmax(), r.ai.idxmax(), r.time_median.idxmax()) for r in found]
    both = [rate == ai for rate, ai, _ in firsts]
    return [len(set(one)) == 1 for one in firsts], f"one has both in {share(both)} layers"


@finding("IV-B.1")
def lstm_overhead(f):
    """An LSTM is overhead-bound in each framework."""
    idle = f.lstm.assign(idle=100 * (1 - f.lstm.busy_time / f.lstm.time_median)).groupby("series").idle.max()
    texts = [f"{name} {value:.0f} %" for name, value in idle.items()]
    return idle > 50, f"no kernel runs, of the time: {'; '.join(texts)}"


@finding("IV-B.1")
def lstm_launches(f):
    """PyTorch's LSTM, forward, has 36 launches, two of them of no work."""
    r = f.lstm[(f.lstm["pass"] == "forward") & (f.lstm.framework == "PyTorch")]
    idle = listed(r.data_movement_launches.unique(), "{:.0f}")
    return r.launches == 36, f"{listed(r.launches.unique(), '{:.0f}')} launches, {idle} that only move data"


@finding("V")
def tensor_units(f):
    """The fast rows use tensor units, by functions of cuDNN."""
    half = f.conv2d[f.conv2d.precision == "fp16"]
    fast = half.busy_time <= 2 * half.groupby(CASE).busy_time.transform("min")
    uses = half.tensor_flops > 0
    slow = f"of slower ones {share(uses[~fast])}" if not fast.all() else "none is slower than twice the fastest"
    return uses[fast], f"{share(uses[fast])} rows of up to twice the fastest's time; {slow}"


@finding("V")
def fewest_launches(f):
    """The framework with fewer launches is faster."""
    pairs = [pair for r in [*cases(f.conv2d), *cases(f.lstm)] for pair in combinations(r.itertuples(), 2)]
    parts = [(a.launches < b.launches) == (a.time_median < b.time_median) for a, b in pairs if a.launches != b.launches]
    return parts, f"in {share(parts)} pairs; as many launches in {len(pairs) - len(parts)}"


@finding("V")
def torch_fastest(f):
    """PyTorch is the fastest framework: it moves less data, does fewer FLOPs and needs fewer launches."""
    found = [r for t in (f.conv2d, f.lstm) for r in cases(t[t.framework != "cuDNN"]) if "PyTorch" in set(r.framework)]
    first = {
        name: [r.loc[r[name] == r[name].min()].framework.tolist() == ["PyTorch"] for r in found]
        for name in ("time_median", "bytes", "flops", "launches")
    }
    texts = [f"{word} {share(own)}" for word, own in zip(("fastest in", "bytes", "FLOPs", "launches"), first.values())]
    return [one for own in first.values() for one in own], f"{texts[0]} layers; fewest {', '.join(texts[1:])}"


@finding("I and IV")
def auto_tuning(f):
    """Auto-tuning changes the algorithm, to the better."""
    parts, texts = [], []
    for framework, axis, values in (("PyTorch", "axis_benchmark", ("off", "on")), ("JAX", "axis_autotune", ("0", "4"))):
        for without, tuned in f.tuned(framework, axis, values):
            parts.append(without.kernels != tuned.kernels and better(without.busy_time, tuned.busy_time, FASTER))
            texts.append(f"{framework} {1e6 * without.busy_time:.1f} to {1e6 * tuned.busy_time:.1f}")
    own = f.conv2d[(f.conv2d.framework == "cuDNN") & np.isfinite(f.conv2d.get("heuristic_time", np.nan))]
    parts += list(
        (own.algorithm_id != own.heuristic_id) & better(own.heuristic_time, own.time_median, own.search_noise)
    )
    texts += [f"cuDNN {1e6 * r.heuristic_time:.1f} to {1e6 * r.time_median:.1f}" for _, r in own.iterrows()]
    return parts, f"in {share(parts)} cases; us without to with: {'; '.join(texts)}"


# Tests of rows that were tuned or counted kernel by kernel, from sweeps/frameworks.ini.
OF_KERNELS = {movers, same_kernels, lstm_launches, auto_tuning}


# ---- what must agree ----


def launches(f):
    """Returns a line for each kernel of a convolution that does FLOPs, with the FLOPs of one launch."""
    data, lines = f.data, []
    for _, r in f.conv2d.iterrows():
        for kernel in f.kernels_of(r.row):
            each = data.kernel_flops_counted.values[kernel] / data.kernel_count.values[kernel]
            shape = tuple(int(data[f"kernel_{name}"].values[kernel]) for name in ("blocks", "threads"))
            own = {"kernel": str(data.kernel_name.values[kernel]), "launch": shape, "flops": round(each)}
            lines += [{name: r[name] for name in (*CASE, "framework")} | own] if each > 0 else []
    return pandas.DataFrame(lines, columns=[*CASE, "framework", "kernel", "launch", "flops"])


def shared_kernels(f):
    """Returns (kernel, launch, FLOPs of a launch in each row) for kernels that several frameworks launch in one grid.
    FLOPs in different grids may differ, because counters include tiles that exceed the result."""
    found = []
    for (*_, kernel, launch), same in launches(f).groupby([*CASE, "kernel", "launch"]):
        if same.framework.nunique() > 1:
            found.append((kernel, launch, sorted(set(same.flops))))
    return found


def graphs_beside(f):
    """Returns (layer, series, relative difference in time, same) for PyTorch's graphs and cuDNN's calls in a graph.
    `same`: both launch the same kernels in the same grids, and hardly any time passes between PyTorch's kernels."""
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
    """Prints what agrees and what differs. Returns the exit status."""
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

The figures are those of `{paper}`; kernels that only move data, and auto-tuning, those of
`{file}`.
FLOPs/bytes/time/launches at the last value of an axis over those at the first value:

{trajectories}

## The layers

*Kernels* is the traced time in which a kernel runs; the rest of *time* is the host's, or gaps. *Tuned* is
`torch.backends.cudnn.benchmark`, *autotune* `--xla_gpu_autotune_level`. Caches are hot.

{layers}

## The same kernels

{agreement}
"""


def layers(f):
    lines = []
    for title, table in (("conv2d", f.conv2d), ("LSTM", f.lstm)):
        for names, rows in table.groupby(CASE):
            case = f"{title}, batch {names[0]:.0f}, {names[-2]}, {names[-1]}"
            for _, r in rows.sort_values("series").iterrows():
                numbers = [f"{1e6 * r.time_median:.1f}", f"{1e6 * r.busy_time:.1f}", f"{r.launches:.0f}"]
                lines.append([case, r.series, *numbers, f.words("limiter").get(r.limiter, "")])
                case = ""
    return evidence.markdown(["layer", "series", "time, us", "kernels, us", "launches", "limiter"], lines)


def trajectories(f):
    """Returns a table: FLOPs, bytes, time and launches at the last value of an axis over those at the first value."""
    lines, names = {}, ["flops", "bytes", "time_median", "launches"]
    for layer, axis in [(layer, axis) for layer, axes in AXES.items() for axis in axes]:
        for (name, precision, way), r in along(getattr(f, layer), axis):
            if precision == "fp16" and way == "forward":
                ends = f"{r[axis].iloc[0]:.0f}-{r[axis].iloc[-1]:.0f}"
                cell = "/".join(f"{r[one].iloc[-1] / r[one].iloc[0]:.2f}" for one in names)
                lines.setdefault(f"{layer} {axis.replace('filter_height', 'kernel')} {ends}", {})[name] = cell
    series = sorted({name for own in lines.values() for name in own})
    table = [[axis, *(own.get(name, "-") for name in series)] for axis, own in lines.items()]
    return evidence.markdown(["fp16, forward", *series], table)


def page(f):
    shared, wrong = shared_kernels(f), [line for line in shared_kernels(f) if len(line[2]) > 1]
    graphs = [
        f"{layer}, {name} {100 * difference:+.1f} %" for layer, name, difference, same in graphs_beside(f) if same
    ]
    paper = Frameworks(os.path.join(evidence.ROOT, PAPER))
    findings = finding.lines(lambda test: f if test in OF_KERNELS else paper)
    return PAGE.format(
        file=os.path.relpath(f.path, evidence.ROOT),
        devices=f"{len(f.data.device_model)} x {f.data.device_model.values[0]}",
        library=f.data.device_library_version.values[0],
        day=str(f.rows.start_time.min())[:10],
        findings="\n".join(evidence.markdown(["in the paper", "finding", "here", "figures"], findings)),
        layers="\n".join(layers(f)),
        paper=os.path.relpath(paper.path, evidence.ROOT),
        trajectories="\n".join(trajectories(paper)),
        agreement=f"{len(shared)} kernels run in the same grid in rows of several frameworks. They do "
        + ("NOT " if wrong else "")
        + "the same FLOPs in all, to the last digit.\n"
        + "Time of PyTorch's graphs beside that of cuDNN's calls in a graph, same kernels: "
        + f"{'; '.join(graphs)}.",
    )


def main(*arguments):
    files = [argument for argument in arguments if not argument.startswith("--")]
    options = tuple(argument for argument in arguments if argument.startswith("--"))
    f = Frameworks(files[0] if files else os.path.join(evidence.ROOT, FILE))
    return agreement(f) if options == ("--agree",) else evidence.page_main("frameworks", page(f), list(options))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
