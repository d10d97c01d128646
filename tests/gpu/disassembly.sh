#!/bin/sh
# The machine code of the roofs' kernels; needs no GPU, but the CUDA Toolkit's disassemblers: on the
# PATH, or in $CUDA_TOOLS.
set -eu
here=$(dirname "$0")
PATH=$PATH:${CUDA_TOOLS:-}
for tool in cuobjdump nvdisasm c++filt; do
    command -v $tool >/dev/null || {
        echo "skipped: no $tool (NVIDIA's repository: cuda-cuobjdump-13-0 cuda-nvdisasm-13-0)"
        exit 77
    }
done
exec "${ROOFSWEEP_PYTHON:-python3}" "$here/disassembly.py" "$here/disassembly.txt" \
    "${1:-$ROOFSWEEP_BIN/roofsweep-worker-cuda}"
