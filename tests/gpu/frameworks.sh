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
launch = stream, graph
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
library, torch = (data.label == label for label in ("cudnn", "torch"))
flops = {}
for kernel in range(data.sizes["kernel"]):
    row = int(data.kernel_config[kernel])
    key = data.kernel_name[kernel].item(), int(data.kernel_grid_x[kernel]), int(data.kernel_block_x[kernel])
    flops.setdefault(key, {})[str(data.label[row].item()), row] = float(data.kernel_flops_counted[kernel])
shared = {key: found for key, found in flops.items() if len({label for label, _ in found}) == 2}
for (name, *_), found in shared.items():
    print(name[:60], found)
    assert len(set(found.values())) == 1, "FLOPs of one kernel differ"
print(len(shared), "kernels are in rows of both;", "FLOPs of rows:", data.flops_counted.values)
graph = data.time_median.values[(torch & (data.axis_mode == "graph")).values][0]
replayed = data.time_median.values[(library & (data.launch == "graph")).values][0]
print(f"in CUDA graphs: PyTorch {1e6 * graph:.2f} us, cuDNN {1e6 * replayed:.2f} us, {100 * (graph / replayed - 1):+.1f} %")
assert abs(graph / replayed - 1) < 0.05, "times differ by more than 5 %"
' || fail "PyTorch beside cuDNN"
