#!/usr/bin/env python3
"""Checks that rows of result files obey rules of physics, such as FLOP/s below the roof.

Usage: invariants.py FILE... Exit status 0; 1 with a line for each row that breaks a rule; 77 (skipped) without xarray.

T is the time of a row minus the timer's time. EXCEPTIONS has (file, rule) for files of tests/data that older commits
measured: rows of the file may break the rule, and are only counted. An entry of EXCEPTIONS that no row needs any more
is a failure."""

import os
import sys

from raw_file import File, np
from recompute import expected

SLACK, POWER = 1.02, 1.05
# {(file, rule that its rows may break): reason}
CPU = "on a CPU both times are of the traced iteration"
AGAIN = "the traced iteration took longer than the timed ones; the cause is unknown"
EXCEPTIONS = {
    ("energy_h200", "busy <= T"): "traced after the energy run, at the clock of its power",
    ("energy_h200", "power"): "up to 8 % above the cap; the cause is unknown",
    ("node_2xh100", "busy <= T"): "traced after the energy run, at the clock of its power",
    ("node_2xh200", "busy <= T"): AGAIN,
    ("node_4xh200", "busy <= T"): AGAIN,
    ("guide_h200", "busy <= T"): AGAIN,
    ("algorithms_h200", "busy <= T"): AGAIN,
    ("paper_h100", "busy <= T"): AGAIN,
    ("paper_h200", "busy <= T"): AGAIN,
    ("training_h200", "busy <= T"): AGAIN,
    ("training_cpu", "busy <= T"): CPU,
    ("frameworks_cpu", "busy <= T"): CPU,
    ("paper_frameworks_h200", "busy <= T"): "kernels are traced in another process; processes differ by 4 %",
}


def broken(file):
    """Yields (rule, row, text) for each row that breaks a rule. Missing values break no rule."""
    wanted, get = expected(file), lambda name: np.asarray(file.values[name], float) if name in file.values else np.nan
    rows = file.data.sizes["config"]
    timer = np.nan_to_num(get("timer_overhead") / get("sample_iterations")) * np.ones(rows)
    time, device = get("time_median") - timer, np.asarray(file.values["config_device"], int)
    limit = np.resize(get("device_power_limit"), file.data.sizes["device"])[device]
    parts = np.array([sum(row) for row in wanted["time_part"]])
    with np.errstate(invalid="ignore"):
        rules = {
            "n L <= T": np.array(wanted["overhead_time"]) / time,
            "busy <= T": get("busy_time") / time / SLACK,
            "roof_fraction": np.array(wanted["roof_fraction"]) / SLACK,
            "power": get("power") * np.ones(rows) / limit / POWER,
            "sum of time_part": 1 + np.abs(parts / time - 1) - 0.01,
        }
        infinite = [np.isinf(np.array(row, float)) for row in wanted["arithmetic_intensity"]]
        rules["finite"] = np.sum(infinite, axis=1) + 0.5
    for rule, values in rules.items():
        for row in np.flatnonzero(values > 1) if rows else ():
            yield rule, row, f"{values[row]:.3f}"


def check(path):
    file, name = File(path), os.path.basename(path).removesuffix(".nc")
    found = list(broken(file)) if file.data.sizes["config"] else []
    known = {rule for of, rule in EXCEPTIONS if of == name}
    listed = [line for line in found if line[0] not in known]
    for rule, row, text in listed:
        print(f"{path}: {rule}: {text} of what is possible, {file.values['configuration'][row]}")
    unneeded = known - {rule for rule, _, _ in found}
    for rule in unneeded:
        print(f"{path}: no row needs the exception {rule} any more")
    print(f"{path}: {file.data.sizes['config']} rows, {len(listed)} break a rule, {len(found) - len(listed)} excepted")
    return len(listed) + len(unneeded)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(1 if sum(check(path) for path in sys.argv[1:]) else 0)
