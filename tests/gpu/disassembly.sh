#!/bin/sh
# The machine code of the roofs' kernels; needs no GPU, but the CUDA Toolkit's disassembler.
set -eu
here=$(dirname "$0")
command -v "${CUOBJDUMP:-cuobjdump}" >/dev/null || {
    echo "skipped: no cuobjdump (NVIDIA's repository: cuda-cuobjdump-13-0 cuda-nvdisasm-13-0)"
    exit 77
}
exec "${ROOFSWEEP_PYTHON:-python3}" "$here/disassembly.py" "$here/disassembly.txt" \
    "${1:-$ROOFSWEEP_BIN/roofsweep-worker-cuda}"
