#!/usr/bin/env python3
"""Compares the rows of OLD.nc and NEW.nc, files of one manifest on GPUs of one model: old_new.py OLD.nc NEW.nc

Counts of rows with the same algorithm and kernels must be equal to the digit, and 95 % of their times, without the
timer's own, within the 4.2 % by which processes differ (docs/findings.md). Prints the rows whose algorithm, kernels or
counts differ."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "postproc"))
import roofsweep_post as post

PROCESSES = 1.042  # ratio of a row's times in two processes, 95 % of rows
COUNTS = ("flops_counted", "flops_vector", "flops_tensor", "launches")


def rows_of(path):
    """Returns {configuration: (algorithm and kernels, counts, time in s)} of the measured rows."""
    data, found = post.load(path), {}
    times = (data.time_median - data.timer_overhead / data.sample_iterations).values  # 2 or 3 us on GPUs of one model
    for row in np.flatnonzero(data.status.values == "measured"):
        own = data.isel(kernel=data.kernel_config.values == row)
        kernels = sorted(zip(map(str, own.kernel_name.values), own.kernel_blocks.values, own.kernel_count.values))
        counts = [np.nan_to_num(data[name].values[row], nan=-1).tolist() for name in COUNTS]
        work = str(data.algorithm_id.values[row]), kernels
        found[str(data.configuration.values[row])] = work, counts, float(times[row])
    return found


old, new = map(rows_of, sys.argv[1:])
ratios, differing = [], 0
for name in [name for name in old if name in new]:
    (work, counts, time), (now, later, after) = old[name], new[name]
    if work == now:
        ratios.append(after / time)
        differing += counts != later
    if work != now or counts != later:
        print(f"{name}: time {after / time:.3f}\n    {work}, {counts}\n    {now}, {later}")
near = np.mean(np.abs(np.log(ratios)) <= np.log(PROCESSES))
print(f"{len(old)} and {len(new)} rows; {len(ratios)} with the same kernels, counts differ in {differing}")
print(f"time {min(ratios):.3f} to {max(ratios):.3f}, median {np.median(ratios):.4f}, within {PROCESSES}: {near:.1%}")
sys.exit(int(len(ratios) < 10 or differing > 0 or near < 0.95))
