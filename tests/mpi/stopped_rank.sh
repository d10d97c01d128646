#!/bin/sh
# A rank that stops answering is waited for no longer than 10 s after the signal: what is there is published,
# it is named, the status is 5, no process is left, and --resume completes the sweep.
. "$(dirname "$0")/lib.sh"
batch=1 write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 2000/' sweep.ini
export OMP_WAIT_POLICY=passive # more ranks than cores

job=
trap '[ -z "$job" ] || kill -TERM "$job" 2>/dev/null; rm -rf "$work"' EXIT
# begin COUNT ARGUMENTS...: $job is the launcher itself, which hands signals on; $one is rank 1, once there are so many
# records.
begin() {
    count=$1
    shift
    "$ROOFSWEEP_MPIRUN" -n 3 --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" "$@" sweep.ini >output 2>&1 &
    job=$!
    wait_until "$job" output records "$count"
    one=$(rank_of "$job" 1)
}

begin 10
kill -STOP "$one"
before=$(grep -c '"kind":"record"' sweep.nc.journal)
wait_until "$job" output records $((before + 4)) # the others go on
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
[ "$took" -ge 9 ] && [ "$took" -le 30 ] || fail "it took $took s"
says "no answer within 10 s, the file is written without: rank 1 on $(hostname)"
says "interrupted by a signal"
none_left
some sweep.nc 14 99

# One that only pauses takes part again.
begin $((before + 8)) --resume
kill -STOP "$one"
sleep 1
kill -CONT "$one"
wait "$job" || { cat output; fail "the sweep ended with $?"; }
job=
complete sweep.nc 100
[ "$(grep -c '"kind":"record"' sweep.nc.journal)" = 100 ] || fail "a row is there twice"
