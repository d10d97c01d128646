# shellcheck shell=sh
# Functions for tests of postproc/; sourced after lib.sh. Makes golden.nc, alone.nc (without rows) and node.nc (four
# GPUs).
# shellcheck disable=SC2154 # work and root are of lib.sh
export MPLCONFIGDIR="$work" PYTHONPATH="$root/postproc"
mkfifo requests answers
# `7<>answers` ends the wait for a writer if serve.py cannot start.
{ "$ROOFSWEEP_PYTHON" "$root/tests/postproc/serve.py" requests answers || : 7<>answers; } &
exec 9<>requests 8<answers
# served KIND WORDS...: sends a request to serve.py, and ends with the status of the answer.
served() {
    printf '%s\0' "$(($# + 1))" "$PWD" "$@" >&9
    read -r served <&8 || fail "serve.py has ended"
    cat served.out
    cat served.err >&2
    return "$served"
}
script() {
    served script "$@"
}
python() {
    served code "$@"
}
# file PATH ARGUMENT...: runs a Python script in serve.py.
file() {
    served file "$@"
}
# doctored SOURCE TARGET CODE ARGUMENT...: changes TARGET, a copy of SOURCE, by CODE, which sees `data`, `numpy` and `words`.
doctored() {
    served code 'import shutil, sys, netCDF4, numpy
source, target, code, *words = sys.argv[1:]
source == target or shutil.copy(source, target)
with netCDF4.Dataset(target, "a") as data:
    exec(code)' "$@"
}
# rowless SOURCE TARGET: copies a file without its rows. (xarray reads texts of no entries as numbers.)
rowless() {
    served code 'import sys, xarray
data = xarray.open_dataset(sys.argv[1]).load().isel(config=slice(0), kernel=slice(0))
for name in data.variables:
    if data[name].dtype.kind in "OU":
        data[name] = data[name].astype(object)
    data[name].encoding = {}  # chunks of rows
data.to_netcdf(sys.argv[2])' "$@"
}
# sick FILE KIND: makes sick.nc, a copy of FILE in which device 3 has only 95 % of this kind of roof.
sick() {
    doctored "$1" sick.nc 'sick = (data["device_roof_name"][:] == words[0]) & (data["device_roof_device"][:] == 3)
for value in "bandwidth", "performance", "nominal_fraction", "clock_fraction":
    data[f"device_roof_{value}"][sick] *= 0.95' "$2"
}
# row TEXT...: `output` must have a line with all these texts in this order.
row() {
    pattern=$(printf '%s.*' "$@")
    grep -q -- "${pattern%.\*}" output || { cat output; fail "output has no line of: $*"; }
}
refused() {
    text=$1
    shift
    expect 2 script "$@"
    says "$text"
    ! grep -q Traceback output || { cat output; fail "a traceback"; }
}

# refused_option TEXT COMMAND...: the command must end with status 2 and the message TEXT of argparse.
refused_option() {
    refused "$@"
    ! grep -q "^usage: " output || { cat output; fail "a usage before the error"; }
}
# kept FILE TEXT COMMAND...: the command, whose output is FILE, must end with the error TEXT and leave FILE unchanged.
kept() {
    cp "$1" kept.copy
    kept=$1
    shift
    refused "$@"
    cmp -s "$kept" kept.copy || fail "$kept has changed: $*"
}

ncgen -4 -o golden.nc "$root/tests/data/golden.cdl"
# alone.nc is the golden sample without rows.
python '
import re, sys
text = open(sys.argv[1]).read()
head, data = text.split("\ndata:\n")
for name in re.findall(r"^\t\w+ (\w+)\(config\b", head, re.M):
    data = re.sub(rf"^ {name} =(.|\n)*? ;\n\n", "", data, flags=re.M)
print(head + "\ndata:\n" + data)
' "$root/tests/data/golden.cdl" >alone.cdl
ncgen -4 -o alone.nc alone.cdl
# node.nc has four GPUs of one node. Except for a few values, each is 1 % faster than the one before.
cat >node.py <<'PY'
import sys
import numpy, xarray
sample = xarray.open_dataset("golden.nc").load()
for name in sample.variables:
    if sample[name].dtype.kind == "U":  # newer versions of xarray: texts of fixed length
        sample[name] = sample[name].astype(object)
own = numpy.flatnonzero(sample.device_roof_device == 0)
data = sample.isel(device=[0] * 4, device_roof=list(own) * 4)
data["device_uuid"].values[:] = [f"GPU-{i}" for i in range(4)]
data["uuid"].values[:] = [f"GPU-{device}" if device >= 0 else "" for device in data.config_device.values]
data["device_roof_device"].values[:] = numpy.repeat(range(4), len(own))
names, condition = data.device_roof_name.values, data.device_roof_condition.values
for name in "bandwidth", "performance", "time":
    data[f"device_roof_{name}"].values[:] *= 1 + 0.01 * data.device_roof_device.values
def at(device, name, together=0):
    return numpy.flatnonzero((data.device_roof_device == device) & (names == name) & (condition == together))
data["device_roof_bandwidth"].values[at(1, "dram read")] = numpy.nan
data["device_roof_setting"].values[at(1, "dram read")] = "not measured: the bus is gone"
data["device_roof_verdict"].values[at(2, "l2 read")] = 3
data["device_roof_bandwidth"].values[at(2, "l2 read")] = 1e15
data["device_roof_bandwidth"].values[at(3, "dram triad", 1)] *= 0.8
data["device_roof_clock_fraction"] = ("device_roof", numpy.where(names == "fp32 vector", 0.985, numpy.nan))
for name, value in {"sm_clock": 1.755e9, "spread": 0.01, "mean": 1}.items():
    data[f"device_roof_{name}"] = ("device_roof", numpy.full(data.sizes["device_roof"], float(value)))
data.to_netcdf(sys.argv[1])
PY
file node.py node.nc

