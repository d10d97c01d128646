#!/usr/bin/env python3
"""The truths of every finding of findings.py, frameworks.py and guide.py a second way: hand-written lines of pandas
over the CSV that `roofsweep-post export` writes. Exit status 1 with a line for each difference."""

import itertools
import os
import sys
import tempfile

import evidence
import findings
import frameworks
import guide
import numpy as np
import pandas as pd
from roofsweep_post import cli

SHAPE = {"batch": 16, "filters": 64, "filter_height": 3, "stride": 2, "sequence": 16, "features": 32, "hidden": 16}
BACK = ["backward-data", "backward-filter"]


def csv(path, table):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "table.csv")
        assert cli.run(cli.arguments(["export", os.path.join(evidence.ROOT, path), "-t", table, "-o", out])) == 0
        return pd.read_csv(out, low_memory=False)


class Tables:
    """The measured rows of a file, cold ones if there are any, with short names: F, B, T, ai, R."""

    def __init__(self, path):
        t, self.kernels, self.device = (csv(path, table) for table in ("rows", "kernels", "devices"))
        needed = [*SHAPE, "height", "width", "channels", "modelled_as", "bytes_written_dram", "bytes_written_l2"]
        t = t.reindex(columns=[*t.columns, *(name for name in needed if name not in t)])
        cold = (t.cache == "cold").any()
        self.level = "dram" if cold else "l2"
        t["F"], t["T"] = t.flops_counted.fillna(t.flops_model), t.time_median
        t["B"] = t[f"bytes_counted_{self.level}"].fillna(t.bytes_model)
        if cold:
            t["B"] += self.kept(t)
        t["ai"], t["R"] = t.F / t.B, t.F / t["T"]
        width = self.device[f"device_peak_bandwidth_{self.level}"][t.config_device].to_numpy()
        t["m"], t["c"], t["bal"] = t.B / width, t.F / t.compute_roof, t.compute_roof / width
        t["bound"] = np.where(t.c >= t.m, "compute", "bandwidth")
        t.loc[(t.c < t.overhead_time) & (t.m < t.overhead_time), "bound"] = "overhead"
        t["tf"] = t[[n for n in t if n.startswith("flops_tensor_")]].fillna(0).sum(axis=1)
        names = self.kernels.groupby("kernel_config").kernel_name
        t["names"] = names.agg(lambda own: "\n".join(sorted(set(own)))).reindex(t.config).fillna("").to_numpy()
        t["words"] = [str(label).split() for label in t.label]
        t["layout"] = t.get("layout", pd.Series("", t.index)).fillna("")
        self.all = t[t.status == "measured"]
        self.rows = self.all[self.all.cache == "cold"] if cold else self.all
        self.conv, self.lstm = (self.rows[self.rows.workload == name] for name in ("conv2d", "lstm"))

    @staticmethod
    def kept(t):
        """Of a conv2d's result what is in L2: written there and not to device memory."""
        t = t.assign(**{n: t[n].fillna(v) for n, v in (SHAPE | {"height": 112, "width": 112, "channels": 64}).items()})
        x, w = t.batch * t.channels * t.height * t.width, t.filters * t.channels * t.filter_height**2
        y = t.batch * t.filters * np.ceil(t.height / t.stride) * np.ceil(t.width / t.stride)
        size = t["pass"].map(dict(zip(["forward", *BACK, "backward"], range(4))))
        size = np.select([size == n for n in range(4)], [y, x, w, x + w], np.nan) * (2 + 2 * (t.precision == "fp32"))
        size[~((t.workload == "conv2d") | (t.modelled_as == "conv2d"))] = 0
        return np.minimum((t.bytes_written_l2 - t.bytes_written_dram).clip(lower=0), size).fillna(0)


def series(t, label, by, ways=None, precision=None):
    t = t[[label in words for words in t.words]]
    t = t[t["pass"].isin(ways)] if ways else t
    t = t[t.precision == precision] if precision else t
    return [r.sort_values(by) for _, r in t.groupby(["precision", "pass", "layout"])]


def wide(t, index, columns, value):
    return t.pivot_table(index=index, columns=columns, values=value)


def near(values, most):
    return values.max() / values.min() <= most


