#!/bin/sh
# Workers die while they open a device, or tune or measure its roofs. The rank tries again, and at last gives up the
# device. The sweep goes on.
. "$(dirname "$0")/lib.sh"
[ "$(nproc)" -ge 2 ] || exit 77 # two ranks on one core are one device
memory=l1 batch=1 height=8 width=8 write_sweep sweep.ini
wrap_workers
# deadly TEXT COUNT: a request that contains TEXT kills the worker of rank 1, at most COUNT times. `exit` is needed
# because the loop, which is another process, would still pass the request on.
deadly() {
    rm -f deaths
    worker '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$REAL"
while read -r line; do
    case $line in *'"$1"'*)
        if [ "$(cat deaths 2>/dev/null | wc -l)" -lt '"$2"' ]; then
            echo one >>deaths
            echo "no more" >&2
            kill -KILL $$
            exit
        fi ;;
    esac
    printf "%s\n" "$line"
done | "$REAL"'
}

for where in devices describe tune '"roof"'; do
    deadly "$where" 1
    expect 0 run 2 --output once.nc --overwrite sweep.ini
    complete once.nc 4
    [ "$(wc -l <deaths)" = 1 ] || fail "no worker died at $where"
    none_left
done

deadly describe 100
expect 0 run 2 --output lost.nc sweep.ini
says "rank 1 has lost its device, the others go on: CPU on $(hostname): "
says "killed by signal 9"
says "it last printed: no more"
complete lost.nc 4
[ "$(wc -l <deaths)" = 3 ] || fail "$(wc -l <deaths) tries"
none_left

# With replicate the rows of the lost device are missing, and --resume with a healthy worker measures them.
sed 's/^device = cpu/&\ndistribute = replicate/' sweep.ini >replicate.ini
deadly describe 100
expect 4 run 2 --output replicate.nc replicate.ini
says "--resume measures the rest"
complete replicate.nc 4
deadly describe 0
expect 0 run 2 --resume --output replicate.nc replicate.ini
complete replicate.nc 8 4

# If all devices are lost, the sweep does not begin.
deadly describe 100
sed -i '/OMPI_COMM_WORLD_RANK/d' bin/roofsweep-worker-cpu
expect 4 run 2 --output none.nc sweep.ini
says "no rank could open its device; rank 0: "
[ ! -e none.nc.journal ] || fail "it began all the same"
none_left
