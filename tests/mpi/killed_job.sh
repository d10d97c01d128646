#!/bin/sh
# SIGKILL ends a whole job in the middle, and another one in its second round. No finished record is lost, no worker is
# left, and --resume measures each missing row and round once.
. "$(dirname "$0")/lib.sh"
batch=1 height="8, 16" write_sweep sweep.ini
sed -i 's/^iterations = .*/iterations = 500/' sweep.ini
"$ROOFSWEEP_MPIRUN" -n 3 --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" sweep.ini >output 2>&1 &
job=$!
wait_until "$job" output records 10
ranks=$(ranks_of "$job")
# shellcheck disable=SC2086 # a word each
kill -KILL $ranks "$job"
wait "$job" && fail "the killed job ended with 0"
[ ! -e sweep.nc ] || fail "there is a NetCDF file of a killed job"
before=$(grep -c '"kind":"record"' sweep.nc.journal)
[ "$before" -lt 40 ] || fail "the job had finished before it was killed"
none_left
expect 0 "$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" watch sweep.nc
says "$before of 40 rows: $before measured"

expect 2 run 2 sweep.ini
says "--resume"
expect 0 run 3 --resume sweep.ini
complete sweep.nc 40
after=$(grep -c '"kind":"record"' sweep.nc.journal)
[ "$after" = 40 ] || fail "$after records in the journal: some were measured twice or lost"

# --resume of a complete sweep begins no session.
expect 0 run 3 --resume sweep.ini
[ "$(grep -c '"kind":"session"' sweep.nc.journal)" = 2 ] || fail "a complete sweep began a session"

# A manifest with another text is recorded, though all rows are there. Rows have its labels.
sed -i 's/^title = .*/title = renamed/; s/^\[conv2d grid\]/[conv2d other]/' sweep.ini
expect 0 run 3 --resume sweep.ini
expect 0 "$ROOFSWEEP_BIN/roofsweep" --gather sweep.nc.journal -o gathered.nc
for file in sweep.nc gathered.nc; do
    python '
import sys, netCDF4
data = netCDF4.Dataset(sys.argv[1])
assert data.title == "renamed" and "[conv2d other]" in data.manifest, data.title
assert set(data["label"][:]) == {"other"}, set(data["label"][:])
' $file || fail "$file is not that of the last manifest"
done

# --resume waits for a job that is ending, and goes on with the file that this job writes.
batch=1 height="8, 16" write_sweep dying.ini
sed -i 's/^iterations = .*/iterations = 5000/' dying.ini
"$ROOFSWEEP_MPIRUN" -n 2 --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" dying.ini -o dying.nc >output 2>&1 &
job=$!
dying() {
    grep -qs '"kind":"record"' dying.nc.journal
}
wait_until "$job" output dying
# shellcheck disable=SC2046 # a word each
(sleep 0.7; kill -TERM $(ranks_of "$job")) &
expect 0 run 2 --resume dying.ini -o dying.nc
wait "$job" || true
complete dying.nc 40
[ ! -e dying.nc.spare-1 ] || fail "there is a second file"

batch=1 height=8 width="8, 16" write_sweep rounds.ini
sed -i 's/^warmup/rounds = 3\n&/; s/^iterations = .*/iterations = 5000/' rounds.ini
"$ROOFSWEEP_MPIRUN" -n 2 --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" rounds.ini >output 2>&1 &
job=$!
rounds() {
    grep -sc '"kind":"round"' rounds.nc.journal || [ $? = 1 ] || echo 0
}
for _ in $(seq 600); do
    [ "$(rounds)" -lt 2 ] || break
    sleep 0.05
done
# shellcheck disable=SC2046 # a word each
kill -KILL $(ranks_of "$job") "$job"
wait "$job" && fail "the job killed in a round ended with 0"
none_left
[ "$(rounds)" -lt 16 ] || fail "the rounds had finished before the job was killed"
expect 0 "$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" watch rounds.nc
says "8 of 8 rows: 8 measured, 0 skipped, 0 failed, round "
expect 0 run 2 -v --resume rounds.ini
says "round 3 of 3"
complete rounds.nc 8
[ "$(rounds)" = 16 ] || fail "$(rounds) rounds in the journal"
[ "$(grep -c '"kind":"session"' rounds.nc.journal)" = 2 ] || fail "sessions"
expect 0 run 2 --resume rounds.ini
[ "$(grep -c '"kind":"session"' rounds.nc.journal)" = 2 ] || fail "a complete sweep of rounds began a session"
# Rounds whose device no line describes are not dropped in silence.
tac rounds.nc.journal | awk '!/"kind":"device"/ || n++ > 1' | tac >lost.nc.journal
expect 1 "$ROOFSWEEP_BIN/roofsweep" --gather lost.nc.journal
says "rows or rounds without a device are left out of lost.nc"
PYTHONPATH=$root/postproc python '
import sys, netCDF4, numpy
from roofsweep_post.spread import half_width
data = netCDF4.Dataset("rounds.nc")
times, starts = (data[name][:].filled(numpy.nan) for name in ("round_time", "round_start"))
middle = numpy.median(times, axis=1)
assert data.rounds == 3 and times.shape == (8, 3) and numpy.allclose(data["time_median"][:], middle, rtol=1e-12)
ends = [numpy.maximum(middle - half_width(times), 0), middle + half_width(times)]
assert numpy.allclose([data["time_median_low"][:], data["time_median_high"][:]], ends, rtol=1e-3)
begin = data["start_time"][:][:, None] + starts
for device in set(data["config_device"][:]):
    own = data["config_device"][:] == device
    assert (numpy.diff(begin[own], axis=1) > 0).all()
    before = [dict(zip(order[1:], order)) for order in numpy.argsort(begin[own], axis=0).T]
    for row in set(before[0]) & set(before[1]) & set(before[2]):
        assert len({one[row] for one in before}) > 1, "a row follows the same row in all rounds"
' || fail "the file of rounds"
