#!/bin/sh
# Result files from real GPUs, as committed: they must stay readable, and what they say must agree with itself.
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
# All of it was counted; performance is those FLOPs over time, and no row exceeds its roof.
assert (data.counters == "counted").all() and (data.flops_source == 0).all() and (data.bytes_source == 0).all()
assert numpy.allclose(data.performance, data.flops_counted / data.time_median)
# An implicit GEMM in fp32 does the multiply-adds of the definition, and hardly any other.
gemm = data.algorithm.values == "implicit-precomp-gemm"
ratio = (data.flops_counted / data.flops_model).values[gemm]
assert gemm.sum() >= 10 and (abs(ratio - 1) < 0.02).all(), ratio
assert (data.roof_fraction < 1).all(), float(data.roof_fraction.max())
# The paper: LSTM at its default size is bound by overhead, convolutions are not.
lstm = data.isel(config=data.workload.values == "lstm")
default = (lstm.batch == 16) & (lstm.sequence == 16) & (lstm.features == 32) & (lstm.hidden == 16)
assert (lstm.bound.values[default.values] == 2).all(), lstm.bound.values[default.values]
' "$file" || fail "$file"

# The roofs alone: counters saw each kernel do its work where it should, and nothing is beyond theory.
file=$root/tests/data/roofs_h200.nc
"$ROOFSWEEP_PYTHON" "$root/tests/test_xarray.py" "$file" || fail "xarray"
"$ROOFSWEEP_PYTHON" "$root/postproc/roofs.py" "$file" --targets "$root/tests/bench/roofs_targets.ini" >output || true
says "Targets: 21 reached, 2 missed, 0 not known"
says "dram copy, 4.35 TB/s: missed"
says "dram triad, 4.48 TB/s: missed"
python '
import sys, numpy, xarray
data = xarray.open_dataset(sys.argv[1], decode_times=False).load()
verdict = numpy.array(data.device_roof_verdict.attrs["flag_meanings"].split())[data.device_roof_verdict.values]
uncounted = [str(name).startswith(("launch", "host", "device")) for name in data.device_roof_name.values]
assert (verdict == numpy.where(uncounted, "unproven", "proven")).all(), verdict
assert not (data.device_roof_clock_fraction > 1.01).any()
' "$file"
