#!/bin/sh
# The whole job dies by SIGKILL half-way; no finished record is lost, --resume completes it, and the set of rows
# is that of an uninterrupted run.
. "$(dirname "$0")/lib.sh"
write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 3000/' sweep.ini
run 5 sweep.ini >output 2>&1 &
job=$!
wait_for_records "$job" 60 output
pkill -KILL -f "$ROOFSWEEP_BIN/roofsweep sweep.ini" || fail "nothing to kill"
wait "$job" && fail "the killed job ended with 0"
[ ! -e sweep.nc ] || fail "there is a NetCDF file of a killed job"
before=$(grep -c '"kind":"record"' sweep.nc.journal)
[ "$before" -lt 200 ] || fail "it was killed too late to show anything"
sleep 1
! pgrep -f "$ROOFSWEEP_BIN/roofsweep-worker" >/dev/null || fail "workers outlive their ranks"

expect 2 run 2 sweep.ini
says "--resume"
expect 0 run 5 --resume sweep.ini
complete sweep.nc 200
after=$(grep -c '"kind":"record"' sweep.nc.journal)
[ "$after" = 200 ] || fail "$after records in the journal: some were measured twice or lost"

write_sweep whole.ini
sed -i 's/^iterations = .*/iterations = 3000/' whole.ini
expect 0 run 5 whole.ini
python '
import xarray
resumed, whole = (set(xarray.open_dataset(f).config_hash.values) for f in ("sweep.nc", "whole.nc"))
assert resumed == whole
'
# A complete sweep has nothing left to resume.
expect 0 run 5 --resume sweep.ini
[ "$(grep -c '"kind":"session"' sweep.nc.journal)" = 2 ] || fail "a complete sweep began a session"
