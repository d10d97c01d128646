#!/bin/sh
# postproc/ on roofs: of a node of four GPUs, which is made from the golden sample, and of sweeps/roofs.ini on
# two ranks of this CPU.
. "$(dirname "$0")/../mpi/lib.sh"
export MPLCONFIGDIR="$work"
script() {
    name=$1
    shift
    "$ROOFSWEEP_PYTHON" -W error "$root/postproc/$name" "$@"
}
# row TEXT...: `output` must have a line with all of them, in this order.
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

ncgen -4 -o golden.nc "$root/tests/data/golden.cdl"
# A file of roofs alone: the golden sample without configurations.
python '
import re, sys
text = open(sys.argv[1]).read()
head, data = text.split("\ndata:\n")
for name in re.findall(r"^\t\w+ (\w+)\(config\b", head, re.M):
    data = re.sub(rf"^ {name} =(.|\n)*? ;\n\n", "", data, flags=re.M)
print(head + "\ndata:\n" + data)
' "$root/tests/data/golden.cdl" >alone.cdl
ncgen -4 -o alone.nc alone.cdl
# Four GPUs of one node: each 1 % faster than the one before, but for a few.
cat >node.py <<'PY'
import sys
import numpy, xarray
sample = xarray.open_dataset("golden.nc").load()
for name in sample.variables:
    if sample[name].dtype.kind == "U":  # newer versions of xarray: texts as long as those in the file
        sample[name] = sample[name].astype(object)
own = numpy.flatnonzero(sample.device_roof_device == 0)
data = sample.isel(device=[0] * 4, device_roof=list(own) * 4)
data["device_uuid"].values[:] = [f"GPU-{i}" for i in range(4)]
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
data["device_roof_clock_fraction"].values[names == "fp32 vector"] = 0.985
for name, value in {"sm_clock": 1.755e9, "power": 612, "temperature": 330.15, "spread": 0.01, "node_spread": 0.03}.items():
    data[f"device_roof_{name}"].values[:] = value
data.to_netcdf(sys.argv[1])
PY
"$ROOFSWEEP_PYTHON" node.py node.nc

# Kinds are in the order of the files: each device and each file keeps its own, and what one lacks comes where another
# has it. Where two contradict each other, the first counts.
PYTHONPATH=$root/postproc python '
from results import merged
for sequences, expected in [
        ([["a", "b", "d"], ["b", "c", "d"]], "abcd"),
        ([["c", "d"], ["a", "c"], ["b", "d", "e"]], "acbde"),
        ([["a", "b"], ["b", "a"], ["x"]], "abx"),
        ([[], ["a"]], "a")]:
    found = "".join(merged(sequences))
    assert found == expected, (found, expected)
' || fail "kinds of roofs are in another order"

# What a terminal must not see: neither in tables nor in what a figure would be made of.
python '
import xarray
data = xarray.open_dataset("golden.nc").load()
for name in ["device_model", "device_hostname", "device_roof_setting"]:
    data[name] = data[name].astype(object)
    data[name].values[:] = "Sam\x1b[31mple\u202e \x9b GPU\n"
data.attrs["title"] = "\x1b]0;title\x07"
data.to_netcdf("hostile.nc")
'
for name in hostile.nc "$(printf 'esc\033[1m.nc')"; do
    expect "$([ -e "$name" ] && echo 0 || echo 2)" script roofs.py "$name"
    ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]\\|\342\200\256\\|\302\233')" output || { cat -v output; fail "control characters"; }
done
PYTHONPATH=$root/postproc python '
from results import load, plain
data = load("hostile.nc")
assert set(data.device_model.values) == {"Sam?[31mple? ? GPU?"}, data.device_model.values
assert data.attrs["title"] == "?]0;title?", data.attrs["title"]
assert plain("Größe\t€ \udc9b") == "Größe\t€ ?"
' || fail "hostile texts"

# Each model by itself.
expect 0 script roofs.py golden.nc
says "Sample GPU: 1 device on 1 host"
says "driver 580.0, power cap 700 W, measured 2024-12-31T23:58:20Z"
row "^dram read " "3.5 TB/s " " - " "66.7 %" unproven sample
row "^dram triad " "4 TB/s " "3.9 TB/s" "83.3 %" proven
row "^fp16 tensor library" "9 PFLOP/s!" "900.0 %" ABOVE-THEORY
says "fp16 tensor library, alone: ABOVE-THEORY, not used, highest 900.0 % of theory: #0 node1"
row "^launch gap " "2 us"
says "Sample CPU: 1 device"
says "#0 node1: GPU-00000000-0000-0000-0000-000000000001, PCI 00000000:3B:00.0"
expect 0 script roofs.py alone.nc
row "^fp64 vector" "100 GFLOP/s"

