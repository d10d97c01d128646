#!/bin/sh
# Rows that are counted together, in any order, have the same counts as rows that are counted one by one. Rows that wait
# for their counters do not change the times of other rows.
. "$(dirname "$0")/lib.sh"
echo '{"op":"describe","counters":"auto"}' | "$worker" | grep -q '"counters":"counted"' ||
    { echo "the counters cannot be read"; exit 77; }
"$ROOFSWEEP_PYTHON" "$root/tests/gpu/batches.py" "$worker" || fail "counts of batches and of single rows"
