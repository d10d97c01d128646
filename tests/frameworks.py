#!/usr/bin/env python3
"""Compares cuDNN, PyTorch and JAX, and defines the tests about frameworks for findings.py.

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
from evidence import ALIKE, DEFAULTS, PRESERVED, SHAPE, File, above, below, listed, ratio, share, span

STEADY = 1.25  # largest / smallest time that counts as steady
CASE = [*SHAPE, "precision", "pass"]
AXES = {"conv2d": SHAPE[:4], "lstm": ["batch", *SHAPE[4:]]}
CPU = os.path.join(evidence.ROOT, "tests/data/frameworks_cpu.nc")
GRAPHS_DIFFER = 0.05  # relative difference between times of the same kernels in CUDA graphs
NAMES = {"cudnn": "cuDNN", "cpu": "oneDNN", "torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}


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

    def __init__(self, path, raw=None):
        super().__init__(path, raw)
        table = self.rows.fillna({name: DEFAULTS[name] for name in SHAPE})
        table["series"] = [series(row) for _, row in table.iterrows()]
        table["framework"] = table.series.str.split(",").str[0]
        table["main"] = [self.main_kernel(row) for row in table.row]
        layer = table.label.str.split("-").str[-1]
        self.conv2d, self.lstm = table[layer == "conv2d"], table[layer == "lstm"]
        tuned = self.conv2d.label == "torch-tuned-conv2d"
        self.searched, self.conv2d = self.conv2d[tuned], self.conv2d[~tuned]

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
    """Yields the fastest row of each framework, for each layer that several frameworks have. JAX's and TensorFlow's
    gradients of an LSTM are left out, because they run the forward pass, too."""
    both = table.label.isin(["jax-lstm", "tensorflow-lstm"]) & (table["pass"] == "backward")
    for _, rows in table[~both].groupby(CASE):
        best = rows.loc[rows.groupby("framework").time_median.idxmin()]
        if len(best) > 1:
            yield best


WORK = "time_median launches bytes_counted flops_counted"
CONV2D, LSTM, ALL = "label.str.endswith('conv2d')", "label.str.endswith('lstm')", "paper_frameworks"
EAGER = "axis_mode == 'eager' and precision == 'fp32' and `pass` == 'forward'"


def forward(f, axis, layer="conv2d"):
    """Returns [(names, rows)] of the counted series of the forward pass."""
    table = getattr(f, layer)
    return list(along(table[table.counted & (table["pass"] == "forward")], axis))


@finding("IV-A.1, forward", ALL, "bytes", "AI changes by more than 1.15, or kernels change",
         lambda c: c.scale("bytes_counted", CONV2D, lambda t: t.batch)
         .put("kernel_name", CONV2D, lambda t: t.configuration))  # fmt: skip
def batch_forward(f):
    """Whatever the batch, each framework has the same AI and algorithm."""
    found = forward(f, "batch")
    kept = below([ratio(r.ai) for _, r in found], PRESERVED, f.null["bytes"])
    same = [r.kernels.nunique() == 1 for _, r in found]
    grown = span(ratio(r.ai) for _, r in found)
    return kept + same, f"AI within {PRESERVED} in {share(kept)} series ({grown}); the same kernels in {share(same)}"


@finding("IV-A.1, forward", ALL, "bytes", "in PyTorch more than 1.2 times; elsewhere other than 1.6 to 2.4",
         lambda c: c.put("bytes_counted", CONV2D, 1e9).put("bytes_written", CONV2D, 0.0))  # fmt: skip
def bytes_by_precision(f):
    """From half to single precision the bytes double; in PyTorch they stay the same."""
    table, grown = f.conv2d[f.conv2d.counted & (f.conv2d["pass"] == "forward")], {}
    for names, r in table.groupby(["framework", *SHAPE, "series"]):
        half, single = (r[r.precision == word].bytes for word in ("fp16", "fp32"))
        if len(half) == len(single) == 1:
            grown.setdefault(names[0], []).append(single.iloc[0] / half.iloc[0])
    parts = below(grown["PyTorch"], 1.2, f.null["bytes"])
    parts += [1.6 <= one <= 2.4 for name, own in grown.items() if name != "PyTorch" for one in own]
    return parts, "times: " + "; ".join(f"{name} {np.median(own):.2f} ({span(own)})" for name, own in grown.items())


@finding("IV-A.1, backward", ALL, "none: counts are whole", "all frameworks have equal numbers of launches",
         lambda c: c.put("launches", CONV2D, 3))  # fmt: skip
def invocations(f):
    """Backward, frameworks differ in their launches, and so in their overhead boxes."""
    backward = f.conv2d[f.conv2d["pass"] != "forward"]
    boxes = backward.groupby("framework")[["launches", "overhead_time"]].median().sort_values("launches")
    texts = [f"{name} {r.launches:.0f} ({1e6 * r.overhead_time:.1f} us)" for name, r in boxes.iterrows()]
    return [r.launches.nunique() > 1 for r in cases(backward)], f"launches and box, medians: {'; '.join(texts)}"


@finding("IV-A.1, backward", ALL, "none: counts are exact", "the smallest batch uses them",
         lambda c: c.put("flops_tensor", f"{CONV2D} and (batch == 16 or batch.isna())", 0.0))  # fmt: skip
def late_tensor_units(f):
    """Backward in fp16 auto-tuning finds tensor units only at larger batches."""
    found = [r for (_, precision, way), r in along(f.conv2d, "batch") if precision == "fp16" and way != "forward"]
    units = [(r.tensor_flops > 0).tolist() for r in found]
    late = [not own[0] and own[-1] for own in units]
    return late, f"{share(late)} series; units are used in {share([one for own in units for one in own])} rows"


@finding("IV-A.2, forward", ALL, "time, bytes", "one does not rise from 64 to 512",
         lambda c: c.scale("time_median", CONV2D, lambda t: t.filters ** 2)
         .scale("bytes_counted", CONV2D, lambda t: t.filters ** 2.0).put("bytes_written", CONV2D, 0.0))  # fmt: skip
def filters_forward(f):
    """More output channels: more FLOP/s and AI, except for PyTorch in fp32."""
    return grows(f, "filters")


def grows(f, axis):
    found = [r for (name, precision, _), r in forward(f, axis) if precision == "fp16" or "PyTorch" not in name]
    rates, intensities = ([r[n].iloc[-1] / r[n].iloc[0] for r in found] for n in ("rate", "ai"))
    rate, ai = above(rates, null=f.null["time"]), above(intensities, null=f.null["bytes"])
    return rate + ai, f"FLOP/s rise in {share(rate)} series ({span(rates)}), AI in {share(ai)} ({span(intensities)})"


@finding("IV-A.2 and 3, forward", ALL, "time", "they differ by more than 1.25",
         lambda c: c.put("time_median", CONV2D, lambda t: t.flops / 1e13))  # fmt: skip
def saturation(f):
    """PyTorch in fp32: FLOP/s stay the same as filters or the kernel grow."""
    table = f.conv2d[(f.conv2d.series == "PyTorch, eager") & (f.conv2d.precision == "fp32")]
    table, axes = table[table["pass"] == "forward"], {"filters": "filters", "filter_height": "kernel"}
    found = {name: r for axis, name in axes.items() for _, r in along(table, axis)}
    texts = [f"{name} {listed(r.rate / 1e12, '{:.1f}')}" for name, r in found.items()]
    parts = below([ratio(r.rate) for r in found.values()], STEADY, f.null["time"])
    most = f.peak("vector", "fp32") / 1e12
    return parts, f"TFLOP/s (roof {most:.0f}): by {'; '.join(texts)}"


@finding("IV-A.3", ALL, "time", "no other algorithm is faster",
         lambda c: c.scale("time_median", EAGER, 1e-3))  # fmt: skip
def other_algorithm(f):
    """Where PyTorch's fp32 saturates, another algorithm is faster."""
    own = f.conv2d[(f.conv2d.precision == "fp32") & (f.conv2d["pass"] == "forward")]
    mine = own[own.series == "PyTorch, eager"].set_index(SHAPE)
    found = {"its own search": f.searched.set_index(SHAPE), "cuDNN's": own[own.series == "cuDNN"].set_index(SHAPE)}
    texts, parts = [], []
    for name, other in found.items():
        if other.empty:
            continue
        gain = (mine.time_median / other.time_median).dropna()
        parts.append(True in (faster := above(gain, null=f.null["time"])))
        texts += [f"{name} is faster in {share(faster)} rows, at most {gain.max():.2f} times"]
    last = [
        (name, t[t.index.get_level_values("filter_height") == 9]) for name, t in [("PyTorch", mine), *found.items()]
    ]
    took = [f"{name} {1e6 * t.time_median.iloc[0]:.0f} us" for name, t in last if len(t)]
    return parts, f"{'; '.join(texts)}; a 9x9 kernel takes {', '.join(took)}"


