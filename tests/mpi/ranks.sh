#!/bin/sh
# The same 100 configurations on N ranks: each exactly once, on as many devices as ranks.
. "$(dirname "$0")/lib.sh"
batch=1 write_sweep sweep.ini
expect 0 run "$1" sweep.ini
complete sweep.nc 100
python '
import sys, numpy, xarray
data = xarray.open_dataset("sweep.nc")
assert data.sizes["device"] == int(sys.argv[1]), data.sizes
used = numpy.unique(data.config_device.values)
assert len(used) == int(sys.argv[1]), f"only devices {used} have measured anything"
' "$1"
