#!/bin/sh
# N ranks, as N devices, measure each of 100 configurations exactly once.
. "$(dirname "$0")/lib.sh"
batch=1 write_sweep sweep.ini
expect 0 run "$1" sweep.ini
complete sweep.nc 100
python '
import sys, netCDF4
data = netCDF4.Dataset("sweep.nc")
devices, used = len(data["device_uuid"]), set(data["config_device"][:])
assert devices == len(used) == int(sys.argv[1]), f"{devices} devices, of which {used} have measured"
' "$1"
