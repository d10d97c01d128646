#!/bin/sh
# Measures rank 0 with many ranks, whose scripted workers reply with made-up records. For each number of ranks, prints
# how many records a second reach the journal, and how long a rank waits for its next configuration. Then prints time
# and memory of --gather for the last journal.
#
# Usage: tests/bench/rank0.sh [BUILD [FOLDER]]. FOLDER holds the journal: on a disk, or in memory.
# Variables of the environment: RANKS: numbers of ranks (default: 1 2 8). ROWS: a multiple of 200 (default: 20000).
# PACE: factor on the simulated time of a row, which is at most 0.2 s (default: 0, workers reply at once).
set -eu
build=$(cd "${1:-build}" && pwd)
work=$(mktemp -d "${2:-/tmp}/rank0-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ROOFSWEEP_SIMULATED_PACE="${PACE-0}"
mkdir bin
cp "$build/bin/roofsweep" bin/
cp "$build/tests/scripted_worker" bin/roofsweep-worker-cuda

cat >sweep.ini <<INI
[sweep]
title = simulated: nothing was measured
device = cuda
[measure]
warmup = 0
iterations = 1
counters = off
verify = no
[peaks]
memory = dram
compute = fp32
condition = together
launch = no
transfer = no
[matmul simulated]
k = 16:215:+1
n = 16:$((15 + ${ROWS:-20000} / 200)):+1
m = 64
INI
cat >waits.py <<'PY'
"""Prints records per second, and the median time from the end of a device's row to the start of its next row."""
import collections, json, statistics, sys

rows = collections.defaultdict(list)
for line in open(sys.argv[1]):
    entry = json.loads(line)
    if entry["kind"] == "record":
        record = entry["entry"]
        rows[record["device_key"]].append((record["start_time"], record["start_time"] + record["wall_time"]))
starts = [row[0] for device in rows.values() for row in device]
ends = [row[1] for device in rows.values() for row in device]
waits = [b[0] - a[1] for device in rows.values() for a, b in zip(sorted(device), sorted(device)[1:])]
rate = len(starts) / (max(ends) - min(starts))
print(f"{len(rows)} ranks: {len(starts)} records, {rate:.0f} a second, median wait {1e3 * statistics.median(waits):.2f} ms")
PY
for ranks in ${RANKS-1 2 8}; do
    mpirun -n "$ranks" --oversubscribe --bind-to none bin/roofsweep --quiet --overwrite sweep.ini >/dev/null
    python3 waits.py sweep.nc.journal
done

python3 - bin/roofsweep <<'PY'
import os, resource, subprocess, sys, time

begin = time.monotonic()
command = [sys.argv[1], "--quiet", "--gather", "sweep.nc.journal", "--overwrite"]
subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(
    f"--gather: {time.monotonic() - begin:.1f} s ({used.ru_utime + used.ru_stime:.1f} s of CPU), "
    f"{used.ru_maxrss / 1e3:.0f} MB of memory, file of {os.path.getsize('sweep.nc') / 1e6:.0f} MB"
)
PY