def up(values):
    return values.is_monotonic_increasing and values.is_unique


# fmt: off
def of_paper(p, a, t):
    """{finding: its truths}. p, a, t: tables of paper.ini, algorithms.ini, training.ini."""
    c, m, conv = p.conv, p.lstm, list(SHAPE)[:4]
    s = {(name, way): series(c, f"conv2d-{name}", by, ways) for way, ways in (("f", ["forward"]), ("b", BACK)) for
         name, by in (("batch", "batch"), ("filters", "filters"), ("kernel", "filter_height"), ("stride", "stride"))}
    half = {name: [r for r in own if (r.precision == "fp16").all()] for name, own in s.items()}
    at = {n: series(m, f"lstm-{n}", n) for n in ("batch", "sequence", "features", "hidden")}
    f16 = c[(c.precision == "fp16") & c["pass"].isin(BACK)]
    move, busy = (wide(f16, [*conv, "pass"], "layout", n) for n in ("data_movement_share", "busy_time"))
    less = (move.nchw - move.nhwc)[lambda x: x.abs() > 0.01]
    named = a.conv[a.conv.requested_algorithm != "auto"]
    algo = [r for _, r in named.groupby(["precision", "height", "filter_height"])]
    first = series(m, "lstm-batch", "batch", ["forward"], "fp16")[0]
    one = p.device.device_peak_tensor_fp16.median() * (first.overhead_time / first.launches).median()
    big = m[["lstm-large" in words for words in m.words]]
    inside = big.bound == "overhead"
    fits = [not (inside & (big.batch >= 6000)).any() and not (~inside & (big.batch <= 1500)).any()]
    tuned = p.all[p.all.heuristic_time.notna()]
    other = tuned[tuned.algorithm_id != tuned.heuristic_id]
    lay = wide(p.all[p.all.workload == "conv2d"], [*conv, "pass", "precision", "cache"], "layout", "T").dropna()
    lay = lay.nhwc / lay.nchw
    best = [x.fillna(SHAPE).groupby([*SHAPE, "pass", "precision"])["T"].min().unstack() for x in (c, m)]
    back = [wide(c, [*conv, "precision", "layout"], "pass", n).dropna() for n in ("F", "T")]
    seq = [(r.iloc[-1], r.iloc[0]) for r in at["sequence"]]
    med, med_m = (x.groupby("precision")[["R", "ai"]].median() for x in (c, m))
    same = m.groupby(["precision", "pass", "launches"])["T"]
    twice = wide(pd.concat(s["batch", "f"]), ["batch", "layout"], "precision", "B")
    many = [[r.names.nunique() > 1 for r in s["batch", way]] for way in "fb"]
    fp32 = [r for n in ("filters", "kernel") for r in s[n, "f"] if (r.precision == "fp32").all()]
    h = c[c.precision == "fp16"]
    plain = t.rows[(t.rows.requested_implementation == "plain") | t.rows.workload.str.endswith("loop")]
    four = ("product", "registers", "shared", "step")
    mul, reg, sha, step = (plain[[n in words for words in plain.words]].iloc[0] for n in four)
    slow = t.kernels[t.kernels.kernel_config == step.config].sort_values("kernel_time").iloc[-1]
    cure = [r for _, r in t.rows[["remedies" in w for w in t.rows.words]].groupby("requested_implementation")]
    base = [r[(r.batch == 16) & (r.filters == 32)].groupby("precision").R.first() for r in cure]
    full = [(r[r.precision == "fp32"], own) for r, own in zip(cure, base)]
    return {
        "complexity": [r.requested_algorithm[r["T"].idxmin()] != r.requested_algorithm[r.R.idxmax()] for r in algo],
        "launch_overhead": (p.device.device_launch_overhead * 1e6 / 4.2).between(0.75, 1.25),
        "backward_costs": [ok for t2 in back for ok in (t2[BACK].sum(axis=1) > t2.forward).groupby(level=[4, 5]).all()],
        "batch_forward": [ok for r in s["batch", "f"] for ok in (near(r.ai, 1.15), r.names.nunique() == 1)],
        "bytes_by_precision": (twice.fp32 / twice.fp16).between(1.6, 2.4),
        "batch_backward": [*many[1], np.mean(many[1]) > np.mean(many[0])],
        "data_movers": np.sign(less) == np.sign((busy.nchw - busy.nhwc)[less.index]),
        "tensor_units": [ok for r in half["batch", "b"] for ok in [*(r.tf > 0), r.tf.iloc[0] == 0 < r.tf.iloc[-1]]],
        "filters_forward": [up(r.R) and up(r.ai) for r in s["filters", "f"]],
        "fp32_saturates": [near(r.R, 1.25) for r in fp32],
        "filters_backward": [r.names.is_unique for r in half["filters", "b"]],
        "filters_bound": [list(r.bound.iloc[[0, -1]]) == ["bandwidth", "compute"] for r in half["filters", "b"]],
        "kernel_size": [ok for r in s["kernel", "f"] for ok in (near(r.B, 1.5), up(r.R), up(r.ai))],
        "stride_bytes": [ok for r in half["stride", "f"] for ok in (
            near(r.B.iloc[[0, -1]], 1.5), up(-r.F.iloc[[0, -1]]))],
        "stride_overhead": [ok for r in half["stride", "f"] for ok in (
            r.launches.iloc[-1] >= r.launches.iloc[0], up((r.overhead_time / r["T"]).iloc[[0, -1]]))],
        "stride_bound": [ok for r in half["stride", "b"] for ok in (r.bound.iloc[0] == "compute", up(-r.R))],
        "single_precision_in_half": [h[h.tf == 0].R.max() < h[h.tf > 0].R.median()],
        "lstm_overhead": 2 * m.overhead_time > m["T"],
        "lstm_launch_time": [*(m["T"] / m.overhead_time).between(0.8, 1.25), *(same.max() <= 1.25 * same.min())],
        "lstm_leaves": [abs(one / 0.4452e9 - 1) < 0.5, abs(one / (first.F / first.batch).median() / 3000 - 1) < 0.5]
        + fits * (len(big) > 0),
        "lstm_batch": [near(r["T"], 1.25) for r in at["batch"]],
        "lstm_sizes": [near(r["T"], 1.25) for n in ("features", "hidden") for r in at[n]],
        "lstm_launches": [r.launches.nunique() == 1 for n in ("batch", "features", "hidden") for r in at[n]],
        "lstm_default": [n == 36 for n in m[(m["pass"] == "forward") & (m.words.str.len() == 4)].launches],
        "lstm_sequence": [abs(z[n] / y[n] * y.sequence / z.sequence - 1) <= 0.25 for z, y in seq
                          for n in ("T", "launches")]
        + [near(r[n], 1.25) for r in at["sequence"] for n in ("ai", "R")],
        "lstm_slow": [*(med.R > 10 * med_m.R), *(med.ai > med_m.ai)],
        "half_precision": [(best[0].fp32 / best[0].fp16).median() > 2, (best[1].fp32 / best[1].fp16).median() < 1.5],
        "auto_tuning": [2 * len(other) > len(tuned), *(other.heuristic_time > other["T"] * (1 + other.search_noise))],
        "layouts": [*(lay.xs("fp16", level="precision") < 1), *(lay.xs("fp32", level="precision") > 1)],
        "report_product": [mul.bound == "bandwidth"],
        "report_registers": [0.9 * reg.compute_roof < reg.R],
        "report_shared": [sha.ai > 0.98 * reg.ai, sha.R < 0.2 * reg.R],
        "report_step": [min(mul.R, reg.R, sha.R) > step.R, step["T"] > 10 * max(step.c, step.m), step.ai > mul.ai],
        "report_remedies": [ok for r, b in full for ok in (b.fp16 > 1.1 * b.fp32,
            r.R[r.batch.idxmax()] > 1.1 * b.fp32, r.R[r.filters.idxmax()] > 1.1 * b.fp32)],
        "report_causes": ["registers" in step.cause, slow.kernel_occupancy < 0.25],
    }


