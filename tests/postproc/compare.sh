#!/bin/sh
# Tests `roofsweep-post compare` with a node of four GPUs made from the golden sample, with the four GPUs of
# tests/data, and with earlier files as reference.
. "$(dirname "$0")/../mpi/lib.sh"
. "$here/../postproc/samples.sh"
four=$root/tests/data/node_4xh200.nc
paper=$root/tests/data/paper_h100.nc

# Statistics: of two devices the slower one is slow; of many, a device far outside their scatter. The limit depends on
# the spread of the reference, never on the samples of the judged device, and is at most 10 %. If the spread is larger,
# the verdict is unsure instead of slow. A faster device passes.
python '
import numpy as np, pandas
from roofsweep_post.deviations import judged
def found(values, unit="FLOP/s", files=0, **more):
    table = pandas.DataFrame({"value": np.asarray(values, float), "unit": unit, "key": "k",
                              "file": files, "model": "m", "uuid": [f"u{i}" for i in range(len(values))]} | more)
    return judged(table, first=0 if np.ndim(files) else None)
def slow(*values, **more):
    return list(np.flatnonzero(found(*values, **more)["slow"]))
def unsure(*values, **more):
    return list(np.flatnonzero(found(*values, **more)["unsure"]))
assert slow([100, 95]) == [1] and slow([100, 97]) == []
assert slow([1, 1.06], unit="s") == [1] and slow([1, 0.5, 1], unit="s") == []
assert slow([100, 100, 95]) == [2] and slow([100, 100, 200]) == []
assert slow([100, 101, 99, 102, 98, 95]) == []         # within the usual scatter of devices
assert slow([100, 100.1, 99.9, 100, 100, 95]) == [5]
assert slow([100, 100, 95], spread=[0, 0, 0.9]) == [2]  # noise of its own samples is no excuse
assert slow([100, 100, 95], placed=0.08) == [] and slow([100, 100, 91], placed=0.08) == [2]
assert slow([100, 100, 91], placed=[0.01, 0.01, 0.5]) == [2]
wide = dict(values=[100, 108, 92, 115, 85, 88, 40])
assert unsure(wide["values"]) == [4, 5] and slow(wide["values"]) == [6] and found(wide["values"])["limit"].max() == 0.1
assert slow([100, 50], between=np.inf) == [] and slow([100, 50], least=np.inf) == []    # printed, not judged
assert slow([100] * 500 + [95]) == [500]
# A device of a later file is compared with itself in the earlier file, a new device with the median of its model.
assert slow([100, 90, 100, 90], files=[0, 0, 1, 1], uuid=["a", "b", "a", "b"]) == []
assert slow([100, 90, 90, 90], files=[0, 0, 1, 1], uuid=["a", "b", "a", "b"]) == [2]
assert slow([100, 100, 90, 99], files=[0, 0, 1, 1], uuid=["a", "b", "c", "d"]) == [2]
assert slow([100, 100, 90, 90, 90], files=[0, 0, 1, 1, 1], uuid=list("ababc")) == [2, 3, 4]   # all are slow
assert slow([100, 50], files=[0, 1], uuid=["a", "a"], between=np.inf) == [1]
assert slow([100, 95], files=[0, 1], uuid=["a", "a"], placed=[0.06, 0]) == []           # the reference has a spread
assert slow([100, 95], files=[0, 1], uuid=["a", "a"], placed=[0, 0.06]) == [1]
assert found([100, 90, 80], files=[0, 1, 1], model=["m", "n", "n"])["deviation"].isna().all()   # no reference
' || fail "statistics"

# All roofs and conditions are compared, except doubtful roofs, which are listed. A device without a comparable value
# does not pass.
for name in golden.nc alone.nc; do doctored $name $name 'data["device_roof_spread"][:] = 0.01; data["device_roof_mean"][:] = 1'; done
expect 6 script compare golden.nc alone.nc
row "fp16 tensor library, alone: above-theory: 1#0 node1, 2#0 node1"
says "No configuration was measured on two devices"
row "^INCONCLUSIVE 2#0 node1" "1 configurations not measured, which the reference has: batch batch=16 kernel=3 precision=fp16"
row "^INCONCLUSIVE 2#1 node2" "1 configurations not measured, which the reference has: lstm"
# A file without rows lacks all rows of the reference.
rowless node.nc rowless.nc
expect 1 script compare node.nc rowless.nc
row "2#0 .* not measured, which the reference has"
expect 1 script compare node.nc
row "^dram triad, together *4 " "3.92 TB/s" "4.4 %" "-18.0 %\*  1#3 node1" "+1.5 %   1#2 node1"
row "^l2 read, alone *3! " "8.08 TB/s" "-1.0 %" "+2.0 %   1#3 node1"
row "^launch gap, alone *4 " "2.03 us" "-1.5 %   1#3 node1" "+1.5 %   1#0 node1"
row "^PASS 1#0 node1 GPU-0 (9 checks)$"
row "^FAIL 1#1 node1 GPU-1 (9 checks): dram read, alone: not measured: the bus is gone$"
row "^FAIL 1#2 node1 GPU-2 (9 checks): l2 read, alone: contradicted$"
row "^FAIL 1#3 node1 GPU-3 (9 checks): dram triad, together slower by 18.0 % +- 0.3 (limit 4.4 %)$"
# Verdicts as text and as JSON.
expect 1 script compare node.nc --quiet --json found.json --junit found.xml
[ "$(wc -l <output)" = 4 ] || { cat output; fail "more than a line for each device"; }
python '
import json, xml.etree.ElementTree as xml
found = json.load(open("found.json"))
assert not found["passed"] and [line["verdict"] for line in found["devices"]] == ["PASS", "FAIL", "FAIL", "FAIL"], found
slow = found["devices"][3]
assert slow["uuid"] == "GPU-3" and "dram triad" in slow["reasons"][0], slow
[check] = [check for check in slow["checks"] if check["verdict"] != "pass"]
assert (check["name"], check["unit"]) == ("dram triad, together", "B/s") and check["reason"] == slow["reasons"][0], check
assert abs(check["value"] / check["reference"] - 0.82) < 1e-3 and 0.04 < check["limit"] < 0.05, check
top = xml.parse("found.xml").getroot()
assert [suite.get("failures") for suite in top] == ["0", "1", "1", "1"]
assert [int(suite.get("tests")) == len(suite) == len(line["checks"]) for suite, line in zip(top, found["devices"])]
[case] = [case for case in top[3] if case.find("failure") is not None]
shown = dict(line.split(": ", 1) for line in case.find("system-out").text.splitlines())
assert case.get("name") == check["name"] and shown == {name: str(check[name]) for name in shown}, shown
assert list(shown) == ["value", "reference", "limit", "unit"]
assert {part.tag for part in top.iter()} == {"testsuites", "testsuite", "testcase", "failure", "system-out"}  # of the schema
' || fail "JSON or JUnit"
refused "cannot write nowhere/found.json: No such" compare node.nc --json nowhere/found.json
# A file of verdicts replaces neither a result file nor another file of verdicts.
for option in json junit prometheus; do
    kept node.nc "cannot write node.nc: it is an input file; --$option must name another" \
        compare node.nc "--$option" node.nc
    kept alone.nc "cannot write alone.nc: it exists and is a NetCDF file; --$option must name another" \
        compare node.nc "--$option" alone.nc
