#!/bin/sh
# Nothing is begun that cannot end before the limit: the file is there in time, what is left is named, the status
# is 5, --resume goes on.
. "$(dirname "$0")/lib.sh"
batch=1 height="8, 16" write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 800000/' sweep.ini # 40 rows of a second or two on one core
export OMP_WAIT_POLICY=passive

# limited SECONDS: the command ends with 5 within these; $began is when it began.
limited() {
    took=$(($(date +%s) - began))
    [ "$took" -le "$1" ] || { cat output; fail "it took $took s of $1"; }
}
# While roofs are measured: the devices are in the file. Or before, on a busy machine: there is none.
began=$(date +%s)
expect 5 run 2 --time-limit 2s sweep.ini
limited 12
says "(--time-limit 2 s)"
[ ! -e sweep.nc ] || ncdump -h sweep.nc >/dev/null

count() {
    grep -c '"kind":"record"' sweep.nc.journal || true
}
# On a busy machine the roofs may take it all: then with twice the time.
for seconds in 8 16 32 64 128; do
    began=$(date +%s)
    expect 5 run 2 --resume --time-limit "$seconds s" sweep.ini
    limited $((seconds + 10))
    says "of 40 configurations are left for lack of time (--time-limit $seconds s): "
    says "; go on with --resume"
    [ "$(count)" = 0 ] || break
done
some sweep.nc 1 39
before=$(count)

# The end of the batch job, where it comes first. Earlier rows tell from the start how long others take: on a busy
# machine longer than such a job has.
for seconds in 8 16 32 64 128; do
    began=$(date +%s)
    status=0
    SLURM_JOB_END_TIME=$((began + seconds)) run 2 --resume --time-limit 5min sweep.ini >output 2>&1 || status=$?
    [ "$status" -ne 3 ] || continue
    [ "$status" -eq 5 ] || { cat output; fail "exit status $status instead of 5"; }
    limited $((seconds + 10))
    says "lack of time (SLURM_JOB_END_TIME "
    [ "$(count)" = "$before" ] || break
done
some sweep.nc 1 39
[ "$(count)" -gt "$before" ] || fail "nothing was measured in $seconds s"

# No limit, whatever the environment says. Of what is left some: the rest would take long.
sed -i 's/^width = .*/width = 8/' sweep.ini
SLURM_JOB_END_TIME=$(date +%s) expect 0 run 2 --resume --time-limit none sweep.ini
complete sweep.nc "$(grep -c '"kind":"record"' sweep.nc.journal)"

# What is no time.
expect 2 "$ROOFSWEEP_BIN/roofsweep" --time-limit 10 sweep.ini
says "--time-limit"
SLURM_JOB_END_TIME=soon expect 0 "$ROOFSWEEP_BIN/roofsweep" --resume sweep.ini
says "SLURM_JOB_END_TIME is 'soon'"
