#!/usr/bin/env python3
"""Tests the tables of NVIDIA's "GPU Performance Background User's Guide", and defines the tests of its
claims for findings.py.

Usage: guide.py FOLDER [--write | --check]

Prints the page docs/guide.md. Its data are the plan of sweeps/guide.ini, by FOLDER/roofsweep --dry-run, and
tests/data/guide_h200.nc. --write renews the page. The exit status is 1 if a model differs from the guide's, or with
--check if the page differs."""

import json
import os
import subprocess
import sys

import evidence
import numpy as np
import pandas
from evidence import File, above, listed, share, span
from roofsweep_post.advice import LIKE

# Limits of an operation, in the guide's words and in ours.
LIMITS = {"arithmetic": "compute", "memory": "bandwidth", "latency": "latency"}
# {row of sweeps/guide.ini: (operation, intensity in the guide, limit in the guide)}
OPERATIONS = {
    "linear-512": ("Linear layer, 4096 outputs, 1024 inputs, batch 512", "315", "arithmetic"),
    "linear-1": ("Linear layer, 4096 outputs, 1024 inputs, batch 1", "1", "memory"),
    "pooling": ("Max pooling with 3x3 window and unit stride", "2.25", "memory"),
    "relu": ("ReLU activation", "0.25", "memory"),
    "norm": ("Layer normalization", "< 10", "memory"),
    "thread": ("A single thread, 16 bytes and 16000 operations", "1000", "latency"),
    "sigmoid": ("Sigmoid", "-", "memory"),
    "batch-norm": ("Batch normalization, in training", "-", "memory"),
    "softmax": ("Softmax", "-", "memory"),
    "attention": ("Attention, fused", "-", "-"),
}
FEW, TAIL = 300, 0.25  # blocks of a launch; share of its waves that the last wave leaves empty
BLOCKS, THREADS = 4, 128  # blocks for each multiprocessor; threads of a block


finding = evidence.Claims()


def limits(f, rows):
    """Returns `limits`, the limit of each row, which can be a busy unit, and `shown`, the words on the page for it."""
    found, causes = rows.limiter.map(f.words("limiter")), rows.cause.str.split(":").str[0]
    of_causes = (found == "kernel") & (causes != "")
    like = causes.str.split(",").str[0].map(LIKE)
    limit = like.where(of_causes & like.isin(["compute", "bandwidth"]), found)
    return {"limits": limit, "shown": found.where(~of_causes, causes)}


class Guide(File):
    """The rows; a row with several labels occurs once for each label."""

    def __init__(self, path, raw=None):
        super().__init__(path, raw)
        table = self.rows.assign(name=self.rows.label.str.split(), **limits(self, self.rows))
        table = table.explode("name")
        table["l2"] = self.data.bytes_counted.values[table.row, self.levels.index("l2")]
        self.linear = table[table.name.isin(["linear-batch", "linear-1", "linear-512"])]
        self.linear = self.linear.drop_duplicates("batch").sort_values("batch")
        self.named = table[table.name.isin(OPERATIONS)].set_index("name")


@finding("guide, 5", "guide", "none: shares of one measurement", "another limit",
         lambda c: c.limit(lambda t: np.where(t.own_ai > t.balance, "compute", "bandwidth")))  # fmt: skip
def ratio_limits(f):
    """Above the ratio of operations to bytes math limits an operation, below it memory."""
    t = f.named.drop("thread", errors="ignore")
    parts = t.limits == np.where(t.own_ai > t.balance, "compute", "bandwidth")
    others = t[~parts].shown.value_counts()
    return (
        parts.tolist(),
        f"{share(parts)} operations; limiters: {'; '.join(f'{n} x {name}' for name, n in others.items())}",
    )


@finding("guide, table 1", "guide", "bytes", "another limit",
         lambda c: c.put("paper_bound", "", c.word("overhead"))
         .limit("latency"))  # fmt: skip
def usual_limits(f):
    """Each operation is limited by what the table says."""
    wanted = f.named.index.map(lambda name: LIMITS.get(OPERATIONS[name][2], ""))
    known = (wanted != "") & (wanted != "latency")
    roofs, parts = (f.named.bound == wanted)[known].tolist(), (f.named.limits == wanted)[known].tolist()
    return roofs + parts, f"by its roofs {share(roofs)} operations, by its limiter {share(parts)}"


@finding("guide, 5.3", "guide", "none: shares of one measurement", "another limit at the smallest or largest",
         lambda c: c.put("paper_bound", "", c.word("overhead"))
         .limit("latency"))  # fmt: skip
