#!/bin/sh
# A few storms of signals over whole sweeps, with scripted workers and with CPU workers. By hand, tests/bench/storm.py
# runs hundreds.
. "$(dirname "$0")/lib.sh"
storm() {
    "$ROOFSWEEP_PYTHON" "$root/tests/bench/storm.py" --build "$ROOFSWEEP_BUILD" "$@"
}
storm --kills 8 --jobs 2 --publishing 12
storm --kills 4 --jobs 1 --victims some
[ "$(nproc)" -ge 2 ] || exit 0 # two ranks on one core are one device
[ ! -x "$ROOFSWEEP_BIN/roofsweep-worker-cpu" ] || storm --kills 4 --jobs 1 --worker cpu --ranks 2
