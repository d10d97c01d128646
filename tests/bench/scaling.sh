#!/bin/sh
# Measures how a sweep scales over the GPUs of a node: uncounted, counted row by row, and counted in batches. Prints a table
# with a line for each run.
#
# Usage: tests/bench/scaling.sh [BUILD [GPUS...]]. Runs use GPUS GPUs, in this order (default: 1 2 4).
#
# In the environment:
# WORKER      cuda (default), cpu (GPUS ranks, which share the cores), or scripted (a worker that measures nothing)
# TOGETHER    numbers of rows that are counted together (default: 16 64); "default": the device's number
# SINGLE      no: omits runs that count row by row
# ROUNDS      runs for each line, whose median is printed (default: 3)
# BATCHES     batch sizes of the layers (default: 16); each makes 168 rows
# ALGORITHMS  [sweep] algorithms. With a file's path a first run searches, and all other runs use its algorithms
# SECONDS_IN_ALL  time for all runs: runs that would take longer than the rest of it are omitted, and the number of rows is
#             halved until one GPU can finish
# KEEP        a folder for the journals
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
