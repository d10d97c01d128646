#!/bin/sh
# The committed result files of GPUs stay readable, and their contents agree with each other.
. "$(dirname "$0")/../mpi/lib.sh"
readable() {
    "$ROOFSWEEP_PYTHON" "$root/tests/test_xarray.py" "$1" || fail "xarray: $1"
    "$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" "$1" || fail "derived values: $1"
}
file=$root/tests/data/paper_h100.nc
readable "$file"
python '
import sys, numpy
sys.path.insert(0, sys.argv[2])
import roofsweep_post as post
data = post.load(sys.argv[1])
assert "H100" in data.device_model.values[0]
assert (data.status.values == "measured").all(), "the paper sweeps were all measured and verified"
assert set(data.precision.values) == {"fp16", "fp32"}
assert {"conv2d", "lstm"} == set(data.workload.values)
labels = set(" ".join(data.label.values).split())
assert {"conv2d-batch", "conv2d-stride", "lstm-batch", "lstm-hidden"} <= labels, labels
assert (data.verify_error >= 0).all()
# All rows were counted, with causes, and no row exceeds its roof.
assert data.flops_counted.notnull().all() and (data.cause.values[data.limiter.values == "kernel"] != "").all()
# An implicit GEMM in fp32 does hardly more than the multiply-adds of the definition.
gemm = (data.algorithm.values == "implicit-precomp-gemm") & (data.precision.values == "fp32")
ratio = (data.flops_counted / data.flops_model).values[gemm]
assert gemm.sum() >= 10 and (abs(ratio - 1) < 0.02).all(), ratio
assert (data.roof_fraction < 1).all(), float(data.roof_fraction.max())
# The paper: an LSTM of the default size is bound by overhead.
lstm = data.isel(config=data.workload.values == "lstm")
default = (lstm.batch == 16) & (lstm.sequence == 16) & (lstm.features == 32) & (lstm.hidden == 16)
assert (lstm.paper_bound.values[default.values] == "overhead").all(), lstm.paper_bound.values[default.values]
' "$file" "$root/postproc" || fail "$file"

# A second file of the batch sweep, with kernels.
file=$root/tests/data/conv2d_batch_h100.nc
readable "$file"
python '
import sys, numpy
sys.path.insert(0, sys.argv[3])
import roofsweep_post as post
one, paper = (post.load(path) for path in sys.argv[1:3])
assert one.sizes["config"] == 18 and (one.status == "measured").all() and one.flops_counted.notnull().all()
assert (one.verify_error >= 0).all() and (one.roof_fraction < 1).all()
# Two sweeps that run the same kernels with equal numbers of blocks count equal FLOPs.
def counted(data):
    blocks = [tuple(data.kernel_blocks.values[data.kernel_config.values == i]) for i in range(data.sizes["config"])]
    keys = zip(data.configuration.values, data.algorithm_id.values, blocks)
    return dict(zip(keys, data.flops_counted.values))
ours, theirs = counted(one), counted(paper)
both = set(ours) & set(theirs)
assert len(both) >= 10, len(both)
assert all(ours[key] == theirs[key] for key in both), [(key, ours[key], theirs[key]) for key in both]
' "$file" "$root/tests/data/paper_h100.nc" "$root/postproc" || fail "$file"

# roofs FILE CODE: roofs of H100s are proven by counters, and none is above theory. CODE sees `data`, and arrays over
# the roofs: `name`, `device`, `start`.
roofs() {
    "$ROOFSWEEP_PYTHON" "$root/tests/test_xarray.py" "$1" || fail "xarray"
    "$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" roofs "$1" --targets "$root/tests/bench/roofs_targets.ini" >output || true
    python '
import sys, numpy, xarray
data = xarray.open_dataset(sys.argv[1], decode_times=False).load()
name, device, start = data.device_roof_name.values, data.device_roof_device.values, data.device_roof_start_time.values
verdict = numpy.array(data.device_roof_verdict.attrs["flag_meanings"].split())[data.device_roof_verdict.values]
uncounted = [str(kind).startswith(("launch", "host", "device")) for kind in name]
wrong = set(name[verdict != numpy.where(uncounted, "unproven", "proven")])
assert not wrong, wrong
assert not (data.device_roof_clock_fraction > 1.01).any()
'"$2" "$1" || fail "$1"
}

# Two H100s of a node: roofs, and the same 40 rows on each.
file=$root/tests/data/node_2xh100.nc
roofs "$file" '
assert data.sizes["device"] == 2 and len(set(name)) == 40 and data.sizes["device_roof"] == 2 * 2 * 40
alone, together = data.device_roof_condition.values == 0, data.device_roof_condition.values == 1
# Roofs together start within half a millisecond, after all roofs alone.
for kind in set(name):
    starts = start[together & (name == kind)]
    assert numpy.ptp(starts) < 0.5e-3, (kind, numpy.ptp(starts))
assert start[alone].max() < start[together].min()
# A neighbour does not change on-chip roofs, unless the power limit does.
value = data.device_roof_bandwidth.fillna(data.device_roof_performance).values
for kind in ["dram read", "dram copy", "l2 read", "l1 read", "fp64 vector", "fp32 vector", "fp64 tensor mma"]:
    ratio = numpy.median(value[together & (name == kind)]) / numpy.median(value[alone & (name == kind)])
    assert abs(ratio - 1) < 0.005, (kind, ratio)
'
"$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" "$file" || fail "derived values"
python '
import collections, sys, numpy
sys.path.insert(0, sys.argv[2])
import roofsweep_post as post
data = post.load(sys.argv[1])
assert (data.status == "measured").all() and data.flops_counted.notnull().all() and (data.verify_error >= 0).all()
rows = collections.defaultdict(list)
for row, configuration in enumerate(data.configuration.values):
    rows[configuration].append(row)
assert len(rows) == 40 and all(sorted(data.config_device.values[found]) == [0, 1] for found in rows.values())
# One algorithm counts equal FLOPs on both GPUs, to the last digit,
flops, algorithm = data.flops_counted.values, data.algorithm_id.values
alike = [found for found in rows.values() if len(set(algorithm[found])) == 1]
assert len(alike) >= 34, len(alike)
assert all(len(set(flops[found])) == 1 for found in alike)
# and takes about the same time: few of the 80 rows are further from their median.
times = data.time_median.values
far = [row for found in alike for row in found if abs(times[row] / numpy.median(times[found]) - 1) > 0.04]
assert len(far) <= 2, data.configuration.values[far]
' "$file" "$root/postproc" || fail "$file"
roofs "$root/tests/data/roofs_2xh100.nc" 'assert data.sizes["device"] == 2 and data.sizes["device_roof"] == 2 * 2 * len(set(name))'
says "NVIDIA H100 80GB HBM3: 2 devices on 1 host"