# Of several devices the median, and the slowest.
expect 0 script roofs.py node.nc
says "Sample GPU: 4 devices on 1 host"
row "^dram read " "3.57 TB/s" "3.0 %" "1.755 GHz" "612 W" "-2.0 %" "#0 node1"
row "^dram triad " "4.06 TB/s" "3.92 TB/s" "3.0 %"
row "^l2 read " "8.08 TB/s" "3 unproven, 1 CONTRADICTED" "-1.0 %" "#0 node1"
row "^fp32 vector" "98.5 %"
row "^launch gap " "2.03 us" "+1.5 %" "#3 node1"
says "dram read, alone: not measured: the bus is gone: #1 node1"
says "l2 read, alone: CONTRADICTED, not used: #2 node1"
row "#3 node1: GPU-3"
order=$(sed -n 's/^\(dram\|l2\|fp32\|fp16\|launch\) \([a-z]*\) .*[0-9] %.*/\1 \2/p' output | tr '\n' ,)
[ "$order" = "dram read,dram triad,l2 read,fp32 vector,fp16 tensor,fp16 tensor,launch gap," ] ||
    { cat output; fail "the order is not that of the file: $order"; }

# One device in full: both conditions, what was counted, and why something is missing.
expect 0 script roofs.py node.nc --device 2
row "^dram triad *alone" "4.08 TB/s" "dram 1.002"
row "^dram triad *together" "3.978 TB/s" "57 C"
row "^l2 read" "1 PB/s!" CONTRADICTED
! grep -q "GPU-3" output || { cat output; fail "another device is shown"; }
expect 0 script roofs.py node.nc --device 1
row "^dram read *alone  *-" "not measured: the bus is gone"
refused "no device 4; there are: 0 to 3" roofs.py node.nc --device 4
# A device that could not be tuned has none, and no file has to have any.
cat >lost.py <<'PY'
import xarray
data = xarray.open_dataset("golden.nc").load()
for name, lost in ("lost.nc", [1]), ("none.nc", [0, 1]):
    data["device_roof_device"].values[data.device_roof_device.isin(lost)] = -1
    data.to_netcdf(name)
PY
"$ROOFSWEEP_PYTHON" lost.py
expect 0 script roofs.py lost.nc
says "No roofs at all: #1 node2"
refused "no roofs of device 1" roofs.py lost.nc --device 1
refused "none.nc: no roofs" roofs.py none.nc

# Targets: reached, missed and not known, in a column, in the sum and in the exit status.
cat >reached.ini <<INI
[Sample GPU]
dram read = 3.5 TB/s
fp32 vector = 98 %, 45 TFLOP/s
launch gap = 2.1 us
INI
expect 0 script roofs.py node.nc --device 0 --targets reached.ini
row "^dram read" "3.5 TB/s reached: +0.0 %  "
row "^fp32 vector" "98 % reached: +0.5 %; 45 TFLOP/s reached: +11.1 %  "
row "^launch gap" "2.1 us reached: +5.0 %  "
says "Targets: 4 reached, 0 missed, 0 not known"
cat >missed.ini <<INI
[Sample GPU]
dram read = 3.55 TB/s
l2 read = 8 TB/s
l1 read = 98 %
fp16 tensor wgmma = 810 TFLOP/s, fp16 tensor library
launch gap = 2.01 us
INI
expect 1 script roofs.py node.nc --targets missed.ini
row "^dram read" "3.55 TB/s MISSED by 1 of 4: -1.4 %  "
row "^l2 read" "8 TB/s NOT KNOWN for 1 of 4  "
row "^l1 read" "98 % NOT KNOWN  "
row "^fp16 tensor wgmma" "810 TFLOP/s MISSED by 2 of 4: -1.2 %; fp16 tensor library NOT KNOWN for 4 of 4  "
row "^launch gap" "2.01 us MISSED by 3 of 4: -2.4 %  "
says "Targets: 0 reached, 3 missed, 3 not known"
says "  l2 read, 8 TB/s: not known on #2 node1"
says "  launch gap, 2.01 us: missed on #1 node1, #2 node1, #3 node1"
# A model that nothing is asked of has not passed; an empty section says that it is meant.
expect 1 script roofs.py node.nc --targets /dev/null
says "No targets for Sample GPU; /dev/null has: none"
expect 1 script roofs.py golden.nc --device 0 --targets reached.ini
expect 1 script roofs.py golden.nc --targets missed.ini
says "No targets for Sample CPU; missed.ini has: Sample GPU"
printf '[Sample GPU]\n[Sample CPU]\n' >empty.ini
expect 0 script roofs.py golden.nc --targets empty.ini
# Of other models than the file has, anything may be asked.
printf '[Sample GPU]\n[Sample CPU]\nanother thing = 1 TB/s\n' >other.ini
expect 0 script roofs.py node.nc --targets other.ini
printf '[Sample GPU]\ndram reed = 1 TB/s\n' >wrong.ini
refused "'dram reed' is no roof; there are: dram read, " roofs.py node.nc --targets wrong.ini
printf '[Sample GPU]\ndram read = fast\n' >wrong.ini
refused "'fast' is neither a figure" roofs.py node.nc --targets wrong.ini
printf '[Sample GPU]\nfp32 vector = 1 TB/s\n' >wrong.ini
refused "fp32 vector is in FLOP/s, its target '1 TB/s' is not" roofs.py node.nc --targets wrong.ini
refused "none.ini: No such file" roofs.py node.nc --targets none.ini

