#!/bin/sh
# Tests `roofsweep-post check`: targets of roofs and references of configurations, with files of tests/data and with a
# node of four GPUs made from the golden sample. Then the example for ReFrame.
. "$(dirname "$0")/../mpi/lib.sh"
. "$here/../postproc/samples.sh"
paper=$root/tests/data/paper_h100.nc

# The committed GPUs pass the targets of the release; a GPU at 95 % in one target fails. Failed rows are listed.
expect 1 script check "$root/tests/data/algorithms_h200.nc" --targets "$root/sweeps/targets.ini"
row "^FAIL #0" "1 rows failed, the first: wrong result"
for file in "$paper" "$root"/tests/data/loops_h200.nc "$root"/tests/data/roofs_*h100.nc; do
    expect 0 script check "$file" --targets "$root/sweeps/targets.ini"
    ! grep -q '^FAIL' output || { cat output; fail "a committed GPU fails"; }
done
rowless "$root/tests/data/node_4xh200.nc" roofs.nc
sick roofs.nc "dram triad"
doctored sick.nc torn.nc 'data["device_roof_bandwidth"][data["device_roof_name"][:] == "l1 read"] *= 1.1'
expect 2 script check torn.nc --targets "$root/sweeps/targets.ini"
says "torn.nc: damaged: values and shares of theory contradict each other: l1 read"
expect 1 script check sick.nc --targets "$root/sweeps/targets.ini" --quiet --json found.json
row "^FAIL #3 vm GPU-877b68f2" "dram triad: 4.28 TB/s MISSED"
[ "$(grep -c '^PASS' output)" = 3 ] || { cat output; fail "another device fails"; }
python '
import json
[check] = [check for check in json.load(open("found.json"))["devices"][3]["checks"] if check["verdict"] == "fail"]
assert check["value"] < check["reference"] == float(4.28 * 1e12) and (check["limit"], check["unit"]) == (0, "B/s"), check
' || fail "JSON of a target"

# The targets on the page postproc/README.md are valid, and the committed file reaches them.
sed -n '/^```ini$/,/^```$/{/^```/!p}' "$root/postproc/README.md" >page.ini
expect 0 script check "$paper" --targets page.ini
row "^PASS #0 vm .* (6 checks)$"

# `baseline` writes targets that its devices reach, and that a slower device misses.
expect 0 script baseline "$root/tests/data/node_4xh200.nc" --output fleet.ini
grep -q "^dram triad = 4.408 TB/s +- 4.0 %$" fleet.ini || { cat fleet.ini; fail "the median of the fleet"; }
[ "$(grep -c '^own_time' fleet.ini)" = 40 ] || fail "configurations"
grep -q "^\[NVIDIA H200 | [a-z0-9-]* .*precision=" fleet.ini || { cat fleet.ini; fail "a section has no name of a row"; }
expect 0 script check "$root/tests/data/node_4xh200.nc" --targets fleet.ini --quiet
sed '/ | /,$d' fleet.ini >fleet_roofs.ini
expect 1 script check sick.nc --targets fleet_roofs.ini --quiet
row "^FAIL #3 vm GPU-877b68f2" "dram triad: 4.408 TB/s +- 4.0 % MISSED"
[ "$(grep -c '^PASS' output)" = 3 ] || { cat output; fail "another device fails"; }

# Some names of models are changed into names of sections. `check` reads each target that `baseline` wrote: a slower row
# fails.
odd='data["device_model"][:] = numpy.array(["A | B%20", " blanks  ", "DEFAULT", "[]#;"], object)'
doctored "$root/tests/data/node_4xh200.nc" odd.nc "$odd"
doctored odd.nc again.nc 'data["device_hostname"][:] = numpy.array(["other"] * 4, object)'
doctored odd.nc slow.nc 'data["time_median"][:] *= 2'
expect 0 script baseline odd.nc again.nc --output odd.ini
expect 0 script check odd.nc --targets odd.ini --quiet
expect 1 script check slow.nc --targets odd.ini --quiet
[ "$(grep -c '^FAIL.*own_time' output)" = 4 ] || { cat output; fail "a model is skipped"; }

# A GPU with a slower timer reaches the targets.
doctored "$root/tests/data/paper_h200.nc" again.nc 'data["device_hostname"][:] = numpy.array(["other"], object)'
doctored again.nc timer.nc 'added = 1.2e-6 / data["sample_iterations"][:]
data["timer_overhead"][:] += 1.2e-6
data["time_median"][:] += added'
expect 0 script baseline "$root/tests/data/paper_h200.nc" again.nc --output pair.ini
sed '/^own_time/s/+-.*/+- 1 %/' pair.ini >timer.ini
expect 0 script check timer.nc --targets timer.ini --quiet

