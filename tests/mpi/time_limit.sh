#!/bin/sh
# Rows that cannot end before the time limit do not begin. The file is written in time, the log has the number of
# remaining rows, and the exit status is 5. --resume measures the remaining rows.
. "$(dirname "$0")/lib.sh"
memory=l1 batch=1 height="8, 16" write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 700000/' sweep.ini # 40 rows of about a second on one core
export OMP_WAIT_POLICY=passive

# limited SECONDS: fails if the command that began at $began took more than SECONDS.
limited() {
    took=$(($(date +%s) - began))
    [ "$took" -le "$1" ] || { cat output; fail "it took $took s of $1"; }
}
# The limit comes while roofs are measured: the file has the devices. (On a busy machine it may come while devices are
# opened, and there is no file.)
began=$(date +%s)
expect 5 run 2 --time-limit 2s sweep.ini
limited 12
says "(--time-limit 2 s)"
[ ! -e sweep.nc ] || ncdump -h sweep.nc >/dev/null

count() {
    sed -n '/"kind":"record"/p' sweep.nc.journal 2>/dev/null | wc -l
}
# ends_in_time REASON COMMAND: calls COMMAND with longer and longer limits, until it measures rows and ends for lack of
# time. On a busy machine roofs may take the whole time, or rows may be expected to take longer than the limit (status 3).
ends_in_time() {
    before=$(count)
    for seconds in 4 8 16 32 64 128; do
        began=$(date +%s)
        status=0
        "$2" >output 2>&1 || status=$?
        limited $((seconds + 10))
        [ "$status" -ne 3 ] || continue
        [ "$status" -eq 5 ] || { cat output; fail "exit status $status instead of 5"; }
        says "of 40 configurations are left for lack of time ($1 "
        says "; go on with --resume"
        [ "$(count)" = "$before" ] || break
    done
    if [ "$status" -ne 5 ] || [ "$(count)" = "$before" ]; then fail "nothing was measured in $seconds s"; fi
    some sweep.nc 1 39
}
by_option() {
    run 2 --resume --time-limit "$seconds s" sweep.ini
}
ends_in_time --time-limit by_option

# The end of the batch job is earlier than --time-limit, so it is the limit.
by_job() {
    SLURM_JOB_END_TIME=$((began + seconds)) run 2 --resume --time-limit 5min sweep.ini
}
ends_in_time SLURM_JOB_END_TIME by_job

# --time-limit none ignores the environment.
sed -i 's/^width = .*/width = 8/' sweep.ini
SLURM_JOB_END_TIME=$(date +%s) expect 0 run 2 --resume --time-limit none sweep.ini
complete sweep.nc "$(grep -c '"kind":"record"' sweep.nc.journal)"

# Malformed times are errors.
expect 2 "$ROOFSWEEP_BIN/roofsweep" --time-limit 10 sweep.ini
says "--time-limit"
SLURM_JOB_END_TIME=soon expect 0 "$ROOFSWEEP_BIN/roofsweep" --resume sweep.ini
says "SLURM_JOB_END_TIME is 'soon'"
