#!/bin/sh
# The roofs of all devices of this machine, measured by sweeps/roofs.ini with one rank per GPU (without GPUs:
# one on the CPU), beside theory and, for the chips of roofs_targets.ini, beside the figures to reach. Prints the wall time and
# a table ready to be put next to other tools. Exit status 1: a figure is not reached. KEEP.nc: where the result
# file goes. Usage: tests/bench/roofs.sh [BUILD [KEEP.nc]]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-build}" && pwd)
keep=${2:+$(realpath "$2")}
for python in python3 /usr/bin/python3; do
    "$python" -c 'import xarray, netCDF4' 2>/dev/null && break
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

seconds_most=20 # for all devices of the node

gpus=0
if [ -x "$build/bin/roofsweep-worker-cuda" ]; then
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU') || true
    [ -z "${CUDA_VISIBLE_DEVICES:-}" ] || gpus=$(echo "$CUDA_VISIBLE_DEVICES" | tr , '\n' | grep -c .)
fi
ranks=$([ "$gpus" -gt 0 ] && echo "$gpus" || echo 1)
launch() { mpirun -n "$ranks" --oversubscribe --bind-to none "$@"; }
before=$(date +%s.%N)
launch true
begin=$(date +%s.%N)
launch "$build/bin/roofsweep" --quiet "$root/sweeps/roofs.ini" >report || { cat report; exit 1; }
end=$(date +%s.%N)
echo "$before $begin $end $ranks $gpus" | awk -v most=$seconds_most '{
    launcher = $2 - $1
    seconds = $3 - $2
    note = seconds <= most ? ", of " most " s" : ": MORE THAN " most " s"
    printf "%d rank(s): roofs in %.1f s, launcher (%.1f s) and start-up included%s\n",
        $4, seconds, launcher, $5 ? note : ""
}'
[ -z "$keep" ] || cp roofs.nc "$keep"
"$python" "$root/postproc/roofsweep-post" roofs roofs.nc --targets "$root/tests/bench/roofs_targets.ini"
