#!/bin/sh
# After SIGTERM finished rows are published, the exit status is 5, and --resume measures the remaining rows. If the
# signal reaches all processes of a job, a program that the signal ends has no row, even if the rank receives it later.
. "$(dirname "$0")/lib.sh"
batch=1 write_sweep sweep.ini "retries = 0"
sed -i 's/^iterations = .*/iterations = 6000/' sweep.ini
"$ROOFSWEEP_BIN/roofsweep" sweep.ini >log 2>&1 & # alone, without a launcher
job=$!
wait_until "$job" log records 10
# A second job with the same files ends before it opens a device. The first job is stopped in the meantime, so that it
# cannot finish.
kill -STOP "$job"
for option in --resume --overwrite; do
    expect 2 "$ROOFSWEEP_BIN/roofsweep" "$option" sweep.ini
    says "in use by process $job of user "
    [ "$(wc -l <output)" = 1 ] || { cat output; fail "it did more than refuse"; }
done
kill -CONT "$job"
# Launchers signal the whole process group, and the worker may receive the signal before its rank.
kill -TERM $(pgrep -P "$job")
sleep 0.1
kill -TERM "$job"
status=0
wait "$job" || status=$?
[ "$status" = 5 ] || { cat log; fail "exit status $status instead of 5"; }
cp log output
says "interrupted"
some sweep.nc 10 99
expect 0 run 2 --resume sweep.ini
complete sweep.nc 100

has_programs || exit 0
# sleeping: writes the process ids of the running programs of $job to the file `programs`.
sleeping() {
    all_of "$job" | grep -xF "$(pgrep -x sleep)" >programs
}
cat >programs.ini <<'INI'
[sweep]
device = cpu
retries = 0
[peaks]
memory = l1
compute = fp32
condition = together
launch = no
[program patient]
command = sleep {n}
n = 0.1, 3.1, 3.2, 3.3
region = all
INI
ranks=$(($(nproc) > 1 ? 2 : 1)) # two ranks on one core are one device
for signal in TERM INT; do
    rm -f sweep.nc*
    "$ROOFSWEEP_MPIRUN" -n "$ranks" --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" -o sweep.nc \
        programs.ini >log 2>&1 &
    job=$!
    wait_until "$job" log records 1
    wait_until "$job" log sleeping
    everyone=$(all_of "$job") # before the first kill, because it takes long on a busy machine
    # shellcheck disable=SC2046 # a word each
    kill "-$signal" $(cat programs)
    sleep 0.1
    # shellcheck disable=SC2086
    kill "-$signal" $everyone 2>/dev/null || true
    wait "$job" && fail "it ended well after SIG$signal"
    ! grep -q '"status":"failed"' sweep.nc.journal || { cat log; fail "a row failed of SIG$signal"; }
    none_left
done
expect 0 run "$ranks" -o sweep.nc --resume programs.ini
some sweep.nc 4 4
