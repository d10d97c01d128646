#!/usr/bin/env python3
"""Tests the findings of Wang et al., "Time-Based Roofline for Deep Learning Performance Analysis", 2020, of De Sanctis
and De Sanctis, "Roofline Model: Training a Convolutional Neural Network", 2025, and of NVIDIA's "GPU Performance
Background User's Guide", one by one. Findings about frameworks and of the guide are in frameworks.py and guide.py.

Usage: findings.py [--write | --check | --flips]

Prints the page docs/findings.md, made from the committed files. --write renews the page. The exit status is 1 if the
page differs (--check), or if a changed copy of a file leaves a verdict as it is (--flips)."""

import os
import re
import sys
import textwrap

import evidence
import frameworks
import guide
import numpy as np
import pandas
import roofsweep_post as post
from evidence import ALIKE, HOLDS, NOT, PART, SHAPE, UNKNOWN, Copy, File, above, below, share, span

FILES = {"paper": File, "algorithms": File, "training": File, "frameworks": frameworks.Frameworks, "guide": guide.Guide}
FILES["paper_frameworks"] = frameworks.Frameworks
NODE = os.path.join(evidence.ROOT, "tests/data/node_4xh200.nc")
MOVED = ("data_movement_share", "busy_time")
LAUNCHES = {"host": "host", "gap": "from one to the next", "gap dependent": "dependent", "latency": "to the result"}


def series(f, label, axis, **chosen):
    """Returns the rows of each series of a labelled sweep, sorted by the axis. chosen: precision and passes."""
    table = f.lstm if label.startswith("lstm") else f.conv2d
    for name, values in chosen.items():
        table = table[table[{"passes": "pass"}.get(name, name)].isin(values)]
    return [rows for _, rows in f.sweep(table, label, axis)]


FORWARD, BACKWARD = ["forward"], ["backward-data", "backward-filter"]
finding = evidence.Claims()
CONV2D, LSTM = "workload == 'conv2d'", "workload == 'lstm'"
GRADIENT = "`pass`.str.startswith('backward')"


def benchmarks(f):
    """Returns the four rows of the report's figures: product, two loops, and the training step by hand."""
    names, by_hand = ["product", "registers", "shared", "step"], f.rows.requested_implementation == "plain"
    by_hand |= f.rows.workload.str.endswith("-loop")
    labels = f.rows.label.str.split()
    return pandas.DataFrame([f.rows[by_hand & [n in own for own in labels]].iloc[0] for n in names], names)


def labelled(f, label):
    return f.rows[[label in text.split() for text in f.rows.label]]


@finding("II-B", "algorithms", "time", "in each shape the fastest algorithm has most FLOP/s",
         lambda c: c.put("flops_counted", "", lambda t: t.flops_model))  # fmt: skip
def complexity(f):
    """An algorithm with more FLOP/s need not be faster: FFT and Winograd do fewer."""
    slower, count = [], 0
    table = f.conv2d[(f.conv2d.requested_algorithm != "auto") & ~f.conv2d.label.str.contains("stride")]
    for (precision, *_), r in table.groupby(["precision", "height", "filter_height"]):
        fast, busy = r.loc[r.time_median.idxmin()], r.loc[r.rate.idxmax()]
        ratio, count = busy.time_median / fast.time_median, count + 1
        slower += [(precision, ratio)] if True in above(ratio, null=f.null["time"]) else []
    by, times = " and ".join(sorted({name for name, _ in slower})), span(own for _, own in slower)
    text = f"in {len(slower)} of {count} shapes ({by}) the one with most FLOP/s takes {times} times as long"
    return [bool(slower)], text


@finding("III-B", "paper", "spread of the roofs", "no kind of launch costs 3.2 to 5.3 us",
         lambda c: c.scale_roofs("device_roof_time", "launch host", 3))  # fmt: skip
