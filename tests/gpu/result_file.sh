#!/bin/sh
# A result file from real GPUs, as committed: it must stay readable, and what it says must agree with itself.
. "$(dirname "$0")/../mpi/lib.sh"
file=$root/tests/data/paper_h200.nc
"$ROOFSWEEP_PYTHON" "$root/tests/test_xarray.py" "$file" || fail "xarray"
python '
import sys, numpy, xarray
data = xarray.open_dataset(sys.argv[1]).load()
assert "H200" in data.device_model.values[0]
assert (data.status.values == 0).all(), "the paper sweeps were all measured and verified"
assert set(data.config_precision.values) == {"fp16", "fp32"}
assert {"conv2d", "lstm"} == set(data.workload.values)
labels = set(" ".join(data.label.values).split())
assert {"conv2d-batch", "conv2d-stride", "lstm-batch", "lstm-hidden"} <= labels, labels
assert (data.verify_error <= data.verify_tolerance).all()
# Performance is FLOPs over time, and a row never exceeds its roof by more than the noise.
assert numpy.allclose(data.performance, data.flops_model / data.time_median)
assert (data.roof_fraction < 1.1).all(), float(data.roof_fraction.max())
# The paper: LSTM at its default size is bound by overhead, convolutions are not.
lstm = data.isel(config=data.workload.values == "lstm")
default = (lstm.batch == 16) & (lstm.sequence == 16) & (lstm.features == 32) & (lstm.hidden == 16)
assert (lstm.bound.values[default.values] == 2).all(), lstm.bound.values[default.values]
' "$file"
