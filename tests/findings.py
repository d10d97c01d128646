#!/usr/bin/env python3
"""The findings of Wang et al., "Time-Based Roofline for Deep Learning Performance Analysis", 2020, tested one by one.

Usage: findings.py [PAPER [ALGORITHMS]] [--write | --check]

PAPER is a result file of sweeps/paper.ini, ALGORITHMS one of sweeps/algorithms.ini; without them, the newest committed
ones. Prints the page docs/findings.md; --write renews it; --check: status 1 if it is not that of the files."""

import os
import sys

import numpy as np
import pandas
from evidence import (
    NOT,
    PRESERVED,
    ROOT,
    SHAPE,
    UNKNOWN,
    File,
    better,
    listed,
    markdown,
    page_hand_over,
    ratio,
    rises,
    share,
    verdict,
)

FILES = ["tests/data/paper_h200.nc", "tests/data/algorithms_h200.nc"]
ALIKE = 1.5  # bytes, largest over smallest
BACKWARD = ["backward-data", "backward-filter", "backward"]


def between(values):
    """The smallest to the largest, or one of them if they look the same."""
    return " to ".join(dict.fromkeys(f"{value:.2f}" for value in (np.nanmin(values), np.nanmax(values))))


# ---- conv2d ----


def batch_forward(f):
    """The arithmetic intensity is preserved whatever the batch, and the algorithm is the same."""
    rows, preserved, same = [], [], []
    for name, r in f.sweep(f.conv2d[f.conv2d["pass"] == "forward"], "conv2d-batch", "batch"):
        preserved.append(ratio(r.ai) <= PRESERVED)
        same.append(r.kernels.nunique() == 1)
        rows.append([name, listed(r.ai, "{:.4g}"), f"{ratio(r.ai):.2f}", "yes" if same[-1] else "no"])
        rows[-1].append(f"{ratio(r.flops / r.memory_bytes):.2f}")
    head = ["series", "AI at batch 16, 32, 64", "largest / smallest", "same kernels"]
    return verdict(preserved + same), [
        f"AI is preserved if the largest is at most {PRESERVED} times the smallest: in {share(preserved)} series.",
        f"Kernels are the same in {share(same)}.",
        "",
        *markdown([*head, "largest / smallest, counters of device memory alone"], rows),
    ]


def batch_backward(f):
    """In the backward passes kernels change with the batch, more than in the forward pass."""
    rows, changes = [], {True: [], False: []}
    for name, r in f.sweep(f.conv2d, "conv2d-batch", "batch"):
        changes["forward" in name.split()].append(r.kernels.nunique() > 1)
        rows.append([name, r.kernels.nunique(), listed(r.launches, "{:.0f}"), listed(r.ai, "{:.4g}")])
    forward, backward = changes[True], changes[False]
    if not forward or not backward:
        return UNKNOWN, ["The file has one of the passes only."]
    return verdict([*backward, np.mean(backward) > np.mean(forward)]), [
        f"Kernels change in {share(backward)} series of the backward passes, and in {share(forward)} forward.",
        "",
        *markdown(["series", "different sets of kernels", "launches", "AI"], rows),
    ]


def bytes_by_precision(f):
    """From fp16 to fp32 twice the data is moved."""
    keys = [*SHAPE[:4], "pass", "layout"]
    pair = f.conv2d.pivot_table(index=keys, columns="config_precision", values="bytes").dropna()
    rows, parts = [], []
    for (direction, layout), part in pair.groupby(["pass", "layout"]):
        ratios = part.fp32 / part.fp16
        parts.append(bool(ratios.between(1.6, 2.4).all()))
        rows.append([direction, layout, f"{ratios.median():.2f}", f"{ratios.min():.2f} to {ratios.max():.2f}"])
    return verdict(parts), markdown(["pass", "layout", "bytes in fp32 / in fp16, median", "range"], rows)


