#!/bin/sh
# Installs the packages that the build needs on Debian and Ubuntu; with the argument `tests`, also packages for the
# tests. Without root, it names missing packages and stops. CUDA, cuDNN and CUPTI come from NVIDIA's repository or a
# module; without them only the CPU parts are built.
set -eu

packages="gcc make cmake git pkg-config
libopenmpi-dev openmpi-bin libnetcdf-dev netcdf-bin libjansson-dev libxxhash-dev
libdnnl-dev libhwloc-dev python3 python3-xarray python3-netcdf4 python3-matplotlib procps"
# Slurm for two virtual nodes, linters, a compiler with a fuzzer, and third-party readers of result files.
tests="g++ dpkg-dev file libcmocka-dev slurm-wlm munge faketime util-linux strace nco udunits-bin ninja-build
clang libclang-rt-dev clang-format clang-tidy libomp-dev shellcheck python3-venv"

# Optional packages: Plotly for the report, a browser for its test (135 MB to download, 490 MB on disk), poppler-utils to
# check the fonts of figures. Ubuntu has no package of Chromium, so the test in a browser is skipped there.
optional="python3-plotly python3-h5netcdf python3-selenium chromium chromium-driver poppler-utils"

# Compiler of host code for nvcc.
PATH=$PATH:/usr/local/cuda/bin
if command -v nvcc >/dev/null; then packages="$packages g++"; fi

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
    echo "This is no Debian or Ubuntu: taking it that MPI, netCDF-C, jansson, xxHash," \
         "oneDNN, hwloc and, for tests, cmocka are there (modules, Spack); cmake will name what it does not find." >&2
    exit 0
fi

missing=""
for package in $packages; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done

wanted=""
for package in ${tested:+$optional}; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || wanted="$wanted $package"
done

if [ -n "$missing" ] && [ "$(id -u)" -ne 0 ]; then
    echo "Missing packages:$missing" >&2
    echo "Install them, or ask an administrator:  sudo apt-get install$missing" >&2
    exit 1
elif [ -n "$missing$wanted" ] && [ "$(id -u)" -eq 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    for package in $wanted; do
        if apt-cache show "$package" >/dev/null 2>&1; then missing="$missing $package"; fi
    done
    # shellcheck disable=SC2086 # one word per package
    apt-get install -y -q --no-install-recommends $missing
fi

# Neither distribution has a package of ruff, so ruff is installed where tests/lint.sh looks for it. ruff is left out if
# there is no network.
tools=$(dirname "$0")/../build/tools
if [ -n "$tested" ] && [ ! -x "$tools/bin/ruff" ]; then
    { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet ruff==0.17.6; } ||
        echo "ruff could not be installed into build/tools/ from PyPI" >&2
fi

# With nvcc, the test of the roofs' machine code needs disassemblers. They are installed where
# tests/gpu/disassembly.sh looks for them.
if [ -n "$tested" ] && command -v nvcc >/dev/null && ! command -v cuobjdump >/dev/null && [ -x "$tools/bin/pip" ]; then
    "$tools/bin/pip" install --quiet nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37 ||
        echo "the disassemblers of CUDA could not be installed into build/tools/ from PyPI" >&2
fi
