#!/bin/sh
# Counters of several rows read together, on a GPU: they are those of rows that are counted one by one, whatever
# the order, and what waits disturbs no time.
. "$(dirname "$0")/lib.sh"
echo '{"op":"describe","counters":"auto"}' | "$worker" | grep -q '"counters":"counted"' ||
    { echo "the counters cannot be read"; exit 77; }
"$ROOFSWEEP_PYTHON" "$root/tests/gpu/batches.py" "$worker" || fail "counts of batches and of single rows"
