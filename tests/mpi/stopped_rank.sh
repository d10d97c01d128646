#!/bin/sh
# A rank that stops answering is waited for no longer than 10 s after the signal: what is there is published,
# it is named, the status is 5, no process is left, and --resume completes the sweep. Rank 0, too, is not waited for
# without end; and the time in which a whole job is suspended counts for nothing.
. "$(dirname "$0")/lib.sh"
batch=1 write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 2000/' sweep.ini
export OMP_WAIT_POLICY=passive # more ranks than cores

job=
trap '[ -z "$job" ] || kill -TERM "$job" 2>/dev/null; rm -rf "$work"' EXIT
rows() {
    grep -c '"kind":"record"' sweep.nc.journal
}
# begin COUNT ARGUMENTS...: $job is the launcher itself, which hands signals on; $one is rank 1, once there are so many
# records.
begin() {
    count=$1
    shift
    # shellcheck disable=SC2086 # words
    "$ROOFSWEEP_MPIRUN" -n 3 --oversubscribe --bind-to none ${preload:-} "$ROOFSWEEP_BIN/roofsweep" "$@" sweep.ini \
        >output 2>&1 &
    job=$!
    wait_until "$job" output records "$count"
    one=$(rank_of "$job" 1)
}

begin 10
kill -STOP "$one"
wait_until "$job" output records $(($(rows) + 4)) # the others go on
zero=$(rank_of "$job" 0)
kill -STOP "$zero" # what it last knew of the time is no time of the end
sleep 5
kill -USR1 "$job"
kill -CONT "$zero"
began=$(date +%s)
status=0
wait "$job" || status=$?
job=
[ "$status" = 5 ] || { cat output; fail "exit status $status instead of 5"; }
took=$(($(date +%s) - began))
if [ "$took" -lt 9 ] || [ "$took" -gt 30 ]; then fail "it took $took s"; fi
says "no answer within 10 s, the file is written without: rank 1 on $(hostname)"
says "interrupted by a signal"
none_left
some sweep.nc 14 99

# One that only pauses takes part again.
begin $(($(rows) + 4)) --resume
kill -STOP "$one"
sleep 1
kill -CONT "$one"
wait "$job" || { cat output; fail "the sweep ended with $?"; }
job=
complete sweep.nc 100
[ "$(rows)" = 100 ] || fail "a row is there twice"

# Rank 0 stops while rows run. From then on 600 s take the others 6: $ROOFSWEEP_BUILD/tests/libstop_in.so has their clock.
rm -f sweep.nc*
preload="-x LD_PRELOAD=$ROOFSWEEP_BUILD/tests/libstop_in.so -x FAST_FROM=$work/fast"
begin 2
kill -STOP "$(rank_of "$job" 0)"
touch fast
status=0
wait "$job" || status=$?
job=
[ "$status" = 1 ] || { cat output; fail "exit status $status instead of 1"; }
says "rank 0 on $(hostname) has said nothing for 600 s; go on with --resume"
none_left

# The whole job is suspended for longer than its timeout. The run of the program that knew it is repeated.
cat >programs.ini <<'INI'
[sweep]
device = cpu
timeout = 8 s
retries = 0
[peaks]
memory = dram
compute = fp32
condition = together
launch = no
[program patient]
command = sleep 2
region = all
INI
"$ROOFSWEEP_MPIRUN" -n 2 --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" -o programs.nc programs.ini >output 2>&1 &
job=$!
sleeping() {
    all_of "$job" | grep -qxF "$(pgrep -x sleep)"
}
wait_until "$job" output sleeping
# shellcheck disable=SC2046 # a word each
all=$(all_of "$job")
# shellcheck disable=SC2086 # one word for each process
kill -STOP $all
sleep 10
# shellcheck disable=SC2086
kill -CONT $all
wait "$job" || { cat output; fail "the suspended job ended with $?"; }
job=
some programs.nc 1 1
python 'import netCDF4; time = netCDF4.Dataset("programs.nc")["time_median"][0]; assert 2 <= time < 4, time' ||
    fail "a suspended run counts"