def linear_batches(f):
    """A linear layer is limited by memory at small batches, by math at large ones."""
    t = f.linear
    over = t[t.bound == "compute"].batch.min()
    parts = [t.bound.iloc[0] == "bandwidth", t.bound.iloc[-1] == "compute"]
    parts += [t.limits.iloc[0] == "bandwidth", t.limits.iloc[-1] == "compute"]
    first = t[t.limits != t.limits.shift()]
    words = listed(zip(first.limits, first.batch), "{0[0]} from {0[1]:.0f}")
    return parts if len(t) > 2 else [], f"math by its roofs from batch {over:.0f} on; limiter: {words}"


@finding("guide, 5", "guide", "time", "another limit, or a thousandth of the roof",
         lambda c: c.scale("time_median", "label == 'thread'", 1e-5)
         .limit("compute"))  # fmt: skip
def single_thread(f):
    """A single thread is limited by latency, whatever its intensity."""
    one = f.named.loc["thread"]
    part = one.rate / one.compute_roof
    text = f"AI {one.ai:.0f} (eight chains: {one.flops:.0f} FLOPs, {one.bytes:.0f} bytes)"
    return [one.limits == "latency", part < 0.001], f"{text}, {100 * part:.4f} % of the roof"


@finding("guide, 5", "guide", "bytes", "L2 moves at most 1.05 times the modelled bytes",
         lambda c: c.put("bytes_counted", "", lambda t: t.bytes_model))  # fmt: skip
def read_again(f):
    """It is not unusual to read inputs several times, which reduces the intensity."""
    more = f.named.l2 / f.named.bytes_model
    parts = above(more, 1.05, f.null["bytes"])
    return parts, f"bytes at L2 over modelled: more in {share(parts)} operations, {more.median():.2f} ({span(more)})"


@finding("guide, 4", "paper", "none: counts are whole", "one of more loses a quarter of its waves",
         lambda c: c.put("kernel_blocks", "", 330).put("kernel_resident", "", 264))  # fmt: skip
def tails(f):
    """Only launches of fewer than 300 blocks have a tail."""
    k = f.kernels.drop_duplicates(["kernel_name", "kernel_blocks", "kernel_resident"])
    few = k.kernel_blocks < FEW
    texts = [
        f"{100 * k.kernel_tail_loss[own].median():.0f} % {name}"
        for own, name in ((few, "with fewer"), (~few, "with more"))
    ]
    parts = (k.kernel_tail_loss[~few] <= TAIL).tolist()
    return (
        parts,
        f"{share(parts)} kernels of more blocks lose at most {100 * TAIL:.0f} %; median loss {', '.join(texts)}",
    )


def filled(f, rows):
    """Whether each row's longest kernel has BLOCKS blocks a multiprocessor and THREADS threads a block, or more."""
    k = f.kernels.assign(enough=(f.kernels.kernel_threads >= THREADS)
                         & (f.kernels.kernel_blocks >= BLOCKS * f.data.device_multiprocessors.values[0]))  # fmt: skip
    longest = k.sort_values("kernel_time").groupby("kernel_config").enough.last()
    return longest.reindex(rows.row).fillna(False).to_numpy(bool)


@finding("guide, 6", "paper", "time", "conv2d rows with as many reach less than half of the roof, or less than others",
         lambda c: c.put("roof_fraction", "", lambda t: np.where(filled(c.file, t), 0.1, 0.9)))  # fmt: skip
def enough_blocks(f):
    """Four blocks of a few hundred threads for each multiprocessor are parallelism enough."""
    full = filled(f, f.conv2d)
    many, few = (f.conv2d[full == own].roof_fraction for own in (True, False))
    text = f"with as many, fractions of the roof are {span(many)} (median {many.median():.2f}, {len(many)} rows)"
    parts = above(many, 0.5, f.null["time"]) + [many.median() > few.median()]
    return parts, f"{text}; with fewer {few.median():.2f} ({len(few)})"


@finding("guide, 6", "paper", "a constant guess", "the most frequent limit is right as often",
         lambda c: c.limit(lambda t: recipe(c.file, t)))  # fmt: skip
def recipe_predicts(f):
    """Five steps (multiprocessors, AI, blocks) name the likely limit: latency, math or memory."""
    t = f.rows.assign(**limits(f, f.rows))
    found = t.limits.replace(dict.fromkeys(("idle", "overhead", "gaps", "launch", "host"), "latency"))
    known = found.isin(["latency", "compute", "bandwidth"]).to_numpy()
    right = found.to_numpy()[known] == recipe(f, t)[known]
    often = found[known].value_counts(normalize=True)
    text = f"right in {share(right)} rows ({100 * right.mean():.0f} %)"
    text += f"; always {often.index[0]} in {100 * often.iloc[0]:.0f} %"
    error = 2 * np.sqrt(often.iloc[0] * (1 - often.iloc[0]) / len(right))  # of the share of a guess
    more = None if abs(right.mean() - often.iloc[0]) < error else bool(right.mean() > often.iloc[0])
    return [more], f"{text} (+- {100 * error:.0f} %); {(~known).sum()} other rows have no such limit"