# A device without a measured row fails the targets of configurations.
expect 1 script check roofs.nc --targets fleet.ini --quiet
[ "$(grep -c '^FAIL.*no row of this device was measured' output)" = 4 ] || { cat output; fail "no row, and it passes"; }

# A file with only roofs gives targets of roofs. A model may have only references of configurations.
expect 0 script baseline "$root/tests/data/roofs_2xh100.nc" --output roofs.ini
says " roofs and 0 configurations in roofs.ini"
sed '/ | /,$!d' fleet.ini >references.ini
expect 0 script check "$root/tests/data/node_4xh200.nc" --targets references.ini --quiet

cp "$root/sweeps/targets.ini" own.ini
kept own.ini "cannot write own.ini: it is an input file" check sick.nc --targets own.ini --json own.ini

# Verdicts on each device. A roof that is missing or doubtful misses its target.
printf '[Sample GPU]\ndram read = 3.55 TB/s\nl2 read = 8 TB/s\nfp32 vector = 98 %%\n' >node.ini
expect 1 script check node.nc --targets node.ini
row "^FAIL #0 node1 GPU-0 (5 checks): dram read: 3.55 TB/s MISSED: -1.4 %, 1 rows failed"
row "^FAIL #1 node1 GPU-1 (5 checks): dram read: 3.55 TB/s NOT KNOWN, dram read, alone: not measured: the bus is gone$"
row "^FAIL #2 node1 GPU-2 (5 checks): l2 read: 8 TB/s NOT KNOWN, l2 read, alone: contradicted$"
row "^PASS #3 node1 GPU-3 (4 checks)$"
# A disturbed roof is marked, reaches no target, and `baseline` makes no target from it.
python '
import shutil, netCDF4
shutil.copy("node.nc", "disturbed.nc")
with netCDF4.Dataset("disturbed.nc", "a") as data:
    own = (data["device_roof_name"][:] == "dram read") & (data["device_roof_device"][:] == 3)
    data["device_roof_mean"][own] = 0.8
'
expect 1 script check disturbed.nc --targets node.ini
row "^INCONCLUSIVE #3 node1 GPU-3 (4 checks): dram read: 3.55 TB/s NOT KNOWN, disturbed; measure it again on an idle host$"
expect 1 script roofs disturbed.nc --targets node.ini
row "^dram read " "3.57 TB/s?"
row "^?: other work disturbed 1 of .* samples of dram read, alone, take 25.0 % longer than the best, on average: #3 node1"
refused "other work disturbed dram read of #3 node1: a sample takes 25.0 % longer than the best" \
    baseline disturbed.nc --output none.ini
expect 0 script baseline "$paper" --output paper.ini
says "device to host, alone of #0 vm is left out: other work disturbed it, samples differ by 27.3 %; measure it again"
! grep -q "^device to host" paper.ini || fail "a roof whose samples differ makes a target"
# If a device was measured again, its undisturbed run counts. Several runs of one device need no links.
doctored "$root/tests/data/node_4xh200.nc" again.nc 'for name in "uuid", "hostname", "model":
    data[f"device_{name}"][:] = data[f"device_{name}"][:][[0] * 4]
data["uuid"][:] = data["device_uuid"][:][data["config_device"][:]]
own = (data["device_roof_name"][:] == "dram read") & (data["device_roof_device"][:] == 0)
means = data["device_roof_mean"][:]
means[own] = 0.75
data["device_roof_mean"][:] = means'
printf '[NVIDIA H200]\ndram read = 4 TB/s\nlink copy bandwidth = 380 GB/s\n' >again.ini
expect 0 script check again.nc --targets again.ini
# L2 roofs of all devices at once, which `compare` judges per clock cycle, have targets, too.
python '
import sys
sys.path.insert(0, sys.argv[1])
from merge import np, read, write
node = read(sys.argv[2])
together = node.isel(device_roof=np.flatnonzero(node.device_roof_condition == 1))
write(together, "together.nc")
slow = (together.device_roof_device.values == 3) & np.char.startswith(together.device_roof_name.values.astype(str), "l2 ")
together["device_roof_bandwidth"].values[slow] *= 0.5
write(together, "slow.nc")
' "$root/tests/postproc" "$root/tests/data/node_4xh200.nc" || fail "roofs together"
expect 0 script baseline together.nc --output together.ini
expect 0 script check together.nc --targets together.ini
expect 1 script check slow.nc --targets together.ini
row "^FAIL #3 vm" "l2 read: .* TB/s +- 4.0 % MISSED"
# Blanks at the end of a model's name, as in AMD's, are ignored.
doctored alone.nc blanks.nc 'names = [f"{name}   " for name in data["device_model"][:]]
data["device_model"][:] = numpy.array(names, object)'
printf '[Sample GPU  ]\n[Sample CPU]\n' >blanks.ini
expect 0 script check blanks.nc --targets blanks.ini
# A model without a section does not pass; an empty section requires nothing.
printf '[Sample GPU]\n' >one.ini
expect 1 script check alone.nc --targets one.ini
row "^PASS #0 node1"
row "^FAIL #1 node2" "no targets for Sample CPU; one.ini has: Sample GPU"

