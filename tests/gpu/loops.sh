#!/bin/sh
# Matrix products, compute-loop and shared-loop on a GPU: results are right in every precision, counted FLOPs equal
# modelled ones, and compute-loop reaches the roof of the vector units.
. "$(dirname "$0")/lib.sh"

cat >loops.ini <<INI
[sweep]
device = cuda
[matmul library]
vary = one-at-a-time
m = 1024, 1000
n = 1024, 8, 1000
k = 1024, 4096, 1000
precision = fp64, fp32, tf32, fp16, bf16
[matmul plain]
vary = one-at-a-time
implementation = plain
m = 1024, 1, 999
n = 1024, 1, 999
k = 1024, 1, 999
precision = fp64, fp32, fp16, bf16
[compute-loop roof]
elements = 33554432
precision = fp64, fp32, fp16, bf16
[compute-loop odd]
elements = 1, 12345
steps = 1, 2, 63, 64, 131
precision = fp64, fp32, fp16, bf16
[shared-loop shared]
vary = one-at-a-time
tile = 1024, 1, 2, 255, 256, 257, 600, 2047, 2048
steps = 4096, 1, 2, 7
precision = fp64, fp32
[compute-loop not-offered]
precision = tf32
[matmul not-offered-either]
implementation = plain, onednn
precision = tf32
INI
expect 0 run 1 loops.ini
"$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" loops.nc || fail "derived values"
python '
import numpy, xarray
data = xarray.open_dataset("loops.nc").load()
label, status = data.label.values, data.status.values
offered = ~numpy.char.startswith(label.astype(str), "not-")
assert (status[offered] == 0).all(), data.error.values[status == 2]
assert (status[~offered] == 1).all()
good = data.isel(config=status == 0)
assert (good.verify_error >= 0).all()
assert (good.launches > 0).all() and (good.busy_time > 0).all()
# These kernels do exactly the modelled FLOPs, without padding.
counted = (good.counters == "counted").values
loops = counted & good.label.isin(["roof", "shared", "plain"]).values
assert numpy.allclose(good.flops_counted.values[loops], good.flops_model.values[loops], rtol=1e-3)
roof = good.isel(config=(good.label == "roof").values)
# fp16 and bf16 are slower: pairs run in two pipes, and the compiled order of instructions does not keep both busy.
least = numpy.where(numpy.isin(roof.precision.values, ("fp64", "fp32")), 0.93, 0.7)
assert (roof.roof_fraction.values > least).all() and (roof.roof_fraction < 1.02).all(), roof.roof_fraction.values
assert (roof.paper_bound == 0).all()
' || fail "a figure is missing or wrong"
