#!/bin/sh
# conv2d and LSTM by cuDNN on each GPU of this machine: rows are verified, and their kernels, bytes, times and roofs
# agree with each other. If a worker is killed, no row is lost.
. "$(dirname "$0")/lib.sh"

cat >sweep.ini <<INI
[sweep]
device = cuda
retries = 5
[measure]
kernels = yes
[conv2d a]
vary = one-at-a-time
batch = 4, 8
height = 56
width = 56
kernel = 3, 3x5
precision = fp32, tf32, fp16, bf16
layout = nhwc, nchw
pass = forward, backward-data, backward-filter
[conv2d cold]
height = 56
width = 56
precision = fp16
cache = hot, cold
[lstm b]
vary = one-at-a-time
layers = 1, 2
directions = 1, 2
precision = fp32, fp16
pass = forward, backward
[lstm not-offered]
precision = tf32
INI
expect 0 run "$gpus" sweep.ini
"$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" sweep.nc || fail "derived values"
python '
import json, sys, numpy, xarray
JOURNAL = "sweep.nc.journal"
data = xarray.open_dataset("sweep.nc").load()
status = data.status.values
assert (status[data.label.values != "not-offered"] == 0).all(), data.error.values[status != 0]
assert (status[data.label.values == "not-offered"] == 1).all()
assert len(set(data.device_uuid.values)) == int(sys.argv[1]), data.device_uuid.values
assert all(u.startswith("GPU-") for u in data.device_uuid.values)
assert all(len(p) == 16 for p in data.device_pci_id.values), data.device_pci_id.values
good = data.isel(config=status == 0)
assert (good.launches > 0).all() and (good.busy_time > 0).all()
assert (good.verify_error >= 0).all()
assert (good.paper_bound < 3).all(), good.configuration.values[good.paper_bound.values == 3]
assert (good.roof_fraction < 1.1).all(), good.roof_fraction.values.max()
# The FLOPs of a row are the sum of the FLOPs of its kernels.
by_kernel = numpy.bincount(data.kernel_config.values, data.kernel_flops_counted.values, data.sizes["config"])
counted = data.counters.values == "counted"
assert not any("not by kernel" in text for text in data.counters.values), set(data.counters.values)
assert numpy.allclose(by_kernel[counted], data.flops_counted.values[counted], rtol=1e-3)
# Only bytes of the work are counted: with a hot cache small work moves no bytes of device memory, with a cold cache it
# only reads them, and a single kernel has all bytes of its row.
dram, l2 = (data.memory_level.values.tolist().index(name) for name in ("dram", "l2"))
mine = counted & (data.workload.values == "conv2d") & (data.footprint.values < data.device_cache.values[:, l2].min() / 4)
hot, cold = mine & (data.cache.values == "hot"), mine & (data.cache.values == "cold")
written, part = (data[name].values[:, dram] / data.footprint.values for name in ("bytes_written", "bytes_counted"))
read = part - written
assert not mine.any() or (hot.any() and cold.any())
assert (read[hot] < 0.05).all(), read[hot]
assert (read[cold] > 0.1).all(), read[cold]
nobody = 262144 / data.footprint.values  # bytes that the device itself may write, relative to the footprint
assert (written < 0.05 + nobody)[mine].all(), written[mine]
lone = numpy.bincount(data.kernel_config.values, minlength=data.sizes["config"]) == 1
by_kernel = numpy.bincount(data.kernel_config.values, data.kernel_bytes_counted.values[:, dram], data.sizes["config"])
apart = numpy.abs(by_kernel / data.footprint.values - part)
assert (apart < 0.05 + nobody)[mine & lone].all(), apart[mine & lone]
# The time consists of kernels and gaps. Each row has the time of a caller, and each kernel has an occupancy.
busy_share = good.busy_time / good.time_median
assert (busy_share > 0.2).all() and (busy_share < 1.2).all(), busy_share.values
assert (good.gap_time >= 0).all()
records = [line["entry"] for line in map(json.loads, open(JOURNAL)) if line["kind"] == "record"]
records = [record for record in records if record["status"] == "measured"]
assert all(record["host_time"] > 0 for record in records)
# The time of a caller is at least the longer one of the times of host and device. LSTMs are an exception: their
# kernels can take longer if they are enqueued ahead (docs/measurements.md, "Queued launches after a backward pass").
for record in records:
    least = 0.8 if record["configuration"].startswith("lstm") else 0.9
    slower = max(record["host_time"], record["time_median"] - record["timer_overhead"] / record["sample_iterations"])
    assert "caller_time" not in record or record["caller_time"] > least * slower, record
assert all(record["trace_time"] >= 0.999 * record["busy_time"] for record in records if "trace_time" in record)
# No clock of a row exceeds the free clock, although the roofs lowered the clock before the sweep.
assert all(record["sm_clock_counted"] <= 1.015 * record["sm_clock_free"] for record in records)
assert (data.kernel_resident > 0).all() and (data.kernel_threads > 0).all()
limiters = numpy.array(good.limiter.attrs["flag_meanings"].split())[good.limiter.values]
assert (limiters != "unknown").all(), good.limiter_evidence.values[limiters == "unknown"]
lstm = (good.workload.values == "lstm") & (good.launches.values > 30)
assert numpy.isin(limiters[lstm], ("latency", "overhead")).all(), good.limiter_evidence.values[lstm]
# The time is shorter than the sum of the times of kernels only if the work uses several streams.
assert (good.time_median > 0.3 * good.busy_time).all()
# Roofs are below theory, and not far below.
devices = [line["entry"] for line in map(json.loads, open(JOURNAL)) if line["kind"] == "device"]
for name in ("dram", "fp64", "fp32"):
    of = "bandwidth" if name == "dram" else "vector"
    parts = [device[f"peak_{of}"][name] / device[f"theory_{of}"][name] for device in devices]
    assert all(0.8 < part < (1.0 if name == "dram" else 1.01) for part in parts), (name, parts)
' "$gpus" || fail "a figure is missing or wrong"

# If a worker is killed, its row is measured again.
run 1 --output killed.nc sweep.ini >output 2>&1 &
job=$!
for _ in 1 2 3; do
    sleep 4
    pkill -KILL -n -f "$worker\$" || true # the worker that measures, not the one with --watch
done
wait "$job" || { status=$?; cat output; fail "the sweep ended with $status"; }
python '
import xarray
data = xarray.open_dataset("killed.nc").load()
assert (data.status.values != 2).all(), data.error.values[data.status.values == 2]
assert data.sizes["config"] == xarray.open_dataset("sweep.nc").sizes["config"]
'
