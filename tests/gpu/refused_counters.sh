#!/bin/sh
# Makes CUPTI refuse counters for each possible cause. With `counters = auto` rows have the cause, and there is one
# message. With `counters = require` the sweep ends before it measures.
. "$(dirname "$0")/lib.sh"

write() { # write FILE COUNTERS
    cat >"$1" <<INI
[sweep]
device = cuda
[measure]
warmup = 1
iterations = 3
verify = no
counters = $2
[peaks]
memory = dram
compute = fp32
[conv2d a]
height = 32
width = 32
batch = 1, 2
INI
}
write auto.ini auto
write require.ini require
export LD_PRELOAD="$ROOFSWEEP_SHIM"

unpreloaded() {
    (unset LD_PRELOAD; "$@")
}

refused() { # refused CODE TEXT
    export ROOFSWEEP_SHIM_CODE="$1"
    expect 4 run "$gpus" require.ini
    says "counters = require"
    says "$2"
    [ ! -e require.nc.journal ] || fail "a refused sweep leaves a journal"
}
# the first argument of `refused` is a value of CUptiResult
refused 35 "this user may not read hardware counters"
refused 26 "another process holds this GPU's counters"
refused 39 "another profiler is attached to this process"
refused 41 "the GPU is in confidential computing mode"
refused 43 "the GPU is a slice of a shared one (MIG)"
refused 33 "the GPU is virtual"
refused 40 "the hypervisor forbids profiling"
refused 14 "the driver is too old"
expect 0 run "$gpus" --overwrite auto.ini
says "the driver is too old"
[ "$(grep -cF "refused: " output)" = 1 ] || { cat output; fail "not one message"; }
unpreloaded python '
import xarray
data = xarray.open_dataset("auto.nc").load()
assert (data.status == 0).all()
assert all(c.startswith("refused: the driver is too old") for c in data.counters.values), data.counters.values
assert "flops_counted" not in data and (data.flops_model > 0).all()
' || fail "rows without counters"

# a real second process on the GPU
unset ROOFSWEEP_SHIM_CODE
mkfifo requests
"$worker" <requests >other &
other=$!
exec 3>requests
echo '{"op":"describe","counters":"off"}' >&3
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s other ] || sleep 1; done
expect 0 run 1 --overwrite auto.ini
says "another process computes on this GPU"
expect 4 run 1 require.ini
says "another process computes on this GPU"
exec 3>&-
wait "$other"

# Counters are refused from the last collection on: the rows concerned have the cause, and the sweep continues. If rows
# are counted one by one, this is only the last row. If the batch is refused, its rows are then counted one by one, and
# each of them is refused.
lost() { # lost TOGETHER OUTCOMES
    unset ROOFSWEEP_SHIM_CODE ROOFSWEEP_SHIM_AFTER
    export ROOFSWEEP_SHIM_CALLS="$PWD/calls.$1"
    expect 0 run 1 --overwrite --set count_together="$1" auto.ini
    ROOFSWEEP_SHIM_AFTER=$(($(wc -c <"calls.$1") - 1))
    export ROOFSWEEP_SHIM_CODE=26 ROOFSWEEP_SHIM_AFTER
    expect 0 run 1 --overwrite --set count_together="$1" auto.ini
    unpreloaded python '
import sys, xarray
data = xarray.open_dataset("auto.nc").load()
assert (data.status == 0).all()
outcomes = sorted(c.split(":")[0] for c in data.counters.values)
assert outcomes == sys.argv[1].split(), data.counters.values
' "$2" || fail "counters lost in mid-sweep, $1 together"
}
lost 1 "counted refused"
lost 2 "refused refused"
