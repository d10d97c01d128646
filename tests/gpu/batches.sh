#!/bin/sh
# Rows that are counted together have the counts of rows that are counted one by one, in any order, and rows that wait
# for their counters do not change times.
. "$(dirname "$0")/lib.sh"
echo '{"op":"describe","counters":"auto"}' | "$worker" | grep -q '"counters":"counted"' ||
    { echo "the counters cannot be read"; exit 77; }
"$ROOFSWEEP_PYTHON" "$root/tests/gpu/batches.py" "$worker" || fail "counts of batches and of single rows"