def of_frameworks(p, f):
    """p: the file of the findings, f: that of the tuned rows."""
    found = {}
    for x in (p, f):
        t = x.rows.fillna(SHAPE)
        t["layer"], t["who"] = t.words.str[0].str.split("-").str[-1], t.words.str[0].str.split("-").str[0]
        for name, usual in (("axis_benchmark", "off"), ("launch", "")):
            t[name] = t.get(name, pd.Series("", t.index)).fillna(usual)
        how = [n for n in ("launch", "axis_mode", "axis_benchmark", "axis_autotune") if n in t]
        t["how"] = t.who + t[how].astype(str).agg("|".join, axis=1).where(t.who != "cudnn", t.launch)
        k = x.kernels.sort_values("kernel_time").groupby("kernel_config").kernel_name.last()
        t["main"], case = t.config.map(k), [*SHAPE, "precision", "pass"]
        c, m = t[t.layer == "conv2d"], t[t.layer == "lstm"]
        found[x is f] = t, c, m, case
    t, c, m, case = found[True] if p is f else found[False]
    fwd, back, half = c[c["pass"] == "forward"], c[c["pass"] != "forward"], c[c.precision == "fp16"]

    def along(x, by):
        rest = [n for n in SHAPE if n != by]
        x = x[np.logical_and.reduce([x[n] == SHAPE[n] for n in rest])]
        return [r.sort_values(by) for _, r in x.groupby(["how", "precision", "pass"]) if r[by].nunique() > 1]

    def firsts(x):
        own = [r.sort_values("T").drop_duplicates("who") for _, r in x.groupby(case)]
        return [r for r in own if len(r) > 1]

    single = fwd.assign(precision=fwd.precision.replace("tf32", "fp32"))
    twice = wide(single, ["who", "how", *SHAPE], "precision", "B").reset_index().dropna()
    tuned_c, tuned_m = found[True][1:3]
    moves = [(r[r.data_movement_launches > 0].busy_time.min(), r[r.data_movement_launches == 0].busy_time.min())
             for _, r in tuned_c.groupby(case)]
    axes = [(half, by) for by in list(SHAPE)[:4]]
    axes += [(m[m.precision == "fp16"], by) for by in ("batch", *list(SHAPE)[4:])]
    ways = [along(x[x["pass"] == way], by) for x, by in axes for way in sorted(set(x["pass"]))]
    grown = [[r[n].iloc[-1] / r[n].iloc[0] for r in own] for own in ways for n in ("F", "B") if len(own) > 1]
    pairs = [q for x in (c, m) for r in firsts(x) for q in itertools.combinations(r.to_dict("records"), 2)]
    rival = [r for x in (c, m) for r in firsts(x[x.who != "cudnn"]) if "torch" in set(r.who)]
    quick = half["busy_time"] <= 2 * half.groupby(case).busy_time.transform("min")
    g, own = found[True][1], found[True][1][found[True][1].who == "cudnn"]
    g = g.assign(axis_autotune=g.axis_autotune.astype(float).map("{:.0f}".format))
    eager = g[g.axis_mode.fillna("eager") == "eager"]
    ends = ("torch", "axis_benchmark", "off", "on"), ("jax", "axis_autotune", "0", "4")
    tuned = [(r[r[n] == x], r[r[n] == y]) for who, n, x, y in ends for _, r in eager[eager.who == who].groupby(case)]
    tuned = [(x.iloc[0], y.iloc[0]) for x, y in tuned if len(x) == len(y) == 1]
    return {
        "batch_forward": [near(r.ai, 1.15) for r in along(fwd, "batch")],
        "bytes_by_precision": [r.fp32 / r.fp16 < 1.2 if r.who == "torch" else 1.6 <= r.fp32 / r.fp16 <= 2.4
                               for r in twice.itertuples()],
        "invocations": [r.launches.nunique() > 1 for r in firsts(back)],
        "movers": [a > b for a, b in moves if a > 0 and b > 0],
        "busiest": [r.R.idxmax() == r.ai.idxmax() == r["T"].idxmax() for r in firsts(back[back.precision == "fp16"])],
        "trendlines": [max(x) <= 1.5 * min(x) for x in grown],
        "same_kernels": [ok for _, r in tuned_c[tuned_c["pass"] == "forward"].groupby(case) for ok in (
            r.main.nunique() == 1, (r[r.who == "torch"].data_movement_launches > 0).any())],
        "tensor_units": half[quick].tf > 0,
        "lstm_overhead": m.groupby("how").apply(lambda r: (r.busy_time / r["T"]).min() < 0.5),
        "lstm_launches": tuned_m[(tuned_m["pass"] == "forward") & (tuned_m.who == "torch")].launches == 36,
        "fewest_launches": [(x["launches"] - y["launches"]) * (x["T"] - y["T"]) > 0 for x, y in pairs
                            if x["launches"] != y["launches"]],
        "torch_fastest": [r.who[r[n] == r[n].min()].tolist() == ["torch"]
                          for r in rival for n in ("T", "B", "F", "launches")],
        "auto_tuning": [x.names != y.names and x.busy_time > 1.02 * y.busy_time for x, y in tuned]
        + list((own.algorithm_id != own.heuristic_id) & (own.heuristic_time > own["T"] * (1 + own.search_noise))),
    }