def launch_overhead(f):
    """A launch costs 4.2 us (V100)."""
    names, times = f.data.device_roof_name.values.astype(str), 1e6 * f.data.device_roof_time.values
    found = {word: np.median(times[names == f"launch {kind}"]) for kind, word in LAUNCHES.items()}
    text = ", ".join(f"{word} {value:.2f}" for word, value in found.items())
    return [abs(value / 4.2 - 1) < 0.25 for value in found.values()], f"us: {text}"


@finding("III-C", "paper", "time", "both backward passes do fewer FLOPs or take less time",
         lambda c: c.scale("time_median", "`pass` == 'forward'", 30)
         .scale("flops_counted", "`pass` == 'forward'", 30))  # fmt: skip
def backward_costs(f):
    """The backward pass is more computationally intensive than the forward pass."""
    keys, parts, figures = [*SHAPE[:4], "precision", "layout"], [], []
    for value, name, null in (("flops", "FLOPs", 1.0), ("time_median", "time", f.null["time"])):
        t = f.conv2d.pivot_table(index=keys, columns="pass", values=value).dropna()
        grown = t[BACKWARD].sum(axis=1) / t.forward
        parts += above(grown, null=null)
        figures.append(f"{name} {grown.median():.2f} ({span(grown)})")
    return parts, f"{', '.join(figures)} times those of the forward pass; {share(parts)} rise"


@finding("III-C", "training", "time", "1.25 times as long with both",
         lambda c: c.scale("time_median", "label == 'extras' and bias == 'yes'", 2))  # fmt: skip
def extras(f):
    """Bias and activation are light on computation."""
    t = labelled(f, "extras").pivot_table(index=["precision", "activation"], columns="bias", values="time_median")
    both = {p: t.loc[(p, "relu"), "yes"] / t.loc[(p, "none"), "no"] for p in ("fp16", "fp32")}
    text = ", ".join(f"{name} {value:.2f}" for name, value in both.items())
    return below(list(both.values()), 1.25, f.null["time"]), f"time with both over neither: {text}"


@finding("III-D", "paper", "time, bytes", "an LSTM has more FLOP/s or AI than a conv2d",
         lambda c: c.scale("time_median", LSTM, 1e-4).scale("bytes_counted", LSTM, 1e-3)
         .put("bytes_written", LSTM, 0.0))  # fmt: skip
def lstm_slow(f):
    """An LSTM has lower FLOP/s than a conv2d, and moves more bytes for each FLOP."""
    conv2d, lstm = (f.conv2d[f.conv2d.layout == "nhwc"], f.lstm[~f.lstm.label.str.contains("large")])
    more = conv2d.groupby("precision")[["rate", "ai"]].median() / lstm.groupby("precision")[["rate", "ai"]].median()
    texts = [f"{name} FLOP/s {r.rate:.0f}, AI {r.ai:.1f}" for name, r in more.iterrows()]
    parts = above(more.rate, 1, f.null["time"]) + above(more.ai, 1, f.null["bytes"])
    return parts, f"conv2d over LSTM, medians: {'; '.join(texts)}"


@finding("IV-A.1, backward", "paper", "none: names", "they change in no larger share of series",
         lambda c: c.put("kernel_name", GRADIENT, lambda t: t.configuration))  # fmt: skip
def batch_backward(f):
    """In the backward passes kernels change with the batch, more than in the forward pass."""
    forward, backward = (
        [r.kernels.nunique() > 1 for r in series(f, "conv2d-batch", "batch", passes=passes)]
        for passes in (FORWARD, BACKWARD)
    )
    more = np.mean(backward) > np.mean(forward)
    return [more], f"they change in {share(backward)} series backward, in {share(forward)} forward"


@finding("IV-A.1, backward", "paper", "time", "the layout with less of them takes longer",
         lambda c: c.put("busy_time", "layout == 'nchw'", 1e-9))  # fmt: skip
