#!/bin/sh
# A rank that stops answering is waited for no longer than 10 s after the signal: what is there is published,
# it is named, the status is 5, no process is left, and --resume completes the sweep.
. "$(dirname "$0")/lib.sh"
write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 2000/; s/^batch = .*/batch = 1/' sweep.ini
export OMP_WAIT_POLICY=passive # more ranks than cores

# The process of rank $1 of this sweep.
rank() {
    for process in $(pgrep -f "^$ROOFSWEEP_BIN/roofsweep .*sweep.ini"); do
        tr '\0' '\n' <"/proc/$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1" && echo "$process"
    done
    return 0
}
job=
trap '[ -z "$job" ] || kill -TERM "$job" 2>/dev/null; rm -rf "$work"' EXIT
# begin ARGUMENTS...: $job is the launcher itself, which hands signals on.
begin() {
    "$ROOFSWEEP_MPIRUN" -n 3 --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" "$@" sweep.ini >output 2>&1 &
    job=$!
}
# wait_until COMMAND...
wait_until() {
    until "$@"; do
        kill -0 "$job" 2>/dev/null || { cat output; fail "the sweep ended before '$*'"; }
        sleep 0.05
    done
}
records() {
    [ -e sweep.nc.journal ] && [ "$(grep -c '"kind":"record"' sweep.nc.journal)" -ge "$1" ]
}
# Sets $one to the process of rank 1: a loaded machine may not show it at the first look.
found() {
    one=$(rank 1)
    [ -n "$one" ]
}
# It must end with status 5, and leave nothing behind.
interrupted() {
    began=$(date +%s)
    kill -USR1 "$job"
    status=0
    wait "$job" || status=$?
    job=
    [ "$status" = 5 ] || { cat output; fail "exit status $status instead of 5"; }
    [ $(($(date +%s) - began)) -le 30 ] || fail "it took $(($(date +%s) - began)) s"
    says "no answer within 10 s, the file is written without: rank 1 on $(hostname)"
    says "interrupted by a signal"
    sleep 0.5
    ! pgrep -f "^$ROOFSWEEP_BIN/roofsweep" || { pgrep -af roofsweep; fail "processes are left"; }
}

begin
wait_until records 10
wait_until found
kill -STOP "$one"
before=$(grep -c '"kind":"record"' sweep.nc.journal)
wait_until records $((before + 4)) # the others go on
interrupted
python '
import xarray
data = xarray.open_dataset("sweep.nc")
assert 14 <= data.sizes["config"] < 100, data.sizes
'

# One that only pauses takes part again.
begin --resume
wait_until records $((before + 8))
wait_until found
kill -STOP "$one"
sleep 1
kill -CONT "$one"
wait "$job" || { cat output; fail "the sweep ended with $?"; }
job=
complete sweep.nc 100
[ "$(grep -c '"kind":"record"' sweep.nc.journal)" = 100 ] || fail "a row is there twice"
