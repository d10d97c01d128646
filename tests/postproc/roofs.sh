#!/bin/sh
# Tests tables of roofs: of a node of four GPUs, made from the golden sample, and of sweeps/roofs.ini on two ranks of
# this CPU.
. "$(dirname "$0")/../mpi/lib.sh"
. "$here/../postproc/samples.sh"

# Kinds of roofs have the order of the files. A kind that one file lacks has its place from the other file. If two files
# contradict each other, the first decides.
python '
from roofsweep_post.frames import merged
for sequences, expected in [
        ([["a", "b", "d"], ["b", "c", "d"]], "abcd"),
        ([["c", "d"], ["a", "c"], ["b", "d", "e"]], "acbde"),
        ([["a", "b"], ["b", "a"], ["x"]], "abx"),
        ([[], ["a"]], "a")]:
    found = "".join(merged(sequences))
    assert found == expected, (found, expected)
' || fail "kinds of roofs are in another order"

# Tables and texts for figures contain no control characters.
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
    expect "$([ -e "$name" ] && echo 0 || echo 2)" script roofs "$name"
    ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]\\|\342\200\256\\|\302\233')" output || { cat -v output; fail "control characters"; }
done
python '
from roofsweep_post import load
from roofsweep_post.texts import plain
data = load("hostile.nc")
assert set(data.device_model.values) == {"Sam?[31mple? ? GPU?"}, data.device_model.values
assert data.attrs["title"] == "?]0;title?", data.attrs["title"]
assert plain("Größe\t€ \udc9b") == "Größe\t€ ?"
' || fail "hostile texts"

# Each device model has a table.
expect 0 script roofs golden.nc
says "Sample GPU: 1 device on 1 host"
says "driver 580.0, power cap 700 W, constant power 150 W, rest power 128.1 W, measured 2024-12-31T23:58:20Z"
row "^dram read " "3.5 TB/s " " - " "88.9 %" unproven sample
row "^dram triad " "4 TB/s " "3.9 TB/s" "83.3 %" proven
row "^fp16 tensor library" "9 PFLOP/s!" "900.0 %" ABOVE-THEORY
says "fp16 tensor library, alone: ABOVE-THEORY, not used, highest 900.0 % of theory: #0 node1"
row "^launch gap " "2 us"
says "Sample CPU: 1 device"
says "#0 node1: GPU-00000000-0000-0000-0000-000000000001, PCI 00000000:3B:00.0"
expect 0 script roofs alone.nc
row "^fp64 vector" "100 GFLOP/s"

# Tables of several devices have the median and the slowest device.
expect 0 script roofs node.nc
says "Sample GPU: 4 devices on 1 host"
row "^dram read " "3.57 TB/s" "3.0 %" "1.755 GHz" "-2.0 %" "#0 node1"
row "^dram triad " "4.06 TB/s" "3.92 TB/s" "20.3 %"
# The node spread is over devices of one host and session.
doctored node.nc sessions.nc 'data["device_key"][3] = "another session/0"'
expect 0 script roofs sessions.nc
row "^dram triad " "4.06 TB/s" "3.92 TB/s" "2.0 %"
expect 0 script roofs node.nc
row "^l2 read " "8.08 TB/s" "3 unproven, 1 CONTRADICTED" "-1.0 %" "#0 node1"
row "^fp32 vector" "98.5 %"
row "^launch gap " "2.03 us" "+1.5 %" "#3 node1"
says "dram read, alone: not measured: the bus is gone: #1 node1"
says "l2 read, alone: CONTRADICTED, not used: #2 node1"
row "#3 node1: GPU-3"
order=$(sed -n 's/^\(dram\|l2\|fp32\|fp16\|launch\) \([a-z]*\) .*[0-9] %.*/\1 \2/p' output | tr '\n' ,)
[ "$order" = "dram read,dram triad,l2 read,fp32 vector,fp16 tensor,fp16 tensor,launch gap,launch gap," ] ||
    { cat output; fail "the order is not that of the file: $order"; }

# --device shows one device in full: both conditions, counted work, and reasons of missing values.
expect 0 script roofs node.nc --device 2
row "^dram triad *alone" "4.08 TB/s" "dram 1.002"
row "^dram triad *together" "3.978 TB/s" "20.3 %"
row "^l2 read" "1 PB/s!" CONTRADICTED
! grep -q "GPU-3" output || { cat output; fail "another device is shown"; }
expect 0 script roofs node.nc --device 1
row "^dram read *alone  *-" "not measured: the bus is gone"
refused "no device 4; there are: 0 to 3" roofs node.nc --device 4
# A device that could not be tuned has no roofs. A file without roofs is valid.
cat >lost.py <<'PY'
import xarray
data = xarray.open_dataset("golden.nc").load()
for name, lost in ("lost.nc", [1]), ("none.nc", [0, 1]):
    data["device_roof_device"].values[data.device_roof_device.isin(lost)] = -1
    data.to_netcdf(name)
PY
file lost.py
expect 0 script roofs lost.nc
says "No roofs at all: #1 node2"
refused "no roofs of device 1" roofs lost.nc --device 1
refused "none.nc: no roofs" roofs none.nc

