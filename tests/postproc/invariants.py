#!/usr/bin/env python3
"""Checks that rows of result files obey rules of physics, such as FLOP/s below the roof.

Usage: invariants.py FILE... Exit status 0; 1 with a line for each row that breaks a rule.

T is the time of a row minus the timer's time. busy_time is of one traced iteration, which can take longer than the
median T: as long as the row's slowest sample, round or caller's loop; if the power cap lowers the row's clock, as long
as at the lowest clock of a roof or of the energy run; and longer by what tracing takes for each block of its kernels
(docs/measurements.md). On a CPU `busy_time` and `gap_time` are of the traced iteration, so T has no such rule.

EXCEPTIONS has (file, rule) for files of tests/data: rows of the file may break the rule, and are only counted. An entry
of EXCEPTIONS that no row needs any more is a failure."""

import os
import sys

from raw_file import File, np
from recompute import expected

SLACK, POWER = 1.02, 1.05
CAPPED = 0.98  # of the free clock; at lower ones the power cap throttles
TRACED = 0.12e-9  # s for each block
# {(file, rule that its rows may break): reason}
EXCEPTIONS = {
    ("energy_h200", "power"): "up to 8 % above the cap; the cause is unknown",
    ("paper_h200", "busy <= T"): "one convolution's iteration, as at 1.46 instead of 1.60 GHz; later processes: 0.95 T",
}


def longest(file, get, time, timer, device):
    """Returns the longest time in s that one iteration of each row may take (see above)."""
    seen = [time, get("caller_time")]
    seen += [np.nanmax(get(name), axis=1) - timer for name in ("time_sample", "round_time") if name in file.values]
    clocks = [get(f"device_roof_{name}") for name in ("sm_clock", "sustained_clock")]
    lowest = np.fmin(np.nanmin(np.hstack(clocks)), get("energy_clock"))
    capped = get("sm_clock") < CAPPED * np.resize(get("device_sm_clock_free"), file.data.sizes["device"])[device]
    seen.append(np.where(capped, time * get("sm_clock") / lowest, time))
    owner, blocks = np.asarray(file.values["kernel_config"], int), get("kernel_blocks") * get("kernel_count")
    traced = TRACED * np.bincount(owner, np.nan_to_num(blocks), len(time))
    return np.fmax.reduce([np.broadcast_to(one, time.shape) for one in seen]) + traced


def broken(file):
    """Yields (rule, row, text) for each row that breaks a rule. Missing values break no rule."""
    wanted, get = expected(file), lambda name: np.asarray(file.values.get(name, np.nan), float)
    rows = file.data.sizes["config"]
    timer = np.nan_to_num(get("timer_overhead") / get("sample_iterations")) * np.ones(rows)
    time, device = get("time_median") - timer, np.asarray(file.values["config_device"], int)
    on_cpu = np.array(file.values["device_kind"])[device] == "cpu"
    limit = np.resize(get("device_power_limit"), file.data.sizes["device"])[device]
    parts = np.array([sum(row) for row in wanted["time_part"]])
    with np.errstate(invalid="ignore"):
        rules = {
            "n L <= T": np.array(wanted["overhead_time"]) / time,
            "busy <= T": np.where(on_cpu, 0, get("busy_time") / longest(file, get, time, timer, device) / SLACK),
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
