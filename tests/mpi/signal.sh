#!/bin/sh
# SIGTERM ends the sweep in an orderly way: what is there is published, exit status 5, --resume goes on.
. "$(dirname "$0")/lib.sh"
write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 100/' sweep.ini
"$ROOFSWEEP_BIN/roofsweep" sweep.ini >output 2>&1 & # alone, without a launcher
job=$!
records=0
while [ "$records" -lt 20 ]; do
    kill -0 "$job" 2>/dev/null || { cat output; fail "the sweep ended before the signal"; }
    sleep 0.05
    records=$(grep -c '"kind":"record"' sweep.nc.journal 2>/dev/null || true)
    records=${records:-0}
done
kill -TERM "$job"
status=0
wait "$job" || status=$?
[ "$status" = 5 ] || { cat output; fail "exit status $status instead of 5"; }
says "interrupted"
python '
import xarray
rows = xarray.open_dataset("sweep.nc").sizes["config"]
assert 20 <= rows < 200, rows
'
expect 0 run 2 --resume sweep.ini
complete sweep.nc 200