# Targets are reached, missed or unknown. Tests the column, the summary and the exit status.
cat >reached.ini <<INI
[Sample GPU]
dram read = 3.5 TB/s
fp32 vector = 98 %, 45 TFLOP/s
launch gap = 2.1 us
INI
expect 0 script roofs node.nc --device 0 --targets reached.ini
row "^dram read" "3.5 TB/s reached: +0.0 %  "
row "^fp32 vector" "98 % reached: +0.5 %; 45 TFLOP/s reached: +11.1 %  "
row "^launch gap" "2.1 us reached: +5.0 %  "
says "Targets: 4 reached, 0 missed, 0 not known"
cat >missed.ini <<INI
[Sample GPU]
dram read = 3.55 TB/s
l2 read = 8 TB/s
l1 read = 98 %
shared read = 97 %
fp16 tensor wgmma = 810 TFLOP/s, fp16 tensor library
launch gap = 2.01 us
INI
expect 1 script roofs node.nc --targets missed.ini
row "^dram read" "3.55 TB/s MISSED by 1 of 4: -1.4 %  "
row "^l2 read" "8 TB/s NOT KNOWN for 1 of 4  "
row "^l1 read" "98 % NOT MEASURED  " # the file lacks both roofs
row "^shared read" "97 % NOT MEASURED  "
row "^fp16 tensor wgmma" "810 TFLOP/s MISSED by 2 of 4: -1.2 %; fp16 tensor library NOT KNOWN for 4 of 4  "
row "^launch gap" "2.01 us MISSED by 3 of 4: -2.4 %  "
says "Targets: 0 reached, 3 missed, 4 not known"
says "  l2 read, 8 TB/s: not known on #2 node1"
says "  launch gap, 2.01 us: missed on #1 node1, #2 node1, #3 node1"
# A model without a section of targets fails, one with an empty section passes.
expect 1 script roofs node.nc --targets /dev/null
says "No targets for Sample GPU; /dev/null has: none"
expect 1 script roofs golden.nc --device 0 --targets reached.ini
expect 1 script roofs golden.nc --targets missed.ini
says "No targets for Sample CPU; missed.ini has: Sample GPU"
printf '[Sample GPU]\n[Sample CPU]\n' >empty.ini
expect 0 script roofs golden.nc --targets empty.ini
# Sections of models that the file lacks are ignored.
printf '[Sample GPU]\n[Sample CPU]\nanother thing = 1 TB/s\n' >other.ini
expect 0 script roofs node.nc --targets other.ini
printf '[Sample GPU]\ndram reed = 1 TB/s\n' >wrong.ini
refused "wrong.ini:2: [Sample GPU] 'dram reed' is no roof; there are: dram read, " roofs node.nc --targets wrong.ini
printf '[Sample GPU]\ndram read = fast\n' >wrong.ini
refused "'fast' is neither a quantity" roofs node.nc --targets wrong.ini
printf '[Sample GPU]\nfp32 vector = 1 TB/s\n' >wrong.ini
refused "wrong.ini:2: [Sample GPU] fp32 vector is in FLOP/s, its target '1 TB/s' is not" roofs node.nc --targets wrong.ini
refused "absent.ini: No such file; roofsweep-post baseline makes targets" roofs node.nc --targets absent.ini

# Roofs of int8 are in OP/s instead of FLOP/s.
doctored golden.nc int8.nc 'names = data["device_roof_name"]
names[list(names[:]).index("fp16 tensor wgmma")] = "int8 tensor wgmma"'
expect 0 script roofs int8.nc
row "^int8 tensor wgmma" "800 TOP/s"
row "^fp32 vector" "50 TFLOP/s"
doctored int8.nc int8.nc 'data["device_roof_performance"].long_name = "FLOP/s"'
expect 0 script roofs int8.nc
row "^int8 tensor wgmma" "800 TFLOP/s"

[ "$(nproc)" -ge 2 ] || exit 77 # two ranks on one core are one device
sed 's/^device = auto/device = cpu/' "$root/sweeps/roofs.ini" >roofs.ini
expect 0 run 2 roofs.ini
expect 0 script roofs roofs.nc
says ": 2 devices on 1 host"
for kind in "dram triad" "fp64 vector" "fp32 vector" "launch gap"; do row "^$kind " "%"; done
expect 0 script roofs roofs.nc --device 1
row "^dram triad *alone" "B/s"
row "^[ld][a-z0-9]* [a-z]* *together" "B/s" # a busy machine may miss the common start
script compare roofs.nc --threshold 100000 >output || true # devices of a busy machine are noisy
row "^[ld][a-z0-9]* [a-z]*, together *2 "
row "^fp64 vector, alone *2 "
sed 's/^; reuse = .*/reuse = roofs.nc/' roofs.ini >again.ini
expect 0 run 2 --output again.nc again.ini
expect 0 script roofs roofs.nc
# The order of devices varies between runs, so their names are cut off.
grep '%' output | sed 's/ #[01] .*//' >measured
expect 0 script roofs again.nc
says "roofs taken from roofs.nc"
grep '%' output | sed 's/ #[01] .*//' | diff measured - || fail "roofs differ from those of the file"
