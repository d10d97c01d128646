#!/bin/sh
# Builds and runs all tests: installs missing packages (or names them, without root), builds into build/ and, with
# sanitizers, into build-asan/, and runs the tests of both builds, lints included, as one list. Ends with ctest's summary.
#
# In the environment: CUDAARCHS, the architectures of CUDA to build for (default: those of this machine's GPUs, or 90);
# ROOFSWEEP_WERROR=ON makes warnings errors, as in CI; ROOFSWEEP_TIDY=--all lets clang-tidy check all files, not only the
# changed ones.
set -eu
cd "$(dirname "$0")/.."

cores=$(nproc)
echo "tests/run.sh: about $((4 + 12 / cores)) minutes on $cores idle cores, build included"
jobscripts/install-dependencies.sh tests
# An existing build folder keeps its generator and its architectures of CUDA.
! command -v ninja >/dev/null || export CMAKE_GENERATOR="${CMAKE_GENERATOR:-Ninja}"
if [ -x "$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)" ] &&
    ! grep -qs '^CMAKE_CUDA_ARCHITECTURES' build/CMakeCache.txt; then
    gpus=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -u | paste -sd ';')
    set -- "-DCMAKE_CUDA_ARCHITECTURES=${CUDAARCHS:-${gpus:-90}}"
fi

for preset in release asan+ubsan; do
    began=$(date +%s)
    [ "$preset" = release ] || set --
    cmake --preset "$preset" -DROOFSWEEP_WERROR="${ROOFSWEEP_WERROR:-OFF}" -DROOFSWEEP_TESTS=ON "$@"
    cmake --build --preset "$preset" --parallel "$cores"
    echo "$preset: built in $(($(date +%s) - began)) s"
done
# Twice as many tests as cores, because whole runs wait more than they compute.
mkdir -p build/all-tests
printf 'subdirs("%s" "%s")\n' "$PWD/build-asan" "$PWD/build" >build/all-tests/CTestTestfile.cmake
exec ctest --test-dir build/all-tests --parallel $((2 * cores)) --output-on-failure --no-tests=error
