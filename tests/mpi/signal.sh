#!/bin/sh
# SIGTERM ends the sweep in an orderly way: what is there is published, exit status 5, --resume goes on.
. "$(dirname "$0")/lib.sh"
batch=1 write_sweep sweep.ini "retries = 0"
sed -i 's/^iterations = .*/iterations = 20000/' sweep.ini
"$ROOFSWEEP_BIN/roofsweep" sweep.ini >log 2>&1 & # alone, without a launcher
job=$!
wait_until "$job" log records 10
# Nobody else may touch its files meanwhile; a second job sees that before it opens a device. The first one
# waits for that: it would be done before.
kill -STOP "$job"
for option in --resume --overwrite; do
    expect 2 "$ROOFSWEEP_BIN/roofsweep" "$option" sweep.ini
    says "in use by another job"
    [ "$(wc -l <output)" = 1 ] || { cat output; fail "it did more than refuse"; }
done
kill -CONT "$job"
# Launchers signal the whole process group, and the worker may see it first.
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