def data_movers(f):
    """Kernels without FLOPs (padding, shuffling, other layouts) cost time: who has fewer is faster."""
    if not f.kernels_counted:
        return UNKNOWN, ["The kernels of this file were not counted one by one."]
    keys = [*SHAPE[:4], "pass", "config_precision"]
    idle = f.conv2d.pivot_table(index=keys, columns="layout", values="idle_part")
    time = f.conv2d.pivot_table(index=keys, columns="layout", values="time_median")
    if set(idle) != {"nchw", "nhwc"}:
        return UNKNOWN, ["The file has one layout only."]
    rows, parts = [], []
    for (precision, direction), part in idle.groupby(["config_precision", "pass"]):
        t = time.loc[part.index]
        more = np.sign(part.nchw - part.nhwc) * (np.abs(part.nchw - part.nhwc) > 0.01)
        told = (more == np.sign(t.nchw - t.nhwc))[more != 0]
        parts += list(told)
        rows.append(
            [precision, direction, f"{100 * part.nhwc.median():.0f} %", f"{100 * part.nchw.median():.0f} %"]
            + [f"{(t.nchw / t.nhwc).median():.2f}", share(told) if len(told) else "none differs"]
        )
    head = ["precision", "pass", "share of time, nhwc", "nchw", "time nchw / nhwc", "who has less is faster"]
    return verdict(parts), markdown(head, rows)


def tensor_units(f):
    """Tensor units are used in fp16; an auto-tuner may find them only at larger batches."""
    rows, used, late = [], [], []
    for name, r in f.sweep(f.conv2d[f.conv2d.config_precision == "fp16"], "conv2d-batch", "batch"):
        units = r.tensor_flops > 0
        used += list(units)
        late.append(not units.iloc[0] and units.iloc[-1])
        rows.append([name, listed(units.map({True: "yes", False: "no"}), "{}")])
    text = f"Tensor units are used in {share(used)} rows. They come with larger batches only in {share(late)} series."
    return verdict(used + late), [text, "", *markdown(["series", "tensor units at batch 16, 32, 64"], rows)]


def filters_forward(f):
    """More output channels: more FLOP/s and a higher arithmetic intensity."""
    rows, parts = [], []
    for name, r in f.sweep(f.conv2d[f.conv2d["pass"] == "forward"], "conv2d-filters", "filters"):
        parts.append(rises(r.ai) and rises(r.rate))
        steps = np.min(r.ai.values[1:] / r.ai.values[:-1])
        rows.append([name, listed(r.ai, "{:.4g}"), f"{steps:.2f}", listed(r.rate / 1e12, "{:.4g}")])
    return verdict(parts), markdown(["series", "AI at 64, 128, 256, 512 filters", "least step", "TFLOP/s"], rows)


def fp32_saturates(f):
    """In fp32 the FLOP/s stay the same as filters or the kernel grow: some unit is saturated."""
    rows, parts = [], []
    for label, axis in (("conv2d-filters", "filters"), ("conv2d-kernel", "kernel_height")):
        table = f.conv2d[(f.conv2d["pass"] == "forward") & (f.conv2d.config_precision == "fp32")]
        for name, r in f.sweep(table, label, axis):
            peak = f.data.device_peak_vector.values[0, f.precisions.index("fp32")]
            parts.append(ratio(r.rate) <= 1.25)
            rows.append([label[7:], name, listed(r.rate / 1e12, "{:.4g}"), f"{ratio(r.rate):.2f}"])
            rows[-1].append(f"{100 * r.rate.max() / peak:.0f} %")
    head = ["sweep", "series", "TFLOP/s", "largest / smallest", "largest of the fp32 peak"]
    return verdict(parts), markdown(head, rows)


def filters_backward(f):
    """Backward in fp16: the algorithm changes with the number of filters, no set of kernels is used twice."""
    rows, parts = [], []
    for name, r in f.sweep(f.conv2d[f.conv2d.config_precision == "fp16"], "conv2d-filters", "filters"):
        if "forward" in name.split():
            continue
        parts.append(r.kernels.nunique() == len(r))
        rows.append([name, f"{r.kernels.nunique()} of {len(r)}", "; ".join(r.algorithm)])
    return verdict(parts), markdown(["series", "different sets of kernels", "algorithms at 64, 128, 256, 512"], rows)


