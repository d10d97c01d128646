#!/bin/sh
# recompute.py confirms every derived variable of the golden sample, of the committed files, and of new files of this CPU:
# five workloads, hot and cold, and rows that cannot be measured.
. "$(dirname "$0")/../mpi/lib.sh"
cat >fresh.ini <<'INI'
[sweep]
output = fresh.nc
device = cpu
[measure]
warmup = 1
iterations = 3
cache = both
verify = no
[peaks]
condition = alone
[conv2d c]
batch = 1
height = 8
width = 8
channels = 4
filters = 8
pass = forward, backward-data
precision = fp32, fp16
[lstm l]
sequence = 2
[matmul m]
m = 64
n = 64
k = 64
[compute-loop p]
elements = 1000
[shared-loop s]
INI
expect 0 run 1 fresh.ini
sed 's/fresh.nc/roofless.nc/; s/^condition = alone/memory = dram\ncompute = fp64/' fresh.ini >roofless.ini
expect 0 run 1 roofless.ini
ncgen -4 -o golden.nc "$root/tests/data/golden.cdl"
"$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" golden.nc fresh.nc roofless.nc "$root"/tests/data/*.nc || fail "derived variables differ"

# recompute.py finds changed values.
python '
import netCDF4
with netCDF4.Dataset("fresh.nc", "a") as data:
    data["compute_roof"][0] = 1.0
    data["limiter"][1] = 5
'
expect 1 "$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" fresh.nc
says 'compute_roof[0] is 1.0'
says 'limiter[1] is host'