@finding("IV-A.2, forward", "frameworks", "none: names", "other kernels, or none is added",
         lambda c: c.put("kernel_name", CONV2D, "same"))  # fmt: skip
def same_kernels(f):
    """All frameworks use the same convolution kernel; PyTorch adds one for the layout."""
    parts, counts, table = [], [], f.conv2d[f.conv2d["pass"] == "forward"]
    for _, r in table.groupby(CASE):
        added = r[r.series.str.startswith("PyTorch")].data_movement_launches > 0
        parts += [r.main.nunique() == 1, bool(added.any())]
        counts.append(r.main.nunique())
    others = "; ".join(f"{name} {n:.0f}" for name, n in table.groupby("framework").data_movement_launches.max().items())
    return parts, f"{span(counts, '{:.0f}')} convolution kernels for a layer; launches that only move data: {others}"


@finding("IV-A.2, forward", ALL, "bytes", "the growth differs by more than 1.5",
         lambda c: c.put("bytes_counted", "", 1e9).put("bytes_written", "", 0.0)
         .put("flops_counted", "flops_counted > 0", 1e9))  # fmt: skip
def trendlines(f):
    """In fp16 FLOPs and bytes grow alike in all frameworks along every axis."""
    parts, texts = [], []
    for layer, axis in [(layer, axis) for layer, axes in AXES.items() for axis in axes]:
        table, ways, alike = getattr(f, layer), {}, []
        for (_, precision, way), r in along(table[table.counted], axis):
            if precision == "fp16":
                ways.setdefault(way, []).append([r[name].iloc[-1] / r[name].iloc[0] for name in ("flops", "bytes")])
        for grown in ways.values():
            alike += below([ratio(one) for one in zip(*grown)], ALIKE, f.null["bytes"]) if len(grown) > 1 else []
        texts += [f"{layer} {axis.replace('filter_height', 'kernel')} {share(alike)}"] if False in alike else []
        parts += alike
    return parts, f"{share(parts)}; differs: {', '.join(texts)}"