def filters_bound(f):
    """Backward in fp16: with 512 filters kernels go over from memory-bound to compute-bound."""
    rows, parts = [], []
    for name, r in f.sweep(f.conv2d[f.conv2d.config_precision == "fp16"], "conv2d-filters", "filters"):
        if "forward" in name.split():
            continue
        words = r.bound.map(f.words("bound"))
        parts.append(words.iloc[0] == "bandwidth" and words.iloc[-1] == "compute")
        rows.append([name, listed(words, "{}"), listed(r.ai, "{:.4g}")])
    lines = markdown(["series", "`bound` at 64, 128, 256, 512 filters", "AI"], rows)
    return verdict(parts), [f"{share(parts)} series go over.", "", *lines]


def kernel_size(f):
    """A larger kernel: the same data movement, so more FLOP/s and a higher arithmetic intensity."""
    rows, same, more, higher = [], [], [], []
    for name, r in f.sweep(f.conv2d[f.conv2d["pass"] == "forward"], "conv2d-kernel", "kernel_height"):
        same.append(ratio(r.bytes) <= ALIKE)
        more.append(rises(r.rate))
        higher.append(rises(r.ai))
        rows.append([name, listed(r.bytes / 1e6, "{:.4g}"), listed(r.ai, "{:.4g}")])
        rows[-1].append(listed(r.rate / 1e12, "{:.4g}"))
    return verdict(same + more + higher), [
        f"The largest bytes are at most {ALIKE} times the smallest in {share(same)} series.",
        f"With each larger kernel FLOP/s rise in {share(more)}, AI in {share(higher)}.",
        "",
        *markdown(["series", "MB at kernels 3, 5, 7, 9", "AI", "TFLOP/s"], rows),
    ]


def stride_bytes(f):
    """A larger stride: fewer FLOPs for about the same bytes."""
    rows, parts = [], []
    for name, r in f.sweep(f.conv2d[f.conv2d["pass"] == "forward"], "conv2d-stride", "stride"):
        flops, moved = r.flops.iloc[0] / r.flops.iloc[-1], r.bytes.iloc[0] / r.bytes.iloc[-1]
        parts += [flops > 1, moved <= ALIKE]
        rows.append([name, listed(r.flops / 1e9, "{:.4g}"), listed(r.bytes / 1e6, "{:.4g}"), f"{flops:.1f}"])
        rows[-1].append(f"{moved:.1f}")
    head = ["series", "GFLOP at stride 1, 2, 3", "MB", "FLOPs, 1 to 3", "bytes, 1 to 3"]
    return verdict(parts), [
        f"FLOPs are fewer with stride 3 than with stride 1 in {share(parts[0::2])} series.",
        f"Bytes are about the same, at most {ALIKE} times those of stride 3, in {share(parts[1::2])}. The result is a",
        "ninth with stride 3.",
        "",
        *markdown(head, rows),
    ]


def stride_overhead(f):
    """A larger stride does not mean fewer launches, so the share of overhead grows."""
    rows, fewer, grows = [], [], []
    for name, r in f.sweep(f.conv2d, "conv2d-stride", "stride"):
        part = r.overhead_time / r.time_median
        fewer.append(r.launches.iloc[-1] < r.launches.iloc[0])
        grows.append(part.iloc[-1] > part.iloc[0])
        rows.append([name, listed(r.launches, "{:.0f}"), listed(100 * part, "{:.1f} %")])
    return verdict([not fall for fall in fewer] + grows), [
        f"From stride 1 to 3 there are fewer launches in {share(fewer)} series. The share of overhead grows in",
        f"{share(grows)}.",
        "",
        *markdown(["series", "launches at stride 1, 2, 3", "launches x overhead / time"], rows),
    ]