def of_guide(g, p):
    t = g.rows.explode("words").set_index("words")
    t["wide"] = t.bytes_counted_l2 / t.bytes_model
    says = {"linear-512": "compute", "attention": "", "thread": ""}
    t["says"] = [says.get(name, "bandwidth") for name in t.index]
    line = t[t.index.str.startswith("linear")].drop_duplicates("batch").sort_values("batch")
    t = t.drop("linear-batch", errors="ignore")
    ops, told = t.drop("thread", errors="ignore"), t[t.says != ""]
    one = [t.loc["thread"]] if "thread" in t.index else []
    k = p.kernels.drop_duplicates(["kernel_name", "kernel_blocks", "kernel_resident"])
    k, wide_k = k[k.kernel_blocks >= 300], p.kernels[p.kernels.kernel_threads >= 128]
    least = p.rows.config.map(wide_k.groupby("kernel_config").kernel_blocks.min())
    return {
        "ratio_limits": ops.limiter == (ops.ai > ops.bal).map({True: "compute", False: "bandwidth"}),
        "usual_limits": [*(told.bound == told.says), *(told.limiter == told.says)],
        "linear_batches": [line.bound.iloc[0] == "bandwidth", line.bound.iloc[-1] == "compute", up(line.ai),
                           line.limiter.iloc[-1] == "compute"] * (len(line) > 2),
        "single_thread": [ok for r in one for ok in (r.limiter == "latency", 0.001 * r.compute_roof > r.R)],
        "read_again": t.wide > 1.05,
        "tails": 1 - k.kernel_waves / np.ceil(k.kernel_waves) <= 0.25,
        "enough_blocks": p.rows[least >= 4 * g.device.device_multiprocessors[0]].limiter != "latency",
    }
