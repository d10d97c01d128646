# shellcheck shell=sh
# Functions for tests of whole runs; sourced. Each test works in a temporary folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # used by the scripts that source this one
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# The MPI and OpenMP libraries leak. All other checks of the sanitizers stay on.
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# run RANKS ARGUMENTS...: roofsweep under mpirun.
run() {
    ranks=$1
    shift
    "$ROOFSWEEP_MPIRUN" -n "$ranks" --oversubscribe --bind-to none "$ROOFSWEEP_BIN/roofsweep" "$@"
}

# expect CODE COMMAND...: the exit status of the command must be CODE. Its output goes to the file `output`.
expect() {
    code=$1
    shift
    status=0
    "$@" >output 2>&1 || status=$?
    [ "$status" = "$code" ] || { cat output; fail "exit status $status instead of $code: $*"; }
}

# says TEXT: the file `output` must contain TEXT.
says() {
    grep -qF -- "$1" output || { cat output; fail "output does not say: $1"; }
}

# python CODE ARGUMENTS...: runs CODE by the Python that has xarray and netCDF4.
python() {
    code=$1
    shift
    "$ROOFSWEEP_PYTHON" -c "$code" "$@"
}

# some FILE LEAST MOST [DIFFERENT]: FILE must have LEAST to MOST rows, all measured, with DIFFERENT distinct
# configurations (default: as many as rows).
some() {
    python '
import sys, netCDF4 # starts in a third of the time of xarray
data = netCDF4.Dataset(sys.argv[1])
least, most = map(int, sys.argv[2:4])
status, hashes = data["status"][:], set(data["config_hash"][:])
assert least <= len(status) <= most, f"{len(status)} rows"
assert len(hashes) == int(sys.argv[4] if sys.argv[4:] else len(status)), f"{len(hashes)} different ones of {len(status)}"
assert (status == 0).all(), data["error"][:][status != 0][:3]
assert (data["time_median"][:] > 0).all()
' "$@" || fail "$1 has other rows"
}
# complete FILE COUNT [DIFFERENT]: as `some`, with exactly COUNT rows.
complete() {
    some "$1" "$2" "$2" ${3:+"$3"}
}

# write_sweep FILE [LINES]: writes a manifest of 200 small configurations, which take a rank a few seconds; LINES go into
# [sweep]. `batch=1 height=8 width=8 write_sweep sweep.ini` has 4 configurations.
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
memory = ${memory:-l1}
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

# wrap_workers: makes roofsweep start scripts, written by `worker`, instead of its workers. The copy of
# roofsweep looks for workers in its own folder. $REAL is the real CPU worker.
wrap_workers() {
    mkdir bin
    cp "$ROOFSWEEP_BIN/roofsweep" bin/
    export REAL="$ROOFSWEEP_BIN/roofsweep-worker-cpu"
    ROOFSWEEP_BIN=$work/bin
}

# worker SCRIPT [KIND]: makes SCRIPT the worker for this kind of device (default: cpu).
worker() {
    printf '#!/bin/sh\n%s\n' "$1" >"bin/roofsweep-worker-${2:-cpu}"
    chmod +x "bin/roofsweep-worker-${2:-cpu}"
}

# ranks_of LAUNCHER, rank_of LAUNCHER N: print the processes that the launcher has started, or the process of rank N.
ranks_of() {
    pgrep -P "$1" || true
}
rank_of() {
    for process in $(ranks_of "$1"); do
        tr '\0' '\n' <"/proc/$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$2" && echo "$process"
    done
    return 0
}

# all_of PROCESS: prints the process and all its descendants, children before parents.
all_of() {
    for process in $(ranks_of "$1"); do
        all_of "$process"
    done
    echo "$1"
}

# wait_until JOB LOG COMMAND...: waits until the command succeeds. The test fails if the job ends before.
wait_until() {
    until (shift 2; "$@"); do
        kill -0 "$1" 2>/dev/null || { cat "$2"; fail "the job ended before '$*'"; }
        sleep 0.05
    done
}

# records COUNT: whether sweep.nc.journal has at least COUNT records.
records() {
    [ -e sweep.nc.journal ] && [ "$(grep -c '"kind":"record"' sweep.nc.journal)" -ge "$1" ]
}

# has_programs: whether the build has commands as rows, -DROOFSWEEP_PROGRAMS=ON.
has_programs() {
    [ -x "$ROOFSWEEP_BIN/roofsweep-reaper" ]
}

# none_runs PATTERN: waits until no process of this test has a command line that matches PATTERN. (Processes of other
# tests have other working folders. A busy system may take seconds to end a process.)
none_runs() {
    for _ in $(seq 100); do
        left=""
        for process in $(pgrep -f "$1"); do
            [ "$(readlink "/proc/$process/cwd")" != "$work" ] || left="$left $process"
        done
        [ -n "$left" ] || return 0
        sleep 0.2
    done
    fail "processes are left:$left"
}

# none_left: waits until no rank and no worker of this test is left.
none_left() {
    none_runs "^($ROOFSWEEP_BIN/roofsweep|${REAL:-none})"
}