def data_movers(f):
    """Kernels that only move data (padding, shuffling, layouts) cost time."""
    table = f.conv2d[f.conv2d["pass"].isin(BACKWARD) & (f.conv2d.precision == "fp16")]
    idle, time = (table.pivot_table(index=[*SHAPE[:4], "pass"], columns="layout", values=v) for v in MOVED)
    more = np.sign(idle.nchw - idle.nhwc)
    parts = above((time.nchw / time.nhwc) ** more, null=f.null["time"])
    parts = [part for part, far in zip(parts, np.abs(idle.nchw - idle.nhwc) > 0.01) if far]
    shares = f"nchw {100 * idle.nchw.median():.0f} %, nhwc {100 * idle.nhwc.median():.0f} %"
    return parts, f"fp16: {share(parts)} pairs of layouts; their part of the kernels' time: {shares}"


@finding("IV-A.2, backward", "paper", "none: names", "two numbers have the same kernels",
         lambda c: c.put("kernel_name", GRADIENT, lambda t: t.configuration))  # fmt: skip
def filters_backward(f):
    """Backward in fp16 each number of filters has a different set of kernels."""
    counts = [r.kernels.nunique() for r in series(f, "conv2d-filters", "filters", passes=BACKWARD, precision=["fp16"])]
    return [one == 4 for one in counts], f"{', '.join(map(str, counts))} sets of kernels for 4 numbers of filters"


@finding("IV-A.2, backward", "paper", "bytes", "a series stays on one side of the machine balance",
         lambda c: c.put("paper_bound", GRADIENT, lambda t: np.where(t.filters > 64, c.word("compute"),
         c.word("bandwidth"))))  # fmt: skip
def filters_bound(f):
    """Backward in fp16 kernels are memory-bound with 64 filters, compute-bound with 512."""
    found = series(f, "conv2d-filters", "filters", passes=BACKWARD, precision=["fp16"])
    goes_over = [r.bound.iloc[0] == "bandwidth" and r.bound.iloc[-1] == "compute" for r in found]
    far = span(r.own_ai.iloc[-1] / r.balance.iloc[-1] for r in found)
    return goes_over, f"{share(goes_over)} series go over; at 512 the AI is {far} of the balance"


@finding("IV-A.4, backward", "paper", "time", "bound by bandwidth at stride 1, or FLOP/s that do not fall",
         lambda c: c.put("paper_bound", GRADIENT, c.word("bandwidth"))
         .scale("time_median", GRADIENT, lambda t: t.stride**-4.0))  # fmt: skip
def stride_bound(f):
    """Backward in fp16 with stride 1 is compute-bound, and FLOP/s fall with the stride."""
    found = series(f, "conv2d-stride", "stride", passes=BACKWARD, precision=["fp16"])
    bound = [r.bound.iloc[0] == "compute" for r in found]
    falls = above([r.rate.iloc[0] / r.rate.iloc[-1] for r in found], null=f.null["time"])
    return bound + falls, f"compute-bound in {share(bound)} series; FLOP/s fall in {share(falls)}"


@finding("IV-A.4, backward", "algorithms", "time", "without them an algorithm has half the FLOP/s or more",
         lambda c: c.scale("time_median", "requested_algorithm == 'algo-0'", 0.01))  # fmt: skip
def single_precision_in_half(f):
    """Sudden drops of the FLOP/s in fp16 come from algorithms without tensor units (`wgrad_alg0`)."""
    table, drops, first = labelled(f, "stride"), {}, []
    for names, r in table.groupby(["pass", "layout", "stride"]):
        with_, without = (r[(r.tensor_flops > 0) == used] for used in (True, False))
        if len(with_) and len(without):
            drops[names] = with_.rate.max() / without.rate.max()
            first += list(without[without.requested_algorithm == "algo-0"].rate / 1e12)
    text = f"{span(drops.values(), '{:.1f}')} times fewer FLOP/s in {len(drops)} layers"
    return above(list(drops.values()), 2, f.null["time"]), f"{text}; algo-0 has {span(first, '{:.1f}')} TFLOP/s"