# fmt: on


def truths(test, *files):
    """Of a finding: how many of its truths hold, of how many."""
    try:
        parts = list(test(*files)[0])
    except (AttributeError, IndexError, KeyError, ValueError, ZeroDivisionError):  # the file lacks what it needs
        parts = []
    return sum(map(bool, parts)), len(parts)


def main():
    data = os.path.join(evidence.ROOT, "tests/data/{}_h100.nc").format
    files, tables = findings.files(), {name: Tables(data(name)) for name in (*findings.SWEEPS, "frameworks", "guide")}
    beside = frameworks.Frameworks(data("frameworks"))
    paper = frameworks.paper_file(beside)
    own = tables["frameworks"] if paper is beside else Tables(paper.path)
    first = {test: truths(test, findings.evidence_of(test, files)) for _, test in findings.FINDINGS}
    first |= {test: truths(test, beside if test in frameworks.OF_KERNELS else paper) for _, test in frameworks.FINDINGS}
    first |= {test: truths(test, guide.Guide(data("guide")), files["paper"]) for test in guide.FINDINGS}
    second = {"findings": of_paper(*(tables[name] for name in findings.SWEEPS))}
    second |= {"frameworks": of_frameworks(own, tables["frameworks"])}
    second |= {"guide": of_guide(tables["guide"], tables["paper"])}
    wrong = 0
    for test, found in first.items():
        parts = [bool(part) for part in second[test.__module__][test.__name__]]
        if found != (sum(parts), len(parts)):
            wrong += 1
            print(f"{test.__module__}.{test.__name__}: {found}, a second way {sum(parts), len(parts)}")
    print(f"{len(first)} findings, {wrong} differences")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
