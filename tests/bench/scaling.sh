#!/bin/sh
# How a sweep scales over the GPUs of a node, uncounted, counted row by row, and counted in batches. Prints a table
# with a line for each: from the first row's start to the last record, without roofs.
# Usage: tests/bench/scaling.sh [BUILD [GPUS...]]; GPUS: 1 2 4 if nothing is said; runs come in this order.
# In the environment: WORKER, cuda (default), cpu (as many ranks as GPUS, which share the cores), or scripted: the
# worker of the tests, which measures nothing. TOGETHER, rows of a batch: 16 64 if nothing is said; "default": as the
# device says. SINGLE=no: nothing is counted row by row. ROUNDS, runs of which the median counts: 3. BATCHES, sizes:
# 168 rows for each; 16 if nothing is said. ALGORITHMS, as [sweep] algorithms: with the path of a file a first run
# searches, and all others take what it found. SECONDS_IN_ALL: runs that would take longer than what is left of them are
# left out, and there are half as many rows where one GPU would not come through. KEEP, a folder for the journals.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-build}" && pwd)
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 1 2 4
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bin=$build/bin
device=cuda
verify=yes
case ${WORKER:-cuda} in
cuda) ;;
cpu) device=cpu ;;
scripted)
    verify=no
    bin=$work/bin
    mkdir bin
    cp "$build/bin/roofsweep" bin/
    cp "$build/tests/scripted_worker" bin/roofsweep-worker-cuda
    ;;
*) echo "WORKER is cuda, cpu or scripted" >&2; exit 2 ;;
esac
python3 "$here/scaling.py" "$bin/roofsweep" "$device" "$verify" "$@"