def stride_bound(f):
    """Backward in fp16 with stride 1 is compute-bound, and FLOP/s fall with the stride."""
    rows, bound, falls = [], [], []
    for name, r in f.sweep(f.conv2d[f.conv2d.config_precision == "fp16"], "conv2d-stride", "stride"):
        if "forward" in name.split():
            continue
        words = r.bound.map(f.words("bound"))
        bound.append(words.iloc[0] == "compute")
        falls.append(rises(-r.rate))
        rows.append([name, listed(words, "{}"), listed(r.rate / 1e12, "{:.4g}")])
    return verdict(bound + falls), [
        f"Compute-bound with stride 1: {share(bound)} series. FLOP/s fall with each larger stride in {share(falls)}.",
        "",
        *markdown(["series", "`bound` at stride 1, 2, 3", "TFLOP/s"], rows),
    ]


def single_precision_in_half(f):
    """Sudden drops of the FLOP/s in fp16 come from algorithms that do not use tensor units."""
    half = f.conv2d[f.conv2d.config_precision == "fp16"]
    without = half[~(half.tensor_flops > 0)]
    lines = [f"{len(without)} of {len(half)} fp16 rows do no FLOPs on tensor units."]
    lines += [f"- {r.label}, {r['pass']}, {r.layout}: {r.rate / 1e12:.3g} TFLOP/s" for _, r in without.iterrows()]
    if without.empty:
        return NOT, [*lines, "No drop here has this cause."]
    return verdict([without.rate.max() < half[half.tensor_flops > 0].rate.median()]), lines


def backward_costs(f):
    """The backward pass is more computationally intensive than the forward pass."""
    keys = [*SHAPE[:4], "config_precision", "layout"]
    rows, parts = [], []
    for value, name in (("flops", "FLOPs"), ("time_median", "time")):
        t = f.conv2d.pivot_table(index=keys, columns="pass", values=value).dropna()
        for (precision, layout), part in t.groupby(["config_precision", "layout"]):
            both = part["backward-data"] + part["backward-filter"]
            parts.append(bool((both > part.forward).all()))
            rows.append([name, precision, layout, f"{(both / part.forward).median():.2f}"])
            rows[-1].append(f"{(both / part.forward).min():.2f} to {(both / part.forward).max():.2f}")
    return verdict(parts), markdown(["in", "precision", "layout", "both backward passes / forward", "range"], rows)


def half_precision(f):
    """Tensor units are critical for conv2d and matter little for an LSTM."""
    rows, parts = [], []
    for workload, table, keys in (
        ("conv2d", f.conv2d, [*SHAPE[:4], "pass"]),
        ("lstm", f.lstm, ["batch", *SHAPE[4:], "pass"]),
    ):
        best = table.pivot_table(index=keys, columns="config_precision", values="time_median", aggfunc="min").dropna()
        gain = best.fp32 / best.fp16
        parts.append(bool(gain.median() > 2.0) if workload == "conv2d" else bool(gain.median() < 1.5))
        rows.append([workload, f"{gain.median():.2f}", f"{gain.min():.2f} to {gain.max():.2f}"])
    return verdict(parts), markdown(["workload", "time in fp32 / in fp16, median", "range"], rows)


# ---- LSTM ----


def lstm_overhead(f):
    """An LSTM is always overhead-bound, whatever the batch and the pass."""
    word, paper = f.flag("bound", "overhead"), 4.2e-6
    rows, parts = [], []
    for name, r in f.sweep(f.lstm, "lstm-batch", "batch"):
        parts += list(r.bound == word)
        rows.append([name, share(r.bound == word), listed(100 * r.overhead_time / r.time_median, "{:.0f} %")])
        rows[-1].append(listed(100 * np.minimum(r.launches * paper / r.time_median, 9.99), "{:.0f} %"))
    every = f.lstm.bound == word
    lines = markdown(["series", "overhead-bound", "launches x overhead / time", "with the paper's 4.2 us"], rows)
    return verdict(parts), [*lines, "", f"Over all four sweeps {share(every)} rows are overhead-bound."]