@finding("V", "algorithms", "time", "conv2d: less than twice the time without; LSTM: gains as much as conv2d",
         lambda c: c.scale("time_median", "", lambda t: np.where(np.nansum(c.raw.flops_tensor, axis=1) > 0, 1,
         0.01)))  # fmt: skip
def half_precision(f):
    """Tensor units are critical for conv2d and matter little for an LSTM."""
    keys, gains = ["height", "filter_height", "stride", "layout", "pass"], []
    for _, r in f.conv2d[f.conv2d.precision == "fp16"].groupby(keys):
        with_, without = (r[(r.tensor_flops > 0) == used].time_median.min() for used in (True, False))
        gains += [without / with_] if np.isfinite(without / with_) else []
    both = f.others["paper"].lstm
    both = both.pivot_table(index=["batch", *SHAPE[4:], "pass"], columns="precision", values="time_median").dropna()
    lstm = (both.fp32 / both.fp16).median()
    text = f"time without them over with: conv2d, fp16, {np.median(gains):.2f} ({span(gains)})"
    parts = above(np.median(gains), 2, f.null["time"]) + below(lstm, np.median(gains), f.null["time"])
    return parts, f"{text}; LSTM at most {lstm:.2f}, its time in fp32 over fp16"


@finding("I and IV", "paper", "search", "the choice is no faster within the search",
         lambda c: c.put("search_time", "", lambda t: t.heuristic_time * 1.5))  # fmt: skip
def auto_tuning(f):
    """Auto-tuning changes the algorithm, to the better."""
    r = pandas.concat([f.hot, f.rows]).drop_duplicates("row")
    r = r[np.isfinite(r.heuristic_time)]
    changed = r[r.algorithm_id != r.heuristic_id]
    gain = changed.heuristic_time / changed.search_time
    parts = above(gain, null=f.null["search"])
    text = f"it changes in {len(changed)} of {len(r)} rows; faster in {share(parts)}"
    return parts, f"{text}, {gain.median():.2f} ({span(gain)}) times"


@finding("IV-B.1", "paper", "time", "the measured batch is not the formula's",
         lambda c: c.put("paper_bound", "batch > 4000", c.word("overhead"))
         .put("paper_bound", "batch > 9999", c.word("compute")))  # fmt: skip
def lstm_leaves(f):
    """Forward, an LSTM leaves its overhead box at peak times latency, 0.4452 GFLOP or a batch of 3000 on a V100."""
    peak, (r,) = f.peak("tensor", "fp16"), series(f, "lstm-batch", "batch", passes=FORWARD, precision=["fp16"])
    work = peak * (r.overhead_time / r.launches).median()
    batch = work / (r.flops / r.batch).median()
    large = f.lstm[f.lstm.label.str.contains("lstm-large")]
    inside, out = (large.batch[(large.bound == "overhead") == box] for box in (True, False))
    text = f"by the formula {work / 1e9:.2f} GFLOP, a batch of {batch:.0f}; measured between {inside.max():.0f} and "
    return [inside.max() < batch < (out.min() if len(out) else 0)], text + (f"{out.min():.0f}" if len(out) else "none")


@finding("report, 4", "paper", "bytes", "models are within 1.5 of the counted AI",
         lambda c: c.put("flops_counted", "", lambda t: t.flops_model)
         .put("bytes_counted", "", lambda t: t.bytes_model).put("bytes_written", "", 0.0))  # fmt: skip
def placement(f):
    """A kernel's place on the roofline needs counters; estimates do not suffice."""
    t = f.rows[f.rows.counted & (f.rows.own_ai > 0)]
    off = (t.flops_model / t.bytes_model) / (t.flops / t.memory_bytes)
    parts = [one or two for one, two in zip(above(off, ALIKE, f.null["bytes"]), above(1 / off, ALIKE, f.null["bytes"]))]
    text = f"{share(parts)} rows are off by more than {ALIKE}"
    return parts, f"{text}; modelled over counted AI {off.median():.2f} ({span(off)})"


