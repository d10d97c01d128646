#!/usr/bin/env python3
"""Tests the findings of Wang et al., "Time-Based Roofline for Deep Learning Performance Analysis", 2020, and of De
Sanctis and De Sanctis, "Roofline Model: Training a Convolutional Neural Network", 2025, one by one.

Usage: findings.py [--write | --check]

Prints the page docs/findings.md, made from the committed files. --write renews the page. With --check the exit status
is 1 if the page differs."""

import os
import sys

import evidence
import numpy as np
import pandas
from evidence import ALIKE, PRESERVED, SHAPE, File, better, listed, ratio, rises, share, span

SWEEPS = ["paper", "algorithms", "training"]
MOVED = ("data_movement_share", "busy_time")
STEADY = 1.25  # times and FLOP/s, largest over smallest


def series(f, label, axis, **chosen):
    """Returns the rows of each series of a labelled sweep, sorted by the axis. chosen: precision and passes."""
    table = f.lstm if label.startswith("lstm") else f.conv2d
    for name, values in chosen.items():
        table = table[table[{"passes": "pass"}.get(name, name)].isin(values)]
    return [rows for _, rows in f.sweep(table, label, axis)]


FORWARD, BACKWARD = ["forward"], ["backward-data", "backward-filter"]
finding = evidence.Claims()


def lstm_steady(f, axes):
    grown = {axis: [ratio(r.time_median) for r in series(f, f"lstm-{axis}", axis)] for axis in axes}
    parts = [own <= STEADY for found in grown.values() for own in found]
    return parts, f"within {STEADY} in {share(parts)} series; " + ", ".join(f"{a} {span(g)}" for a, g in grown.items())


def benchmarks(f):
    """Returns the four rows of the report's figures: product, two loops, and the training step by hand."""
    names, by_hand = ["product", "registers", "shared", "step"], f.rows.requested_implementation == "plain"
    by_hand |= f.rows.workload.str.endswith("-loop")
    labels = f.rows.label.str.split()
    return pandas.DataFrame([f.rows[by_hand & [n in own for own in labels]].iloc[0] for n in names], names)


@finding("II-B")
def complexity(algorithms):
    """An algorithm with more FLOP/s need not be faster: FFT and Winograd do fewer operations."""
    parts, slower = [], []
    table = algorithms.conv2d[algorithms.conv2d.requested_algorithm != "auto"]
    for names, r in table.groupby(["precision", "height", "filter_height"]):
        fast, busy = r.loc[r.time_median.idxmin()], r.loc[r.rate.idxmax()]
        parts.append(fast.requested_algorithm != busy.requested_algorithm)
        slower += [(names[0], busy.time_median / fast.time_median)] if parts[-1] else []
    by, times = " and ".join(sorted({name for name, _ in slower})), span(own for _, own in slower)
    return parts, f"in {share(parts)} shapes, all in {by}: the one with most FLOP/s takes {times} times as long"


@finding("III-B")
def launch_overhead(f):
    """A launch costs 4.2 us (V100)."""
    used = 1e6 * f.data.device_launch_overhead.values
    names, times = f.data.device_roof_name.values.astype(str), 1e6 * f.data.device_roof_time.values
    kinds = {"in a graph": "launch gap graph", "dependent": "launch gap dependent", "to the result": "launch latency"}
    others = ", ".join(f"{word} {span(times[names == kind])}" for word, kind in kinds.items())
    return abs(used / 4.2 - 1) < 0.25, f"{span(used)} us from one to the next; {others}"


@finding("III-C")
def backward_costs(f):
    """The backward pass is more computationally intensive than the forward pass."""
    keys, parts, figures = [*SHAPE[:4], "precision", "layout"], [], []
    for value, name in (("flops", "FLOPs"), ("time_median", "time")):
        t = f.conv2d.pivot_table(index=keys, columns="pass", values=value).dropna()
        grown = t[BACKWARD].sum(axis=1) / t.forward
        parts += [(part > 1).all() for _, part in grown.groupby(["precision", "layout"])]
        figures.append(f"{name} {grown.median():.2f} ({span(grown)})")
    return parts, f"both backward passes over forward: {', '.join(figures)}"


