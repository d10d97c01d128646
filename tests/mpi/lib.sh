# shellcheck shell=sh
# Common to the whole-run tests; sourced. Each works in a folder of its own that is removed at the end.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # for those that source this
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Leaks inside MPI and OpenMP libraries are not ours to report; everything else of the sanitizers stays.
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# run RANKS ARGUMENTS...
run() {
    ranks=$1
    shift
    "$ROOFSWEEP_MPIRUN" -n "$ranks" --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" "$@"
}

# expect CODE COMMAND...: the exit status must be CODE; output goes to the file `output`.
expect() {
    code=$1
    shift
    status=0
    "$@" >output 2>&1 || status=$?
    [ "$status" = "$code" ] || { cat output; fail "exit status $status instead of $code: $*"; }
}

# says TEXT: `output` must hold it.
says() {
    grep -qF -- "$1" output || { cat output; fail "output does not say: $1"; }
}

# python CODE ARGUMENTS...
python() {
    code=$1
    shift
    "$ROOFSWEEP_PYTHON" -c "$code" "$@"
}

# complete FILE COUNT: COUNT rows, all measured, each configuration once.
complete() {
    python '
import sys, xarray
data = xarray.open_dataset(sys.argv[1])
rows, hashes = data.sizes["config"], set(data.config_hash.values)
assert rows == int(sys.argv[2]), f"{rows} rows"
assert len(hashes) == rows, f"{len(hashes)} different ones of {rows}"
assert (data.status == 0).all(), data.error.values[data.status.values != 0][:3]
assert (data.time_median > 0).all()
' "$1" "$2" || fail "$1 is not complete"
}

# wait_for_records PID COUNT LOG: the sweep of this process has so many records in sweep.nc.journal.
wait_for_records() {
    records=0
    while [ "$records" -lt "$2" ]; do
        kill -0 "$1" 2>/dev/null || { cat "$3"; fail "the sweep ended before it had $2 records"; }
        sleep 0.05
        records=$(grep -c '"kind":"record"' sweep.nc.journal 2>/dev/null || true)
        records=${records:-0}
    done
}

# A sweep of 200 small configurations that takes each rank a few seconds.
write_sweep() {
    cat >"$1" <<INI
[sweep]
title = 200 small configurations
device = cpu
timeout = 60 s
${2:-}
[measure]
warmup = 1
iterations = 3
[peaks]
memory = dram
compute = fp32
condition = together
[conv2d grid]
batch = 1, 2
height = 8:16:+2
width = 8:16:+2
channels = 4, 8
filters = 8, 16
kernel = 3
precision = fp32
INI
}
