#!/bin/sh
# Programs as rows: times, failures, --resume, --program; killed workers and programs: every row once, nothing left.
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
memory = dram
compute = fp32
launch = no
[program mine]
command = python3 program.py {seconds} {tolerance}
seconds = 0.01, 0.02
tolerance = 1e-6, 1e-12
iterations = 2
batch = 8, 16
env.BATCH = {batch}
precision = fp32
flops = 1e6*batch
[program failing]
command = sh -c {script}
script = "echo words; exit 3", "exit 0"
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
python '
import xarray
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
assert (good.precision == "fp32").all() and (good.counters.str.startswith("refused")).all()
' || fail "wrong rows"
# Nothing is missing.
expect 3 "$roofsweep" -q -d cpu -o out.nc --resume sweep.ini

expect 0 "$roofsweep" -q -d cpu --program "sleep 0.1"
says "program "
[ -f program.nc ] || fail "--program writes no program.nc"

# Workers, keepers and programs are killed at random; the programs have children that hide.
"$ROOFSWEEP_PYTHON" "$root/tests/bench/kills.py" --build "$ROOFSWEEP_BUILD" --worker cpu \
    --ranks $(($(nproc) > 1 ? 2 : 1)) --programs 40 --signals 2 --kills 12 --limit 120