@finding("IV-A.1, forward")
def batch_forward(f):
    """The arithmetic intensity is preserved whatever the batch, and the algorithm is the same."""
    found = series(f, "conv2d-batch", "batch", passes=FORWARD)
    preserved, same = [ratio(r.ai) <= PRESERVED for r in found], [r.kernels.nunique() == 1 for r in found]
    grown = span(ratio(r.ai) for r in found)
    return preserved + same, f"AI within {PRESERVED} in {share(preserved)} series ({grown}); kernels in {share(same)}"


@finding("IV-A.1, forward")
def bytes_by_precision(f):
    """From fp16 to fp32 twice the data is moved."""
    table = pandas.concat(series(f, "conv2d-batch", "batch", passes=FORWARD))
    pair = table.pivot_table(index=["batch", "layout"], columns="precision", values="bytes").dropna()
    grown = pair.fp32 / pair.fp16
    texts = [f"{span(grown.xs(layout, level='layout'))} times in {layout}" for layout in ("nchw", "nhwc")]
    return grown.between(1.6, 2.4), ", ".join(texts)


@finding("IV-A.1, backward")
def batch_backward(f):
    """In the backward passes kernels change with the batch, more than in the forward pass."""
    forward, backward = (
        [r.kernels.nunique() > 1 for r in series(f, "conv2d-batch", "batch", passes=passes)]
        for passes in (FORWARD, BACKWARD)
    )
    parts = [*backward, np.mean(backward) > np.mean(forward)]
    return parts, f"they change in {share(backward)} series backward, in {share(forward)} forward"


@finding("IV-A.1, backward")
def data_movers(f):
    """Kernels that only move data (padding, shuffling, layouts) cost time: layouts with fewer of them are faster."""
    table = f.conv2d[f.conv2d["pass"].isin(BACKWARD) & (f.conv2d.precision == "fp16")]
    idle, time = (table.pivot_table(index=[*SHAPE[:4], "pass"], columns="layout", values=v) for v in MOVED)
    more = np.sign(idle.nchw - idle.nhwc) * (np.abs(idle.nchw - idle.nhwc) > 0.01)
    told = (more == np.sign(time.nchw - time.nhwc))[more != 0]
    shares = f"of the kernels' time {100 * idle.nchw.median():.0f} % in nchw, {100 * idle.nhwc.median():.0f} % in nhwc"
    return told, f"in fp16 {share(told)} pairs of layouts; {shares}"


@finding("IV-A.1, backward")
def tensor_units(f):
    """Tensor units are used in fp16; an auto-tuner may find them only at larger batches."""
    units = [r.tensor_flops > 0 for r in series(f, "conv2d-batch", "batch", passes=BACKWARD, precision=["fp16"])]
    used, late = [one for own in units for one in own], [not own.iloc[0] and own.iloc[-1] for own in units]
    return used + late, f"used in {share(used)} rows; only at larger batches in {share(late)} series"


@finding("IV-A.2, forward")
def filters_forward(f):
    """More output channels: more FLOP/s and a higher arithmetic intensity."""
    found = series(f, "conv2d-filters", "filters", passes=FORWARD)
    parts = [rises(r.ai) and rises(r.rate) for r in found]
    grown = " and ".join(f"{span(r[name].iloc[-1] / r[name].iloc[0] for r in found)}" for name in ("rate", "ai"))
    return parts, f"{share(parts)} series; from 64 to 512 filters {grown} times"


@finding("IV-A.2 and 3, forward")
def fp32_saturates(f):
    """In fp32 the FLOP/s stay the same as filters or the kernel grow: some unit is saturated."""
    peak = f.peak("vector", "fp32")
    axes = {"conv2d-filters": "filters", "conv2d-kernel": "filter_height"}
    found = [r for label in axes for r in series(f, label, axes[label], passes=FORWARD, precision=["fp32"])]
    best = span((100 * r.rate.max() / peak for r in found), "{:.0f}")
    return [
        ratio(r.rate) <= STEADY for r in found
    ], f"they vary by {span(ratio(r.rate) for r in found)}; {best} % of peak"