@finding("IV-A.2, backward", ALL, "time", "that one is not the slowest",
         lambda c: c.put("flops_counted", CONV2D, lambda t: t.time_median**2 * 1e20)
         .put("bytes_counted", CONV2D, 1e9).put("bytes_written", CONV2D, 0.0))  # fmt: skip
def busiest(f):
    """Backward in fp16 the framework with the highest FLOP/s and AI takes longest."""
    found = cases(f.conv2d[f.conv2d.counted & (f.conv2d["pass"] != "forward") & (f.conv2d.precision == "fp16")])
    firsts = [(r.rate.idxmax(), r.ai.idxmax(), r.time_median.idxmax()) for r in found]
    both = [rate == ai for rate, ai, _ in firsts]
    slow = [rate == time for rate, _, time in firsts]
    text = f"highest FLOP/s and AI in one framework: {share(both)} layers; highest FLOP/s in the slowest: {share(slow)}"
    return [len(set(one)) == 1 for one in firsts], text


@finding("IV-A.3", ALL, "time, bytes", "one does not rise from 3x3 to 9x9",
         lambda c: c.scale("time_median", CONV2D, lambda t: t.filter_height ** 4)
         .scale("bytes_counted", CONV2D, lambda t: t.filter_height ** 4))  # fmt: skip
