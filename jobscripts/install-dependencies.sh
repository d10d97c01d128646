#!/bin/sh
# Installs what roofsweep is built with on Debian and Ubuntu, and with the argument `tests` what it is tested with as
# well. Without root it names what is missing and stops. Does nothing where all is there. CUDA, cuDNN and CUPTI come
# from NVIDIA's repository or a module; without them the CPU parts are built.
set -eu

packages="gcc g++ make cmake git pkg-config
libopenmpi-dev openmpi-bin libnetcdf-dev netcdf-bin libjansson-dev libxxhash-dev
libopenblas-dev libhwloc-dev python3 python3-xarray python3-netcdf4 python3-matplotlib procps"
# Two Slurm nodes, the linters, a compiler with a fuzzer, and programs that others read our files with.
tests="libcmocka-dev slurm-wlm munge util-linux strace nco udunits-bin ninja-build
clang libclang-rt-dev clang-format clang-tidy shellcheck python3-venv"

tested=""
case "${1:-}" in
'') ;;
tests)
    tested=yes
    packages="$packages $tests"
    ;;
*)
    echo "usage: $0 [tests]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
    echo "This is no Debian or Ubuntu: taking it that MPI, netCDF-C, jansson, xxHash, a CBLAS," \
         "hwloc and, for tests, cmocka are there (modules, Spack); cmake will name what it does not find." >&2
    exit 0
fi

missing=""
for package in $packages; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done

if [ -n "$missing" ] && [ "$(id -u)" -ne 0 ]; then
    echo "Missing packages:$missing" >&2
    echo "Install them, or ask an administrator:  sudo apt-get install$missing" >&2
    exit 1
elif [ -n "$missing" ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    # shellcheck disable=SC2086 # one word per package
    apt-get install -y -q --no-install-recommends $missing
fi

# ruff is a package of neither distribution; tests/lint.sh finds it here. Without a network it is done without.
tools=$(dirname "$0")/../build/tools
if [ -n "$tested" ] && [ ! -x "$tools/bin/ruff" ]; then
    { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet ruff==0.17.6; } ||
        echo "ruff could not be installed into build/tools/ from PyPI" >&2
fi

# The test of the roofs' machine code needs disassemblers: those of nvcc's release, where its repository is known.
PATH=$PATH:/usr/local/cuda/bin
if [ -n "$tested" ] && [ "$(id -u)" -eq 0 ] && ! command -v cuobjdump >/dev/null; then
    release=$({ nvcc --version 2>/dev/null || true; } | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\),.*/\1-\2/p')
    for package in ${release:+"cuda-cuobjdump-$release" "cuda-nvdisasm-$release"}; do
        ! apt-cache show "$package" >/dev/null 2>&1 || apt-get install -y -q --no-install-recommends "$package"
    done
fi
