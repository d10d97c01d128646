#!/bin/sh
# A rank that stops before the first row, or after the last one: the others wait within bounds, name it, and leave
# no process and no file. $ROOFSWEEP_BUILD/tests/libstop_in.so stops rank 1 at a place of our choice. The jobs run side by side: they
# wait for bounds.
. "$(dirname "$0")/lib.sh"
batch=1 height=8 width=8 write_sweep sweep.ini
export OMP_WAIT_POLICY=passive # more ranks than cores
# A build with sanitizers wants its runtime first in the list of libraries; here the preloaded one is.
export ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0"
host=$(hostname)

jobs=
# shellcheck disable=SC2086 # a word each
trap '[ -z "$jobs" ] || kill -TERM $jobs 2>/dev/null || true; rm -rf "$work"' EXIT
# begin PLACE MANIFEST: sets $job; what it prints goes to PLACE.log.
begin() {
    "$ROOFSWEEP_MPIRUN" -n 3 --oversubscribe --bind-to none -x LD_PRELOAD="$ROOFSWEEP_BUILD/tests/libstop_in.so" \
        -x STOP_IN="$1" -x STOP_RANK=1 "$ROOFSWEEP_BIN/roofsweep" -o "$1.nc" "$2" >"$1.log" 2>&1 &
    job=$!
    jobs="$jobs $job"
    began=$(date +%s)
}
# ended JOB PLACE STATUS SECONDS TEXT: it ends so, in that time after the last one began, and says that.
ended() {
    status=0
    wait "$1" || status=$?
    cp "$2.log" output
    [ "$status" = "$3" ] || { cat output; fail "$2: exit status $status instead of $3"; }
    [ $(($(date +%s) - began)) -le "$4" ] || { cat output; fail "$2: it took longer than $4 s"; }
    says "$5"
}
# stopped JOB: rank 1 of it is.
stopped() {
    one=$(rank_of "$1" 1)
    [ -n "$one" ] && grep -q '^State:.T' "/proc/$one/status"
}

# In the middle of a call of MPI, where its neighbours see that it is stopped.
begin start sweep.ini
start=$job
begin binding sweep.ini
binding=$job
# At the very end: the file is there, and the status is the sweep's.
begin end sweep.ini
end=$job
# While it waits for rank 0, which reads the manifest.
mkfifo slow.ini
begin nowhere slow.ini
nowhere=$job
sleep 2
kill -STOP "$(rank_of "$nowhere" 1)"
cat sweep.ini >slow.ini
# While it opens its device. The signal bounds the wait; without one it is the time that opening may take.
begin opening sweep.ini
wait_until "$job" opening.log stopped "$job"
kill -USR1 "$job"
ended "$job" opening 5 60 "opening the devices: no answer from rank 1 on $host; the sweep ends"
ended "$nowhere" nowhere 1 60 "reading manifest and journal: no answer from rank 1 on $host; the sweep ends"
ended "$end" end 0 90 "ending MPI: MPI does not come back within 30 s, a rank has stopped: rank 1, process"
complete end.nc 4
ended "$binding" binding 1 90 "dividing the cores: MPI does not come back within 60 s, a rank has stopped: rank 1, process"
ended "$start" start 1 90 "starting MPI: MPI does not come back within 60 s, a rank has stopped: rank 1, process"
jobs=
none_left
