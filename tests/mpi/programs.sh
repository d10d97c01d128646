#!/bin/sh
# Programs as rows: times, failures, --resume, --program. If workers and programs are killed, no row is lost and no
# process is left.
. "$(dirname "$0")/lib.sh"
roofsweep=$ROOFSWEEP_BIN/roofsweep
cp "$root/sweeps/programs/roofsweep_region.py" .
cat >program.py <<'END'
import sys
import time
import roofsweep_region

for _ in range(20):
    with roofsweep_region.region():
        time.sleep(float(sys.argv[1]))
roofsweep_region.verified(1e-9, float(sys.argv[2]))
END
cat >sweep.ini <<'END'
[sweep]
timeout = 60 s
retries = 3
[peaks]
memory = l1
compute = bf16
launch = no
[program mine]
command = python3 program.py {seconds} {tolerance}
seconds = 0.01, 0.02
tolerance = 1e-6, 1e-12
iterations = 2
batch = 8, 16
env.BATCH = {batch}
precision = bf16
flops = 1e6*batch
[program failing]
command = sh -c {script}
script = "echo words; exit 3", "exit 0", "echo region 1e6 >$ROOFSWEEP_REPORT/lie"
[matmul]
m = 64
n = 64
batch = 1
END
sed -i '/^batch = 1$/d' sweep.ini
expect 3 "$roofsweep" -q -d cpu -o out.nc sweep.ini
says "wrong result: the program says that its relative error is 1e-09; allowed: 1e-12"
says "the program ended with status 3; it last printed: words"
says "handed back no region"
says "'time_median' is 1e+06, but 'wall_time' is"
python '
import numpy, xarray
data = xarray.open_dataset("out.nc").load()
good = data.isel(config=((data.workload == "program") & (data.status == 0)).values)
assert good.sizes["config"] == 4, good.sizes
wanted = good.axis_seconds.values.astype(float) / 2
assert (good.time_median >= wanted).all() and (good.time_median < wanted + 0.5).all(), good.time_median.values
assert (good.samples == 20).all() and (good.verify_error == 1e-9).all()
assert (good.time_median_low <= good.time_median).all() and (good.time_median <= good.time_median_high).all()
assert (good.bimodal != 2).all()
assert set(good.axis_batch.values) == {"8", "16"} and (good.flops_model == 1e6 * good.axis_batch.astype(float)).all()
assert (good.program_hash == good.program_hash[0]).all() and len(str(good.program_hash.values[0])) == 32
assert (good.precision == "bf16").all() and (good.counters.str.startswith("refused")).all()
assert (good.threads_running < 0.4).all() and (good.busy_time == good.time_median).all()  # the program sleeps
assert (abs(good.time_part.sum("part") / good.time_median - 1) < 1e-6).all(), good.time_part.values
assert good.limit.str.startswith("idle_threads ").all() and (good.limiter.values == 3).all(), (good.limit.values, good.limiter)
assert (good.unit == 0).all() and (good.host_load >= 0).all()  # cores have no tensor unit
assert (numpy.isfinite(good.compute_roof) | ~numpy.isfinite(data.device_peak_vector).any()).all()
' || fail "wrong rows"
# --resume of a complete sweep.
expect 3 "$roofsweep" -q -d cpu -o out.nc --resume sweep.ini
# If a command is corrected, the failed rows of the old command are named and left out of the file, also by --gather.
sed 's/^command = sh .*/command = python3 program.py 0.01 1e-6 {script}/; s/1e-6, 1e-12/1e-6/' sweep.ini >corrected.ini
expect 0 "$roofsweep" -d cpu -o out.nc --resume corrected.ini
says "left out, as the manifest no longer has them: failing script="
says "failing script=echo words; exit 3 (failed), "
expect 0 "$roofsweep" --gather out.nc.journal -o out.nc --overwrite
python '
import xarray
data = xarray.open_dataset("out.nc").load()
names = [f"mine batch={batch} seconds={seconds}" for batch in (8, 16) for seconds in ("0.01", "0.02")]
names += ["failing script=echo words; exit 3", "failing script=exit 0",
          "failing script=echo region 1e6 >$ROOFSWEEP_REPORT/lie", "matmul"]
