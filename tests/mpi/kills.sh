#!/bin/sh
# A short storm of SIGKILLs over whole sweeps with scripted workers; tests/bench/kills.py by hand does hundreds.
. "$(dirname "$0")/lib.sh"
"$ROOFSWEEP_PYTHON" "$root/tests/bench/kills.py" --kills 10 --jobs 2 --build "$ROOFSWEEP_BUILD"
