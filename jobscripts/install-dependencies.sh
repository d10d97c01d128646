#!/bin/sh
# Installs what roofsweep is built with on Debian and Ubuntu, and with the argument `tests` what it is tested with as
# well. Without root it names what is missing and stops. Does nothing where all is there. CUDA, cuDNN and CUPTI come
# from NVIDIA's repository or a module; without them the CPU parts are built.
set -eu

packages="gcc g++ make cmake git pkg-config
libopenmpi-dev openmpi-bin libnetcdf-dev netcdf-bin libjansson-dev libxxhash-dev
libopenblas-dev libhwloc-dev python3 python3-xarray python3-netcdf4 python3-matplotlib procps"
# Two Slurm nodes, the linters, a compiler with a fuzzer, and programs that others read our files with.
# python3-venv: ruff is in neither distribution; tests/lint.sh installs it into build/ from PyPI.
tests="libcmocka-dev slurm-wlm munge util-linux strace nco udunits-bin ninja-build ccache
clang libclang-rt-dev clang-format clang-tidy shellcheck python3-venv"

case "${1:-}" in
'') ;;
tests) packages="$packages $tests" ;;
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
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "Missing packages:$missing" >&2
    echo "Install them, or ask an administrator:  sudo apt-get install$missing" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086 # one word per package
apt-get install -y -q --no-install-recommends $missing