@finding("report, 5", "training", "bytes", "the product's FLOPs take longer at their roof than its bytes",
         lambda c: c.put("paper_bound", "label == 'product'", c.word("compute")))  # fmt: skip
def report_product(f):
    """A plain matrix product is bound by memory."""
    one = benchmarks(f).loc["product"]
    return [one.bound == "bandwidth"], f"AI {one.own_ai:.1f}, the machine balance is {one.balance:.1f}"


@finding("report, 5", "training", "time", "less than 90 % of the roof",
         lambda c: c.scale("time_median", "label == 'registers'", 1.5))  # fmt: skip
def report_registers(f):
    """A loop of multiply-adds in registers nearly reaches the roof."""
    one = benchmarks(f).loc["registers"]
    part = one.rate / one.compute_roof
    return above(part, 0.9, 1.0), f"{100 * part:.0f} % of it, at an AI of {one.ai:.0f}"


@finding("report, 5", "training", "time", "a fifth of the FLOP/s or more, or another cause",
         lambda c: c.scale("time_median", "label == 'shared'", 0.2)
         .put("cause", "label == 'shared'", "latency"))  # fmt: skip
def report_shared(f):
    """The loop through shared memory has its AI and a tenth of its FLOP/s, because of shared memory."""
    t = benchmarks(f)
    ai, rate = (t[name]["shared"] / t[name]["registers"] for name in ("ai", "rate"))
    parts = [*above(ai, 0.9, f.null["bytes"]), *below(rate, 0.2, f.null["time"]), "data pipe" in t.cause["shared"]]
    return parts, f"{ai:.2f} times the AI, {rate:.2f} times the FLOP/s; cause: {t.cause['shared'].split(':')[0]}"


@finding("report, 5", "training", "time, bytes", "another has fewer, or it reaches a tenth of its roof",
         lambda c: c.scale("time_median", "label.str.contains('step')", 1e-3))  # fmt: skip
def report_step(f):
    """A training step has the lowest FLOP/s, far below its roofs, and more AI than the product."""
    t, one = benchmarks(f), benchmarks(f).loc["step"]
    part = one.rate / min(1, one.own_ai / one.balance) / one.compute_roof
    parts = [t.rate.idxmin() == "step", part < 0.1, *above(one.ai / t.ai["product"], 1, f.null["bytes"])]
    return parts, f"{100 * part:.1f} % of its roof, AI {one.ai:.1f}, the product's {t.ai['product']:.1f}"


@finding("report, 5", "training", "none: machine code", "its kernels need no local memory",
         lambda c: c.put("kernel_name", "", "void others(long)"))  # fmt: skip
def report_spills(f):
    """Spilled registers keep the step from its roof."""
    with open(os.path.join(evidence.ROOT, "tests/gpu/disassembly.txt"), encoding="utf-8") as table:
        without = {line.split("<")[0] for line in table if "<" in line}
    by_hand = labelled(f, "step").query("requested_implementation == 'plain'").kernels.iloc[0].split(" + ")
    parts = [False if re.sub(r"void |<.*", "", name) in without else None for name in by_hand]
    return parts, f"by hand {share(parts)} kernels spill registers (`unit/disassembly`)"


def worse(rows):
    remedied = (rows.batch > 16) | (rows.filters > 32) | (rows.precision != "fp32")
    return 0.1 ** ((rows.filter_height == 3) + 2.0 * remedied + (rows.requested_implementation == "tiled"))


