#!/bin/sh
# From a fresh clone to a first result: installs missing packages (without root: names them), builds into
# build/, and runs sweeps/quickstart.ini on two ranks, which writes quickstart.nc and prints a table. In an installed tree
# it only runs the sweep, with the script's arguments as options, and writes into the working folder.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -f "$here/CMakePresets.json" ]; then
    cd "$here"
    jobscripts/install-dependencies.sh
    # The build has no tests. It has code only for the GPUs of this machine, if nvcc knows all of them. An existing
    # build folder keeps its settings.
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
    set --
    program=build/bin/roofsweep sweep=sweeps/quickstart.ini post=postproc/roofsweep-post
else
    program=$(cd "$here/../../bin" && pwd)/roofsweep sweep=quickstart
    post=$program-post
fi

# These settings allow root in containers; --oversubscribe allows two ranks on one core.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Each rank needs its own GPU: a machine with exactly one GPU runs one rank.
ranks=2
gpus=$( (nvidia-smi -L 2>/dev/null || true) | grep -c '^GPU' || true)
[ "$gpus" = 1 ] && ranks=1
mpirun -n "$ranks" --oversubscribe --bind-to none "$program" --overwrite "$@" "$sweep"
echo "
Next:  $post plot four quickstart.nc         # a figure, four.pdf
       $post rows quickstart.nc --advice     # what limits each row, and what to try
       $program --help"