def lstm_batch(f):
    """The run time of an LSTM stays the same whatever the batch."""
    rows, parts = [], []
    for name, r in f.sweep(f.lstm, "lstm-batch", "batch"):
        parts.append(ratio(r.time_median) <= 1.25)
        rows.append([name, listed(1e6 * r.time_median, "{:.4g}"), f"{ratio(r.time_median):.2f}"])
    return verdict(parts), markdown(["series", "us at batch 16, 32, 64, 128", "largest / smallest"], rows)


def lstm_launches(f):
    """Launches stay the same as batch, features or hidden size grow."""
    rows, parts = [], []
    for axis in ("batch", "features", "hidden"):
        for name, r in f.sweep(f.lstm, f"lstm-{axis}", axis):
            parts.append(r.launches.nunique() == 1)
            rows.append([axis, name, listed(r.launches, "{:.0f}")])
    return verdict(parts), markdown(["what grows", "series", "launches"], rows)


def lstm_sequence(f):
    """Run time and launches are proportional to the sequence; intensity and FLOP/s stay the same."""
    rows, parts = [], []
    for name, r in f.sweep(f.lstm, "lstm-sequence", "sequence"):
        grown = r.sequence.iloc[-1] / r.sequence.iloc[0]
        times, launches = (r[c].iloc[-1] / r[c].iloc[0] for c in ("time_median", "launches"))
        parts += [abs(x / grown - 1) <= 0.25 for x in (times, launches)] + [ratio(r.ai) <= 1.25, ratio(r.rate) <= 1.25]
        rows.append([name, f"{times:.2f}", listed(r.launches, "{:.0f}"), listed(r.ai, "{:.3g}")])
        rows[-1].append(listed(r.rate / 1e9, "{:.3g}"))
    head = ["series", "time at 128 / at 16 (8 would be proportional)", "launches at 16, 32, 64, 128", "AI", "GFLOP/s"]
    return verdict(parts), markdown(head, rows)


def lstm_default(f):
    """Forward, by default, 36 launches in PyTorch: two per time step, two products before, two without FLOPs."""
    table = f.lstm[(f.lstm["pass"] == "forward") & (f.lstm.label.str.split().map(len) == 4)]
    rows = []
    for _, r in table.iterrows():
        idle = f"{r.idle_launches:.0f}" if f.kernels_counted else "not counted"
        names = [name.split("<")[0].split("(")[0][-40:] for name in r.kernels.split(" + ")]
        rows.append([r.config_precision, int(r.launches), idle, ", ".join(f"`{name}`" for name in names)])
    lines = markdown(["precision", "launches", "of them without FLOPs", "kernels"], rows)
    return verdict([r[1] == 36 for r in rows]), lines


def lstm_slow(f):
    """An LSTM has far lower FLOP/s than a conv2d."""
    rows = []
    for precision in ("fp16", "fp32"):
        conv2d, lstm = (t[t.config_precision == precision].rate for t in (f.conv2d, f.lstm))
        rows.append([precision, f"{conv2d.median() / 1e12:.3g}", f"{lstm.median() / 1e12:.3g}"])
        rows[-1].append(f"{conv2d.median() / lstm.median():.0f}")
    return verdict([float(r[3]) > 10 for r in rows]), markdown(
        ["precision", "TFLOP/s of conv2d, median", "of LSTM", "ratio"], rows
    )


# ---- the method ----


def auto_tuning(f):
    """Auto-tuning changes the algorithm, to the better."""
    if "heuristic_time" not in f.hot:
        return UNKNOWN, ["This file does not say what the library itself would have taken."]
    rows, parts = [], []
    searched = pandas.concat([f.hot, f.rows]).drop_duplicates("row")
    searched = searched[np.isfinite(searched.heuristic_time)]
    for names, r in searched.groupby(["config_precision", "pass", "cache"]):
        changed = r.algorithm_id != r.heuristic_id
        parts += list(better(changed, r.heuristic_time, r.search_time, r.search_noise))
        gain = (r.heuristic_time / r.search_time)[changed]
        rows.append([*names, share(changed)])
        rows[-1] += [f"{gain.median():.2f}", f"{gain.max():.2f}"] if len(gain) else ["", ""]
        rows[-1].append(f"{100 * r.search_noise.median():.1f} %")
        rows[-1].append(f"{100 * (r.runner_up_time / r.search_time - 1).median():.0f} %")
    head = ["precision", "pass", "cache", "not the library's own choice", "its time / the chosen's, median", "most"]
    return verdict(parts), [
        f"In {share(parts)} rows the search takes another algorithm than the library, faster by more than the noise.",
        "The other rows count against the claim.",
        "",
        *markdown([*head, "noise, median", "runner-up slower by, median"], rows),
    ]