REMEDIES = {
    "a larger batch": ("batch == 256 and precision == 'fp32'", "fp32"),
    "more filters": ("filters == 128 and precision == 'fp32'", "fp32"),
    "fp16": ("batch == 16 and filters == 32 and filter_height == 3 and precision == 'fp16'", "fp32"),
    "TF32": ("batch == 16 and filters == 32 and filter_height == 3 and precision == 'tf32'", "fp32"),
    "3x3 for 7x7": ("batch == 16 and filters == 32 and filter_height == 3 and precision == 'fp32'", "7x7"),
}


@finding("report, 5", "training", "time", "a smaller part of its roof",
         lambda c: c.scale("roof_fraction", "label.str.contains('remedies|tiles|step')", worse))  # fmt: skip
def report_remedies(f):
    """Larger batches, more filters, fp16, TF32, small kernels, shared memory bring the step nearer to its roof."""
    table, parts, texts = labelled(f, "remedies"), [], {}
    for by, r in table.groupby("requested_implementation"):
        base = r.query("batch == 16 and filters == 32 and precision == 'fp32'").set_index("filter_height")
        for name, (query, before) in REMEDIES.items():
            after = r.query(query)
            if len(after) == 1:
                grown = [after[n].iloc[0] / base.loc[7 if before == "7x7" else 3, n] for n in ("rate", "roof_fraction")]
                parts += above(grown[1], null=f.null["time"])
                texts.setdefault(by, []).append(f"{name} {grown[0]:.2f}, {grown[1]:.2f}")
    tiles = labelled(f, "tiles").set_index("requested_implementation")
    grown = [tiles.loc["tiled", n] / tiles.loc["plain", n] for n in ("rate", "roof_fraction")]
    parts += above(grown[1], null=f.null["time"])
    texts["tiled"] = [f"shared memory {grown[0]:.2f}, {grown[1]:.2f}"]
    text = ". ".join(f"{by}: {'; '.join(own)}" for by, own in texts.items())
    return parts, f"FLOP/s, fraction of the roof, times. {text}"


PLURAL = dict(zip((HOLDS, PART, NOT, UNKNOWN), ("findings hold", "hold in part", "do not hold", "cannot be told")))
PAGE = """# Published findings, one by one

This page tests claims of three texts on an H200, with cuDNN 9.14:

- sections I to V: Wang et al., *Time-Based Roofline for Deep Learning Performance Analysis*, 2020 (V100, PyTorch 1.5)
- report: De Sanctis and De Sanctis, *Roofline Model: Training a Convolutional Neural Network*, 2025 (RTX cards)
- guide: NVIDIA's *GPU Performance Background User's Guide* (V100)

{verdicts}

`tests/findings.py --write` writes the page from `tests/data/NAME_h200.nc` ([list](measurements.md#result-files);
`paper_frameworks` holds two H200s). `--flips` changes a copy of each finding's file: the verdict must change.

- Caches are cold, except in `frameworks`. AI is FLOPs for each byte of device memory; a conv2d's result that is still
  in L2 at the end counts.
- A row's bound compares the times of its FLOPs and bytes, each at its roof (the paper's II-B).
- JAX's gradients of an LSTM include the forward pass, and are not compared with others.
- A series is one framework or layout, precision and pass. "1.2 to 3" means smallest to largest.
- A finding holds in part if some of its series, rows or parts refute it. A part is unclear if it differs by less than
  the null set, and a finding cannot be told if most parts are unclear.

A null set has ratios of values that should be equal. A difference counts if it exceeds 95 % of its null set:

{nulls}

{findings}

TensorFlow ran only on a [CPU](frameworks.md#on-a-cpu). Locked clocks are not measured. INT8
[outside tensor units](measurements.md#int8-outside-tensor-units) reaches 7 % of their rate.
"""


