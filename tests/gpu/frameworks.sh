#!/bin/sh
# PyTorch's convolution: the FLOPs of a kernel that a row of cuDNN has as well are the same to the last digit, and within
# CUDA graphs both take the same time.
. "$(dirname "$0")/../mpi/lib.sh"
[ -x "$ROOFSWEEP_BIN/roofsweep-worker-cuda" ] || exit 77
nvidia-smi -L 2>/dev/null | grep -q GPU || exit 77
python3 -c "import torch" 2>/dev/null || exit 77
cp -r "$root/sweeps/programs" .
cat >torch.ini <<'END'
[sweep]
timeout = 100 s
[measure]
kernels = yes
[peaks]
memory = dram
compute = fp16
launch = no
transfer = no
[conv2d cudnn]
layout = nhwc
batch = 16
precision = fp16
[program torch]
command = python3 programs/conv2d_torch.py --batch {batch} --precision {precision} --mode {mode} --benchmark on --iterations 100
batch = 16
mode = eager, graph
precision = fp16
ungraphed.mode = eager
iterations = 100
model = conv2d
END
expect 0 "$ROOFSWEEP_BIN/roofsweep" -q -d cuda -o torch.nc torch.ini
cp torch.nc "${ROOFSWEEP_KEEP:-.}/" 2>/dev/null || true
python '
import xarray
data = xarray.open_dataset("torch.nc").load()
library, torch = ((data.label == label).values for label in ("cudnn", "torch"))
flops, launches = {}, [[] for _ in data.config]
for kernel in range(data.sizes["kernel"]):
    row = int(data.kernel_config[kernel])
    key = data.kernel_name[kernel].item(), *(int(data[f"kernel_grid_{axis}"][kernel]) for axis in "xyz")
    launches[row].append(key)
    if data.kernel_flops_counted[kernel] > 0:
        flops.setdefault(key, {})[str(data.label[row].item()), row] = float(data.kernel_flops_counted[kernel])
shared = {key: found for key, found in flops.items() if len({label for label, _ in found}) == 2}
for (name, *grid), found in shared.items():
    print(name[:60], grid, found)
    assert len(set(found.values())) == 1, "FLOPs of one kernel differ"
print(len(shared), "kernels are in rows of both;", "FLOPs of rows:", data.flops_counted.values, data.counters.values)
assert (data.counters == "counted").values.all(), "not all counted"
graph = int((torch & (data.axis_mode == "graph").values).argmax())
ours = int(library.argmax())
times = float(data.time_median[graph]), float(data.graph_time[ours])
print(f"in CUDA graphs: PyTorch {1e6 * times[0]:.2f} us, cuDNN {1e6 * times[1]:.2f} us, {100 * (times[0] / times[1] - 1):+.1f} %")
if sorted(launches[graph]) != sorted(launches[ours]):
    print("PyTorch has chosen another kernel, by its own timing: times are not compared")
else:
    assert abs(times[0] / times[1] - 1) < 0.05, "times differ by more than 5 %"
' || fail "PyTorch beside cuDNN"
