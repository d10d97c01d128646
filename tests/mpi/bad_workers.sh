#!/bin/sh
# Workers with wrong replies. A reply at the wrong time never becomes a row. With `distribute = replicate` --resume
# measures the configurations of a lost device.
. "$(dirname "$0")/lib.sh"
memory=l1 batch=1 height=8 width=8 write_sweep sweep.ini
wrap_workers

# The worker sends every record twice. The second copy arrives when the rank expects the next configuration.
worker '"$REAL" | while read -r line; do
    printf "%s\n" "$line"
    case $line in *\"reply\":\"record\"*) printf "%s\n" "$line" ;; esac
done'
expect 0 "$ROOFSWEEP_BIN/roofsweep" --output twice.nc sweep.ini
complete twice.nc 4

# A reply that is not JSON is an error that names the worker.
worker 'printf "\033[31mhello\n"; sleep 1'
expect 4 "$ROOFSWEEP_BIN/roofsweep" --output none.nc sweep.ini
says "roofsweep-worker-cpu: not a JSON object"
says "?[31mhello"

# After a record with a negative time the rank replaces the worker and measures the row again.
worker 'if [ -e trusted ]; then exec "$REAL"; fi; : >trusted
"$REAL" | sed -u "s/\"time_median\":[^,]*,/\"time_median\":-1e308,/"'
expect 0 "$ROOFSWEEP_BIN/roofsweep" --verbose --output below.nc sweep.ini
says "'time_median' is -1e+308, which nobody can have measured"
# Every line of the log has time and host, and a row's name if the line is about a row.
grep -qE "^roofsweep: 20[0-9-]+T[0-9:]+Z $(hostname): warning: grid channels=[48] filters=[0-9]*: .*time_median.* \(attempt 1 of [0-9]+\)$" output ||
    { cat output; fail "a warning without time, host or the name of its row"; }
complete below.nc 4

# After an impossible roof the rank replaces the worker, and the peak is missing. The journal can be read afterwards.
worker '"$REAL" | sed -u "s/\"bandwidth\":[^,]*,/\"bandwidth\":1e300,/"'
expect 0 "$ROOFSWEEP_BIN/roofsweep" --output roof.nc sweep.ini
says "'bandwidth' is 1e+300, which nobody can have measured"
worker 'exec "$REAL"'
expect 0 "$ROOFSWEEP_BIN/roofsweep" --resume --output roof.nc sweep.ini
complete roof.nc 4

# A failed later round leaves its rows measured. The sweep, --resume and --gather end with 3.
worker 'exec 3>&1; while read -r line; do
    case $line in
    *\"round\"*) printf "{\"reply\":\"error\",\"status\":\"failed\",\"text\":\"no round\"}\n" >&3 ;;
    *) printf "%s\n" "$line" ;;
    esac
done | "$REAL"'
expect 3 "$ROOFSWEEP_BIN/roofsweep" --set rounds=2 --output round.nc sweep.ini
says "round 2 is missing: no round"
complete round.nc 4
for again in --resume --gather; do
    case $again in --gather) set -- --gather round.nc.journal --overwrite ;;
    *) set -- --resume --set rounds=2 --output round.nc sweep.ini ;; esac
    expect 3 "$ROOFSWEEP_BIN/roofsweep" "$@"
    says "4 later rounds failed: round_time of round.nc lacks them"
done
worker 'exec "$REAL"'

# One rank cannot open its GPU. It must not use the CPU instead, because the CPU would skip rows for GPUs.
worker '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || { echo "fell off the bus" >&2; exit 7; }
"$REAL" | sed -u "s/\"kind\":\"cpu\"/\"kind\":\"cuda\"/"' cuda
worker 'exec "$REAL"'
expect 4 run 2 --device auto --output mixed.nc sweep.ini
says "fell off the bus"
says "rank 1 on"
[ ! -e mixed.nc.journal ] || fail "it began all the same"

[ "$(nproc)" -ge 2 ] || exit 0 # two ranks on one core are one device
worker '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$REAL"
[ ! -e lost ] || exit 7
while read -r line; do
    case $line in *\"measure\"*) : >lost; break ;; esac
    printf "%s\n" "$line"
done | "$REAL"'
sed -i 's/^device = cpu/&\ndistribute = replicate/' sweep.ini
expect 4 run 2 sweep.ini
says "rank 1 has lost its device over grid "
says "--resume measures the rest"
worker 'exec "$REAL"'
expect 0 run 2 --resume sweep.ini
complete sweep.nc 8 4

# A configuration that kills every worker fails after two devices are lost. The third rank measures the other rows.
worker '[ ! -e "gone.$OMPI_COMM_WORLD_RANK" ] || exit 7
while read -r line; do
    case $line in *\"measure\"*channels=8*filters=16*) : >"gone.$OMPI_COMM_WORLD_RANK"; break ;; esac
    printf "%s\n" "$line"
done | "$REAL"'
sed -i '/^distribute/d' sweep.ini
expect 3 run 3 --output deadly.nc sweep.ini
says "2 devices were lost while measuring it"
python '
import netCDF4
status = netCDF4.Dataset("deadly.nc")["status"][:]
assert sorted(status) == [0, 0, 0, 2], status
'