def larger_kernel(f):
    """A larger kernel: more FLOP/s and AI, except for PyTorch in fp32."""
    return grows(f, "filter_height")


@finding("IV-A.4", ALL, "bytes", "bytes grow by 1.5, or half as much as FLOPs",
         lambda c: c.scale("bytes_counted", CONV2D, lambda t: t.stride ** -3)
         .put("bytes_written", CONV2D, 0.0))  # fmt: skip
def stride_forward(f):
    """A larger stride: fewer FLOPs for about the same bytes."""
    found = [r for _, r in forward(f, "stride")]
    flops, moved = ([r[name].iloc[0] / r[name].iloc[-1] for r in found] for name in ("flops", "bytes"))
    parts = above(np.divide(flops, moved), 2, f.null["bytes"]) + below(moved, ALIKE, f.null["bytes"])
    return parts, f"stride 3 to 1: {span(flops, '{:.1f}')} times the FLOPs, {span(moved, '{:.1f}')} times the bytes"


@finding("IV-A.4", ALL, "time", "fewer launches, or a smaller share, at stride 3",
         lambda c: c.scale("time_median", CONV2D, lambda t: t.stride ** 4)
         .scale("launches", CONV2D, lambda t: t.stride ** -1.0))  # fmt: skip
def stride_overhead(f):
    """A larger stride keeps the number of launches, so the share of overhead grows."""
    found = [r for (_, precision, _), r in forward(f, "stride") if precision == "fp16"]
    shares = [r.overhead_time / r.time_median for r in found]
    kept = [r.launches.iloc[-1] >= r.launches.iloc[0] for r in found]
    more = above([part.iloc[-1] / part.iloc[0] for part in shares], null=f.null["time"])
    return kept + more, f"equal launches in {share(kept)} series; the share grows in {share(more)}"


@finding("IV-B.1", ALL, "time", "a row outside the box, or a device at work for half of the time",
         lambda c: c.put("paper_bound", LSTM, c.word("bandwidth"))
         .put("busy_time", LSTM, lambda t: t.time_median))  # fmt: skip
def lstm_overhead(f):
    """An LSTM is always overhead-bound."""
    inside = (f.lstm.bound == "overhead").tolist()
    idle = f.lstm.assign(idle=100 * (1 - f.lstm.busy_time / f.lstm.time_median)).groupby("series").idle
    texts = [f"{name} {span(own, '{:.0f}')} %" for name, own in idle]
    parts = (f.lstm.busy_time < 0.5 * f.lstm.time_median).tolist()
    return inside + parts, f"{share(inside)} rows lie in the box; no kernel runs, of the time: {'; '.join(texts)}"


@finding("IV-B.1", ALL, "time", "it differs by more than 1.25",
         lambda c: c.put("time_median", LSTM, lambda t: t.overhead_time))  # fmt: skip
def lstm_launch_time(f):
    """An LSTM's time is its launches times the latency of one."""
    times = f.lstm.time_median / f.lstm.overhead_time
    texts = [f"{name} {own.median():.1f} ({span(own, '{:.1f}')})" for name, own in times.groupby(f.lstm.series)]
    return below(np.maximum(times, 1 / times), STEADY, f.null["time"]), f"time over launches' cost: {'; '.join(texts)}"


