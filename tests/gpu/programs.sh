#!/bin/sh
# Programs that are difficult for a profiler, each as a row, have the results that docs/programs.md describes.
. "$(dirname "$0")/../mpi/lib.sh"
[ -x "$ROOFSWEEP_BIN/roofsweep-worker-cuda" ] && [ -n "${ROOFSWEEP_HOSTILE:-}" ] || exit 77
nvidia-smi -L 2>/dev/null | grep -q GPU || exit 77
# settings LINE [COUNTERS]: prints the sections before those of programs, with LINE in [peaks]. A row that hangs ends
# after 90 % of `timeout`.
settings() {
    cat <<END
[sweep]
timeout = 15 s
retries = 0
[measure]
kernels = yes
counters = ${2:-auto}
[peaks]
memory = dram
compute = fp32
launch = no
transfer = no
$1
END
}
# sweep NAME: measures NAME.ini into NAME.nc, and sets $status. Rows that cannot end within ROOFSWEEP_TIME_LIMIT are
# left out.
sweep() {
    status=0
    "$ROOFSWEEP_BIN/roofsweep" -q -d cuda --time-limit "${ROOFSWEEP_TIME_LIMIT:-none}" -o "$1.nc" "$1.ini" >"$1.log" 2>&1 ||
        status=$?
    cat "$1.log"
    cp "$1.nc" "${ROOFSWEEP_KEEP:-.}/" 2>/dev/null || true
}
common='
import sys, xarray
every = xarray.open_dataset(sys.argv[1]).load()
flops = 2.0 * 64 * 128 * 1000
unknown = dict(zip(every.limiter.attrs["flag_meanings"].split(), every.limiter.attrs["flag_values"]))["unknown"]
faults = []

def labelled(label):
    return every.isel(config=(every.label == label).values).set_index(config="axis_mode")

def expect(mode, condition, text):
    if not condition:
        faults.append(f"{mode}: {text}")

for _, row in every.groupby("config"):
    row = row.squeeze()
    print(f"{row.label.item():<10} {row.axis_mode.item():<12} {int(row.status)} time {float(row.time_median):.3g} "
          f"launches {float(row.launches):.0f} flops {float(row.flops_counted):.0f} limit {row.limit.item()} "
          f"host {float(row.host_paced):.0f} "
          f"counters {row.counters.item()} error {row.error.item()}")
'
end='
print("\n".join(faults))
sys.exit(bool(faults))
'

# Programs with several regions, and programs with `replay = kernel`.
{
    settings "" causes
    cat <<END
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
[program hostile]
command = $ROOFSWEEP_HOSTILE {mode}
mode = uneven
precision = fp32
iterations = 8
END
} >several.ini
sweep several
wrong=
case "$status${ROOFSWEEP_TIME_LIMIT:+ limited}" in
    0 | "0 limited" | "5 limited") ;;
    *) wrong="exit status $status of several.ini;" ;;
esac
python "$common"'
several, replayed, hostile = labelled("several"), labelled("replayed"), labelled("hostile")
exact = [data.sel(config=mode) for data, mode in ((several, "regions"), (several, "graphs"), (replayed, "usual"))
         if mode in data.config]
for row in exact:
    mode = str(row.config.item())
    expect(mode, row.counters.item() == "counted" and row.flops_counted == flops, row.counters.item())
    kernels = every.kernel_config.values == list(every.config_hash.values).index(row.config_hash.item())
    found = every.kernel_flops_counted.values[kernels] if "kernel_flops_counted" in every else []
    expect(mode, list(found) == [flops], f"FLOPs by kernel {found}")
    active = every.kernel_activity.isel(kernel=kernels).sel(activity="multiprocessors").values
    whole = float(row.time_part.sum())  # the program rows of a GPU have no timer
    expect(mode, len(active) == 1 and 0 < active[0] < 1.1, f"active {active}")
    expect(mode, abs(whole / float(row.time_median) - 1) < 0.01, f"sum of the parts {row.time_part.values}")
    expect(mode, row.time_part.sel(part="inside_kernels") == 0, "kernels without activities")
    expect(mode, row.limit.item() and row.limiter != unknown, "unknown limit")
