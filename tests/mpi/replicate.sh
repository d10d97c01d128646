#!/bin/sh
# distribute = replicate measures every configuration on every device.
. "$(dirname "$0")/lib.sh"
batch=1 height=8 width=8 write_sweep sweep.ini "distribute = replicate"
# If there are more ranks than cores, ranks share cores, but each rank is another device.
export OMP_WAIT_POLICY=passive
ranks=$(($(nproc) + 2))
expect 0 run $ranks sweep.ini -o shared.nc
# each RANKS: shared.nc must have each configuration once for each rank.
each() {
    python '
import sys, netCDF4
ranks, data = int(sys.argv[1]), netCDF4.Dataset("shared.nc")
uuids = data["device_uuid"][:][data["config_device"][:]]
pairs = set(zip(data["config_hash"][:], uuids))
assert len(uuids) == len(pairs) == 4 * ranks, (len(uuids), len(pairs))
assert len(set(uuids)) == ranks, uuids
assert len(data["device_uuid"]) == ranks, data["device_uuid"][:]
' "$1"
}
each $ranks
# A figure also works if the manifest does not request the roof of the cache that holds the tensors.
expect 0 "$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" plot classic shared.nc
# If the journal lacks the rows of the last rank, as after a kill, --resume measures only these rows.
grep -v "\"kind\":\"record\".*/$((ranks - 1))\"" shared.nc.journal >fewer
[ "$(wc -l <fewer)" = "$(($(wc -l <shared.nc.journal) - 4))" ] || fail "other lines are gone"
mv fewer shared.nc.journal
expect 0 run $ranks --resume sweep.ini -o shared.nc
each $ranks
[ "$(grep -c '"kind":"record"' shared.nc.journal)" = $((4 * ranks)) ] || fail "a row is there twice"
# --resume of a complete sweep measures no roofs and begins no session.
cp shared.nc.journal before
expect 0 run $ranks --resume sweep.ini -o shared.nc
cmp before shared.nc.journal || fail "a complete journal has grown"
# If the journal lacks the line of a device, for example because it was damaged, --resume measures the device's rows
# again.
grep -v "\"kind\":\"device\".*/$((ranks - 1))\"" before >shared.nc.journal
expect 1 "$ROOFSWEEP_BIN/roofsweep" --gather shared.nc.journal --overwrite
says "4 rows or rounds without a device are left out of shared.nc"
expect 0 run $ranks --resume sweep.ini -o shared.nc
says "4 rows or rounds are left out, because no line describes their device"
each $ranks
expect 0 "$ROOFSWEEP_BIN/roofsweep" --gather shared.nc.journal --overwrite
# With `repeat = 3` each row is measured with three placements of its buffers.
expect 0 run 1 --set repeat=3 sweep.ini -o placed.nc
python '
import netCDF4, numpy
data = netCDF4.Dataset("placed.nc")
low, middle, high = (data[f"time_median{end}"][:] for end in ("_low", "", "_high"))
for row, count in enumerate(data["samples"][:]):
    parts = numpy.median(data["time_sample"][row, :count].filled().reshape(3, -1), axis=1)
    assert numpy.allclose(sorted(parts), [low[row], middle[row], high[row]]), (row, parts)
assert (data["placements"][:] == 3).all() and " repeat=3 " in data.settings
'