def layouts(f):
    """(Not in the paper.) fp32 is faster in nchw and fp16 in nhwc."""
    keys = [*SHAPE[:4], "pass", "config_precision", "cache"]
    table = pandas.concat([f.hot, f.rows]).drop_duplicates("row")
    time = table[table.workload == "conv2d"].pivot_table(index=keys, columns="layout", values="time_median")
    if set(time) != {"nchw", "nhwc"}:
        return UNKNOWN, ["The file has one layout only."]
    rows, parts = [], []
    for (precision, direction, cache), part in time.groupby(["config_precision", "pass", "cache"]):
        gain = part.nhwc / part.nchw
        parts += list(gain > 1 if precision == "fp32" else gain < 1)
        rows.append([precision, direction, cache, f"{gain.median():.2f}", f"{gain.min():.2f} to {gain.max():.2f}"])
    return verdict(parts), markdown(["precision", "pass", "cache", "time nhwc / nchw, median", "range"], rows)


def launch_overhead(f):
    """A launch costs 4.2 us (V100)."""
    used = 1e6 * f.data.device_launch_overhead.values
    names, times = f.data.device_roof_name.values.astype(str), 1e6 * f.data.device_roof_time.values
    kinds = dict.fromkeys(name for name in names if name.startswith("launch"))
    rows = [[kind, between(times[names == kind])] for kind in kinds]
    text = f"Used here: {between(used)} us. The file has {len(used)} sets of roofs, each of one GPU and one session."
    return verdict(abs(used / 4.2 - 1) < 0.25), [text, "", *markdown(["kind", "us, of all sets"], rows)]


def complexity(algorithms):
    """An algorithm with more FLOP/s need not be faster: FFT and Winograd do fewer operations."""
    if not algorithms:
        return UNKNOWN, ["There is no file of `sweeps/algorithms.ini` yet."]
    rows, parts = [], []
    keys = ["config_precision", "height", "kernel_height"]
    table = algorithms.conv2d[algorithms.conv2d.config_algorithm != "auto"]
    for names, r in table.groupby(keys):
        fast, busy = r.loc[r.time_median.idxmin()], r.loc[r.rate.idxmax()]
        parts.append(fast.config_algorithm != busy.config_algorithm)
        rows.append([*names, f"{fast.config_algorithm}: {1e6 * fast.time_median:.4g}, {fast.rate / 1e12:.3g}"])
        rows[-1].append(f"{busy.config_algorithm}: {1e6 * busy.time_median:.4g}, {busy.rate / 1e12:.3g}")
        rows[-1].append(f"{ratio(r.flops):.1f}, {ratio(r.bytes):.1f}")
    head = ["precision", "pixels", "kernel", "fastest: us, TFLOP/s", "most FLOP/s: us, TFLOP/s"]
    return verdict(parts), markdown([*head, "largest / smallest FLOPs, bytes"], rows)


ABOUT_BYTES = [
    "Of a conv2d's result a part is still in L2 when its time is over, most of it with a small batch. The counters of",
    "device memory do not see that part. It is added here: bytes written to L2 less those written to device memory, at",
    "most the bytes of the result. What else kernels write to L2 is not added: other layouts, partial sums, numbers",
    "that are written several times. It need never be moved. Bytes of an LSTM are as counted.",
    "",
]

