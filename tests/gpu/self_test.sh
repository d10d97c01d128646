#!/bin/sh
# The counters of a GPU count known work exactly.
. "$(dirname "$0")/../mpi/lib.sh"
worker=$ROOFSWEEP_BIN/roofsweep-worker-cuda
[ -x "$worker" ] || { echo "the CUDA worker is not built"; exit 77; }
status=0
"$ROOFSWEEP_BIN/roofsweep" --self-test >output 2>&1 || status=$?
cat output
[ "$status" != 4 ] || exit 77 # no GPU, or nobody may read its counters
[ "$status" = 0 ] || fail "exit status $status"
says "0 are wrong"
