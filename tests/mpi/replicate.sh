#!/bin/sh
# distribute = replicate: every configuration on every device.
. "$(dirname "$0")/lib.sh"
write_sweep sweep.ini "distribute = replicate"
sed -i 's/^batch = .*/batch = 1/; s/^width = .*/width = 8/; s/^height = .*/height = 8/' sweep.ini
[ "$(nproc)" -ge 2 ] || exit 77 # two ranks on one core are one device
expect 0 run 2 sweep.ini
python '
import xarray
data = xarray.open_dataset("sweep.nc")
pairs = set(zip(data.config_hash.values, data.config_device.values.tolist()))
assert data.sizes["config"] == 8 and len(pairs) == 8, data.sizes
assert len(set(data.config_hash.values)) == 4
'
expect 0 run 2 --resume sweep.ini
python '
import xarray
assert xarray.open_dataset("sweep.nc").sizes["config"] == 8
'
