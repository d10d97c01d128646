#!/bin/sh
# The first run of README.md: the file has every value that the page mentions.
. "$(dirname "$0")/lib.sh"
expect 0 run 2 --output quickstart.nc "$root/sweeps/quickstart.ini"
"$ROOFSWEEP_PYTHON" "$root/tests/test_xarray.py" quickstart.nc || fail "xarray"
python '
import netCDF4, numpy, xarray
raw = netCDF4.Dataset("quickstart.nc")
assert not [n for n, v in raw.variables.items() if v.dtype is str and "units" in v.ncattrs()], "units of texts"
data = xarray.open_dataset("quickstart.nc")
measured = data.isel(config=(data.status == 0).values)
assert {"conv2d", "lstm"} <= set(measured.workload.values)
for name in ("time_median", "flops_model", "bytes_model", "performance", "compute_roof", "bandwidth_roof",
             "roof_fraction", "overhead_time", "verify_error"):
    assert numpy.isfinite(measured[name]).all(), name
assert numpy.isfinite(measured.arithmetic_intensity).any(dim="memory_level").all()
assert (measured.paper_bound < 3).all(), "a row without a bound"
assert (measured.roof_fraction > 0).all(), measured.roof_fraction.values
assert numpy.isfinite(data.device_peak_bandwidth).any(dim="memory_level").all()
assert numpy.isfinite(data.device_peak_vector).any(dim="number_format").all()
assert (data.device_launch_overhead > 0).all()
assert (measured.verify_error >= 0).all()
' || fail "a figure is missing"

# The commands of docs/tutorial.md work, and the last one finds the slow device.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p}" "$root/docs/tutorial.md"; }
block ini >layer.ini
block python >slow.py
block sh >commands.sh
ln -s "$root/tests" tests
ln -s "$ROOFSWEEP_PYTHON" python3
expect 1 env PATH="$work:$ROOFSWEEP_BIN:$root/postproc:$PATH" sh -e commands.sh
says "3 configurations: 3 measured"
says "limiter_evidence ="
says "FAIL 1#2"
# Without `iterations` and `stop` a CPU uses its adaptive rule.
python 'import netCDF4; assert netCDF4.Dataset("layer.nc")["converged"][:].max() < 2' || fail "a fixed number of samples"
if ! [ -s four.pdf ] || ! [ -s map.pdf ]; then fail "the tutorial has no figures"; fi