FINDINGS = [
    ("II-B", complexity),
    ("III-B", launch_overhead),
    ("III-C", backward_costs),
    ("IV-A.1, forward", batch_forward),
    ("IV-A.1, forward", bytes_by_precision),
    ("IV-A.1, backward", batch_backward),
    ("IV-A.1, backward", data_movers),
    ("IV-A.1, backward", tensor_units),
    ("IV-A.2, forward", filters_forward),
    ("IV-A.2 and 3, forward", fp32_saturates),
    ("IV-A.2, backward", filters_backward),
    ("IV-A.2, backward", filters_bound),
    ("IV-A.3", kernel_size),
    ("IV-A.4", stride_bytes),
    ("IV-A.4", stride_overhead),
    ("IV-A.4, backward", stride_bound),
    ("IV-A.4, backward", single_precision_in_half),
    ("IV-B.1", lstm_overhead),
    ("IV-B.1", lstm_batch),
    ("IV-B.1", lstm_launches),
    ("IV-B.1", lstm_default),
    ("IV-B.2", lstm_sequence),
    ("III-D", lstm_slow),
    ("V", half_precision),
    ("I and IV", auto_tuning),
    ("beside the paper", layouts),
]


def told(test, file):
    """What a test says. A file without the rows or variables that it needs tells nothing."""
    try:
        return test(file)
    except (AttributeError, IndexError, KeyError, ValueError, ZeroDivisionError) as error:
        return UNKNOWN, [f"The file lacks what this needs ({type(error).__name__})."]


def page(paper, algorithms):
    """The whole page, as lines."""
    lines = [
        "# The paper's findings, one by one",
        "",
        "Wang et al., *Time-Based Roofline for Deep Learning Performance Analysis*, 2020, measured conv2d and LSTM",
        "on a V100 with PyTorch 1.5 and TensorFlow. Here each finding is tested on another GPU, with the libraries of",
        "today. `tests/findings.py --write` writes this page from the result files. How a claim is tested is the",
        "function that the last column of the table names.",
        "",
        *markdown(
            ["file", "of", "device", "library", "measured"],
            [
                [f"`{os.path.relpath(f.path, ROOT)}`", f"`{manifest}`", str(f.data.device_model.values[0])]
                + [str(f.data.device_library_version.values[0]), str(f.rows.start_time.min())[:10]]
                for f, manifest in ((paper, "sweeps/paper.ini"), (algorithms, "sweeps/algorithms.ini"))
                if f
            ],
        ),
        "",
        f"Bytes, and so arithmetic intensities (AI, FLOP/byte), are those at `{paper.level}`, times and bytes those of",
        f"rows with {'flushed (cold)' if paper.cold else 'warm (hot)'} caches.",
        "",
        *(ABOUT_BYTES if paper.cold else []),
        "`bound` is the row's ([method.md](method.md)): of bytes as counted, by the memory level that needs longest",
        "for its own.",
        "",
        "A claim of two halves holds in part if one of them holds, or if some series agree and others do not.",
        "",
    ]
    results = [(place, test, *told(test, algorithms if test is complexity else paper)) for place, test in FINDINGS]
    lines += markdown(
        ["in the paper", "finding", "here", "test"],
        [[place, test.__doc__, f"**{word}**", f"`{test.__name__}`"] for place, test, word, _ in results],
    )
    for place, test, word, figures in results:
        lines += ["", f"## {test.__doc__.rstrip('.')}", "", f"{place}. Here: **{word}**.", "", *figures]
    return "\n".join(lines) + "\n"


def main():
    options = {word for word in sys.argv[1:] if word.startswith("--")}
    paths = [word for word in sys.argv[1:] if word not in options] or [os.path.join(ROOT, path) for path in FILES]
    if options - {"--write", "--check"}:
        raise SystemExit(__doc__)
    algorithms = File(paths[1]) if len(paths) > 1 and os.path.exists(paths[1]) else None
    return page_hand_over(page(File(paths[0]), algorithms), "findings", options)


if __name__ == "__main__":
    sys.exit(main())
