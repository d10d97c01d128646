#!/usr/bin/env python3
"""Checks advice on the files of tests/data. A row follows the advice on another row if both differ only in the
parameters that the advice changes. For each rule at least three rows must follow it, three quarters of them must be
faster than the row that got the advice, and the median gain must be at least 5 %."""

import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "postproc"))
import roofsweep_post as post  # noqa: E402
from roofsweep_post.advice import sections, tries  # noqa: E402

WIDTH = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}
# {rule: (parameters that the advice changes, function(advised, other) that returns whether `other` follows the advice)}
FOLLOWED = {
    "sequence": ({"implementation"}, lambda row, other: other["implementation"] == "persistent"),
    "unit of the precision": ({"algorithm"}, lambda row, other: other["unit"] == "tensor"),
    "unit of fp32": ({"precision"}, lambda row, other: other["precision"] in ("tf32", "fp16", "bf16")),
    "flops": ({"algorithm"}, lambda row, other: other["flops_counted"] < row["flops_counted"] / 1.2),
    "layout of no transposes": ({"layout"}, lambda row, other: other["layout"] == "nhwc"),
    "layout of fewer bytes": ({"layout"}, lambda row, other: other["layout"] == "nchw"),
    "precision": ({"precision"}, lambda row, other: WIDTH[other["precision"]] < WIDTH[row["precision"]]),
}


def rest(row, changed):
    return row["file"], *(word for word in row["configuration"].split() if word.split("=")[0] not in changed)


def gains(rows, rule):
    """Returns for each row with this advice its time divided by that of the fastest row that follows the advice."""
    changed, follows = FOLLOWED[rule]
    alike, found = {}, []
    for row in rows:
        alike.setdefault(rest(row, changed), []).append(row)
    for row in rows:
        others = [other["time_median"] for other in alike[rest(row, changed)] if follows(row, other)]
        if rule in tries(row) and others:
            found.append(row["time_median"] / min(others))
    return np.array(found)


def main():
    files = [path for path in sorted((ROOT / "tests/data").glob("*_h?00.nc")) if not path.name.startswith("roofs")]
    rows = post.rows([post.load(path) for path in files]).to_dict("records")
    rules = {name for kind, name, keys in sections() if kind == "try" and keys["against"] != "unknown"}
    assert rules == set(FOLLOWED), f"rules without evidence, or evidence without a rule: {rules ^ set(FOLLOWED)}"
    for rule in FOLLOWED:
        found = gains(rows, rule)
        assert len(found) >= 3, f"{rule}: {len(found)} rows followed it"
        better, middle = np.mean(found > 1), np.median(found)
        print(f"{rule}: of {len(found)} rows {100 * better:.0f} % are faster, the middle one {middle:.2f} times")
        assert better >= 0.75 and middle >= 1.05, rule


if __name__ == "__main__":
    main()