@finding("IV-A.2, backward")
def filters_backward(f):
    """Backward in fp16: each number of filters has another algorithm, that is, another set of kernels."""
    found = series(f, "conv2d-filters", "filters", passes=BACKWARD, precision=["fp16"])
    sets = ", ".join(str(r.kernels.nunique()) for r in found)
    return [r.kernels.nunique() == len(r) for r in found], f"{sets} sets of kernels for 4 numbers of filters"


@finding("IV-A.2, backward")
def filters_bound(f):
    """Backward in fp16: kernels that are memory-bound with 64 filters are compute-bound with 512."""
    found = series(f, "conv2d-filters", "filters", passes=BACKWARD, precision=["fp16"])
    parts = [r.bound.iloc[0] == "bandwidth" and r.bound.iloc[-1] == "compute" for r in found]
    over = span(r.own_ai.iloc[-1] / r.balance.iloc[-1] for r in found)
    return parts, f"{share(parts)} series go over; at 512 the AI is {over} of the machine balance"


@finding("IV-A.3")
def kernel_size(f):
    """A larger kernel: the same data movement, so more FLOP/s and a higher arithmetic intensity."""
    found = series(f, "conv2d-kernel", "filter_height", passes=FORWARD)
    same = [ratio(r.bytes) <= ALIKE for r in found]
    more, higher = [rises(r.rate) for r in found], [rises(r.ai) for r in found]
    text = f"bytes within {ALIKE} in {share(same)} series; FLOP/s rise in {share(more)}, AI in {share(higher)}"
    return same + more + higher, text


@finding("IV-A.4")
def stride_bytes(f):
    """A larger stride: fewer FLOPs for about the same bytes."""
    found = series(f, "conv2d-stride", "stride", passes=FORWARD, precision=["fp16"])
    flops, moved = ([r[name].iloc[0] / r[name].iloc[-1] for r in found] for name in ("flops", "bytes"))
    parts = [fall > 1 for fall in flops] + [fall <= ALIKE for fall in moved]
    return parts, f"from stride 3 to 1 {span(flops, '{:.1f}')} times the FLOPs, {span(moved, '{:.1f}')} times the bytes"


@finding("IV-A.4")
def stride_overhead(f):
    """A larger stride needs as many launches, so the share of overhead grows."""
    found = series(f, "conv2d-stride", "stride", passes=FORWARD, precision=["fp16"])
    parts = [r.overhead_time / r.time_median for r in found]
    fewer, grows = ([r.launches.iloc[-1] < r.launches.iloc[0] for r in found], [p.iloc[-1] > p.iloc[0] for p in parts])
    text = f"fewer launches in {share(fewer)} series; the share grows in {share(grows)}"
    return [not fall for fall in fewer] + grows, text


@finding("IV-A.4, backward")
def stride_bound(f):
    """Backward in fp16 with stride 1 is compute-bound, and FLOP/s fall with the stride."""
    found = series(f, "conv2d-stride", "stride", passes=BACKWARD, precision=["fp16"])
    bound, falls = [r.bound.iloc[0] == "compute" for r in found], [rises(-r.rate) for r in found]
    return bound + falls, f"compute-bound in {share(bound)} series; FLOP/s fall in {share(falls)}"


@finding("IV-A.4, backward")
def single_precision_in_half(f):
    """Sudden drops of the FLOP/s in fp16 come from algorithms that do not use tensor units."""
    half = f.conv2d[f.conv2d.precision == "fp16"]
    without = half[~(half.tensor_flops > 0)]
    usual = half[half.tensor_flops > 0].rate.median()
    return [not without.empty and without.rate.max() < usual], f"{len(without)} of {len(half)} rows do without"