def nulls(files):
    """Returns {name: (what differs, ratios)}: ratios are at least 1."""
    paper, found = files["paper"], {}
    rounds = [post.load(path).round_time.values for path in (NODE, evidence.path_of("training"))]
    pairs = [np.log(own[:, a] / own[:, b]) for own in rounds for a, b in ((0, 1), (0, 2), (1, 2))]
    times = np.exp(np.abs(np.concatenate(pairs)))
    found["time"] = "times of a row in two processes (`node_4xh200`, `training`)", times
    other = File(evidence.path_of("conv2d_batch"))
    one, two = (t[t.cache == "hot"].set_index(["configuration", "kernels"]) for t in (paper.hot, other.rows))
    l2 = [
        pandas.Series(f.data.bytes_counted.values[t.row, f.levels.index("l2")], t.index)
        for f, t in ((paper, one), (other, two))
    ]
    both = (l2[0] / l2[1]).dropna()
    found["bytes"] = "L2 bytes of the same kernels in two sweeps", np.maximum(both, 1 / both).values
    r = pandas.concat([paper.hot, paper.rows]).drop_duplicates("row")
    same = r[np.isfinite(r.heuristic_time) & (r.algorithm_id == r.heuristic_id)]
    again = same.search_time / same.time_median
    found["search"] = "time in a search and again, first choice kept", np.maximum(again, 1 / again).values
    return found


def opened():
    """Returns {sweep: File} of the committed files, and the null sets."""
    files = {name: kind(evidence.path_of(name)) for name, kind in FILES.items()}
    sets = nulls(files)
    for f in files.values():
        f.null = {name: float(np.quantile(ratios[np.isfinite(ratios)], 0.95)) for name, (_, ratios) in sets.items()}
        f.others = files
    return files, sets


# ---- numbers of docs/measurements.md ----

ROOFS = {
    "vector units": (r"(?!int8).* vector", "clock_fraction"),
    "tensor units, hand-written (`wgmma`; fp64 `mma`)": (r".* wgmma|fp64 tensor mma", "clock_fraction"),
    "L1 and shared memory, reads": (r"l1 read|shared read", "clock_fraction"),
    "DRAM read": (r"dram read", "nominal_fraction"),
    "DRAM write": (r"dram write", "nominal_fraction"),
    "DRAM copy": (r"dram copy", "nominal_fraction"),
    "DRAM triad": (r"dram triad", "nominal_fraction"),
}


def listed_files(loaded):
    lines = []
    for name, data in loaded.items():
        words = pandas.Series(data.status.values).value_counts()
        rows = ", ".join(
            [f"{words.pop('measured') if 'measured' in words else 0}", *(f"{n} {w}" for w, n in words.items())]
        )
        kind = re.sub(r"NVIDIA | 80GB HBM3|\(R\)| Processor", "", data.device_model.values[0])
        command = re.sub(
            r"\S*roofsweep |(-d|-o|--output) \S+ ?|-[vq] |--(quiet|verbose|overwrite) ", "", data.attrs["command"]
        )
        command = re.sub(r"\S*/(\w+\.ini)", r"\1", command).strip()
        attributes = [data.attrs[word] for word in ("time_coverage_start", "product_version", "time_coverage_duration")]
        start, version, seconds = attributes[0][:16].replace("T", " "), attributes[1].split("+")[1], attributes[2][2:-1]
        lines.append([f"`{name}`", rows, f"{data.sizes['device']} x {kind}", start, version, seconds, f"`{command}`"])
    return evidence.markdown(["file", "rows", "devices", "UTC", "commit", "s", "command"], lines)


def theory(loaded):
    table = pandas.concat([post.roofs(data) for data in loaded.values()])
    table = table[table.usable & (table.device_kind == "cuda")]
    lines = []
    for title, (pattern, name) in ROOFS.items():
        own = table[table.name.str.fullmatch(pattern)]
        cells = [own[own.model.str.contains(model)][name] * 100 for model in ("H100", "H200")]
        lines.append([title, *(f"{span(one, '{:.1f}')} %" for one in cells)])
    return evidence.markdown(["roof", "H100s, worst to best", "H200s"], lines)


