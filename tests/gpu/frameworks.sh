#!/bin/sh
# Compares convolutions by PyTorch and by cuDNN: a kernel that both run must have equal FLOPs, and equal times within
# CUDA graphs. PyTorch's search may choose the same kernel with a different grid; FLOPs then differ by whole tiles of
# the result.
. "$(dirname "$0")/../mpi/lib.sh"
[ -x "$ROOFSWEEP_BIN/roofsweep-worker-cuda" ] || exit 77
nvidia-smi -L 2>/dev/null | grep -q GPU || exit 77
python3 -c "import torch" 2>/dev/null || exit 77
cp -r "$root/sweeps/programs" .
cat >torch.ini <<'END'
[sweep]
timeout = 60 s
[measure]
kernels = yes
[peaks]
memory = dram
compute = fp32
launch = no
transfer = no
[conv2d cudnn-conv2d]
layout = nhwc
batch = 16
precision = fp16
launch = stream, graph
[program torch-conv2d]
command = python3 programs/conv2d_torch.py --batch {batch} --precision {precision} --pass {pass} --mode {mode} --benchmark on --iterations 100
batch = 16
pass = forward
precision = fp16
mode = graph, eager
ungraphed.mode = eager
iterations = 100
model = conv2d
END
expect 0 "$ROOFSWEEP_BIN/roofsweep" -q -d cuda -o torch.nc torch.ini
cp torch.nc "${ROOFSWEEP_KEEP:-.}/" 2>/dev/null || true
status=0
"$ROOFSWEEP_PYTHON" "$root/tests/frameworks.py" torch.nc --agree || status=$?
[ "$status" = 0 ] || [ "$status" = 77 ] || fail "PyTorch beside cuDNN"
exit "$status"