@finding("IV-B.1")
def lstm_overhead(f):
    """An LSTM is always overhead-bound, whatever the batch and the pass."""
    parts = f.lstm.overhead_time / f.lstm.time_median
    took = span(100 * parts, "{:.0f}")
    return parts > 0.5, f"{share(f.lstm.bound == 'overhead')} rows lie in the box; launches take {took} % of the time"


@finding("IV-B.1")
def lstm_launch_time(f):
    """The run time of an LSTM is its launches times the latency of one, 4.2 us in the paper."""
    of_launch = f.lstm.time_median / f.lstm.launches
    own, same = f.lstm.overhead_time / f.lstm.launches, f.lstm.groupby(["precision", "pass", "launches"]).time_median
    parts = [*(of_launch / own).between(1 / STEADY, STEADY), *(same.max() / same.min() <= STEADY)]
    grown = span(same.max() / same.min())
    return parts, f"time over launches is {span(1e6 * of_launch)} us; of as many launches times differ {grown} times"


@finding("IV-B.1")
def lstm_leaves(f):
    """Forward, launch overhead stops bounding an LSTM at 0.4452 GFLOP, a batch of about 3000."""
    peak, (r,) = f.peak("tensor", "fp16"), series(f, "lstm-batch", "batch", passes=FORWARD, precision=["fp16"])
    work = peak * (r.overhead_time / r.launches).median()
    batches = np.array([1, r.launches.median()]) * work / (r.flops / r.batch).median()
    parts = [abs(found / paper - 1) < 0.5 for found, paper in ((work, 0.4452e9), (batches[0], 3000))]
    large = f.lstm[f.lstm.label.str.contains("lstm-large")]
    inside, out = (large.batch[(large.bound == "overhead") == box] for box in (True, False))
    told = f"; measured: in the box up to {inside.max():.0f}, out from {out.min():.0f}" if len(large) else ""
    texts = f"one launch is worth {work / 1e9:.2f} GFLOP, a batch of {batches[0]:.0f}; all launches {batches[1]:.0f}"
    return parts + ([(out > 1500).all() and (inside < 6000).all()] if len(large) else []), texts + told


@finding("IV-B.1")
def lstm_batch(f):
    """The run time of an LSTM stays the same whatever the batch."""
    return lstm_steady(f, ["batch"])


@finding("IV-B.1")
def lstm_sizes(f):
    """The run time of an LSTM stays the same whatever the number of features and the hidden size."""
    return lstm_steady(f, ["features", "hidden"])


@finding("IV-B.1")
def lstm_launches(f):
    """Launches stay the same as batch, features or hidden size grow."""
    found = [r for axis in ("batch", "features", "hidden") for r in series(f, f"lstm-{axis}", axis)]
    parts = [r.launches.nunique() == 1 for r in found]
    counts = span(pandas.concat(found).launches, "{:.0f}")
    return parts, f"in {share(parts)} series; there are {counts}"


@finding("IV-B.1")
def lstm_default(f):
    """Forward, by default, 36 launches in PyTorch: two per time step, two products before, two without FLOPs."""
    table = f.lstm[(f.lstm["pass"] == "forward") & (f.lstm.label.str.split().map(len) == 4)]
    launches = " and ".join(f"{r.launches:.0f} in {r.precision}" for _, r in table.iterrows())
    return table.launches == 36, f"cuDNN has {launches}: one kernel does all steps"


@finding("IV-B.2")
def lstm_sequence(f):
    """Run time and launches are proportional to the sequence; intensity and FLOP/s stay the same."""
    parts, found = [], series(f, "lstm-sequence", "sequence")
    grown = [
        {name: r[name].iloc[-1] / r[name].iloc[0] for name in ("sequence", "time_median", "launches")} for r in found
    ]
    for r, own in zip(found, grown):
        parts += [abs(own[name] / own["sequence"] - 1) <= 0.25 for name in ("time_median", "launches")]
        parts += [ratio(r.ai) <= STEADY, ratio(r.rate) <= STEADY]
    times, launches = (span(own[name] for own in grown) for name in ("time_median", "launches"))
    return parts, f"8 times the sequence takes {times} times as long, {launches} times the launches"


