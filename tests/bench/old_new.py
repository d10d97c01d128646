#!/usr/bin/env python3
"""Compares rows of two files of one manifest on GPUs of one model, of an older and a newer commit.

Usage: old_new.py OLD.nc NEW.nc

Counts of rows with the same algorithm, kernels and blocks must be equal to the digit; each other one is named. Times of
two processes differ by up to 4.2 % in 95 % of rows (docs/findings.md): at least this share must lie within. The exit
status is 1 if counts differ or too few times agree."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "postproc"))
import roofsweep_post as post

PROCESSES = 1.042  # ratio of a row's times in two processes, 95 % of rows
COUNTS = ("flops_counted", "flops_vector", "flops_tensor", "launches")


def rows_of(path):
    """Returns {configuration: values} of the measured rows. `work` is what should have equal counts."""
    data = post.load(path)
    found, owner = {}, data.kernel_config.values
    for row in np.flatnonzero(data.status.values == "measured"):
        own = owner == row
        kernels = zip(data.kernel_name.values[own], data.kernel_blocks.values[own], data.kernel_count.values[own])
        work = {"algorithm": data.algorithm_id.values[row], "kernels": sorted(map(str, kernels))}
        values = {name: np.nan_to_num(data[name].values[row], nan=-1).tolist() for name in COUNTS}
        low, high = (float(data[f"time_median_{end}"].values[row]) for end in ("low", "high"))
        time = float(data.time_median.values[row])
        found[str(data.configuration.values[row])] = work, values, (time, low, high)
    return found


def main():
    old, new = map(rows_of, sys.argv[1:])
    both, ratios, inside, other, wrong = [name for name in old if name in new], [], 0, [], 0
    for name in both:
        (work, counts, (time, low, high)), (now, values, (later, least, most)) = old[name], new[name]
        if work != now:
            what = next(key for key in work if work[key] != now[key])
            other.append(f"{what}: {name}: {work[what]} -> {now[what]}; time {later / time:.3f}")
            continue
        for count in COUNTS:
            if counts[count] != values[count]:
                wrong += 1
                print(f"{count}: {name}: {counts[count]} -> {values[count]}")
        ratios.append(later / time)
        inside += low / PROCESSES <= most and least <= high * PROCESSES
    print(f"{len(old)} rows before, {len(new)} now, {len(both)} in both; {len(ratios)} with the same kernels")
    near = np.mean(np.abs(np.log(ratios)) <= np.log(PROCESSES))
    print(f"counts that differ: {wrong}; times within {PROCESSES}: {100 * near:.1f} %, median {np.median(ratios):.4f}, "
          f"{min(ratios):.3f} to {max(ratios):.3f}; intervals, wider by {PROCESSES}, that meet: {inside}")  # fmt: skip
    print(*other, f"{len(other)} rows have other kernels", sep="\n")
    return 1 if wrong or near < 0.95 else 0


sys.exit(main())
