#!/bin/sh
# Workers that a rank must not trust: what they say out of turn never becomes a row, and with replicate the
# configurations of a lost device are not passed over.
. "$(dirname "$0")/lib.sh"
memory=l1 batch=1 height=8 width=8 write_sweep sweep.ini
wrap_workers

# Every record twice: the second one is late for the next configuration.
worker '"$REAL" | while read -r line; do
    printf "%s\n" "$line"
    case $line in *\"reply\":\"record\"*) printf "%s\n" "$line" ;; esac
done'
expect 0 "$ROOFSWEEP_BIN/roofsweep" --output twice.nc sweep.ini
complete twice.nc 4

# An answer that is none is a failed attempt, and the message says whose it is.
worker 'printf "\033[31mhello\n"; sleep 1'
expect 4 "$ROOFSWEEP_BIN/roofsweep" --output none.nc sweep.ini
says "roofsweep-worker-cpu: not a JSON object"
says "?[31mhello"

# No device measures a time below zero: the worker is replaced, and the row measured again.
worker 'if [ -e trusted ]; then exec "$REAL"; fi; : >trusted
"$REAL" | sed -u "s/\"time_median\":[^,]*,/\"time_median\":-1e308,/"'
expect 0 "$ROOFSWEEP_BIN/roofsweep" --verbose --output below.nc sweep.ini
says "'time_median' is -1e+308, which nobody can have measured"
# Every line of the log has time and host; where a configuration is concerned, also that.
grep -qE "^roofsweep: 20[0-9-]+T[0-9:]+Z $(hostname): warning: conv2d algorithm=auto batch=1 .*: .*time_median.* \(attempt 1 of [0-9]+\)$" output ||
    { cat output; fail "a warning without time, host or configuration"; }
complete below.nc 4

# One rank's GPU does not open: its CPU must not take, and skip, what the GPUs are for.
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
says "rank 1 has lost its device over conv2d "
says "--resume measures the rest"
worker 'exec "$REAL"'
expect 0 run 2 --resume sweep.ini
complete sweep.nc 8 4

# A configuration that ends every device it meets is stopped after the second: the third rank finishes.
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