@finding("III-D")
def lstm_slow(f):
    """An LSTM has far lower FLOP/s than a conv2d, and moves more bytes for each FLOP."""
    conv2d, lstm = (table.groupby("precision")[["rate", "ai"]].median() for table in (f.conv2d, f.lstm))
    more = conv2d / lstm
    texts = [f"in {name} {r.rate:.0f} times the FLOP/s and {r.ai:.1f} times the AI" for name, r in more.iterrows()]
    return [*(more.rate > 10), *(more.ai > 1)], f"a conv2d has {', '.join(texts)} (medians)"


@finding("V")
def half_precision(f):
    """Tensor units are critical for conv2d and matter little for an LSTM."""
    gains = []
    for table, keys in ((f.conv2d, [*SHAPE[:4], "pass"]), (f.lstm, ["batch", *SHAPE[4:], "pass"])):
        best = table.pivot_table(index=keys, columns="precision", values="time_median", aggfunc="min").dropna()
        gains.append(best.fp32 / best.fp16)
    texts = [f"{name} {gain.median():.2f} ({span(gain)})" for name, gain in zip(("conv2d", "LSTM"), gains)]
    return [gains[0].median() > 2.0, gains[1].median() < 1.5], f"time in fp32 over fp16: {', '.join(texts)}"


@finding("I and IV")
def auto_tuning(f):
    """Auto-tuning changes the algorithm, to the better."""
    r = pandas.concat([f.hot, f.rows]).drop_duplicates("row")
    r = r[np.isfinite(r.heuristic_time)]
    changed = r.algorithm_id != r.heuristic_id
    gain = (r.heuristic_time / r.time_median)[changed]
    parts = better(r.heuristic_time, r.time_median, r.search_noise)[changed]
    times = f"measured anew {gain.median():.2f} times ({span(gain)}) as fast as the library's first choice"
    return [changed.mean() > 0.5, *parts], f"it changes in {share(changed)} rows; faster in {share(parts)}: {times}"


@finding("none")
def layouts(f):
    """(Not in the paper.) fp32 is faster in nchw and fp16 in nhwc."""
    keys = ["precision", *SHAPE[:4], "pass", "cache"]
    table = pandas.concat([f.hot, f.rows]).drop_duplicates("row")
    time = table[table.workload == "conv2d"].pivot_table(index=keys, columns="layout", values="time_median").dropna()
    gain = time.nhwc / time.nchw
    half, single = gain.loc["fp16"], gain.loc["fp32"]
    texts = [f"{name} {own.median():.2f} ({span(own)})" for name, own in (("fp16", half), ("fp32", single))]
    return [*(half < 1), *(single > 1)], f"time in nhwc over nchw: {', '.join(texts)}"


@finding("report, 5")
def report_product(f):
    """A matrix product as one would first write it is bound by memory."""
    one = benchmarks(f).loc["product"]
    return [one.bound == "bandwidth"], f"AI {one.own_ai:.1f}, the machine balance is {one.balance:.1f}"


@finding("report, 5")
def report_registers(f):
    """A loop of multiply-adds in registers nearly reaches the roof."""
    one = benchmarks(f).loc["registers"]
    part = one.rate / one.compute_roof
    return [part > 0.9], f"{100 * part:.0f} % of it, at an AI of {one.ai:.0f}"


@finding("report, 5")
def report_shared(f):
    """The loop through shared memory has at least the intensity of the loop in registers, and a tenth of its FLOP/s."""
    t = benchmarks(f)
    ai, rate = (t[name]["shared"] / t[name]["registers"] for name in ("ai", "rate"))
    return [ai > 0.98, rate < 0.2], f"{ai:.2f} times the AI, {rate:.2f} times the FLOP/s"


