#!/bin/sh
# Roofs of the devices of a node: measured alone and together, reused, and with workers that fail.
. "$(dirname "$0")/lib.sh"
[ "$(nproc)" -ge 2 ] || exit 77 # two ranks on one core are one device
memory=l1 batch=1 height=8 width=8 write_sweep sweep.ini
sed -i 's/^condition = .*/condition = both/' sweep.ini

# A worker without a rank lists the roofs of this machine.
printf '%s\n' '{"op":"tune","memory":["l1"],"compute":["fp32"],"launch":true}' |
    "$ROOFSWEEP_BIN/roofsweep-worker-cpu" >tuned.json

# roofs FILE CODE: runs CODE on FILE. CODE sees `of(device, condition)`, which returns {name: roof}, and `wanted`, the
# names of all roofs of this machine.
roofs() {
    python '
import json, sys, numpy, xarray
data = xarray.open_dataset(sys.argv[1], decode_times=False).load()
def of(device, condition):
    rows = (data.device_roof_device == device) & (data.device_roof_condition == condition)
    return {name: data.isel(device_roof=i) for i, name in enumerate(data.device_roof_name.values)
            if rows.values[i]}
wanted = set(json.load(open("tuned.json"))["roofs"])
assert {"l1 copy", "l1 read", "fp32 vector", "launch gap"} <= wanted, wanted
'"$2" "$1" || fail "$1"
}

expect 0 run 2 sweep.ini
roofs sweep.nc '
for device in 0, 1:
    alone, together = of(device, 0), of(device, 1)
    assert set(alone) == wanted and set(together) == wanted, (set(alone), set(together))
    for row in alone.values():
        values = [row.device_roof_bandwidth, row.device_roof_performance, row.device_roof_time]
        assert numpy.isfinite(values).sum() == 1 and numpy.nanmax(values) > 0, row
        assert row.device_roof_spread >= 0
        # means are relative to the best sample, but means of times to the median, so that they may exceed 1
        assert 0 < row.device_roof_mean and (row.device_roof_mean <= 1 or row.device_roof_time > 0)
        assert row.device_roof_setting
        assert row.device_roof_verdict == 0 # no counters, no theory
    peak = data.device_peak_bandwidth[device, list(data.memory_level.values).index("l1")]
    best = max(row.device_roof_bandwidth for name, row in together.items() if name.startswith("l1"))
    assert peak == best, (peak, best)
# In roofs measured together, no device begins a roof before both devices have begun the previous one. In roofs measured
# alone, one device measures after the other.
rounds = sorted([float(of(device, 1)[name].device_roof_start_time) for device in (0, 1)] for name in wanted)
assert all(max(one) < min(then) for one, then in zip(rounds, rounds[1:])), rounds
spans = [[row.device_roof_start_time for row in of(device, 0).values()] for device in (0, 1)]
assert max(spans[0]) < min(spans[1]) or max(spans[1]) < min(spans[0]), spans
assert data.sizes["device_roof"] == 4 * len(wanted)
'

# With `reuse` all roofs come from another file, which is named, and none is measured.
sed 's/^condition = .*/reuse = sweep.nc/' sweep.ini >again.ini
expect 0 run 2 again.ini
roofs again.nc '
before = xarray.open_dataset("sweep.nc", decode_times=False).load()
assert (data.device_roofs_reused == "sweep.nc").all()
assert "device_roofs_reused" not in before
def by_uuid(data): # the order of devices may differ between runs
    uuids = data.device_uuid.values
    rows = numpy.argsort(uuids[data.device_roof_device.values], kind="stable")
    return data.isel(device=numpy.argsort(uuids), device_roof=rows)
for name in "device_roof_bandwidth", "device_roof_start_time", "device_peak_bandwidth":
    assert numpy.array_equal(by_uuid(before)[name], by_uuid(data)[name], equal_nan=True), name
assert (data.status == 0).all()
'
# A single rank has all cores. The file lacks this device, so its roofs are measured.
expect 0 "$ROOFSWEEP_BIN/roofsweep" --output other.nc again.ini
says "sweep.nc has no roofs of 1 of the 1 devices"
roofs other.nc '
assert set(of(0, 0)) == wanted and not of(0, 1)
assert "device_roofs_reused" not in data
'

