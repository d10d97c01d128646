#!/bin/sh
# Checks the machine code of kernels. Needs the CUDA Toolkit's disassemblers, but no GPU. They are searched on the PATH,
# in $CUDA_TOOLS, and in the folder of jobscripts/install-dependencies.sh.
set -eu
here=$(dirname "$0")
PATH=$PATH:${CUDA_TOOLS:-}
for folder in "$here"/../../build/tools/lib/python3*/site-packages/nvidia/cu*/bin; do
    PATH=$PATH:$folder
done
for tool in cuobjdump nvdisasm c++filt; do
    command -v $tool >/dev/null || {
        echo "skipped: no $tool (jobscripts/install-dependencies.sh tests)"
        exit 77
    }
done
exec "${ROOFSWEEP_PYTHON:-python3}" "$here/disassembly.py" "$here/disassembly.txt" \
    "${1:-$ROOFSWEEP_BIN/roofsweep-worker-cuda}"
