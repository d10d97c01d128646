#!/bin/sh
# Programs that a profiler does not expect, each as a row: what comes out is what docs/programs.md says.
. "$(dirname "$0")/../mpi/lib.sh"
[ -x "$ROOFSWEEP_BIN/roofsweep-worker-cuda" ] && [ -n "${ROOFSWEEP_HOSTILE:-}" ] || exit 77
nvidia-smi -L 2>/dev/null | grep -q GPU || exit 77
cat >hostile.ini <<END
[sweep]
timeout = 60 s
retries = 0
[measure]
kernels = yes
[peaks]
memory = dram
compute = fp32
launch = no
transfer = no
[program hostile]
command = $ROOFSWEEP_HOSTILE {mode}
mode = usual, threads, streams, graph, cooperative, context, child, children, fork, exit, exit-after, profiler, never, unsteady, uneven
precision = fp32
iterations = 8
[program several]
command = $ROOFSWEEP_HOSTILE {mode}
mode = regions, graphs
ungraphed.mode = regions
precision = fp32
iterations = 8
[program replayed]
command = $ROOFSWEEP_HOSTILE {mode}
mode = usual, unsteady
precision = fp32
replay = kernel
iterations = 8
END
status=0
"$ROOFSWEEP_BIN/roofsweep" -q -d cuda -o hostile.nc hostile.ini >output 2>&1 || status=$?
[ "$status" = 3 ] || { cat output; fail "exit status $status instead of 3: some rows have no region"; }
cp hostile.nc "${ROOFSWEEP_KEEP:-.}/" 2>/dev/null || true
python '
import sys, xarray
every = xarray.open_dataset("hostile.nc").load()

def labelled(label):
    return every.isel(config=(every.label == label).values).set_index(config="axis_mode")

data = labelled("hostile")
flops = 2.0 * 64 * 128 * 1000
faults = []

def expect(mode, condition, text):
    if not condition:
        faults.append(f"{mode}: {text}")

for mode in data.config.values:
    row = data.sel(config=mode)
    print(f"{mode:<12} {int(row.status)} time {float(row.time_median):.3g} launches {float(row.launches):.0f} "
          f"flops {float(row.flops_counted):.0f} counters {row.counters.item()} error {row.error.item()}")
for mode in ("usual", "threads", "streams", "cooperative", "fork", "exit-after", "profiler"):
    row = data.sel(config=mode)
    expect(mode, row.status == 0 and row.launches == 1, "not one launch an iteration")
    expect(mode, row.counters.item() == "counted", row.counters.item())
    expect(mode, row.flops_counted == flops, f"{row.flops_counted.item()} FLOPs instead of {flops}")
row = data.sel(config="graph")
expect("graph", row.launches == 1 and row.flops_counted != row.flops_counted, "flops of a graph")
expect("graph", "CUDA graphs" in row.counters.item(), row.counters.item())
row = data.sel(config="child") # its parent has allocated before, and holds the counters
expect("child", row.status == 0 and row.launches == 1 and "another process" in row.counters.item(), row.counters.item())
expect("context", data.sel(config="context").counters.item().startswith(("incomplete", "refused")), "counted")
expect("unsteady", "something else each time" in data.sel(config="unsteady").counters.item(), "counted")
for mode, word in (("exit", "region"), ("never", "region"), ("children", "several processes")):
    row = data.sel(config=mode)
    expect(mode, row.status == 2 and word in row.error.item(), row.error.item())
# Regions that differ are counted in runs of their own.
row = data.sel(config="uneven")
expect("uneven", row.counters.item() == "counted" and row.flops_counted == flops, row.counters.item())
several, replayed = labelled("several"), labelled("replayed")
for row in [several.sel(config=mode) for mode in ("regions", "graphs")] + [replayed.sel(config="usual")]:
    mode = str(row.config.item())
    expect(mode, row.counters.item() == "counted" and row.flops_counted == flops, row.counters.item())
    kernels = every.kernel_config.values == int((every.config_hash == row.config_hash).argmax())
    found = every.kernel_flops_counted.values[kernels]
    expect(mode, list(found) == [flops], f"FLOPs by kernel {found}")
row = several.sel(config="regions")  # of the eight iterations that a region holds
expect("regions", row.memcpy_bytes == 64 * 128 * 4 / 8 and row.memset_bytes == row.memcpy_bytes, "copies and fills")
row = replayed.sel(config="unsteady")  # one of 1 to 5 launches in eight iterations
expect("replayed unsteady", row.flops_counted * 8 % flops == 0, f"{row.flops_counted.item()}, {row.counters.item()}")
print("\n".join(faults))
sys.exit(bool(faults))
' || fail "hostile programs"
