#!/usr/bin/env python3
"""Computes figures of docs/findings.md again, and compares them with the page. Shares no code with evidence.py and the
post-processor: rows are found by their `configuration`, overheads by the roofs of launches (docs/method.md).

Exit status 0; 1 with a line for each difference."""

import collections
import pathlib
import re
import sys

from raw_file import np, xarray

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELEMENT = {"fp16": 2, "fp32": 4}  # bytes
SIZES = {"batch": 16, "sequence": 16, "features": 32, "hidden": 16, "filters": 64, "kernel": 3, "stride": 2}
NAMES = {"cudnn": "cuDNN", "jax": "JAX", "torch eager": "PyTorch, eager", "torch graph": "PyTorch, graph"}


def rows(name, cache="cold"):
    """Returns the measured rows of a file, each a dictionary: words of its configuration, and variables."""
    data, found = xarray.open_dataset(ROOT / f"tests/data/{name}_h200.nc", decode_times=False).load(), []
    measured, levels = data.status.attrs["flag_meanings"].split().index("measured"), list(data.memory_level.values)
    roofs = collections.defaultdict(list)
    for device, kind, time in zip(*(data[f"device_roof_{v}"].values for v in ("device", "name", "time"))):
        roofs[int(device), str(kind)].append(time)
    for i in np.flatnonzero(data.status.values == measured):
        text = re.sub(r'.*axes="(.*?)".*', r"\1", str(data.configuration.values[i]))
        words = dict(re.findall(r"(\w+)=(\S+)", text))
        row = {v: data[v].values[i] for v in data.data_vars if data[v].dims == ("config",)}
        row |= {size: float(words.get(size, default)) for size, default in SIZES.items()}
        row |= {word: words.get(word, "") for word in ("algorithm", "precision", "pass", "layout", "mode")}
        row |= {"tensor": np.nansum(data.flops_tensor.values[i]), "roofs": roofs, "device": int(row["config_device"])}
        dram, l2 = (data.bytes_written.values[i, levels.index(v)] for v in ("dram", "l2"))
        # The result of a conv2d of 112 x 112 points, forward, may stay in L2.
        result = row["batch"] * row["filters"] * (111 // row["stride"] + 1) ** 2 * ELEMENT.get(row["precision"], 0)
        row["moved"] = data.bytes_counted.values[i, levels.index("dram")] + min(max(l2 - dram, 0), result)
        row["rate"] = row["flops_counted"] / row["time_median"]
        row["how"] = " ".join([row["label"].split("-")[0], row["mode"]]).strip()
        found += [row] if cache in (words["cache"], "any") else []
    return found


def span(values, form="{:.2f}"):
    return f"{form} to {form}".format(min(values), max(values))


def median(values, form="{:.2f}"):
    return f"{form.format(np.median(values))} ({span(values, form)})"


def null(ratios):
    own = sorted(max(one, 1 / one) for one in ratios if np.isfinite(one))
    return f"| {len(own)} | {np.interp(0.95 * (len(own) - 1), range(len(own)), own):.3f} | {own[-1]:.3f} |"


def grouped(table, *names):
    found = collections.defaultdict(list)
    for row in table:
        found[tuple(row[name] for name in names)].append(row)
    return found.values()


def line(table, axis, how):
    """Yields the rows of each series along an axis: precision and pass, all other sizes at the default."""
    for own in grouped([r for r in table if r["how"] == how], "precision", "pass"):
        own = [r for r in own if all(r[s] == SIZES[s] for s in SIZES if s != axis)]
        yield sorted(own, key=lambda row: row[axis])


def figures():
    """Yields (start of a finding, text that its figures must contain)."""
    paper, series, tuned = rows("paper"), rows("paper_frameworks"), rows("paper", "any")
    for what, name in (("flops_counted", "FLOPs"), ("time_median", "time")):
        ways = grouped(
            [r for r in paper if r["workload"] == "conv2d"], *list(SIZES)[-3:], "batch", "precision", "layout"
        )
        ways = [{r["pass"]: r[what] for r in own} for own in ways]
        more = [(w["backward-data"] + w["backward-filter"]) / w["forward"] for w in ways if len(w) == 3]
        yield "The backward pass is more", f"{name} {median(more)}"
    medians = {kind: 1e6 * np.median(times) for (_, kind), times in paper[0]["roofs"].items() if "launch" in kind}
    yield "A launch costs 4.2", f"host {medians['launch host']:.2f}, from one to the next {medians['launch gap']:.2f}"
    lstm, layers = ([r for r in series if word in r["label"]] for word in ("lstm", "conv2d"))
    for how, name in NAMES.items():
        own, over = [r for r in lstm if r["how"] == how], []
        for r in own:
            graphs = np.nan_to_num(r["launches_in_graphs"])
            alone, within = (min(r["roofs"][r["device"], f"launch gap{kind}"]) for kind in ("", " graph"))
            over.append(r["time_median"] / (graphs * within + (r["launches"] - graphs) * alone))
        yield "An LSTM's time is its launches", f"{name} {median(over, '{:.1f}')}"
        idle = [100 - 100 * r["busy_time"] / r["time_median"] for r in own]
        yield "An LSTM is always", f"{name} {span(idle, '{:.0f}')} %"
        ends = [own[-1]["time_median"] / own[0]["time_median"] for own in line(lstm, "sequence", how)]
        yield "Run time and launches", f"{name} {span(ends)} ("
    units = [100 * r["tensor"] / r["flops_counted"] for r in lstm if "torch" in r["how"] and r["precision"] == "fp16"]
    yield "PyTorch multiplies the steps", f"{span(units, '{:.0f}')} % of the FLOPs in {len(units)} rows"
    forward = [r for r in layers if r["precision"] + r["pass"] == "fp32forward"]
    for axis, word in (("filters", "by filters"), ("kernel", "kernel")):
        (own,) = line(forward, axis, "torch eager")
        yield "PyTorch in fp32", f"{word} " + ", ".join(f"{r['rate'] / 1e12:.1f}" for r in own)
    last = {r["how"]: r["time_median"] for r in forward if r["kernel"] == 9}
    yield "Where PyTorch's fp32", f"at most {last['torch eager'] / last['cudnn']:.2f} times"
    steps = [r for how in NAMES for r in line([r for r in layers if r["pass"] == "forward"], "stride", how)]
    work, moved = ([r[0][v] / r[-1][v] for r in steps] for v in ("flops_counted", "moved"))
    yield "A larger stride: fewer", f"{span(work, '{:.1f}')} times the FLOPs, {span(moved, '{:.1f}')} times the bytes"
    tuned = [r for r in tuned if np.isfinite(r["heuristic_time"])]
    gains = [r["heuristic_time"] / r["search_time"] for r in tuned if r["heuristic_id"] != r["algorithm_id"]]
    yield "Auto-tuning changes", f"it changes in {len(gains)} of {len(tuned)} rows"
    yield "Auto-tuning changes", f"{median(gains)} times"
    yield "search", null(r["search_time"] / r["time_median"] for r in tuned if r["heuristic_id"] == r["algorithm_id"])
    times = [xarray.open_dataset(ROOT / f"tests/data/{n}h200.nc").round_time.values for n in ("node_4x", "training_")]
    yield "time", null(np.concatenate([own[:, i] / own[:, i - 1] for own in times for i in range(3)]))
    shapes = [r for r in rows("algorithms", "any") if r["workload"] == "conv2d" and "stride" not in r["label"]]
    shapes = grouped([r for r in shapes if r["algorithm"] != "auto"], "precision", "height", "kernel")
    over = [max(r, key=lambda one: one["rate"])["time_median"] / min(one["time_median"] for one in r) for r in shapes]
    slower = [one for one in over if one > 1.042]
    yield "An algorithm with more", f"in {len(slower)} of {len(over)} shapes (fp32) the one with most"
    yield "An algorithm with more", f"takes {span(slower)} times as long"


def main():
    lines = [own[2:] for own in (ROOT / "docs/findings.md").read_text("utf-8").split("\n") if own.startswith("| ")]
    lines += [own.split(" | ", 1)[-1] for own in lines]  # a finding's line begins with its place
    checked = list(figures())
    wrong = [one for one in checked if not any(own.startswith(one[0]) and one[1] in own for own in lines)]
    print(*(f"{claim}: computed again, '{text}' is not on the page" for claim, text in wrong), sep="\n")
    print(f"{len(checked)} figures computed again, {len(wrong)} differ")
    return bool(wrong) or len(checked) != 26


if __name__ == "__main__":
    sys.exit(main())
