#!/usr/bin/env python3
"""Measures the operating characteristic of `roofsweep-post compare`: how often it fails a healthy device, and how often
it detects a device that is 5 % slower.

FOLDER holds result files of healthy runs of one manifest on one device; missing runs are measured first. Every pair of
files is compared, and each failure is a false alarm. Then one file of each of COPIES pairs is made slower, in one roof
or in a fifth of the configurations. A copy counts as detected if it fails and its first reason names that part. Roofs
that compare does not judge are printed and left out.

The exit status is 1 above 1 false alarm in 100, below 95 detections in 100, or if a run took longer than --longest."""

import argparse
import os
import random
import subprocess
import sys
import time
from itertools import permutations
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "postproc"))

import numpy as np  # noqa: E402
import roofsweep_post  # noqa: E402
from roofsweep_post import compare, deviations  # noqa: E402

SLOWER = 1.05
ROOF_TIMES = ["device_roof_time"]
ROOF_RATES = ["device_roof_bandwidth", "device_roof_performance", "device_roof_sustained"]
ROOF_RATES += ["device_roof_nominal_fraction", "device_roof_clock_fraction"]
ROW_TIMES = ["time_median", "time_median_low", "time_median_high", "time_sample", "energy_time"]


def measure(options):
    """Returns the seconds of each run."""
    took = []
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for number in range(options.runs):
        path = Path(options.folder) / f"run-{number}.nc"
        if path.exists():
            continue
        command = ["mpirun", "-n", "1", f"{options.build}/bin/roofsweep", "-d", options.worker, "-o", str(path)]
        begin = time.monotonic()
        done = subprocess.run(
            [*command, options.manifest], check=False, env=environment, capture_output=True, text=True
        )
        took.append(time.monotonic() - begin)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
        print(f"{path}: {took[-1]:.1f} s", flush=True)
    return took


class Tables:
    """Reads a file once for all comparisons: each takes a tenth of a second then."""

    def __init__(self, data):
        self.data = data
        self.devices = compare.all_devices([data])
        self.roofs, self.times = compare.roof_table([data]), compare.time_table([data])


def judged(reference, tested):
    """Returns the verdict on the device of the tested file."""

    def both(name):
        tables = [getattr(one, name).assign(file=number) for number, one in enumerate((reference, tested))]
        return compare.pandas.concat(tables, ignore_index=True)

    files = [reference.data, tested.data]
    found, _, _ = compare.verdicts_of(files, both("devices"), both("roofs"), both("times"), deviations.THRESHOLD, False)
    return found[0]


def scaled(data, names, chosen, factor):
    """Returns a copy of a file whose values at `chosen` are multiplied."""
    copy = data.copy()
    for name in [name for name in names if name in data]:
        values = data[name].values.copy()
        values[chosen] = values[chosen] * factor
        copy[name] = (data[name].dims, values, data[name].attrs)
    return copy


def slow_roof(data, key):
    names = data["device_roof_name"].values + ", " + data["device_roof_condition"].values
    slow = scaled(data, ROOF_RATES, names == key, 1 / SLOWER)
    return scaled(slow, ROOF_TIMES, names == key, SLOWER)


def slow_rows(data, dice):
    measured = np.flatnonzero(data["status"].values == "measured")
    chosen = dice.sample(list(measured), max(len(measured) // 5, 1))
    return scaled(data, ROW_TIMES, chosen, SLOWER)


def share(count, all_of_them):
    return f"{count} of {all_of_them} ({100 * count / max(all_of_them, 1):.1f} %)"


def false_alarms(tables):
    pairs = list(permutations(tables, 2))
    alarms = []
    for one, other in pairs:
        verdict = judged(tables[one], tables[other])
        if verdict.word != "PASS":
            alarms.append(f"{one} -> {other}: {verdict.line()}")
    print(f"false alarms: {share(len(alarms), len(pairs))}")
    for alarm in alarms:
        print(f"  {alarm}")
    return len(alarms) / len(pairs)


def caught(tables, kind, copies, dice):
    """Makes copies slower, in one roof or in some rows (kind: roof, rows). Returns how many `compare` detects."""
    pairs, found, missed = list(permutations(tables, 2)), 0, []
    keys = sorted({check.name for check in judged(*[tables[name] for name in pairs[0]]).checks})
    first = next(iter(tables.values()))
    kinds = [key for key in dict.fromkeys(first.roofs["key"]) if key in keys and not key.endswith(compare.SUSTAINS)]
    for number in range(copies):
        one, other = dice.choice(pairs)
        if kind == "roof":
            what = kinds[number % len(kinds)]
            slow = slow_roof(tables[other].data, what)
        else:
            what, slow = "configurations are slower", slow_rows(tables[other].data, dice)
        verdict = judged(tables[one], Tables(slow))
        if verdict.word == "FAIL" and what in verdict.reasons[0]:
            found += 1
        else:
            missed.append(f"{one} -> {other}, {what}: {verdict.line()}")
    print(f"{100 * (SLOWER - 1):.0f} % slower, {kind}: caught {share(found, copies)}")
    for miss in missed:
        print(f"  {miss}")
    if kind == "roof":
        told = [key for key in dict.fromkeys(first.roofs["key"]) if key not in keys]
        print(f"  not judged: {', '.join(told) or 'none'}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument(
        "--runs", type=int, default=10, metavar="N", help="number of result files (default: %(default)s)"
    )
    parser.add_argument("--manifest", default=str(root / "sweeps" / "node.ini"), metavar="FILE")
    parser.add_argument("--build", default=str(root / "build"), metavar="FOLDER")
    parser.add_argument("--worker", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--longest", type=float, default=60, metavar="SECONDS", help="longest run")
    parser.add_argument("--copies", type=int, default=100, metavar="N", help="slower copies, half of them of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    Path(options.folder).mkdir(exist_ok=True)
    took = measure(options) if options.runs else []
    paths = sorted(Path(options.folder).glob("*.nc"))
    tables = {path.stem: Tables(roofsweep_post.load(str(path))) for path in paths}
    if len(tables) < 2:
        sys.exit(f"{options.folder}: two files are needed")
    dice = random.Random(options.seed)
    print(f"{len(tables)} files of {options.folder}; the longest run took {max(took, default=float('nan')):.1f} s")
    alarms = false_alarms(tables)
    found = sum(caught(tables, kind, options.copies // 2, dice) for kind in ("roof", "rows"))
    wrong = alarms > 0.01 or found < 0.95 * 2 * (options.copies // 2) or max(took, default=0) > options.longest
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()
