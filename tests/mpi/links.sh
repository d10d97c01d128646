#!/bin/sh
# Links between the ranks of a node and between nodes, by MPI. Ranks in UTS namespaces of their own are nodes to
# roofsweep. The journal and the file have the links, and `compare` names a node whose pairs are all slow.
. "$(dirname "$0")/lib.sh"
[ "$(nproc)" -ge 2 ] || exit 77 # two ranks on one core are one device
unshare --uts true 2>/dev/null || exit 77
# nodes RANKS_A_NODE RANKS ARGUMENTS...: as `run`, with ranks on nodes n0, n1, ...
nodes() {
    size=$1 ranks=$2
    shift 2
    # shellcheck disable=SC2016 # expanded in the rank
    "$ROOFSWEEP_MPIRUN" -n "$ranks" --oversubscribe --bind-to none unshare --uts sh -c \
        'hostname n$((OMPI_COMM_WORLD_RANK / $0)); exec "$@"' "$size" "$ROOFSWEEP_BIN/roofsweep" "$@"
}
batch=1 height=8 width=8 memory=l1 write_sweep sweep.ini
sed -i 's/^condition = .*/&\nlinks = yes/' sweep.ini

# links FILE SESSIONS: FILE has the links of SESSIONS sessions of two nodes with a rank each.
links() {
    python '
import sys, netCDF4
from collections import Counter
data, sessions = netCDF4.Dataset(sys.argv[1]), int(sys.argv[2])
words = data["link_operation"].flag_meanings.split()
found = Counter((words[kind], int(node), int(count)) for kind, node, count in zip(
    data["link_operation"][:], data["link_node_to"][:], data["link_nodes"][:]))
hosts = [str(host) for host in data["node_hostname"][:]]
assert hosts == ["n0", "n1"] * sessions, hosts
assert list(data["device_node"][:]) == [*range(2 * sessions)], data["device_node"][:]
wanted = Counter({(name, -1, 2): 4 * sessions for name in ("all-reduce", "all-gather", "send-receive")})
wanted.update({("send-receive", 2 * session + 1, 2): 3 for session in range(sessions)})
assert found == wanted, (found, wanted)
assert set(data["link_node"][:]) == {*range(0, 2 * sessions, 2)} and (data["link_time"][:] > 0).all()
' "$@" || fail "$1"
}
expect 0 nodes 1 2 sweep.ini
links sweep.nc 1

# --resume after a kill before any row, and after a first session in which rank 0 alone measured a row.
for owner in none /0; do
    mv sweep.nc.journal whole
    { grep -v '"kind":"record"' whole; grep '"kind":"record"' whole | grep "$owner\"" | head -n 1; } >sweep.nc.journal
    expect 0 nodes 1 2 --resume sweep.ini
    complete sweep.nc 4
    ncdump sweep.nc >resumed
    expect 0 "$ROOFSWEEP_BIN/roofsweep" --gather sweep.nc.journal --overwrite
    ncdump sweep.nc | diff resumed - || fail "--gather writes another file"
done
post() {
    "$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" "$@"
}
rm sweep.nc*
expect 0 nodes 1 2 sweep.ini
sed 's/^batch = .*/batch = 3/' sweep.ini >other.ini
expect 0 nodes 1 2 other.ini
expect 0 post merge sweep.nc other.nc --output all.nc
links all.nc 2
expect 0 post roofs all.nc
says "link send-receive with a node"

# Node 1 of three has a network of 2 MB/s, and the whole series would take two minutes: it has no links of 16 MiB. Two
# ranks of a node have links of the node.
export SLOW_RANK=1
LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$ROOFSWEEP_BUILD/tests/libstop_in.so expect 0 nodes 1 3 sweep.ini -o slow.nc
unset SLOW_RANK
says "the network is slow: 2 links of larger sizes are left out"
python '
import netCDF4
data = netCDF4.Dataset("slow.nc")
large = data["link_bytes"][:] > 2**23
ends = [data[name][:][large].tolist() for name in ("link_node", "link_node_to")]
assert sorted(zip(*ends)) == [(0, -1), (0, -1), (0, 2)], ends
' || fail "slow.nc has other links"
post compare slow.nc -q >output || true
grep -q '^FAIL 1#1 n1, links.*link send-receive with a node .*, in all 2 pairs' output || { cat output; fail "n1 passes"; }
[ "$(grep -c '^FAIL .*links' output)" = 1 ] || { cat output; fail "a healthy node fails"; }
expect 0 nodes 2 2 sweep.ini -o one.nc
expect 0 post roofs one.nc
says "link all-reduce of 2 "
