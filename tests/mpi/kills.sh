#!/bin/sh
# Storms of SIGKILLs over whole sweeps, with scripted workers and with real ones; tests/bench/kills.py by hand does hundreds.
. "$(dirname "$0")/lib.sh"
storm() {
    "$ROOFSWEEP_PYTHON" "$root/tests/bench/kills.py" --build "$ROOFSWEEP_BUILD" "$@"
}
storm --kills 8 --jobs 2
[ "$(nproc)" -ge 2 ] || exit 0 # two ranks on one core are one device
[ ! -x "$ROOFSWEEP_BIN/roofsweep-worker-cpu" ] || storm --kills 4 --jobs 1 --worker cpu --ranks 2
