#!/bin/sh
# A rank is stopped (SIGSTOP). After a signal to the job, the other ranks wait for at most 10 s. Then they publish the
# finished rows, name the rank, end with status 5 and leave no process; --resume completes the sweep. If rank 0 is
# stopped, the other ranks end after 600 s. Time in which a whole job is suspended does not count. libstop_in.so makes
# clocks run faster.
. "$(dirname "$0")/lib.sh"
batch=1 write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 1000/' sweep.ini
export OMP_WAIT_POLICY=passive # more ranks than cores

job=
trap '[ -z "$job" ] || kill -TERM "$job" 2>/dev/null; rm -rf "$work"' EXIT
clock="-x LD_PRELOAD=$ROOFSWEEP_BUILD/tests/libstop_in.so -x CLOCK_RATE"
rows() {
    grep -c '"kind":"record"' sweep.nc.journal
}
# begin RATE COUNT ARGUMENTS...: starts a job whose clocks run RATE times as fast, and waits for COUNT records. Sets
# $job to the launcher, which forwards signals, and $one to rank 1.
begin() {
    rate=$1 count=$2
    shift 2
    # shellcheck disable=SC2086 # words
    "$ROOFSWEEP_MPIRUN" -n 3 --oversubscribe --bind-to none $clock="$rate" "$ROOFSWEEP_BIN/roofsweep" "$@" sweep.ini \
        >output 2>&1 &
    job=$!
    wait_until "$job" output records "$count"
    one=$(rank_of "$job" 1)
}
# ended STATUS: waits for the job and compares its exit status.
ended() {
    status=0
    wait "$job" || status=$?
    job=
    [ "$status" = "$1" ] || { cat output; fail "exit status $status instead of $1"; }
}

begin 5 10
kill -STOP "$one"
wait_until "$job" output records $(($(rows) + 4)) # the other ranks continue
zero=$(rank_of "$job" 0)
kill -STOP "$zero" # so that a long time passes between two of its readings of the clock
sleep 2
kill -USR1 "$job"
kill -CONT "$zero"
began=$(date +%s)
ended 5
took=$(($(date +%s) - began))
[ "$took" -ge 1 ] || fail "it took $took s, less than 10 s by the fast clock"
says "no answer within 10 s, the file is written without: rank 1 on $(hostname)"
says "interrupted by a signal"
none_left
some sweep.nc 14 99

# A rank that is stopped and continued measures rows again.
begin 1 $(($(rows) + 4)) --resume
kill -STOP "$one"
sleep 1
kill -CONT "$one"
ended 0
complete sweep.nc 100
[ "$(rows)" = 100 ] || fail "a row is there twice"

# Rank 0 is stopped while rows run. Then the clocks become so fast that 600 s take 6 s.
rm -f sweep.nc*
clock="-x FAST_FROM=$work/fast $clock"
begin 100 2
kill -STOP "$(rank_of "$job" 0)"
touch fast
ended 1
says "rank 0 on $(hostname) has said nothing for 600 s; go on with --resume"
none_left

# Rank 0 is stopped while it publishes. The other ranks also wait 600 s.
height=8 width=8 batch=1 write_sweep sweep.ini
rm -f sweep.nc* fast
clock="-x STOP_IN=publishing -x STOP_RANK=0 $clock"
begin 100 4
stopped() {
    grep -q '^State:.T' "/proc/$(rank_of "$job" 0)/status"
}
wait_until "$job" output stopped
touch fast
ended 1
grep -q "no answer at the end within 6[0-9][0-9] s from: rank 0 on $(hostname)" output || { cat output; fail "another wait"; }
none_left

has_programs || exit 0
# The whole job is suspended for longer than its timeout. The run of a program that was suspended is repeated.
cat >programs.ini <<'INI'
[sweep]
device = cpu
timeout = 15 s
retries = 0
[peaks]
memory = l1
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
sleep 16
# shellcheck disable=SC2086
kill -CONT $all
ended 0
some programs.nc 1 1
python 'import netCDF4; time = netCDF4.Dataset("programs.nc")["time_median"][0]; assert 2 <= time < 10, time' ||
    fail "a suspended run counts"
