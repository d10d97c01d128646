#!/bin/sh
# fp8 on a GPU: results are right, and counted FLOPs equal modelled ones. A row whose precision the chip lacks is
# skipped with the reason.
. "$(dirname "$0")/lib.sh"

cat >low.ini <<INI
[sweep]
device = cuda
[peaks]
memory = dram
compute = fp16, fp8
launch = no
transfer = no
[matmul eight]
precision = fp8
m = 1024, 16, 1
n = 1024, 16
k = 1024, 16, 8192
launch = stream, graph
vary = one-at-a-time
[matmul fast]
precision = fp8
accumulation = fast
k = 1024, 4096
[linear eight-bits]
precision = fp8
activation = none, relu, gelu
fusion = auto, separate
batch = 512, 1
vary = one-at-a-time
[conv2d eight-b]
precision = fp8
kernel = 3, 1
[matmul not-there]
precision = fp8
n = 8
INI
expect 0 run 1 low.ini
python '
import json, numpy, xarray
data = xarray.open_dataset("low.nc").load()
label, status, reason = data.label.values, data.status.values, data.error.values
for row in numpy.flatnonzero(status == 2):
    print(data.configuration.values[row], reason[row])
assert (status != 2).all()
refused = numpy.char.startswith(label.astype(str), "not-")
assert (status[refused] == 1).all() and all("needs" in r for r in reason[refused])
devices = [line["entry"] for line in map(json.loads, open("low.nc.journal")) if line["kind"] == "device"]
records = [line["entry"] for line in map(json.loads, open("low.nc.journal")) if line["kind"] == "record"]
chip = tuple(map(int, devices[0]["compute_capability"].split(".")))
eight = data.precision.values == "fp8"
if chip >= (9, 0):
    assert (status[~refused] == 0).all(), reason[~refused]
elif chip < (8, 9):
    assert (status[eight] == 1).all() and all("compute capability" in r for r in reason[eight & ~refused])
good = data.isel(config=status == 0)
assert (good.verify_error >= 0).all()
assert all(one.get("verify_element_error", 0) <= one.get("verify_element_tolerance", 0) for one in records)
# Matrix products of whole tiles do the modelled FLOPs. For fp8 the library also adds partial sums on vector units: one
# addition for 128 products.
fits = numpy.isin(good.label.values, ["eight", "fast"])
for name in "m", "n", "k":
    fits &= good[name].values % 256 == 0
counted = fits & (good.counters == "counted").values
assert not chip >= (9, 0) or counted.sum() > 4 or (good.counters != "counted").all()
assert numpy.allclose(good.flops_counted.values[counted], good.flops_model.values[counted], rtol=5e-3)
' || fail "a figure is missing or wrong"