assert data.name.values.tolist() == names, data.name.values
' || fail "wrong names or order"

# With `process = shared` one process measures all rows. If it ends in a row, this row fails, and the next row starts
# another process.
cat >shared.py <<'END'
import argparse
import os
import time
import roofsweep_region

whole = os.write
os.write = lambda file, text: [whole(file, text[i:i + 1]) for i in range(len(text))]  # writes each byte alone
parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float)
parser.add_argument("--what", choices=["right", "wrong", "dies", "hangs", "leaves"])
open("starts", "a").write("started\n")
for args in roofsweep_region.points(parser):
    print("measures", args.what, flush=True)
    if args.what == "dies":
        os.kill(os.getpid(), 9)
    if args.what == "hangs":
        time.sleep(1000)
    for _ in range(3):
        with roofsweep_region.region():
            time.sleep(args.seconds)
    roofsweep_region.verified(1e-9, 1e-12 if args.what == "wrong" else 1e-6)
    if args.what == "leaves":
        break
END
cat >shared.ini <<'END'
[sweep]
timeout = 8 s
[peaks]
memory = l1
compute = fp32
launch = no
[program shared]
command = python3 shared.py
process = Shared
seconds = 0.1, 0.2, 0.3, 0.4
what = right, wrong, dies, hangs, unknown, leaves
exclude = seconds=0.2 & what=hangs, seconds=0.3 & what!=right, seconds=0.4 & what!=right
END
expect 3 "$roofsweep" -q -d cpu -o shared.nc shared.ini
says "wrong result"
says "signal 9 (Killed); it last printed: measures dies"
says "took longer than the 7.2 s"
says "invalid choice: 'unknown'"
says "asked for no other point"
python '
import netCDF4
data = netCDF4.Dataset("shared.nc")
what, status, time = data["axis_what"][:], data["status"][:], data["time_median"][:]
wanted = data["axis_seconds"][:].astype(float)
assert len(what) == 13 and ((status == 0) == (what == "right")).all(), (what, status)
assert (abs(time - wanted)[status == 0] < 0.09).all(), (time, wanted)
assert all(text.count("measures ") <= 1 for text in data["error"][:]), data["error"][:]  # texts that earlier rows printed
' || fail "wrong rows of a shared process"
# Seven of the rows end their process.
[ "$(wc -l <starts)" = 8 ] || [ "$(wc -l <starts)" = 7 ] || fail "$(wc -l <starts) starts for 13 rows"

expect 0 "$roofsweep" -q -d cpu --set program.env.LONG=0.1 --program "sh -c 'sleep \$LONG'"
says "program "
[ -f program.nc ] || fail "--program writes no program.nc"

# A program that does not exist is an error before roofs are measured. A message names the parameters of a model that
# have their defaults.
expect 2 "$roofsweep" -d cpu -o none.nc --program "nosuchcmd 1"
says "program: program: the program 'nosuchcmd' is not in PATH"
expect 2 "$roofsweep" -d cpu -o none.nc --program "./nosuchcmd 1"
says "'./nosuchcmd' is not there, or cannot be run; programs start in $work"
expect 2 "$roofsweep" -d cpu -o none.nc --program "$work"
says "is not there, or cannot be run; "
[ ! -e none.nc.journal ] || fail "a journal of a program that does not exist"
printf '[program layer]\ncommand = true {filters}\nfilters = 16\nmodel = conv2d\n' >model.ini
expect 0 "$roofsweep" --dry-run model.ini
says "layer: model has defaults, which axes can set: batch=16 channels=64 "

# Kills workers, reapers and programs at random moments (tests/bench/storm.py). Each program leaves a daemon.
"$ROOFSWEEP_PYTHON" "$root/tests/bench/storm.py" --build "$ROOFSWEEP_BUILD" --worker cpu \
    --ranks $(($(nproc) > 1 ? 2 : 1)) --programs 40 --signals 3 --kills 12 --limit 120
