#!/bin/sh
# A rank that stops before the first row, or after the last one: the others wait within bounds, name it, and leave
# nothing behind. $ROOFSWEEP_BUILD/tests/libstop_in.so stops it at a place of our choice.
. "$(dirname "$0")/lib.sh"
write_sweep sweep.ini
sed -i 's/^batch = .*/batch = 1/; s/^width = .*/width = 8/; s/^height = .*/height = 8/' sweep.ini
export OMP_WAIT_POLICY=passive # more ranks than cores
# A build with sanitizers wants its runtime first in the list of libraries; here the preloaded one is.
export ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0"
host=$(hostname)

job=
trap '[ -z "$job" ] || kill -TERM "$job" 2>/dev/null; rm -rf "$work"' EXIT
# begin PLACE ARGUMENTS...: rank 1 stops there.
begin() {
    place=$1
    shift
    began=$(date +%s)
    "$ROOFSWEEP_MPIRUN" -n 3 --oversubscribe --bind-to none -x LD_PRELOAD="$ROOFSWEEP_BUILD/tests/libstop_in.so" \
        -x STOP_IN="$place" -x STOP_RANK=1 "$ROOFSWEEP_BIN/roofsweep" "$@" >output 2>&1 &
    job=$!
}
# ended STATUS SECONDS: it must end so, in that time, and leave no process.
ended() {
    status=0
    wait "$job" || status=$?
    job=
    took=$(($(date +%s) - began))
    [ "$status" = "$1" ] || { cat output; fail "exit status $status instead of $1"; }
    [ "$took" -le "$2" ] || { cat output; fail "it took $took s"; }
    sleep 1
    ! pgrep -f "^$ROOFSWEEP_BIN/roofsweep" || { pgrep -af roofsweep; fail "processes are left"; }
}
stopped() {
    for process in $(pgrep -f "^$ROOFSWEEP_BIN/roofsweep .*$1"); do
        grep -q '^State:.T' "/proc/$process/status" && return 0
    done
    return 1
}
wait_until() {
    until "$@"; do
        kill -0 "$job" 2>/dev/null || { cat output; fail "it ended before '$*'"; }
        sleep 0.05
    done
}

# While it opens its device. The signal bounds the wait; without one it is the time that opening may take.
begin opening sweep.ini
wait_until stopped sweep.ini
kill -USR1 "$job"
ended 5 25
says "opening the devices: no answer from rank 1 on $host; the sweep ends"

# While it waits for rank 0, which reads the manifest.
mkfifo slow.ini
begin nowhere slow.ini
sleep 2
for process in $(pgrep -f "^$ROOFSWEEP_BIN/roofsweep slow.ini"); do
    tr '\0' '\n' <"/proc/$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=1" && kill -STOP "$process"
done
cat sweep.ini >slow.ini
ended 1 30
says "reading manifest and journal: no answer from rank 1 on $host; the sweep ends"

# In the middle of a call of MPI, where nobody can say who it is.
begin binding sweep.ini
ended 1 90
says "dividing the cores: MPI does not come back within 60 s, a rank has stopped"

# At the very end: the file is there, and the status is the sweep's.
begin end sweep.ini
ended 0 90
says "ending MPI: MPI does not come back within 30 s, a rank has stopped"
complete sweep.nc 4
