#!/bin/sh
# Links between the devices of a node: one worker that sees all devices measures them. The journal and the file have the
# links.
. "$(dirname "$0")/lib.sh"
[ "$(nproc)" -ge 2 ] || exit 77 # two ranks on one core are one device
wrap_workers
# The worker makes up two copies and an all-reduce as links. For all other requests it is the CPU worker.
worker 'exec 3>&1
while read -r line; do
    case $line in
    *\"op\":\"links\"*) printf "%s\n" "$line" >>asked ;;
    *) printf "%s\n" "$line"; continue ;;
    esac
    case $line in
    *\"copy\"*) printf "{\"reply\":\"device\",\"device\":{\"uuid\":\"all\",\"links\":[%s,%s]}}\n" \
        "{\"operation\":\"copy\",\"from\":\"a\",\"to\":\"b\",\"devices\":2,\"bytes\":4e6,\"time\":1e-3,\"bandwidth\":4e9}" \
        "{\"operation\":\"copy\",\"from\":\"b\",\"to\":\"a\",\"devices\":2,\"bytes\":8,\"time\":2e-6,\"bandwidth\":4e6}" >&3 ;;
    *\"all-reduce\"*) printf "{\"reply\":\"device\",\"device\":{\"uuid\":\"all\",\"links\":[%s]}}\n" \
        "{\"operation\":\"all-reduce\",\"devices\":2,\"nccl\":22803,\"bytes\":4e6,\"time\":2e-3,\"bandwidth\":2e9}" >&3 ;;
    *) printf "{\"reply\":\"error\",\"status\":\"unsupported\",\"text\":\"no NCCL\"}\n" >&3 ;;
    esac
done | "$REAL"'
batch=1 height=8 width=8 memory=l1 write_sweep sweep.ini
sed -i 's/^condition = .*/&\nlinks = yes/' sweep.ini

# links FILE SESSIONS: FILE has the links of SESSIONS sessions.
links() {
    python '
import sys, netCDF4
data, sessions = netCDF4.Dataset(sys.argv[1]), int(sys.argv[2])
words = data["link_operation"].flag_meanings.split()
nodes = {node: str(key) for node, key in zip(data["device_node"][::-1], data["device_key"][::-1])}
found = [(words[kind], str(start), str(end), float(time)) for kind, start, end, time in zip(
    data["link_operation"][:], data["link_from"][:], data["link_to"][:], data["link_time"][:])]
wanted = [("copy", "a", "b", 1e-3), ("copy", "b", "a", 2e-6), ("all-reduce", "", "", 2e-3)]
assert sorted(found) == sorted(wanted * sessions), found
owners = [nodes[node] for node in data["link_node"][:]]
assert [node if start else -1 for node, start in zip(data["link_node"][:], data["link_from"][:])] == list(
    data["link_node_to"][:])
assert len(set(owners)) == sessions and all(key.endswith("/0") for key in owners), owners
' "$@" || fail "$1"
}
expect 0 run 2 sweep.ini
says "no links, all-gather: no NCCL"
python 'import json; asked = [json.loads(line) for line in open("asked")]
assert [line["operation"] for line in asked] == ["copy", "all-reduce", "all-gather"], asked
assert all(len(set(line["devices"].split(","))) == 2 for line in asked), asked'
links sweep.nc 1

# --resume after a kill before any row, and after a first session in which rank 0 alone measured a row.
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