def lstm_steady(f, axes):
    grown = {axis: [ratio(r.time_median) for _, r in along(f.lstm, axis)] for axis in axes}
    parts = [part for found in grown.values() for part in below(found, STEADY, f.null["time"])]
    return parts, f"within {STEADY} in {share(parts)} series; " + ", ".join(f"{a} {span(g)}" for a, g in grown.items())


def grown_by(*axes):
    return lambda c: c.scale("time_median", LSTM, lambda t: t[list(axes)].prod(axis=1))


@finding("IV-B.1", ALL, "time", "it changes by more than 1.25", grown_by("batch"))
def lstm_batch(f):
    """An LSTM's time stays the same whatever the batch."""
    return lstm_steady(f, ["batch"])


@finding("IV-B.1", ALL, "time", "it changes by more than 1.25", grown_by("features", "hidden"))
def lstm_sizes(f):
    """An LSTM's time stays the same whatever features and hidden size."""
    return lstm_steady(f, ["features", "hidden"])


@finding("IV-B.1", ALL, "none: counts are whole", "they change",
         lambda c: c.put("launches", LSTM, 3))  # fmt: skip
def lstm_constant(f):
    """Launches stay the same as batch, features or hidden size grow."""
    found = [r for axis in ("batch", "features", "hidden") for _, r in along(f.lstm, axis)]
    parts = [r.launches.nunique() == 1 for r in found]
    return parts, f"in {share(parts)} series; there are {span(pandas.concat(found).launches, '{:.0f}')}"


@finding("IV-B.1", "frameworks", "none: counts are whole", "other numbers",
         lambda c: c.put("launches", LSTM, 5).put("kernel_flops_counted", LSTM, 1.0))  # fmt: skip
def lstm_launches(f):
    """PyTorch's LSTM, forward, has 36 launches, two of which only move data."""
    r = f.lstm[(f.lstm["pass"] == "forward") & (f.lstm.framework == "PyTorch")]
    moves, took = r.data_movement_launches, span(100 * r.data_movement_share, "{:.0f}")
    text = f"{listed(r.launches.unique(), '{:.0f}')} launches; {listed(moves.unique(), '{:.0f}')} only move data"
    return (r.launches == 36).tolist() + (moves == 2).tolist(), f"{text}, for {took} % of the kernels' time"


@finding("IV-B.1", ALL, "none: counts are exact", "tensor units do most FLOPs",
         lambda c: c.put("flops_tensor", LSTM, 0.0))  # fmt: skip
def lstm_products(f):
    """PyTorch multiplies the steps of an fp16 LSTM in single precision."""
    r = f.lstm[f.lstm.counted & (f.lstm.framework == "PyTorch") & (f.lstm.precision == "fp16")]
    part = r.tensor_flops / r.flops
    return (part < 0.5).tolist(), f"tensor units do {span(100 * part, '{:.0f}')} % of the FLOPs in {len(r)} rows"


@finding("IV-B.2", ALL, "time", "8 times the sequence: not 6 to 10 times the time and launches",
         lambda c: c.put("launches", LSTM, 3).put("time_median", LSTM, 1e-5))  # fmt: skip
def lstm_sequence(f):
    """Run time and launches are proportional to the sequence."""
    parts, texts, grown = [], [], {}
    for (name, *_), r in along(f.lstm, "sequence"):
        grown.setdefault(name, []).append([r[n].iloc[-1] / r[n].iloc[0] for n in ("time_median", "launches")])
    for name, own in grown.items():
        parts += [abs(one / 8 - 1) <= 0.25 for pair in own for one in pair]
        times, launched = map(span, zip(*own))
        texts.append(f"{name} {times} ({launched})")
    return parts, f"time (launches), times: {'; '.join(texts)}"


@finding("V", ALL, "none: names", "a fast fp16 row lacks one",
         lambda c: c.put("kernel_name", CONV2D, "mine").put("flops_tensor", CONV2D, 0.0))  # fmt: skip
