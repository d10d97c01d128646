#!/bin/sh
# Rank 1 is stopped (SIGSTOP) before the first row, or after the last one. The other ranks wait for a limited time, name
# rank 1, and leave no process and no file. libstop_in.so stops rank 1 at a named place, and makes clocks run five times
# as fast, so that a limit of 60 s takes 12 s. The jobs run at the same time.
. "$(dirname "$0")/lib.sh"
batch=1 height=8 width=8 write_sweep sweep.ini
sed -i 's/^timeout = .*/timeout = 300 s/' sweep.ini # 60 s by the fast clock
export OMP_WAIT_POLICY=passive # more ranks than cores
# The sanitizers normally require that their library is loaded first, but here libstop_in.so comes first.
export ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0"
host=$(hostname)

jobs=
# shellcheck disable=SC2086 # a word each
trap '[ -z "$jobs" ] || kill -TERM $jobs 2>/dev/null || true; rm -rf "$work"' EXIT
# begin PLACE MANIFEST: starts a job, $job, that stops at PLACE and prints to PLACE.log.
begin() {
    "$ROOFSWEEP_MPIRUN" -n 3 --oversubscribe --bind-to none -x LD_PRELOAD="$ROOFSWEEP_BUILD/tests/libstop_in.so" \
        -x STOP_IN="$1" -x STOP_RANK=1 -x CLOCK_RATE=5 "$ROOFSWEEP_BIN/roofsweep" -o "$1.nc" "$2" >"$1.log" 2>&1 &
    job=$!
    jobs="$jobs $job"
}
# ended JOB PLACE STATUS PATTERN: the job must end with STATUS, and its output must match PATTERN. (ctest limits the
# wait. On a busy machine mpirun may mix the ends of two ranks' lines.)
ended() {
    status=0
    wait "$1" || status=$?
    cp "$2.log" output
    [ "$status" = "$3" ] || { cat output; fail "$2: exit status $status instead of $3"; }
    grep -qE "$4" output || { cat output; fail "$2: the output does not match: $4"; }
}
# stopped JOB: whether rank 1 of the job is stopped.
stopped() {
    one=$(rank_of "$1" 1)
    [ -n "$one" ] && grep -q '^State:.T' "/proc/$one/status"
}

# Rank 1 is stopped inside a call of MPI.
begin start sweep.ini
start=$job
begin binding sweep.ini
binding=$job
# If rank 1 is stopped at the very end, the file is complete, and the exit status is that of the sweep.
begin end sweep.ini
end=$job
# Rank 1 is stopped while rank 0 reads the manifest.
begin reading sweep.ini
reading=$job
# Rank 1 is stopped while it opens its device. Without the signal, the other ranks would wait as long as opening may
# take.
begin opening sweep.ini
wait_until "$job" opening.log stopped "$job"
kill -USR1 "$job"
ended "$job" opening 5 "opening the devices: no answer from rank 1 on $host; the sweep ends"
ended "$reading" reading 1 "reading manifest and journal: no answer from rank 1 on $host; the sweep ends"
ended "$end" end 0 "ending MPI: MPI does not come back within 3[0-9] s, a rank has stopped: rank 1,"
complete end.nc 4
ended "$binding" binding 1 "dividing the cores: MPI does not come back within 6[0-9] s, a rank has stopped: rank 1,"
ended "$start" start 1 "starting MPI: MPI does not come back within 6[0-9] s, a rank has stopped: rank 1,"
jobs=
none_left