done
ln node.nc linked
kept node.nc "cannot write linked: it is an input file" compare node.nc --json linked
refused "cannot write new: another option names it, too; --junit must" compare node.nc --json new --junit new
[ ! -e new ] || fail "it is refused too late"
expect 1 script compare node.nc --json /dev/null --junit /dev/null
# `--drain` prints commands that drain nodes, and refuses host names that name no node. `--prometheus` writes values.
doctored node.nc fleet.nc '
data["device_hostname"][:] = numpy.array(["gpu002", "gpu003.site", "gpu004", "x'"'"'$(touch run)"], object)
data["device_driver_version"][2] = "999.1"
names = list(data["health"][:])
for place, name, start, end in (
    (0, "xids_of_programs", 0, 2), (0, "xids", 0, 0), (0, "xid_last", numpy.nan, 31), (1, "ecc_uncorrected_ever", 0, 2),
    (1, "xids", 0, 1), (2, "pcie_replays", 1, 5), (3, "pcie_width", 16, 8),
):
    for when in ("start", "end"):  # the other devices have the value, too
        data[f"device_health_{when}"][:, names.index(name)] = start
    data["device_health_end"][place, names.index(name)] = end
'
expect 1 script compare fleet.nc --drain --prometheus fleet.prom --json found.json
row "^scontrol update NodeName=gpu003 State=DRAIN Reason='roofsweep: .* on GPU-1'$"
row "^# srun --exclude='gpu\[003-004\]'$"
row "^roofsweep-post: not drained: FAIL 1#3 x'.* is no name of a node$"
mkdir fake
printf '#!/bin/sh\necho "$2"\n' >fake/scontrol
chmod +x fake/scontrol
grep -v "^roofsweep-post: " output >drain
[ "$(PATH="$work/fake:$PATH" sh drain | wc -l)" = 2 ] || { cat output; fail "the commands do not run"; }
python '
from roofsweep_post.verdicts import node_of
assert [node_of(name) for name in ("gpu003", "gpu003.site", "node-1_a")] == ["gpu003", "gpu003", "node-1_a"]
for name in ("", "ALL", "all", "gpu[001-999]", "n1,n2", "10.0.0.5", "fe80::1", "-n", "a b", "ALL.site", "all.example.org", "10.0.0", "127"):
    assert node_of(name) is None, name
' || fail "node_of accepts another text"
[ ! -e run ] || fail "a host's name was run"
python '
import json, re
checks = [check for device in json.load(open("found.json"))["devices"] for check in device["checks"]]
lines = open("fleet.prom").read().split("\n")
found = [float(line.split()[-1]) for line in lines if line.startswith("roofsweep_check_value{")]
passed = {re.search("host=\"([^\"]*)", line)[1]: line[-1] for line in lines if line.startswith("roofsweep_device_ok{")}
assert [passed[host] for host in ("gpu002", "gpu003.site", "gpu004")] == ["1", "0", "0"], passed
assert all(re.fullmatch(r"# TYPE \w+ gauge|# HELP \w+ .+|\w+\{.*\} \S+|", line) for line in lines)
assert not any("verdict=" in line for line in lines) and any("measured_timestamp_seconds{" in line for line in lines)
series = [line.rpartition(" ")[0] for line in lines if line and line[0] != "#"]
assert len(series) == len(set(series)), "a series stands twice"
wanted = [check["value"] for check in checks if check["value"] is not None]
assert len(found) == len(wanted) and all(abs(one - other) <= 1e-5 * abs(other) for one, other in zip(found, wanted))
' || fail "Prometheus"
# A device with worse health fails. Other changes, and properties unlike those of most devices of the model, are only
# printed.
expect 1 script compare fleet.nc
row "^PASS 1#0 gpu002" "xids_of_programs 0, now 2, xid_last 31$"
row "^FAIL 1#1 gpu003" "ecc_uncorrected_ever 0, now 2" "xids 0, now 1"
row "^FAIL 1#2 gpu004" "l2 read" "pcie_replays 1, now 5, driver 999.1, of most 580.0$"
row "^FAIL 1#3 x" "pcie_width 16, now 8"
row "^  Sample GPU: driver 999.1, of most 580.0: 1#2 gpu004$"
# With --across-models devices of different models are compared.
expect 1 script compare golden.nc --across-models --quiet
row "^PASS 1#0 node1" "(4 checks)$"
row "^FAIL 1#1 node2 cpu-node2-0-3 (2 checks): fp32 vector, alone slower by 99.6 %"
[ "$(wc -l <output)" = 2 ] || { cat output; fail "more than a line for each device"; }
# If a file has no interval of times, the notch of the samples is used instead.
doctored golden.nc bare.nc 'data.renameVariable("time_median_low", "another")'
expect 1 script compare bare.nc --across-models --quiet
row "^PASS 1#0 node1" "(4 checks)$"
refused_option "argument -c/--configurations: '-1' is no whole number >= 0" compare node.nc --configurations -1
# Compared with an earlier file, only slower devices fail.
expect 1 script compare alone.nc node.nc
row "^FAIL 2#3 node1 GPU-3" "dram triad, together slower by 17.6 % +- 0.3 "
! grep -q "^FAIL 1#" output || { cat output; fail "the reference is judged"; }
roofs='data["device_roof_spread"][:] = 0.01; data["device_roof_bandwidth"][:] *='
doctored golden.nc faster.nc "$roofs 1.5"
doctored golden.nc slower.nc "$roofs 0.9"
doctored golden.nc roof.nc 'data["device_roof_energy"][:] *= 1.25'
doctored golden.nc row.nc 'data["energy"][:] *= 1.25'
doctored golden.nc less.nc 'data["energy"][:] *= 0.8'
expect 0 script compare golden.nc faster.nc
expect 1 script compare golden.nc slower.nc
# More energy for equal work is judged like a slower roof or row.
expect 0 script compare golden.nc less.nc --quiet
expect 1 script compare golden.nc roof.nc --quiet
row "^FAIL 2#0 node1" "dram read, alone, energy slower by 20.0 % +- 3.9 (limit 9.0 %)"
expect 1 script compare golden.nc row.nc --quiet
row "^FAIL 2#0 node1" "batch batch=16.*, energy slower by 20.0 % +- 3.9 (limit 18.0 %)"

# Four healthy GPUs pass. A GPU with 95 % of one roof fails, for each roof that repeats within 1.3 %.
expect 0 script compare "$four"
! grep -q '%[*?]' output || { cat output; fail "a healthy GPU is marked"; }
[ "$(grep -c '^PASS' output)" = 4 ] || { cat output; fail "a healthy GPU does not pass"; }
# A device whose tensor roofs are slower only because of a lower clock passes.
rowless "$four" roofs.nc
doctored roofs.nc clock.nc '
own = (data["device_roof_name"][:] == "bf16 tensor mma") & (data["device_roof_device"][:] == 3)
for value in "performance", "nominal_fraction", "sm_clock":
    data[f"device_roof_{value}"][own] *= 0.9
'
expect 0 script compare clock.nc
row "^bf16 tensor mma, alone *4 " "FLOP/cycle"
for kind in "dram read" "l2 triad" "shared read" "fp32 vector" "fp16 tensor wgmma"; do
    sick roofs.nc "$kind"
    expect 1 script compare sick.nc --quiet
    row "^FAIL 1#3 vm GPU-877b68f2" "$kind, alone slower by [45]\.. % +- [01]\.. (limit [14]"
    [ "$(grep -c '^FAIL' output)" = 1 ] || { cat output; fail "another device fails"; }
done
python '
import roofsweep_post
from roofsweep_post import compare, deviations
import sys
table = compare.roof_table([roofsweep_post.load(sys.argv[1])])
table = compare.medians(table[table["usable"] & ~table["key"].str.contains(", clock,")], "key")
found = kinds = 0
for _, own in table.groupby("key"):
    limit = deviations.judged(own)["limit"].min()
    kinds += 1
    for place in range(4):
        sick = own["value"].where(own["place"] != place, own["value"] * (1 / 0.95 if own["unit"].iloc[0] == "s" else 0.95))
        found += deviations.judged(own.assign(value=sick)).set_index("place").loc[place, "slow"]
assert kinds == 98 and found > 0.8 * 4 * kinds, (kinds, found)
print(kinds, found)
' roofs.nc || fail "few of the slow ones are found"

# If there is another load on a GPU, the load is the first reason of its FAIL, before slow roofs; its neighbour passes.
# Energies do not count as configurations. Each limit is at least that of normal_limit().
two=$root/tests/data/node_2xh100.nc
doctored "$two" busy.nc '
mine = data["device_roof_device"][:] == 1
slow = mine & numpy.isin(data["device_roof_name"][:], ["dram read", "l2 write", "fp32 vector"])
for value in "mean", "clock_fraction":
    data[f"device_roof_{value}"][mine] *= 0.95
for value in "bandwidth", "performance", "nominal_fraction", "clock_fraction":
    data[f"device_roof_{value}"][slow] *= 0.97
beside = data["config_device"][:] == 1
data["other_processes"][:] = numpy.where(beside, "python3 (process 9, 5 % busy)", "none").astype(object)
data["energy"][~beside] *= 1.05'
expect 1 script compare "$two" busy.nc --quiet
row "^PASS 2#0"
row "^FAIL 2#1" ": another load takes 5..* % of the GPU.s time (limit 1.0 %); other processes beside 40 configurations: python3 (process 9, 5 % busy), l2 write, together slower by 7.9 % +- 0.5 "
# A GPU that was measured beside a load is no reference: the reference is then the median of its model. Without other
# devices of its model, the device is inconclusive.
doctored "$two" slower.nc '
for value in "performance", "nominal_fraction", "clock_fraction":
    data[f"device_roof_{value}"][data["device_roof_name"][:] == "fp32 vector"] *= 0.97'
expect 1 script compare busy.nc slower.nc --quiet
row "^FAIL 2#1" ": fp32 vector, .* slower by 3"
doctored busy.nc busier.nc 'data["device_roof_mean"][:] *= 0.97; data["device_roof_clock_fraction"][:] *= 0.97'
expect 6 script compare busier.nc "$two" --quiet
row "^INCONCLUSIVE 2#0" ": other work disturbed the reference; measure it again"
python '
import re, sys
from roofsweep_post.compare import CLOCK, ENERGIES, LIMITS, SUSTAINED, normal_limit
for part, itself, others, deviation in (*LIMITS, ("", *SUSTAINED[:1], *SUSTAINED), ("", *CLOCK[:1], *CLOCK), ("", *ENERGIES[:1], *ENERGIES)):
    assert normal_limit(deviation) <= itself <= others, part
known = {(100 * row[3], 100 * limit) for row in LIMITS for limit in row[1:3]} | {(100 * one[1], 100 * one[0]) for one in (SUSTAINED, CLOCK)}
table = open(sys.argv[1]).read().split("| roofs | standard deviation")[1].split("\n\n")[0].split("\n")[2:]
for deviations, most, limits in ([[float(n) for n in re.findall(r"[\d.]+(?=,| %)", cell)] for cell in line.split("|")[2:5]] for line in table):
    assert [round(3.95 * one, 1) for one in deviations] == most, line
    assert all(any(abs(one - a) + abs(limit - b) < 1e-9 for a, b in known) for one, limit in zip(deviations, limits)), (deviations, limits)
' "$root/docs/measurements.md" || fail "a limit below its deviation, or another one on the page"

# The work of tensor or vector units per clock cycle, over all samples of a roof, never exceeds theory.
python '
import sys, roofsweep_post
from roofsweep_post import compare
worst = []
for path in sys.argv[1:]:
    data = roofsweep_post.load(path)
    raw, found = roofsweep_post.roofs(data), compare.roof_table([data])
    if "device_clock_max" in data:
        cycle = raw["value"] / raw["nominal_fraction"] / raw["device"].map(dict(enumerate(data["device_clock_max"].values)))
    else:  # of format 3
        cycle = raw["value"] / raw["clock_fraction"] / raw["sm_clock"]
    theory = dict(zip(zip(raw["device"], raw["key"] if "key" in raw else raw["name"] + ", " + raw["condition"]), cycle))
    own = found[found["unit"].str.endswith("/cycle") & found["usable"] & found["performance"].notna()]
    worst += [value / theory[device, key.removesuffix(", sustained")] for value, device, key in zip(own["value"], own["device"], own["key"])]
print(len(worst), max(worst))
assert len(worst) > 390 and 0.9 < max(worst) < 1.002
' "$root"/tests/data/[np]*_*h?00.nc || fail "above theory"

# A roof whose samples differ by 27 % cannot be a reference. Other tests use a copy without such a roof.
doctored "$paper" fit.nc 'data["device_roof_spread"][data["device_roof_name"][:] == "device to host"] = 0.01'
expect 6 script compare "$paper" fit.nc --quiet
row "^INCONCLUSIVE 2#0 .*: device to host, alone: other work disturbed the reference; measure it again$"
expect 0 script compare fit.nc "$paper" --quiet
paper=fit.nc

# Sustained roofs are compared by work per clock cycle. If only the clock is lower, the device is inconclusive.
doctored "$paper" warm.nc 'data["device_roof_sustained"][:] *= 0.99'
doctored "$paper" hot.nc 'data["device_roof_sustained"][:] *= 0.85'
expect 0 script compare "$paper" warm.nc
row "^fp32 vector, alone, sustained *1 " "-1.0 %  "
expect 1 script compare "$paper" hot.nc --quiet
row "^FAIL 2#0" "sustained slower by 15.0 % +- 0.3 (limit 1.5 %)"
doctored hot.nc clocks.nc 'data["device_roof_sustained_clock"][:] *= 0.85'
expect 6 script compare "$paper" clocks.nc --quiet
row "^INCONCLUSIVE 2#0" "clock, sustained slower by 15.0 % +- 1.6 (limit 10.0 %)"

# A GPU with a slower timer is not slower.
doctored "$paper" timer.nc 'added = 1.2e-6 / data["sample_iterations"][:]
data["timer_overhead"][:] += 1.2e-6
for name in "time_median", "time_median_low", "time_median_high":
    data[name][:] += added'
expect 0 script compare "$paper" timer.nc --quiet

# Rows with doubled times are found.
doctored "$paper" slow.nc 'for name in ("time_median", "time_median_low", "time_median_high", "timer_overhead"):
    data[name][:] *= 2
data["device_roof_bandwidth"][:] /= 2
data["algorithm"][0] = "another"'
expect 1 script compare "$paper" slow.nc
rows=$(python 'import sys, xarray; print(xarray.open_dataset(sys.argv[1]).sizes["config"])' "$paper")
row "^dram read, alone *1 " "-50.0 %\*  2#0"
row "^FAIL 2#0" "dram .* slower by 50.0 %"
expect 1 script compare "$paper" slow.nc --quiet --json found.json
python '
import json, re, sys
reasons = json.load(open("found.json"))["devices"][0]["reasons"]
assert f"times of {sys.argv[1]} configurations: geometric mean -50.0 %" in reasons, reasons
slow = re.search(r"(\d+) of \d+ configurations are slower, the slowest by 50.0 %", " ".join(reasons))
assert slow and int(slow[1]) > 0.9 * int(sys.argv[1]), reasons  # noisy rows are not counted
' "$rows" || fail "slow configurations are not named"
expect 1 script compare "$paper" slow.nc --configurations "$rows"
[ "$(grep -c 'differs$' output)" = 1 ] || { cat output; fail "a changed algorithm is not named"; }
refused "only one device" compare "$paper"
refused "named twice" compare "$paper" "$paper"

# Prometheus' text for several files has each series once.
expect 1 script compare "$paper" slow.nc warm.nc --prometheus two.prom
python '
lines = [line.rpartition(" ")[0] for line in open("two.prom") if line[0] != "#"]
assert len(lines) == len(set(lines)) > 400 and sum("device=\"3#0 vm\"" in line for line in lines) > 200, len(lines)
' || fail "series of Prometheus"

# A device is inconclusive if the reference has no device of its model, or if another process ran on it. A device fails
# because of noisy samples, or of a configuration that failed only on this device. A row at the power cap is compared by
# clock cycles.
expect 6 script compare "$paper" "$root/tests/data/training_cpu.nc" --quiet
row "^INCONCLUSIVE 2#0 vm cpu-.* (1 checks): the reference has no AMD EPYC$"
changed() {
    doctored "$paper" changed.nc "$1"
}
changed 'data["other_processes"][:] = numpy.array(["none", "sim (process 9, 35 % busy)"] * 999,
    object)[: data.dimensions["config"].size]'
expect 6 script compare "$paper" changed.nc --quiet
row "^INCONCLUSIVE 2#0" "other processes beside [0-9]* configurations: sim (process 9, 35 % busy)$"
changed 'data["device_roof_spread"][:] = 0.2; data["time_sample"][:, ::10] *= 1.2'
expect 1 script compare "$paper" changed.nc --quiet
row "^FAIL 2#0" "noisy: samples of roofs differ by 20.0 % (limit 5.0 %)" \
    "noisy: samples of configurations differ by 1..* % (limit 5.0 %)$"
changed 'own = numpy.flatnonzero(data["status"][:] == 0)[0]; data["status"][own] = 2; data["error"][own] = "off the bus"'
expect 1 script compare "$paper" changed.nc --quiet
row "^FAIL 2#0" ": failed: off the bus$"
throttled='import roofsweep_post as post; own = post.rows(post.load(sys.argv[1]), measured=False).throttled.to_numpy() == "yes"'
changed "$throttled; data['throttle_reasons'][own] = 4"
mv changed.nc capped.nc
slower="$throttled; data['time_median'][own] *= 1.2"
doctored capped.nc changed.nc "$slower; data['sm_clock'][own] /= 1.2"
expect 0 script compare capped.nc changed.nc --quiet
expect 1 script compare "$paper" changed.nc --quiet
doctored capped.nc changed.nc "$slower"
expect 1 script compare capped.nc changed.nc --quiet
# Longer gaps between launches do not fail a device, because they differ between processes.
gaps='kind = data["device_roof_name"][:] == "launch gap"; gap = data["device_roof_time"][kind].mean()
data["time_median"][:] += 0.12 * gap * data["launches"][:]'
changed "$gaps; data['device_roof_time'][kind] *= 1.12"
expect 0 script compare "$paper" changed.nc --quiet
changed "$gaps; data['device_roof_time'][kind] *= 2; data['time_median'][:] += 0.5 * gap * data['launches'][:]"
expect 1 script compare "$paper" changed.nc --quiet
# If the reference has several placements, their spread is the limit.
changed 'data.createVariable("placements", "i8", ("config",))[:] = 5
for name in ("low", "high"):
    data[f"time_median_{name}"][:] = data["time_median"][:] * (1.06 if name == "high" else 1)'
mv changed.nc placed.nc
for pair in near:1.055 far:1.08; do
    doctored placed.nc "${pair%:*}.nc" 'for name in "time_median", "timer_overhead":
    data[name][:] *= numpy.where(numpy.arange(data.dimensions["config"].size) % 9, 1, float(words[0]))' "${pair#*:}"
done
expect 0 script compare placed.nc near.nc --quiet
expect 1 script compare placed.nc far.nc --quiet
row "^FAIL 2#0" "configurations are slower, the slowest by 7.4 % +- 2.9"

# `--since` prints the slope of a roof over months, and the day on which a new driver changed a roof.
mkdir months
for month in 0 1 2 3 4 5; do
    doctored golden.nc months/$month.nc 'month, name = int(words[0]), data["device_roof_name"][:]
data["device_roof_start_time"][:] = 1.7e9 + 30 * 86400 * month
data["device_roof_bandwidth"][name == "dram read"] *= 1 - 0.02 * month
if month >= 3:
    data["device_driver_version"][0] = "999.1"
    data["device_roof_bandwidth"][name == "l2 read"] *= 0.9' $month
done
echo damaged >months/6.nc
# `--since` names and leaves out files with absurd times, with texts instead of numbers, or that HDF5 reads without end.
# Escape sequences are not printed.
cat >endless.py <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[121310] = data[121318] = 0  # sizes in a heap of texts
open(sys.argv[2], "wb").write(data)
PY
file endless.py "$root/tests/data/node_2xh100.nc" months/endless.nc
doctored months/5.nc months/absurd.nc 'data["device_roof_start_time"][0] = 1e30'
doctored months/5.nc months/text.nc 'data.renameVariable("device_roof_bandwidth", "old")
texts = numpy.full(data["old"].shape, "x", object)
data.createVariable("device_roof_bandwidth", str, ("device_roof",))[:] = texts'
doctored months/5.nc months/escape.nc 'data["device_driver_version"][0] = "1000\x1b[31m"
data["device_roof_start_time"][:] += 86400'
cat >quickly.py <<'PY'
import sys
from roofsweep_post import cli, dataset
dataset.READ_SECONDS = 1.0
sys.exit(cli.main(sys.argv[1:]))
PY
expect 1 file quickly.py compare --since 2023-01-01 months
for name in absurd text endless; do
    says "months/$name.nc: left out, "
done
row "^  2024-04-13 node1 GPU-.*: 999.1 to 1000?\[31m: no roof changed$"
rm months/absurd.nc months/text.nc months/escape.nc
expect 2 file quickly.py check --integrity months/endless.nc
says "months/endless.nc: damaged: reading it ended the process (SIGPROF)"
mv months/endless.nc .
expect 1 script compare --since 2023-01-01 months
says "months/6.nc: left out, "
row "^node1 GPU-.* dram read, alone *6 *-2.1 % *-10.5 %$"
row "^  2024-02-12 node1 GPU-.*: 580.0 to 999.1: l2 read, alone -10.0 %, dram read, alone -6.1 %$"
refused "--since gives no verdicts" compare --since 2023-01-01 months --quiet

# A device that lacks a value which other devices have does not pass. Each case is a copy of a healthy node of four GPUs
# without some values, with the expected verdict.
cat >lack.py <<'PY'
import shutil, sys
import netCDF4, numpy
def doctored(name):
    shutil.copy(sys.argv[1], name)
    return netCDF4.Dataset(name, "a")
def give(data, index, rows, device):
    """Changes values, for example so that rows of device 3 are those of another device."""
    values = data[index][:]
    values[rows] = device
    data[index][:] = values
with doctored("rows.nc") as data:
    lost = numpy.flatnonzero(data["config_device"][:] == 3)[2:]
    give(data, "config_device", lost, 2)
    data["uuid"][:] = data["device_uuid"][:][data["config_device"][:]]
with doctored("roofs.nc") as data:
    give(data, "device_roof_device", data["device_roof_device"][:] == 3, 2)
with doctored("skipped.nc") as data:
    data["status"][data["config_device"][:] == 3] = 1
with doctored("unwell.nc") as data:  # as after a killed job
    data["device_health_end"][3] = numpy.nan
with doctored("resumed.nc") as data:  # two runs on one device, the first one killed
    for name in "uuid", "hostname", "model":
        data[f"device_{name}"][3] = data[f"device_{name}"][2]
    data["device_health_end"][2] = numpy.nan
    data["uuid"][:] = data["device_uuid"][:][data["config_device"][:]]
with doctored("lost.nc") as data:
    data["device_uuid"][3] = data["device_uuid"][2]
    data["uuid"][:] = data["device_uuid"][:][data["config_device"][:]]
with doctored("replaced.nc") as data:
    data["device_uuid"][3] = "GPU-new"
    data["uuid"][:] = data["device_uuid"][:][data["config_device"][:]]
with doctored("fallen.nc") as data:  # a rank could not open its GPU, and used the CPU
    for name, text in ("uuid", "cpu-vm-0-1"), ("model", "Some CPU"), ("kind", "cpu"):
        data[f"device_{name}"][3] = text
    data["uuid"][:] = data["device_uuid"][:][data["config_device"][:]]
with doctored("only.nc") as data:  # other work disturbed all devices but the slow one
    own = (data["device_roof_name"][:] == "device to device") & (data["device_roof_condition"][:] == 0)
    give(data, "device_roof_spread", own, 0.25)
    own &= data["device_roof_device"][:] == 3
    give(data, "device_roof_spread", own, 0)
    give(data, "device_roof_bandwidth", own, 0.3 * data["device_roof_bandwidth"][own])
with doctored("clockless.nc") as data:
    own = (data["device_roof_name"][:] == "fp32 vector") & (data["device_roof_device"][:] == 3)
    give(data, "device_roof_mean", own, numpy.nan)
    for name in "performance", "nominal_fraction", "clock_fraction":
        give(data, f"device_roof_{name}", own, 0.7 * data[f"device_roof_{name}"][own])
with doctored("other.nc") as data:
    for name in ("config_hash", "device_roof_name"):
        data[name][:] = numpy.array(["other " + text for text in data[name][:]], object)
with doctored("nobody.nc") as data:
    data["status"][0], data["error"][0], data["uuid"][0] = 2, "no device was left", ""
    data["config_device"][0] = -1
with doctored("nan.nc") as data:
    data["time_median"][5] = numpy.nan
with doctored("zero.nc") as data:
    data["time_median"][5] = 0
with doctored("elsewhere.nc") as data:
    data["device_hostname"][:] = numpy.array(["elsewhere"] * 4, object)
with doctored("unit.nc") as data:
    data["time_median"].units = "ms"
PY
file lack.py "$four"
doctored node.nc names.nc 'data["health"][:] = numpy.array(["xids"] * data.dimensions["health"].size, object)'
for name in device_roof_mean output_hash timer_overhead; do
    doctored "$four" "$name.nc" 'name = words[0]
if name in data.variables:
    data.renameVariable(name, "old")
kind = float if name == "output_hash" else str
data.createVariable(name, kind, ("device_roof" if "roof" in name else "config",))' "$name"
    refused "$name.nc: damaged: $name (" compare "$name.nc"
done
doctored node.nc health.nc 'data.renameVariable("device_health_end", "old")
texts = numpy.full(data["old"].shape, "1", object)
data.createVariable("device_health_end", str, ("device", "health"))[:] = texts'
expect 1 script compare rows.nc --quiet
row "^FAIL 1#3 vm" "38 configurations not measured, which other devices of the file have"
[ "$(grep -c '^FAIL' output)" = 1 ] || { cat output; fail "lost rows: another device fails"; }
expect 1 script compare roofs.nc --quiet
row "^FAIL 1#3 vm" "roofs not measured, which other devices of the file have"
expect 1 script compare skipped.nc --quiet
row "^FAIL 1#3 vm" "skipped: "
expect 6 script compare unwell.nc --quiet
row "^INCONCLUSIVE 1#3 vm" "no health at the end: ecc_uncorrected, "
[ "$(grep -c '^PASS' output)" = 3 ] || { cat output; fail "health is missing: another device does not pass"; }
expect 6 script compare resumed.nc --quiet
row "^INCONCLUSIVE 1#2 vm" "no health at the end: "
doctored resumed.nc resumed.nc 'data["device_health_end"][3, list(data["health"][:]).index("xids")] += 1'
expect 1 script compare resumed.nc --quiet
row "^FAIL 1#2 vm" "xids 0, now 1"
expect 1 script compare "$four" lost.nc --quiet
row "^FAIL 1#3 vm" "the device is in no later file, and its host has fewer devices of its kind$"
expect 1 script compare "$four" fallen.nc --quiet
row "^FAIL 1#3 vm" "the device is in no later file, and its host has fewer devices of its kind$"
expect 6 script compare only.nc --quiet
row "^INCONCLUSIVE 1#3 vm" "device to device, alone: other work disturbed the reference"
expect 1 script compare clockless.nc --quiet
row "^FAIL 1#3 vm" "fp32 vector, alone slower by 30.0 %"
expect 0 script compare "$four" replaced.nc --quiet
row "^PASS 1#3 vm" "replaced since then$"
expect 6 script compare "$four" other.nc --quiet
[ "$(grep -c '^INCONCLUSIVE' output)" = 4 ] || { cat output; fail "nothing could be compared, and it passes"; }
for command in "compare nobody.nc" "check nobody.nc --targets $root/sweeps/targets.ini"; do
    # shellcheck disable=SC2086 # words
    expect 1 script $command --quiet
    row "^FAIL .*# no device" "1 rows failed on no device, the first: no device was left$"
done
# `check` also fails a device that lacks rows or roofs of other devices. If no later file has a host of the reference,
# the host has one line.
printf '[NVIDIA H200]\n' >empty.ini
for file in rows roofs skipped; do
    expect 1 script check "$file.nc" --targets empty.ini --quiet
    row "^FAIL #3 vm"
    [ "$(grep -c '^PASS' output)" = 3 ] || { cat output; fail "$file.nc: another device fails"; }
done
expect 6 script compare "$four" elsewhere.nc --quiet
row "^INCONCLUSIVE 1# vm" "the host with 4 devices is in no later file; --part leaves such hosts out$"
expect 0 script compare "$four" elsewhere.nc --quiet --part
refused "unit.nc: damaged: time_median has the unit ms, not s" compare unit.nc
refused "names.nc: damaged: health (its names are missing, equal" compare names.nc
refused "nan.nc: damaged: 1 measured rows have no time" compare nan.nc
refused "zero.nc: damaged: 1 measured rows have no time" check zero.nc --targets "$root/sweeps/targets.ini"
refused "health.nc: damaged: device_health_end (its values are no number" compare health.nc

# Verdicts of gate.sh. A single good file is judged. A node fails and is drained if its file is missing or damaged, or
# its job failed. If there is no file, all nodes fail.
export ROOFSWEEP_POST="$ROOFSWEEP_PYTHON $root/postproc/roofsweep-post"
gate_fails() {
    expect 1 bash "$root/jobscripts/gate.sh" verdict gate
    grep -q "^FAIL $1: $2, see .*/gate/$1.log$" gate/verdicts || { cat gate/verdicts; fail "a lost node passes"; }
    grep -qx "scontrol update NodeName=$1 State=DRAIN Reason='roofsweep: $2'" gate/drain || { cat gate/drain; fail "drain"; }
}
mkdir gate
printf 'n1\nn2\nn3\n' >gate/nodes
gate_fails n1 "no result file"
gate_fails n2 "no result file"
cp "$four" gate/n1.nc
head -c 100000 "$four" >gate/n2.nc
cp "$four" gate/n3.nc
gate_fails n3 "the job ended with status unknown"
echo 0 | tee gate/n1.status >gate/n2.status
echo 4 >gate/n3.status
gate_fails n2 "the result file is damaged"
gate_fails n3 "the job ended with status 4"
[ "$(grep -c '^PASS' gate/verdicts)" = 4 ] || { cat gate/verdicts; fail "a healthy GPU fails"; }
# A failed row of one node costs no other node its verdict.
printf 'n1\nn2\n' >gate/nodes
for node in n1 n2; do
    doctored "$four" "gate/$node.nc" 'data["device_hostname"][:] = numpy.array(words * 4, object)' $node
done
doctored gate/n2.nc gate/n2.nc 'data["status"][5], data["error"][5] = 2, "wrong result"'
echo 3 >gate/n2.status
expect 1 bash "$root/jobscripts/gate.sh" verdict gate
grep -q "^FAIL .*1 rows failed\|^FAIL .*wrong result" gate/verdicts || { cat gate/verdicts; fail "a failed row passes"; }
[ "$(grep -c '^PASS' gate/verdicts)" = 7 ] || { cat gate/verdicts; fail "a failed row costs others their verdict"; }
# A gate without a file leaves no verdicts of an earlier one, and a gate without a node gives none.
rm gate/*.nc
[ -e gate/verdicts.json ] || fail "no verdicts.json"
gate_fails n1 "no result file"
[ ! -e gate/verdicts.json ] || fail "verdicts.json is of an earlier gate"
: >gate/nodes
expect 2 bash "$root/jobscripts/gate.sh" verdict gate
says "gate.sh: no node in "
# A node that sbatch refuses costs no other node its job.
mkdir stubs
printf '#!/bin/sh\nprintf "%%s" "$NODES"\n' >stubs/sinfo
printf '#!/bin/sh\ncase $* in *"--nodelist n2"*) exit 1 ;; esac\necho "$@" >>jobs\nwc -l <jobs\n' >stubs/sbatch
chmod +x stubs/*
expect 0 env PATH="$work/stubs:$PATH" NODES="n1
n2
n3
" bash "$root/jobscripts/gate.sh" rack gate
says "gate.sh: no job for n2"
grep -q "^--job-name=gate-verdict .*--dependency=afterany:1:2 " jobs || { cat jobs; fail "no verdict after both jobs"; }
expect 2 env PATH="$work/stubs:$PATH" NODES="" bash "$root/jobscripts/gate.sh" rack gate
says "gate.sh: no node in "

# Beside a node with one GPU, which has no roofs together, a node with several GPUs lacks nothing, and the other way
# round.
python '
import sys
sys.path.insert(0, sys.argv[1])
from merge import another_job, np, on, part, read, write
node = read(sys.argv[2])
def elsewhere(data):
    another_job(data)
    data["device_hostname"].values[:] = "n2"
part(node.isel(device_roof=np.flatnonzero(node.device_roof_condition == 0)), "single.nc", on(0, node), [0], elsewhere)
write(node.isel(device_roof=np.flatnonzero(node.device_roof_condition == 1)), "together.nc")
' "$root/tests/postproc" "$four" || fail "nodes of one and of four GPUs"
for file in "$four" together.nc; do
    expect 0 script merge "$file" single.nc --overwrite --output mixed.nc
    expect 0 script compare mixed.nc --quiet
    [ "$(grep -c '^PASS' output)" = 5 ] || { cat output; fail "a healthy GPU fails beside another node"; }
done

# Rows with equal configuration, seed, algorithm, kernels, grids, model and library must have equal bits of results.
# Different bits are the first reason of a verdict. Rows whose iterations differ are left out and named, unless the
# iterations of all other devices agree. bits CODE: makes bits.nc, a file of four GPUs that CODE changes; `of` has the
# rows of each GPU.
bits() {
    doctored "$four" bits.nc '
if "output_hash" not in data.variables:
    data.createVariable("output_hash", str, ("config",))
of = [numpy.flatnonzero(data["config_device"][:] == device) for device in range(4)]
found = numpy.array([text[:16] for text in data["config_hash"][:]], object)
'"$1"'
data["output_hash"][:] = found'
}
bits ''
expect 0 script compare bits.nc
says "Bits of results: 40 rows compared, between devices or files"
bits 'found[of[2][[4, 7, 9]]] = "0"; found[of[1][0]] = ""'
expect 1 script compare bits.nc --quiet
row "^FAIL 1#2 .* checks): computes other bits than most devices: 3 rows, the first: layers batch=16 height=28"
[ "$(grep -c ^PASS output)" = 3 ] || { cat output; fail "a healthy GPU computes other bits"; }
cp bits.nc wrong.nc
bits ''
expect 1 script compare bits.nc wrong.nc --quiet
row "^FAIL 2#2 .*: computes other bits than most devices: 3 rows"
for code in 'data["device_library_version"][2] = "other"' 'data["algorithm"][int(of[2][4])] = "other"' \
    'data["kernel_blocks"][data["kernel_config"][:] == of[2][4]] += 1'; do
    bits 'found[of[2][4]] = "0"; '"$code"
    expect 0 script compare bits.nc
done
bits 'found[[own[32] for own in of[:2]]] = "varies"'
expect 0 script compare bits.nc
row "Bits of results: 39 rows compared, between devices or files; 1 left out, whose iterations differ: cells "
bits 'found[of[1][32]] = "varies"'
expect 6 script compare bits.nc --quiet
row "^INCONCLUSIVE 1#1 .*: iterations differ in their bits, unlike those of 1#0 .*, 1#2 .* and 1 more: 1 row, cells"
bits 'found[of[2][32]] = "0"; data["device_model"][1] = "one"; data["device_model"][3] = "three"'
expect 6 script compare bits.nc --quiet
row "^INCONCLUSIVE 1#0 .*: computes other bits than 1#2 vm, and no third device decides: 1 row, cells"
row "^INCONCLUSIVE 1#2 .*: computes other bits than 1#0 vm"