# References of configurations: a row that is slower than the tolerance fails, a faster one passes.
reference() {
    cat >rows.ini <<INI
[NVIDIA H100 80GB HBM3]
[NVIDIA H100 80GB HBM3 | one]
where = label=conv2d-filters filters=64 pass=forward precision=fp16 layout=nhwc cache=hot
$1
INI
    expect "$2" script check "$paper" --targets rows.ini
}
time=$(python '
import sys, roofsweep_post as post
from roofsweep_post.selection import choose
rows = choose(post.rows(post.load(sys.argv[1])), "label=conv2d-filters filters=64 pass=forward precision=fp16 layout=nhwc cache=hot".split())
print(f"{1e6 * rows.time_median.max():.6f}")' "$paper")
faster() { python 'import sys; print(f"{float(sys.argv[1]) * float(sys.argv[2]):.6f} us")' "$time" "$1"; }
reference "time_median = $(faster 1.01)" 0
reference "time_median = $(faster 2)" 0
reference "time_median = $(faster 0.96) +- 5 %" 0
reference "time_median = $(faster 0.96) +- 3 %" 1
row "^FAIL #0" "one: time_median" "shall be .* +- 3 % (-4.0 %)"
reference "roof_fraction = 100 %" 1
reference "roof_fraction = 0.1 %" 0
reference "time_median = 0.1 ns" 1
reference "performance = 1 GFLOP/s" 0
reference "where_not = 3" 2
reference "time_median = 3 TB/s" 2
says "rows.ini:4: [NVIDIA H100 80GB HBM3 | one] time_median = 3 TB/s: time_median is in s, as in time_median = 16.2 us"
reference "time_median = soon" 2
says "rows.ini:4: [NVIDIA H100 80GB HBM3 | one] time_median = soon: no number, as in time_median = 16.2 us"
reference "roof_fraction = 30 %
time_median = 3" 2
says "rows.ini:5: [NVIDIA H100 80GB HBM3 | one] time_median = 3: a number without a unit, as in time_median = 16.2 us or"
reference "time_medan = 3 us +- 5 %" 2
says "rows.ini:4: [NVIDIA H100 80GB HBM3 | one] 'time_medan' is no numeric variable of a row; did you mean time_median"
reference "algorithm = 3 us" 2
says "rows.ini:4: [NVIDIA H100 80GB HBM3 | one] 'algorithm' is no numeric variable of a row; "
reference "" 2
says "rows.ini:2: [NVIDIA H100 80GB HBM3 | one] needs \`where\` and at least one variable"
# The error of a malformed INI file names the line and the expected form.
wrong() {
    # shellcheck disable=SC2059 # with line ends
    printf "$1" >wrong.ini
    refused "$2" check "$paper" --targets wrong.ini
}
wrong '# ours\ndram triad = 4 TB/s\n' "wrong.ini:2: 'dram triad = 4 TB/s' is in no section; put a line [MODEL] above"
wrong '[A]\ndram triad\n' "wrong.ini:2: 'dram triad' is no target; write NAME = VALUE"
wrong '[A]\n[A]\n' "wrong.ini:2: a second section [A]; put its lines into the first"
wrong '[A]\nx = 1\nX = 2\n' "wrong.ini:3: [A] has 'x' twice; keep one of them"
wrong '[A]\n\nx = \377\n' "wrong.ini:3: no text (UTF-8); targets are an INI file"
wrong '[A]\nx = \000\n' "wrong.ini:2: no text (UTF-8); targets are an INI file"
wrong '[NVIDIA H100 80GB HBM3]\ndram triad = quick\n' "wrong.ini:2: [NVIDIA H100 80GB HBM3] 'quick' is neither a quantity"
wrong '[NVIDIA H100 80GB HBM3]\ndram triad = 4\n' "wrong.ini:2: [NVIDIA H100 80GB HBM3] '4' is neither a quantity"
wrong '[NVIDIA H100 80GB HBM3]\ndram triad = 4,28 TB/s\n' "'4' is neither a quantity"
wrong '[A]\n[A ]\n' "wrong.ini:2: [A ] is a second section of this model; put its lines into the first"
wrong '[NVIDIA H100 80GB HBM3]\ndram triad = 0 TB/s\n' "wrong.ini:2: [NVIDIA H100 80GB HBM3] '0 TB/s': a target must be more than 0"
wrong '[NVIDIA H100 80GB HBM3]\ndram triad = 0 %%\n' "wrong.ini:2: [NVIDIA H100 80GB HBM3] '0 %': a target must be more than 0"
wrong '[NVIDIA H100 80GB HBM3]\ndram triad = 2 TB/s +- 200 %%\n' \
    "wrong.ini:2: [NVIDIA H100 80GB HBM3] '2 TB/s +- 200 %': a tolerance must be below 100 %, or every value passes"
wrong '[NVIDIA H100 80GB HBM3 | rows]\nwhere = batch=16\nperformance = 0 FLOP/s\n' "performance = 0 FLOP/s: a target must be more than 0"
refused "--threshold must be more than 0, and finite" compare "$paper" --threshold inf
refused "$paper:1: no text (UTF-8)" check "$paper" --targets "$paper"
refused "none.ini: No such file" check "$paper" --targets none.ini
printf '[NVIDIA H100 80GB HBM3]\n[NVIDIA H100 80GB HBM3 | none]\nwhere = batch=77\ntime_median = 1 s\n' >rows.ini
expect 1 script check "$paper" --targets rows.ini
row "^FAIL #0" "none: no row has batch=77"
# XML gets no control characters from names of targets and texts of a file.
doctored "$paper" control.nc \
    'data["status"][3], data["error"][3] = 2, "ended \ufffe, \"quoted\" <here> & there"'
printf '[NVIDIA H100 80GB HBM3]\n[NVIDIA H100 80GB HBM3 | a\033[31mb]\nwhere = batch=77\001\ntime_median = 1 s\n' >rows.ini
expect 1 script check control.nc --targets rows.ini --junit found.xml
row "^FAIL #0" "a?\[31mb: no row has batch=77?"
python '
import xml.etree.ElementTree as xml
one, other = xml.parse("found.xml").getroot().iter("failure")
assert "ended ?, \"quoted\" <here> & there" in other.text and "a?[31mb" in one.get("message"), (one.text, other.text)
' || fail "JUnit of texts that are no XML"
# A failed row fails its device.
doctored "$paper" failed.nc 'data["status"][3], data["error"][3] = 2, "worker was killed"'
printf '[NVIDIA H100 80GB HBM3]\n' >empty.ini
expect 1 script check failed.nc --targets empty.ini
row "^FAIL #0" "1 rows failed, the first: worker was killed"

# The example for ReFrame runs on this CPU.
reframe=$root/build/reframe/bin/reframe
[ -x "$reframe" ] || reframe=$(command -v reframe) || {
    echo "the example for ReFrame was not tried: no reframe (PyPI: ReFrame-HPC, 230 MB)"
    exit 77
}
cat >cpu.ini <<'INI'
[sweep]
device = cpu
[peaks]
memory = dram
compute = fp32
condition = alone
INI
expect 0 "$ROOFSWEEP_BIN/roofsweep" --quiet --output first.nc cpu.ini
model=$(python 'import xarray; print(xarray.open_dataset("first.nc").device_model.values[0])')
try() {
    printf '[%s]\ndram triad = %s\n' "$model" "$1" >cpu_targets.ini
    "$reframe" --prefix="$work/reframe" -c "$root/postproc/reframe/roofsweep_checks.py" -r --performance-report \
        -S executable="$ROOFSWEEP_BIN/roofsweep" -S manifest="$work/cpu.ini" -S targets="$work/cpu_targets.ini" \
        -S python="$ROOFSWEEP_PYTHON"
}
expect 0 try "1 MB/s"
says "PASSED"
says "dram triad, alone"
expect 1 try "1 PB/s"
says "dram triad: 1 PB/s MISSED"
