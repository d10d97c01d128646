#!/bin/sh
# What the orchestration itself costs: tiny configurations on the CPU worker, without verification, at 1, 2, ...
# ranks. Prints configurations per second. Usage: tests/bench/throughput.sh [BUILD] [RANKS...]
set -eu
build=$(cd "${1:-build}" && pwd)
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 1 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >tiny.ini <<INI
[sweep]
device = cpu
[measure]
warmup = 0
iterations = 1
verify = no
[peaks]
memory = dram
compute = fp32
launch = no
[conv2d tiny]
batch = 1
channels = 1
filters = 1
kernel = 1
stride = 1
height = 1:40:+1
width = 1:50:+1
INI
for ranks in "$@"; do
    begin=$(date +%s.%N)
    mpirun -n "$ranks" --oversubscribe --bind-to none "$build/bin/roofsweep" --quiet --overwrite tiny.ini >/dev/null
    end=$(date +%s.%N)
    journal=tiny.nc.journal
    # From the first record's start to the last one's: start-up and roofs are not what is asked.
    first=$(grep -m1 '"kind":"record"' "$journal" | grep -o '"start_time":[0-9.]*' | cut -d: -f2)
    last=$(tail -n 1 "$journal" | grep -o '"start_time":[0-9.]*' | cut -d: -f2)
    echo "$ranks $first $last $begin $end" |
        awk '{printf "%d ranks: %.0f configurations/s, whole run %.1f s\n", $1, 2000 / ($3 - $2), $5 - $4}'
done