def tensor_units(f):
    """The fast rows use tensor units, by functions of cuDNN."""
    half = f.conv2d[(f.conv2d.precision == "fp16") & (f.conv2d.framework != "cuDNN")]
    fast = half[half.busy_time <= 2 * half.groupby(CASE).busy_time.transform("min")]
    known = set(f.others["paper"].data.kernel_name.values) | set(f.data.kernel_name.values[np.isin(
        f.data.kernel_config.values, f.conv2d.row[f.conv2d.framework == "cuDNN"])])  # fmt: skip
    units, own = (fast.tensor_flops > 0).tolist(), ["cudnn" in name or name in known for name in fast.main]
    text = f"of {len(fast)} rows of up to twice the fastest {sum(units)} use them"
    return units + own, f"{text}, {sum(own)} by cuDNN's kernels"


@finding("V", ALL, "time", "the one with fewer takes longer",
         lambda c: c.put("time_median", "", lambda t: 1 / t.launches))  # fmt: skip
def fewest_launches(f):
    """The framework with fewer launches is faster."""
    pairs = [pair for r in [*cases(f.conv2d), *cases(f.lstm)] for pair in combinations(r.itertuples(), 2)]
    ordered = [(a, b) if a.launches < b.launches else (b, a) for a, b in pairs if a.launches != b.launches]
    parts = above([many.time_median / few.time_median for few, many in ordered], null=f.null["time"])
    return parts, f"in {share(parts)} pairs; equal launches in {len(pairs) - len(ordered)}"


@finding("V", ALL, "time, bytes", "another is faster, or has fewer",
         lambda c: c.scale(WORK, "label.str.startswith('torch')", 1e3))  # fmt: skip
def torch_fastest(f):
    """PyTorch is fastest: it has fewer bytes, FLOPs and launches."""
    found = [r for t in (f.conv2d, f.lstm) for r in cases(t[t.framework != "cuDNN"]) if "PyTorch" in set(r.framework)]
    parts, texts = [], []
    words = {"time_median": "fastest in", "launches": "fewest launches", "bytes": "bytes", "flops": "FLOPs"}
    for name, word in words.items():
        pairs = [r.set_index("framework") for r in found if name in ("time_median", "launches") or r.counted.all()]
        ratios = [r.drop("PyTorch")[name].min() / r.loc["PyTorch", name] for r in pairs]
        own = above(ratios, null=f.null.get({"time_median": "time", "bytes": "bytes"}.get(name), 1.0))
        parts += own
        texts.append(f"{word} {share(own)}")
    return parts, f"{', '.join(texts)} layers (JAX's LSTM is not counted)"


@finding("I and IV", "frameworks", "time", "without tuning kernels run no longer",
         lambda c: c.put("busy_time", CONV2D, 1e-5))  # fmt: skip
def framework_tuning(f):
    """Auto-tuning in frameworks changes the algorithm, to the better."""
    parts, texts = [], []
    for framework, axis, values in (("PyTorch", "axis_benchmark", ("off", "on")), ("JAX", "axis_autotune", ("0", "4"))):
        for without, tuned in f.tuned(framework, axis, values):
            faster = above(without.busy_time / tuned.busy_time, null=f.null["time"])[0]
            parts.append(faster if without.kernels != tuned.kernels else False)
            texts.append(f"{framework} {1e6 * without.busy_time:.1f} to {1e6 * tuned.busy_time:.1f}")
    return parts, f"in {share(parts)} cases; us without to with: {'; '.join(texts)}"


# ---- agreement ----


def launches(f):
    """Returns a line for each kernel of a convolution that does FLOPs, with the FLOPs of one launch."""
    data, lines = f.data, []
    for _, r in f.conv2d.iterrows():
        for kernel in f.kernels_of(r.row):
            each = data.kernel_flops_counted.values[kernel] / data.kernel_count.values[kernel]
            if not each > 0:  # missing, if the program chose other kernels in the run that was counted
                continue
            shape = tuple(int(data[f"kernel_{name}"].values[kernel]) for name in ("blocks", "threads"))
            own = {"kernel": str(data.kernel_name.values[kernel]), "launch": shape, "flops": round(each)}
            lines.append({name: r[name] for name in (*CASE, "framework")} | own)
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