@finding("report, 5")
def report_step(f):
    """A training step has the lowest FLOP/s of the four, far below its roofs, and more intensity than the product."""
    t, one = benchmarks(f), benchmarks(f).loc["step"]
    part = one.rate / min(1, one.own_ai / one.balance) / one.compute_roof
    parts = [t.rate.idxmin() == "step", part < 0.1, one.ai > t.ai["product"]]
    return parts, f"{100 * part:.1f} % of its roof, AI {one.ai:.1f}, the product's {t.ai['product']:.1f}"


@finding("report, 5")
def report_remedies(f):
    """A larger batch, half precision and more filters bring the step nearer to the roof."""
    table = f.rows[f.rows.label.str.contains("remedies")]
    found = {}
    for by, r in table.groupby("requested_implementation"):
        base = r[(r.batch == 16) & (r.filters == 32)].set_index("precision").rate
        ends = r[r.precision == "fp32"].sort_values(["batch", "filters"])
        large, wide = ends[ends.batch > 16].rate.iloc[-1], ends[ends.filters > 32].rate.iloc[-1]
        found[by] = np.array([large, base["fp16"], wide]) / base["fp32"]
    texts = [f"{by} {listed(grown, '{:.2f}')}" for by, grown in found.items()]
    return [one > 1.1 for grown in found.values() for one in grown], f"times the FLOP/s: {'; '.join(texts)}"


@finding("report, 5")
def report_causes(f):
    """Register spills and low occupancy keep the step from its roof."""
    step = benchmarks(f).loc["step"]
    own = f.kernels[f.kernels.kernel_config == step.row].nlargest(1, "kernel_time").iloc[0]
    by_registers = "registers" in step.cause
    text = f"registers {'do' if by_registers else 'do not'} bound the threads of its longest kernel, which may hold "
    text += f"{100 * own.kernel_occupancy:.0f} % of them; its blocks fill {100 * own.kernel_waves:.0f} % of a wave"
    return [by_registers, own.kernel_occupancy < 0.25], text


PAGE = """# The findings of the paper and of the report, one by one

Wang et al., *Time-Based Roofline for Deep Learning Performance Analysis*, 2020, measured conv2d and LSTM on a V100 with
PyTorch 1.5 and TensorFlow. De Sanctis and De Sanctis, *Roofline Model: Training a Convolutional Neural Network*, 2025,
measured a training step on RTX cards. This page tests each finding on another GPU, with the libraries of 2026.
`tests/findings.py --write` writes this page from the result files. Each finding is a function there.

{files}

- Part of a conv2d's result is still in L2 when its time is over, and the counters of device memory miss that part. This
  page adds it: bytes written to L2 less bytes written to device memory, at most the bytes of the result.
- Bounds are the paper's (II-B): they compare the time of a row's FLOPs and of its bytes, each at its roof.
- A series is one precision, pass and layout of a sweep. "1.2 to 3" means smallest to largest.
- A claim holds in part if it is true for some of its parts, series or rows.

{findings}
"""


def files():
    """Returns {sweep: File} for the committed files."""
    paths = {name: os.path.join(evidence.ROOT, f"tests/data/{name}_h100.nc") for name in SWEEPS}
    return {name: File(path) for name, path in paths.items() if os.path.exists(path)}


def page():
    found = files()
    of = [
        [f"`{os.path.relpath(f.path, evidence.ROOT)}`", f"`sweeps/{name}.ini`", f.data.device_model.values[0]]
        + [f.data.device_library_version.values[0], str(f.rows.start_time.min())[:10]]
        + ["cold" if f.cold else "hot", f"`{f.level}`"]
        for name, f in found.items()
    ]
    others = {complexity: "algorithms"} | {test: "training" for _, test in finding.tests if "report" in test.__name__}
    lines = finding.lines(lambda test: found.get(others.get(test, "paper")))
    return PAGE.format(
        files="\n".join(evidence.markdown(["file", "of", "device", "library", "measured", "caches", "AI at"], of)),
        findings="\n".join(evidence.markdown(["in", "finding", "here", "figures"], lines)),
    )


if __name__ == "__main__":
    sys.exit(evidence.page_main("findings", page(), sys.argv[1:]))