if "regions" in several.config:
    row = several.sel(config="regions")  # a region holds eight iterations
    moved = [float(row[name]) if name in row else None for name in ("memcpy_bytes", "memset_bytes")]
    expect("regions", moved == 2 * [64 * 128 * 4 / 8], f"copies and fills of {moved} bytes")
if "unsteady" in replayed.config:
    row = replayed.sel(config="unsteady")  # 1 to 5 launches in eight iterations
    expect("replayed unsteady", row.flops_counted * 8 % flops == 0, f"{row.flops_counted.item()}, {row.counters.item()}")
if "uneven" in hostile.config:  # regions that differ are counted in runs of their own
    row = hostile.sel(config="uneven")
    expect("uneven", row.counters.item().startswith("counted, but without causes: ") and row.flops_counted == flops, row.counters.item())
'"$end" several.nc || wrong="$wrong several regions;"

# Modes of hostile.cu without counts come first, because they end quickly.
{
    settings "reuse = several.nc"
    cat <<END
[program hostile]
command = $ROOFSWEEP_HOSTILE {mode}
mode = exit, never, children, context, fork, exit-after, profiler, cooperative, child, graph, unsteady, usual, threads, streams, illegal
precision = fp32
iterations = 8
END
} >hostile.ini
sweep hostile
case "$status${ROOFSWEEP_TIME_LIMIT:+ limited}" in
    3 | "3 limited" | "5 limited") ;;
    *) wrong="$wrong exit status $status of hostile.ini instead of 3: some rows have no region;" ;;
esac
python "$common"'
data = labelled("hostile")
found = set(data.config.values)
for mode in found & {"usual", "threads", "streams", "cooperative", "fork", "exit-after", "profiler"}:
    row = data.sel(config=mode)
    expect(mode, row.status == 0 and row.launches == 1, "not one launch an iteration")
    expect(mode, row.counters.item() == "counted", row.counters.item())
    expect(mode, row.flops_counted == flops, f"{row.flops_counted.item()} FLOPs instead of {flops}")
if "graph" in found:
    row = data.sel(config="graph")
    expect("graph", row.launches == 1 and row.flops_counted != row.flops_counted, "flops of a graph")
    expect("graph", "CUDA graphs" in row.counters.item(), row.counters.item())
if "child" in found:  # its parent has allocated before, and holds the counters
    row = data.sel(config="child")
    expect("child", row.status == 0 and row.launches == 1 and "another process" in row.counters.item(), row.counters.item())
if "context" in found:
    expect("context", data.sel(config="context").counters.item().startswith(("incomplete", "refused")), "counted")
if "unsteady" in found:
    expect("unsteady", "something else each time" in data.sel(config="unsteady").counters.item(), "counted")
if "illegal" in found:  # an error of the driver, which ends the program and is no fault of the device
    xid = {name: [float(at.sel(health=name)[0]) for at in (every.device_health_start, every.device_health_end)]
           for name in ("xids", "xids_of_programs", "xid_last")}
    print("XIDs at start and end:", xid)
    expect("illegal", xid["xids"] == [0, 0] and xid["xids_of_programs"][0] == 0 < xid["xids_of_programs"][1]
           and xid["xid_last"][1] in (13, 31, 43, 45), "no XID of a program")
for mode, word in (("exit", "region"), ("never", "region"), ("children", "several processes")):
    if mode in found:
        row = data.sel(config=mode)
        expect(mode, row.status == 2 and word in row.error.item(), row.error.item())
'"$end" hostile.nc || wrong="$wrong hostile programs"
[ -z "$wrong" ] || fail "$wrong"