This page shows how much time frameworks add to the kernels of the paper's two layers.
`tests/frameworks.py --write` writes it from `{file}` ({devices}).
PyTorch and JAX bring a cuDNN of their own ([versions](measurements.md#programs)). [findings.md](findings.md) tests the
paper's claims, [programs.md](programs.md) says how a program is measured.

## Growth

FLOPs/bytes/time/launches at the last value of an axis over those at the first, from
`{paper}` (two H200s). FLOPs and bytes of JAX's LSTM are modelled.

{trajectories}

## The layers

*Kernels* is the time in which a kernel runs, by a trace. *Tuned* is `torch.backends.cudnn.benchmark`, *autotune*
`--xla_gpu_autotune_level`. Caches are hot.

{layers}

## The same kernels

{agreement}

## On a CPU

From `tests/data/{cpu}.nc` ({processor}, two cores, fp32, cold caches): time / time of the fastest, median of
{sizes} sizes (smallest to largest). After the comma is the growth of the time with four times the FLOPs (256 filters
instead of 64, a batch of 64 instead of 16).

{ranks}

- An LSTM's time hardly grows in PyTorch and TensorFlow: calls of the framework take it, not arithmetic.
- In JAX and TensorFlow the backward pass of an LSTM includes the forward pass.
- On CPUs programs have no kernels, so the file does not name the algorithms.
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


def ranks(f):
    """Returns a table of frameworks by layer and pass, the fastest first."""
    lines = []
    for layer, axis, first, last in (("conv2d", "filters", 64, 256), ("lstm", "batch", 16, 64)):
        for way, rows in getattr(f, layer).groupby("pass", sort=False):
            t = rows.pivot_table(index=SHAPE, columns="framework", values="time_median")
            over = t.div(t.min(axis=1), axis=0)
            grown = t.groupby(axis).first().loc[last] / t.groupby(axis).first().loc[first]
            cells = [f"{n} {m:.2f} ({span(over[n])}), {grown[n]:.2f}" for n, m in over.median().sort_values().items()]
            lines.append([f"{layer}, {way}", *cells])
    return evidence.markdown(["layer", "first", "second", "third", "fourth"], lines)


def trajectories(f):
    """Returns a table: FLOPs, bytes, time and launches at the last value of an axis / those at the first value."""
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
    paper, cpu = Frameworks(evidence.path_of("paper_frameworks")), Frameworks(CPU)
    return PAGE.format(
        file=os.path.relpath(f.path, evidence.ROOT),
        devices=f"{len(f.data.device_model)} x {f.data.device_model.values[0]}",
        layers="\n".join(layers(f)),
        paper=os.path.relpath(paper.path, evidence.ROOT),
        trajectories="\n".join(trajectories(paper)),
        cpu="frameworks_cpu",
        processor=cpu.data.device_model.values[0],
        sizes=" or ".join(str(len(table[SHAPE].drop_duplicates())) for table in (cpu.conv2d, cpu.lstm)),
        ranks="\n".join(ranks(cpu)),
        agreement=f"{len(shared)} kernels have the same grid in several frameworks, and "
        + ("NOT " if wrong else "")
        + "the same FLOPs to the last digit."
        + (
            f"\nTime of PyTorch's graphs beside that of cuDNN's calls in a graph: {'; '.join(graphs)}."
            if graphs
            else ""
        ),
    )


def main(*arguments):
    files = [argument for argument in arguments if not argument.startswith("--")]
    options = tuple(argument for argument in arguments if argument.startswith("--"))
    f = Frameworks(files[0] if files else evidence.path_of("frameworks"))
    return agreement(f) if options == ("--agree",) else evidence.page_main("frameworks", page(f), list(options))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
