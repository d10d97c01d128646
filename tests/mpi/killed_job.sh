#!/bin/sh
# SIGKILL ends the whole job half-way. No finished record is lost, no worker is left, and --resume measures each missing row
# once.
. "$(dirname "$0")/lib.sh"
batch=1 height="8, 16" write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 500/' sweep.ini
"$ROOFSWEEP_MPIRUN" -n 3 --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" sweep.ini >output 2>&1 &
job=$!
wait_until "$job" output records 10
ranks=$(ranks_of "$job")
# shellcheck disable=SC2086 # a word each
kill -KILL $ranks "$job"
wait "$job" && fail "the killed job ended with 0"
[ ! -e sweep.nc ] || fail "there is a NetCDF file of a killed job"
before=$(grep -c '"kind":"record"' sweep.nc.journal)
[ "$before" -lt 40 ] || fail "the job had finished before it was killed"
none_left
expect 0 "$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" watch sweep.nc
says "$before of 40 rows: $before measured"

expect 2 run 2 sweep.ini
says "--resume"
expect 0 run 3 --resume sweep.ini
complete sweep.nc 40
after=$(grep -c '"kind":"record"' sweep.nc.journal)
[ "$after" = 40 ] || fail "$after records in the journal: some were measured twice or lost"

# --resume of a complete sweep begins no session.
expect 0 run 3 --resume sweep.ini
[ "$(grep -c '"kind":"session"' sweep.nc.journal)" = 2 ] || fail "a complete sweep began a session"