# If a worker dies at one roof, all other roofs and the rows are measured.
wrap_workers
worker '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$REAL"
while read -r line; do
    case $line in *\"l1\ copy\"*) echo "the bus is gone" >&2; break ;; esac
    printf "%s\n" "$line"
done | "$REAL"'
expect 0 run 2 --output lost.nc sweep.ini
roofs lost.nc '
assert set(of(0, 0)) == wanted and set(of(1, 0)) == wanted
for device in 0, 1:
    rank = int(str(data.device_key.values[device]).split("/")[1])
    for name, row in of(device, 0).items():
        values = [row.device_roof_bandwidth, row.device_roof_performance, row.device_roof_time]
        if rank == 1 and name == "l1 copy":
            assert numpy.isnan(values).all() and "not measured" in str(row.device_roof_setting.values)
        else:
            assert numpy.isfinite(values).any(), (rank, name)
assert (data.status == 0).all()
'
says " roofs have no value: l1 copy, alone: not measured: "

# If a worker dies whenever it tunes, there are no roofs, and the log has the reason.
worker '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$REAL"
while read -r line; do
    case $line in *\"tune\"*) exit 7 ;; esac
    printf "%s\n" "$line"
done | "$REAL"'
expect 0 run 2 --output none.nc sweep.ini
says "roofs not tuned"
roofs none.nc '
rank = [int(str(key).split("/")[1]) for key in data.device_key.values]
assert set(of(rank.index(0), 0)) == wanted and not of(rank.index(1), 0)
assert numpy.isnan(data.device_peak_bandwidth[rank.index(1)]).all()
assert (data.status == 0).all()
'

# If a worker sends a reply twice, later replies belong to other roofs than the requested ones. The rank rejects and
# logs them.
worker '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$REAL"
"$REAL" | while read -r line; do
    case $line in *\"reply\":\"roof\"*) printf "%s\n" "$line" ;; esac
    printf "%s\n" "$line"
done'
expect 0 run 2 --output twice.nc sweep.ini
says "about something else"
roofs twice.nc '
rank = [int(str(key).split("/")[1]) for key in data.device_key.values]
own = of(rank.index(1), 0)
assert set(own) == wanted
lost = {name for name, row in own.items() if "about something" in str(row.device_roof_setting.values)}
untried = {name for name, row in own.items() if "its workers" in str(row.device_roof_setting.values)}
assert len(lost) == 3 and len(untried) == len(wanted) - 6, (lost, untried)
assert set(of(rank.index(1), 1)) == wanted - lost
'

# If a node has devices of two kinds, the devices of a kind measure together, one kind after the other.
worker '[ "$OMPI_COMM_WORLD_RANK" -lt 2 ] || exit 7
"$REAL" | sed -u "s/\"kind\":\"cpu\"/\"kind\":\"cuda\"/
                 s/\"uuid\":\"[^\"]*\"/\"uuid\":\"GPU-$OMPI_COMM_WORLD_RANK\"/"' cuda
worker 'exec "$REAL"'
printf '[sweep]\ndistribute = replicate\n[peaks]\nmemory = l1\ncompute = fp32\n' >mixed.ini
expect 0 run 4 mixed.ini
roofs mixed.nc '
kinds = [str(kind) for kind in data.device_kind.values]
starts = {kind: [float(of(device, 1)["l1 read"].device_roof_start_time)
                 for device in range(4) if kinds[device] == kind] for kind in ("cuda", "cpu")}
assert len(starts["cuda"]) == len(starts["cpu"]) == 2, starts
assert max(starts["cuda"]) < min(starts["cpu"]), starts
'

