#!/bin/sh
# Everything that a whole node is asked, one after the other: all roofs; how sweeps scale over its GPUs; the same 40
# configurations on each, and whether any of them stands out; workers and ranks killed at random; the self-test on all
# GPUs at once. Each step is bounded, and the next one follows whatever comes out. Prints a line for each step; files and
# logs are kept in FOLDER. Exit status 1: a step failed.
# Usage: tests/bench/node.sh FOLDER [BUILD [GPUS]]
# In the environment: WORKER, cuda (default) or cpu, with as many ranks as GPUS, which share the cores; STEPS, those
# that run: "roofs scaling replicate compare storm self-test" if nothing is said.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
build=$(cd "${2:-build}" && pwd)
worker=${WORKER:-cuda}
gpus=${3:-$(nvidia-smi -L | grep -c '^GPU')}
for python in "${ROOFSWEEP_PYTHON:-python3}" python3 /usr/bin/python3; do
    "$python" -c 'import xarray, netCDF4' 2>/dev/null && break
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$folder"
failures=0

# step SECONDS NAME COMMAND...: its output goes to NAME.txt.
step() {
    limit=$1
    name=$2
    shift 2
    case " ${STEPS:-roofs scaling replicate compare storm self-test} " in
    *" $name "*) ;;
    *) return 0 ;;
    esac
    begin=$(date +%s)
    status=0
    timeout "$limit" "$@" >"$name.txt" 2>&1 || status=$?
    [ "$status" = 0 ] || failures=$((failures + 1))
    echo "$name: status $status, $(($(date +%s) - begin)) s; $(tail -n 1 "$name.txt")"
}

# sweep MANIFEST OPTIONS...: on every GPU.
sweep() {
    manifest=$1
    shift
    echo mpirun -n "$gpus" --oversubscribe --bind-to none "$build/bin/roofsweep" -d "$worker" --quiet --overwrite "$@" \
        "$root/sweeps/$manifest"
}

# Counts of 1, 2, 4, ... GPUs, up to all.
powers() {
    count=1
    while [ "$count" -lt "$gpus" ]; do
        echo "$count"
        count=$((2 * count))
    done
    echo "$gpus"
}

# One process for each GPU, all at once.
cat >self-test.sh <<SH
status=0
for gpu in \$(seq 0 $((gpus - 1))); do
    CUDA_VISIBLE_DEVICES=\$gpu "$build/bin/roofsweep" --self-test >self-test-\$gpu.txt 2>&1 &
    eval "process_\$gpu=\$!"
done
for gpu in \$(seq 0 $((gpus - 1))); do
    eval "wait \\\$process_\$gpu" || { status=1; echo "GPU \$gpu: \$(grep -c wrong self-test-\$gpu.txt) lines are wrong"; }
    echo "GPU \$gpu: \$(tail -n 1 self-test-\$gpu.txt)"
done
exit \$status
SH

# shellcheck disable=SC2046 # words
{
    step 60 roofs $(sweep roofs.ini -o "$folder/roofs.nc")
    WORKER=$worker ROUNDS=1 TOGETHER="${TOGETHER:-16}" step 200 scaling "$root/tests/bench/scaling.sh" "$build" $(powers)
    step 90 replicate $(sweep node.ini --set reuse=roofs.nc -o "$folder/node.nc")
}
step 30 compare "$python" "$root/postproc/roofsweep-post" compare node.nc
step 120 storm "$python" "$root/tests/bench/kills.py" --kills 10 --jobs 1 --worker "$worker" --ranks "$gpus" --build "$build"
[ "$worker" != cuda ] || step 60 self-test sh self-test.sh
[ "$failures" = 0 ]
