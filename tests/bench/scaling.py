#!/usr/bin/env python3
"""Measures how a sweep scales over the GPUs of a node: without counters, with counters row by row, and in batches.

Usage: scaling.py [--build FOLDER] [GPUS...] (default: 1 2 4)

Prints a table with a line for each number of GPUs and way of counting. Its columns are: the time from the start of the
first row to the last record; the median time of a row; the tail, from the end of the first idle rank's last row to the
last record; the mean time of a rank's first row, in which libraries start; and the rows per second after that row."""

import argparse
import collections
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MANIFEST = """[sweep]
device = {device}
[measure]
warmup = 5
iterations = 20
verify = {verify}
[peaks]
memory = dram
compute = fp32
condition = together
launch = no
transfer = no
[conv2d layers]
batch = {batch}
height = 28, 56
width = 56
channels = 32, 64, 128
filters = 64, 128
kernel = 1, 3
stride = 1
precision = fp16, fp32
pass = forward, backward-data, backward-filter
[lstm steps]
batch = {batch}
sequence = 16, 32
features = 32
hidden = 16, 32, 64
precision = fp16, fp32
pass = forward, backward
"""
DEVICES = {"cuda": "cuda", "cpu": "cpu", "scripted": "cuda"}
HEAD = (
    "| GPUs | counters | rows | counted | sweep s | times faster | median row s | over uncounted | tail % "
    "| first row s | rows a second after it, times faster |"
)


def figures_of(journal):
    ends, firsts, rows = collections.defaultdict(float), {}, collections.Counter()
    starts, walls, counted = [], [], 0
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    for record in (entry["entry"] for entry in entries if entry["kind"] == "record"):
        device, start, wall = record["device_key"], record["start_time"], record["wall_time"]
        starts.append(start)
        walls.append(wall)
        counted += record.get("counters") == "counted"
        rows[device] += 1
        ends[device] = max(ends[device], start + wall)
        firsts[device] = min(firsts.get(device, (start, wall)), (start, wall))
    last = journal.stat().st_mtime  # time of the last record
    return {
        "rows": len(starts),
        "counted": counted,
        "sweep": last - min(starts),
        "row": statistics.median(walls),
        "tail": last - min(ends.values()),
        "first": statistics.mean(wall for _, wall in firsts.values()),
        "rate": sum((rows[device] - 1) / max(last - begin - wall, 1e-3) for device, (begin, wall) in firsts.items()),
    }


def run(options, roofsweep, gpus, name, settings, number):
    command = ["mpirun", "-n", str(gpus), "--oversubscribe", "--bind-to", "none", roofsweep, "--quiet", "--overwrite"]
    for setting in settings:
        command += ["--set", setting]
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run([*command, "sweep.ini"], env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 3):  # 3: some rows failed
        sys.exit(f"the sweep ends with {done.returncode}")
    figures, journal = figures_of(Path("sweep.nc.journal")), f"{number:02}-{gpus}-{name.replace(' ', '-')}.journal"
    failed = ", some FAILED" if done.returncode else ""
    print(f"{gpus} GPUs, {name}: {figures['rows']} rows in {figures['sweep']:.2f} s{failed}", flush=True)
    if options.keep:
        shutil.copy("sweep.nc.journal", Path(options.keep, journal))
    return figures


def print_table(runs):
    medians = {key: {name: statistics.median(one[name] for one in own) for name in own[0]} for key, own in runs.items()}
    print(HEAD + "\n|" + "---|" * (HEAD.count("|") - 1))
    for (gpus, name), figures in medians.items():
        base, plain = medians[min(count for count, _ in medians), name], medians[gpus, "uncounted"]
        sweep, rate = figures["sweep"], figures["rate"]
        print(
            f"| {gpus} | {name} | {figures['rows']:.0f} | {figures['counted']:.0f} | {sweep:.2f} "
            f"| {base['sweep'] / sweep:.2f} | {figures['row']:.3f} | {sweep / plain['sweep']:.2f} "
            f"| {100 * figures['tail'] / sweep:.1f} | {figures['first']:.2f} | {rate:.1f}, {rate / base['rate']:.2f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gpus", nargs="*", type=int, default=[1, 2, 4], help="numbers of GPUs, in the order of runs")
    parser.add_argument("--build", default="build", help="folder with bin/, and tests/ for scripted workers")
    parser.add_argument("--worker", choices=list(DEVICES), default="cuda", help="scripted workers measure nothing")
    parser.add_argument("--together", nargs="*", type=int, default=[16, 64], help="rows of a batch")
    parser.add_argument("--rounds", type=int, default=3, help="runs for each line, whose median is printed")
    parser.add_argument("--batches", default="16", help="batch sizes of the layers; each makes 168 rows")
    parser.add_argument("--keep", type=os.path.abspath, help="a folder for the journals")
    options = parser.parse_args()
    build = Path(options.build).resolve()
    ways = {"uncounted": ["counters=off"], "one by one": ["count_together=1"]}
    ways |= {f"batches of {rows}": [f"count_together={rows}"] for rows in options.together}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        roofsweep, verify = build / "bin/roofsweep", "no" if options.worker == "scripted" else "yes"
        if options.worker == "scripted":
            roofsweep = Path(shutil.copy(roofsweep, "roofsweep")).resolve()
            shutil.copy(build / "tests/scripted_worker", "roofsweep-worker-cuda")
        text = MANIFEST.format(device=DEVICES[options.worker], verify=verify, batch=options.batches)
        Path("sweep.ini").write_text(text)
        runs = collections.defaultdict(list)
        for gpus in options.gpus:
            for name, settings in ways.items():
                for _ in range(options.rounds):
                    figures = run(options, roofsweep, gpus, name, settings, sum(map(len, runs.values())))
                    runs[gpus, name].append(figures)
        print_table(runs)


if __name__ == "__main__":
    main()
