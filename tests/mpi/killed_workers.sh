#!/bin/sh
# Workers are killed all the time; the file is complete all the same.
. "$(dirname "$0")/lib.sh"
write_sweep sweep.ini "retries = 20"
sed -i 's/^iterations = .*/iterations = 2000/' sweep.ini
run 5 --verbose sweep.ini >output 2>&1 &
job=$!
kills=0
seen=-1
while kill -0 "$job" 2>/dev/null; do
    sleep 1
    # No more often than there is progress, which on a busy machine takes longer.
    records=$(grep -c '"kind":"record"' sweep.nc.journal 2>/dev/null || true)
    [ "${records:-0}" -gt "$seen" ] || continue
    victim=$(pgrep -f "$ROOFSWEEP_BIN/roofsweep-worker-cpu" | shuf -n 1)
    if [ -n "$victim" ] && kill -KILL "$victim" 2>/dev/null; then
        kills=$((kills + 1))
        seen=${records:-0}
    fi
done
wait "$job" || { status=$?; cat output; fail "the sweep ended with $status"; }
[ "$kills" -ge 2 ] || { cat output; fail "only $kills workers were killed: the sweep is too short"; }
complete sweep.nc 200
