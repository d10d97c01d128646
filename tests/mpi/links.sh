#!/bin/sh
# Links of a node's devices: asked of one process that sees them all, in the journal and the file, and none without.
. "$(dirname "$0")/lib.sh"
[ "$(nproc)" -ge 2 ] || exit 77 # two ranks on one core are one device
wrap_workers
# The rest of it is the CPU's. Of both copies the first goes from 0 to 1; there is no NCCL for all-gather.
worker 'exec 3>&1
while read -r line; do
    case $line in
    *\"op\":\"links\"*) printf "%s\n" "$line" >>asked ;;
    *) printf "%s\n" "$line"; continue ;;
    esac
    case $line in
    *\"copy\"*) printf "{\"reply\":\"device\",\"device\":{\"uuid\":\"all\",\"links\":[%s,%s]}}\n" \
        "{\"operation\":\"copy\",\"from\":0,\"to\":1,\"devices\":2,\"bytes\":4e6,\"time\":1e-3,\"bandwidth\":4e9}" \
        "{\"operation\":\"copy\",\"from\":1,\"to\":0,\"devices\":2,\"bytes\":8,\"time\":2e-6,\"bandwidth\":4e6}" >&3 ;;
    *\"all-reduce\"*) printf "{\"reply\":\"device\",\"device\":{\"uuid\":\"all\",\"links\":[%s]}}\n" \
        "{\"operation\":\"all-reduce\",\"devices\":2,\"nccl\":22803,\"bytes\":4e6,\"time\":2e-3,\"bandwidth\":2e9}" >&3 ;;
    *) printf "{\"reply\":\"error\",\"status\":\"unsupported\",\"text\":\"no NCCL\"}\n" >&3 ;;
    esac
done | "$REAL"'
batch=1 height=8 width=8 memory=l1 write_sweep sweep.ini
sed -i 's/^condition = .*/&\nlinks = yes/' sweep.ini

# links FILE SESSIONS
links() {
    python '
import sys, netCDF4
data, sessions = netCDF4.Dataset(sys.argv[1]), int(sys.argv[2])
words = data["link_operation"].flag_meanings.split()
keys = [str(key) for key in data["device_key"][:]]
found = []
for row in range(len(data.dimensions["link"])):
    device, to = data["link_device"][row], data["link_to"][row]
    ranks = [keys[place].split("/")[1] if place >= 0 else None for place in (device, to)]
    found.append((words[data["link_operation"][row]], *ranks, float(data["link_time"][row])))
wanted = [("copy", "0", "1", 1e-3), ("copy", "1", "0", 2e-6), ("all-reduce", "0", None, 2e-3)]
assert sorted(map(str, found)) == sorted(map(str, wanted * sessions)), found
' "$@" || fail "$1"
}
expect 0 run 2 sweep.ini
says "no links, all-gather: no NCCL"
[ "$(grep -c all-reduce asked)" = 1 ] && ! grep -q send-receive asked || fail "asked: $(cat asked)"
python 'import json; asked = [json.loads(line) for line in open("asked")]
assert all(len(set(line["devices"].split(","))) == 2 for line in asked), asked'
links sweep.nc 1

# Resumed: after a kill before any row, and where in the first session rank 0 alone has a row.
for owner in none /0; do
    mv sweep.nc.journal whole
    { grep -v '"kind":"record"' whole; grep '"kind":"record"' whole | grep "$owner\"" | head -n 1; } >sweep.nc.journal
    sessions=$(grep -c '"kind":"record"' sweep.nc.journal || true)
    expect 0 run 2 --resume sweep.ini
    complete sweep.nc 4
    links sweep.nc $((sessions + 1))
    ncdump sweep.nc >resumed
    expect 0 "$ROOFSWEEP_BIN/roofsweep" --gather sweep.nc.journal --overwrite
    ncdump sweep.nc | diff resumed - || fail "gathered again it is another file"
done
post() {
    "$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" "$@"
}
sed 's/^batch = .*/batch = 3/' sweep.ini >other.ini
expect 0 run 2 other.ini
expect 0 post merge sweep.nc other.nc --output all.nc
links all.nc 3
expect 0 post roofs all.nc
says "all-reduce"