def energies(_):
    r = post.rows(post.load(evidence.path_of("energy")))
    off = (r.energy_at_roofs / r.energy - 1).dropna()
    kinds = off.groupby(r.workload + " " + r.precision).median()
    near = [f"{(off.abs() < most).sum()} of {len(off)} rows" for most in (0.1, 0.25)]
    text = f"The model is within 10 % in {near[0]} and within 25 % in {near[1]}; the median error is "
    text += f"{100 * off.abs().median():.0f} %, the largest {100 * off.abs().max():.0f} %. Medians by operation, in %: "
    return textwrap.wrap(text + ", ".join(f"{name} {100 * value:+.0f}" for name, value in kinds.items()) + ".", 120)


def measurements(options):
    """Renews or compares the parts of docs/measurements.md that come from files. Returns the exit status."""
    names = sorted(os.listdir(os.path.join(evidence.ROOT, "tests/data")))
    loaded = {n[:-3]: post.load(os.path.join(evidence.ROOT, "tests/data", n)) for n in names if n.endswith(".nc")}
    path = os.path.join(evidence.ROOT, "docs/measurements.md")
    with open(path, encoding="utf-8") as stream:
        text = own = stream.read()
    for name, lines in {"files": listed_files(loaded), "theory": theory(loaded), "energies": energies(loaded)}.items():
        block = "\n".join([f"<!-- {name} -->", "", *lines, "", "<!-- end -->"])
        own = re.sub(rf"<!-- {name} -->.*?<!-- end -->", lambda _, block=block: block, own, flags=re.S)
    if "--write" in options:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(own)
    elif own != text:
        print("docs/measurements.md differs from the result files: run tests/findings.py --write")
    return int(own != text and "--write" not in options)


def tests():
    return [test for claims in (finding, frameworks.finding, guide.finding) for test in claims.tests]


def order(test):
    place = test[0]
    return ["II", "III-B", "III-C", "III-D", "IV-A", "IV-B", "I and IV", "V", "report", "guide"].index(
        next(part for part in ["III-B", "III-C", "III-D", "II", "IV-A", "IV-B", "I and IV", "V", "report", "guide"]
             if place.startswith(part))
    ), place  # fmt: skip


def page():
    files, sets = opened()
    lines = []
    for place, source, null, refuted, _, test in sorted(tests(), key=order):
        word, text = evidence.outcome(test, files[source])
        claim = " ".join(test.__doc__.split()).rstrip(".")
        where = f"{place}; {source}" + ("" if null.startswith("none") else f"; {null}")
        lines.append([where, claim, refuted, f"**{word}**: {text}"])
    words = pandas.Series([line[-1].split("**")[1] for line in lines]).value_counts()
    null = [
        [name, text, len(ratios), f"{np.quantile(ratios, 0.95):.3f}", f"{ratios.max():.3f}"]
        for name, (text, ratios) in ((name, (text, own[np.isfinite(own)])) for name, (text, own) in sets.items())
    ]
    return PAGE.format(
        verdicts=", ".join(f"{words[word]} {plural}" for word, plural in PLURAL.items()) + ".",
        nulls="\n".join(evidence.markdown(["null set", "ratios", "number", "95 % within", "largest"], null)),
        findings="\n".join(evidence.markdown(["in; file; null set", "finding", "refuted if", "here"], lines)),
    )


def flips():
    """Returns 1 if a changed copy of a file leaves the verdict of its finding as it is."""
    files, _ = opened()
    failed = 0
    for _, source, _, _, flip, test in tests():
        before, _ = evidence.outcome(test, files[source])
        after, text = evidence.outcome(test, flip(Copy(files[source])).opened())
        if before == after or "lacks what" in text:
            failed += 1
            print(f"{test.__name__}: {before}, and with the changed copy {after}: {text}")
    return min(failed, 1)


if __name__ == "__main__":
    if "--flips" in sys.argv:
        sys.exit(flips())
    sys.exit(evidence.page_main("findings", page(), sys.argv[1:]) or measurements(sys.argv[1:]))
