#!/bin/sh
# From a fresh clone to a first result: installs what is missing (or names it, without root), builds
# into build/, and runs sweeps/quickstart.ini on two ranks into quickstart.nc and a table.
set -eu
cd "$(dirname "$0")/.."

jobscripts/install-dependencies.sh
# Without tests, which take longer to build, and for the GPUs of this machine alone, if nvcc knows all of them. A build
# folder keeps what it was told.
if [ ! -f build/CMakeCache.txt ]; then
    known=$(PATH=$PATH:/usr/local/cuda/bin nvcc --list-gpu-arch 2>/dev/null || true)
    architectures=""
    for found in $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -u); do
        echo "$known" | grep -qx "compute_$found" || known=none
        architectures="$architectures;$found"
    done
    if [ "$known" = none ]; then architectures=""; fi
    set -- -DROOFSWEEP_TESTS=OFF ${architectures:+"-DCMAKE_CUDA_ARCHITECTURES=${architectures#;}"} "$@"
fi
cmake --preset release "$@"
cmake --build build --parallel "$(nproc)" --target programs

# Two ranks also where there is one core, and in containers that run as root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# One GPU is for one rank: two are only started where there are none, or at least two.
ranks=2
gpus=$( (nvidia-smi -L 2>/dev/null || true) | grep -c '^GPU' || true)
[ "$gpus" = 1 ] && ranks=1
mpirun -n "$ranks" --oversubscribe --bind-to none build/bin/roofsweep --overwrite sweeps/quickstart.ini
echo "
Next:  postproc/roofsweep-post plot four quickstart.nc         # a figure, four.pdf
       postproc/roofsweep-post rows quickstart.nc --advice     # what limits each row, and what to try
       build/bin/roofsweep --help"