def recipe(f, rows):
    """Returns the limit that the guide's steps predict, from modelled intensity, roofs and blocks."""
    of_roofs = np.where(rows.flops_model / rows.bytes_model > rows.balance, "compute", "bandwidth")
    return np.where(filled(f, rows), of_roofs, "latency")


PAGE = """# NVIDIA's guide, tested

NVIDIA's "GPU Performance Background User's Guide" says what limits deep-learning operations on a V100.
`tests/guide.py build/bin --write` writes this page from the models (`roofsweep --dry-run sweeps/guide.ini`) and from
`{file}` ({device}, cold caches).

## Operations for each byte

At the measured roofs of each memory level. For a V100 in fp16 the guide gives 139 from memory and 40 from L2.

{machine}

## Operations

FLOPs for each byte of device memory, modelled and counted. *Roofs* names the roof at which the counted work takes
longer, *limiter* the limit of the measured time ([method.md](method.md)).

{operations}

- Counters see additions, multiplications and fused multiply-adds, but no maximum, which is a FLOP in the model, and no
  exponential. cuDNN's ReLU also scales each element, which is 2 FLOPs.
- Part of the result is still in L2 at the end. Counters at device memory miss that part.
- `linear-1`: the tiles of cuBLASLt's kernel have room for eight samples and hold one. The counters see all eight.
- `norm`: the counters also see sums across threads, x - mean for the second time, quotients and roots.

## The linear layer by batch

{linear}

[findings.md](findings.md) tests the guide's claims.
"""


def modelled(folder):
    """Returns {label: FLOP/byte} of the plan."""
    sweep = os.path.join(evidence.ROOT, "sweeps/guide.ini")
    command = [os.path.join(folder, "roofsweep"), "--dry-run", "--json", sweep]
    plan = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["configurations"]
    return {label: row["flops"] / row["bytes"] for row in plan for label in row["label"].split()}


def faults(plan):
    """Yields models that differ from the guide's numbers, rounded to the guide's digits."""
    for label, (_, guide, _) in OPERATIONS.items():
        digits = len(guide.replace(".", "").lstrip("0"))
        if guide == "< 10":
            same = plan[label] < 10
        else:
            same = guide == "-" or float(f"{plan[label]:.{digits}g}") == float(guide)
        if not same:
            yield f"{label}: the guide has {guide}, the program {plan[label]:.3g}"


def short(value):
    return f"{float(f'{value:.3g}'):g}"


def counted(r):
    return short(r.ai) if r.flops > 0 else "none is seen"


def page(folder):
    f = Guide(evidence.path_of("guide"))
    plan, levels = modelled(folder), [level for level in f.levels if level != "l3"]
    widths = f.data.device_peak_bandwidth.values[0][[f.levels.index(level) for level in levels]]
    machine = [
        [f"{precision} {unit}", *(f"{peak / width:.3g}" for width in widths)]
        for unit in ("tensor", "vector")
        for precision, peak in zip(f.precisions, f.data[f"device_peak_{unit}"].values[0])
        if np.isfinite(peak)
    ]
    machine = pandas.DataFrame(machine, columns=["roof", *levels]).loc[:, lambda t: ~t.isin(["nan"]).all()]
    operations = []
    for label, (operation, guide, limited) in OPERATIONS.items():
        r = f.named.loc[label] if label in f.named.index else None
        found = ["-"] * 3 if r is None else [counted(r), r.bound, r.shown]
        operations.append([operation, f"`{label}`", guide, short(plan[label]), found[0], limited, *found[1:]])
    some = f.linear[~f.linear.batch.isin([2, 8, 32, 128, 256, 8192])]
    linear = [[f"{r.batch:.0f}", counted(r), f"{r.rate / 1e12:.3g}", r.bound, r.shown] for _, r in some.iterrows()]
    head = ["operation", "row", "guide", "modelled", "counted", "limited by, guide", "roofs", "limiter"]
    return PAGE.format(
        file=os.path.relpath(f.path, evidence.ROOT),
        device=f.data.device_model.values[0],
        machine="\n".join(evidence.markdown(machine.columns, machine.to_numpy())),
        operations="\n".join(evidence.markdown(head, operations)),
        linear="\n".join(evidence.markdown(["batch", "counted", "TFLOP/s", "roofs", "limiter"], linear)),
    ), list(faults(plan))


def main(folder, *options):
    text, wrong = page(folder)
    print(*wrong, sep="\n", end="")
    return evidence.page_main("guide", text, list(options)) or bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