# Beyond the threshold is what the table shows as more than it.
PYTHONPATH=$root/postproc python '
import compare
assert [compare.differs(ratio, 0.05) for ratio in (0.949, 0.951, 1.049, 1.051)] == [True, False, False, True]
' || fail "another threshold than was named"

# compare.py: every roof and condition; what is doubtful is said, and compared with nothing.
expect 0 script compare.py golden.nc alone.nc
says "Beyond 5 %: nothing"
row "fp16 tensor library, alone: above-theory: 1#0 node1, 2#0 node1"
says "No configuration was measured on two devices"
expect 1 script compare.py node.nc
row "^dram triad, together *4 " "3.92 TB/s" "5 %" "-18.0 %\*  1#3 node1" "+1.5 %   1#2 node1"
row "^l2 read, alone *3! " "8.08 TB/s" "-1.0 %" "+2.0 %   1#3 node1"
row "^launch gap, alone *4 " "2.03 us" "+1.5 %   1#3 node1" "-1.5 %   1#0 node1"
says "Beyond 5 %: 3"
says "1#1 node1 dram read, alone: not measured: the bus is gone"
says "1#2 node1 l2 read, alone: contradicted"
says "1#3 node1 dram triad, together: -18.0 %, slower"
python '
import shutil, netCDF4
shutil.copy("golden.nc", "steady.nc")
with netCDF4.Dataset("steady.nc", "a") as data:
    data["device_roof_spread"][:] = 0.01
'
expect 1 script compare.py steady.nc node.nc
says "2#3 node1 dram triad, together: -17.6 %"
! grep -q "  1#.* dram" output || { cat output; fail "the reference differs from itself"; }

# Samples that differ among themselves allow for more, but not those of one device.
python '
import shutil, netCDF4
for name, spreads in (("noisy.nc", [0.08, 0.1, 0.09, 0.12]), ("unsteady.nc", [0.01, 0.01, 0.01, 0.9]),
                      ("wild.nc", [0.9] * 4)):
    shutil.copy("node.nc", name)
    with netCDF4.Dataset(name, "a") as data:
        for row, device in enumerate(data["device_roof_device"][:]):
            if data["device_roof_name"][row] == "dram triad":
                data["device_roof_spread"][row] = spreads[device]
'
expect 1 script compare.py noisy.nc
row "^dram triad, together *4 " " 19 % " "-18.0 %   1#3 node1"
says "Beyond 5 %: 2"
expect 1 script compare.py unsteady.nc
row "^dram triad, together *4 " "-18.0 %\*  1#3 node1"
expect 1 script compare.py wild.nc
row "^dram triad, together *4 " " 50 %" "-18.0 %   1#3 node1"

# Roofs alone are nothing to draw.
if python 'import matplotlib' 2>/dev/null; then
    refused "it holds roofs alone" roofline.py alone.nc
fi

# Units are the file's; of int8 it says that its operations are no FLOPs.
python '
import shutil, netCDF4
shutil.copy("golden.nc", "int8.nc")
with netCDF4.Dataset("int8.nc", "a") as data:
    names = data["device_roof_name"]
    names[list(names[:]).index("fp16 tensor wgmma")] = "int8 tensor wgmma"
'
expect 0 script roofs.py int8.nc
row "^int8 tensor wgmma" "800 TOP/s"
row "^fp32 vector" "50 TFLOP/s"
python '
import netCDF4
with netCDF4.Dataset("int8.nc", "a") as data:
    data["device_roof_performance"].long_name = "FLOP/s"
'
expect 0 script roofs.py int8.nc
row "^int8 tensor wgmma" "800 TFLOP/s"

# What the CPU worker measures.
[ "$(nproc)" -ge 2 ] || exit 77 # two ranks on one core are one device
sed 's/^device = auto/device = cpu/' "$root/sweeps/roofs.ini" >roofs.ini
expect 0 run 2 roofs.ini
expect 0 script roofs.py roofs.nc
says ": 2 devices on 1 host"
for kind in "dram triad" "fp64 vector" "fp32 vector" "launch gap"; do row "^$kind " "%"; done
expect 0 script roofs.py roofs.nc --device 1
row "^dram triad *alone" "B/s"
row "^dram triad *together" "B/s"
expect 0 script compare.py roofs.nc --threshold 100000
row "^dram triad, together *2 "
row "^fp64 vector, alone *2 "
sed 's/^; reuse = .*/reuse = roofs.nc/' roofs.ini >again.ini
expect 0 run 2 --output again.nc again.ini
expect 0 script roofs.py roofs.nc
# Devices are numbered as they come, so that what is said of the first may differ.
grep '%' output | sed 's/ #[01] .*//' >measured
expect 0 script roofs.py again.nc
says "roofs taken from roofs.nc"
grep '%' output | sed 's/ #[01] .*//' | diff measured - || fail "roofs that were taken from a file are other ones"
