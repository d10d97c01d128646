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

# some FILE LEAST MOST [DIFFERENT]: so many rows, all measured, of different configurations, or of so many different ones.
some() {
    python '
import sys, netCDF4 # which starts in a third of the time of xarray
data = netCDF4.Dataset(sys.argv[1])
least, most = map(int, sys.argv[2:4])
status, hashes = data["status"][:], set(data["config_hash"][:])
assert least <= len(status) <= most, f"{len(status)} rows"
assert len(hashes) == int(sys.argv[4] if sys.argv[4:] else len(status)), f"{len(hashes)} different ones of {len(status)}"
assert (status == 0).all(), data["error"][:][status != 0][:3]
assert (data["time_median"][:] > 0).all()
' "$@" || fail "$1 has other rows"
}
# complete FILE COUNT [DIFFERENT]
complete() {
    some "$1" "$2" "$2" ${3:+"$3"}
}

# write_sweep FILE [LINES]: 200 small configurations that take each rank a few seconds; LINES of [sweep]. Fewer with
# batch, height and width in front: of these, `batch=1 height=8 width=8 write_sweep sweep.ini` has 4.
write_sweep() {
    cat >"$1" <<INI
[sweep]
title = small configurations
device = cpu
timeout = 60 s
${2:-}
[measure]
warmup = 1
iterations = 3
[peaks]
memory = ${memory:-dram}
compute = fp32
condition = together
[conv2d grid]
batch = ${batch:-1, 2}
height = ${height:-8:16:+2}
width = ${width:-8:16:+2}
channels = 4, 8
filters = 8, 16
kernel = 3
precision = fp32
INI
}

# roofsweep looks for its workers beside itself: from now on there are only those that `worker` writes, for the real one
# in front of which they stand.
wrap_workers() {
    mkdir bin
    cp "$ROOFSWEEP_BIN/roofsweep" bin/
    export REAL="$ROOFSWEEP_BIN/roofsweep-worker-cpu"
    ROOFSWEEP_BIN=$work/bin
}

# worker SCRIPT [KIND]
worker() {
    printf '#!/bin/sh\n%s\n' "$1" >"bin/roofsweep-worker-${2:-cpu}"
    chmod +x "bin/roofsweep-worker-${2:-cpu}"
}

# ranks_of LAUNCHER, rank_of LAUNCHER N: processes that it has started.
ranks_of() {
    pgrep -P "$1" || true
}
rank_of() {
    for process in $(ranks_of "$1"); do
        tr '\0' '\n' <"/proc/$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$2" && echo "$process"
    done
    return 0
}

# all_of PROCESS: what it has started, and itself at last.
all_of() {
    for process in $(ranks_of "$1"); do
        all_of "$process"
    done
    echo "$1"
}

# wait_until JOB LOG COMMAND...: the job must not end before the command succeeds.
wait_until() {
    until (shift 2; "$@"); do
        kill -0 "$1" 2>/dev/null || { cat "$2"; fail "it ended before '$*'"; }
        sleep 0.05
    done
}

# records COUNT: sweep.nc.journal has so many.
records() {
    [ -e sweep.nc.journal ] && [ "$(grep -c '"kind":"record"' sweep.nc.journal)" -ge "$1" ]
}

# none_left: no process of this build is there any more. The kernel may take its time.
none_left() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        pgrep -f "^($ROOFSWEEP_BIN/roofsweep|${REAL:-none})" >left || return 0
        sleep 0.2
    done
    fail "processes are left: $(cat left)"
}