# Together, each device works until all devices have their samples. Sustained values are measured after all bursts. A
# roof that is measured alone is measured again if its samples differ by more than 20 %.
worker 'tee -a "$OMPI_COMM_WORLD_RANK.requests" | sed -u "s/tf32 tensor mma/fp32 vector/" | "$REAL" |
sed -u "s/fp32 vector/tf32 tensor mma/; s/\"kind\":\"cpu\"/\"kind\":\"cuda\"/
        s/\"uuid\":\"[^\"]*\"/\"uuid\":\"GPU-$OMPI_COMM_WORLD_RANK\"/
        s/\(\"l1 read\".*\"spread\":\)[^,]*/\10.9/; s/\(\"l1 write\".*\"spread\":\)[^,]*/\10.1/"' cuda
printf '[sweep]\ndistribute = replicate\ndevice = cuda\n[peaks]\nmemory = l1\ncompute = fp32\n' >settle.ini
expect 0 run 2 settle.ini
python '
import json
for rank in 0, 1:
    requests = [json.loads(line) for line in open(f"{rank}.requests")]
    roofs = [request for request in requests if request["op"] == "roof"]
    assert len(roofs) >= 10, requests
    names = [(request["name"], request["condition"]) for request in roofs]
    times = [names.count((name, condition)) for name in ("l1 read", "l1 write") for condition in ("alone", "together")]
    assert times == [2, 1, 1, 1], names
    settled = [request for request in roofs if request.get("only_sustained")]
    assert [request["name"] for request in settled] == ["tf32 tensor mma"] and settled == roofs[-1:], settled
    for request in roofs:
        together, compute = request["condition"] == "together", request["name"] == "tf32 tensor mma"
        assert request["keep_busy"] == together, request
        if request not in settled:
            assert (request["start"] > 0) == together and request["sustained"] == (together and not compute), request
    assert settled[0]["condition"] == "together" and settled[0]["sustained"], settled
    at = requests.index(roofs[-1]) # the request that follows the last roof
    assert [request["op"] for request in requests[at + 1:at + 3]] == ["devices", "release"], requests[at:]
'
worker 'exec "$REAL"'
rm -f bin/roofsweep-worker-cuda

# A manifest without workloads measures only roofs.
worker 'exec "$REAL"'
printf '[sweep]\ndevice = cpu\n[peaks]\nmemory = l1\ncompute = fp64\n' >roofs.ini
expect 0 run 2 roofs.ini
says "0 rows and 24 roofs in roofs.nc"
roofs roofs.nc '
assert data.sizes["config"] == 0 and data.sizes["device"] == 2
assert {"l1 read", "fp64 vector", "launch gap"} <= set(of(0, 0))
'
expect 0 "$ROOFSWEEP_BIN/roofsweep" --dry-run roofs.ini
says "configurations: 0; only the roofs"
# If a device is lost, the file has the roofs of the other devices, and the exit status is not 0.
worker '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$REAL"
[ ! -e lost ] || exit 7
while read -r line; do
    case $line in *\"l1\ copy\"*) : >lost; break ;; esac
    printf "%s\n" "$line"
done | "$REAL"'
expect 4 run 2 --overwrite roofs.ini
says "rank 1 has lost its device"
roofs roofs.nc 'assert data.sizes["device"] == 1 and "l1 triad" in of(0, 0)'
# The file also has the lost device if a process watched its health.
rm lost
worker '[ "${1-}" != --watch ] || { "$REAL" | sed -u "s/\"device\":{/&\"health_end\":{\"xids\":1},/"; exit; }
[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$REAL"
[ ! -e lost ] || exit 7
while read -r line; do
    case $line in *\"l1\ copy\"*) : >lost; break ;; esac
    printf "%s\n" "$line"
done | "$REAL" | sed -u "s/\"device\":{/&\"health_start\":{\"xids\":0},/"'
expect 4 run 2 --overwrite roofs.ini
roofs roofs.nc 'assert data.sizes["device"] == 2 and "l1 triad" in of(0, 0), data
assert 1 in data.device_health_end.values, data.device_health_end'

# If one rank receives a signal while roofs are measured, the file lacks the roofs that are not finished.
worker 'while read -r line; do
    case $line in *\"l1\ copy\"*) [ "$OMPI_COMM_WORLD_RANK" = 0 ] || kill -USR1 "$PPID" ;; esac
    printf "%s\n" "$line"
done | "$REAL"'
expect 5 run 2 --overwrite roofs.ini
says "interrupted"
roofs roofs.nc 'assert data.sizes["device"] == 2 and not of(0, 1) and not of(1, 1)'
