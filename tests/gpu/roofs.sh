#!/bin/sh
# Each roof of each GPU of this machine is measured, is below its theory, and is proven if counters can be read.
. "$(dirname "$0")/lib.sh"

printf '[sweep]\ndevice = cuda\n[peaks]\nenergy = yes\n' >roofs.ini
expect 0 run "$gpus" roofs.ini
python '
import json, sys, numpy, xarray
gpus = int(sys.argv[1])
data = xarray.open_dataset("roofs.nc", decode_times=False).load()
def flag(name):
    return numpy.array(data[name].attrs["flag_meanings"].split())[data[name].values]
names, conditions = data.device_roof_name.values, flag("device_roof_condition")
verdicts = flag("device_roof_verdict")
value = numpy.nanmax([data[f"device_roof_{n}"].values for n in ("bandwidth", "performance", "time")], axis=0)
wanted = {f"{level} {pattern}" for level in ("dram", "l2") for pattern in ("read", "write", "copy", "triad")}
wanted |= {f"{memory} latency" for memory in ("dram", "l2", "l1", "shared")}
wanted |= {"l1 read", "shared read", "host to device", "device to host"}
wanted |= {"launch host", "launch latency", "launch gap", "launch gap graph", "fp64 vector", "fp32 vector"}
lines = [line["entry"] for line in map(json.loads, open("roofs.nc.journal")) if line["kind"] == "device"]
counted = {line["uuid"]: line.get("counters") for line in lines}
capability = float(lines[0]["compute_capability"])
if capability >= 8.0:
    wanted |= {f"{p} vector" for p in ("fp16", "bf16", "int8")}
    wanted |= {f"{p} tensor mma" for p in ("tf32", "fp16", "bf16", "int8")}
    wanted |= {f"{p} tensor library" for p in ("tf32", "fp16", "bf16", "int8")}
if capability == 9.0:
    wanted |= {f"{p} tensor wgmma" for p in ("tf32", "fp16", "bf16", "fp8", "int8")}
    wanted |= {"fp64 tensor mma", "fp64 tensor library", "fp8 tensor library"}
if capability == 10.0:
    wanted |= {f"{p} tensor tcgen05" for p in ("tf32", "fp16", "bf16", "fp8", "fp4", "int8")}
    wanted |= {f"{p} tensor library" for p in ("fp64", "fp8", "fp4")}
uncounted = ("launch", "host", "device", "int8 vector") + (("fp16 vector", "bf16 vector") if capability >= 10 else ())
wrong = []
for device in range(gpus):
    for condition in ["alone", "together"][:1 + (gpus > 1)]:
        rows = {names[i]: i for i in range(len(names))
                if data.device_roof_device.values[i] == device and conditions[i] == condition}
        wrong += [(device, condition, name, "missing") for name in wanted - set(rows)]
        for name, i in rows.items():
            setting = str(data.device_roof_setting.values[i])
            if not value[i] > 0:
                wrong.append((device, condition, name, setting))
            elif verdicts[i] in ("above-theory", "contradicted"):
                wrong.append((device, condition, name, verdicts[i], setting, data.device_roof_clock_fraction.values[i],
                              data.device_roof_flops_ratio.values[i], data.device_roof_bytes_ratio.values[i]))
            elif counted[data.device_uuid.values[device]] == "counted" and verdicts[i] != "proven" and not name.startswith(uncounted):
                wrong.append((device, condition, name, "not proven", setting))
            fraction = data.device_roof_clock_fraction.values[i]
            if name.endswith((" vector", " wgmma", "dram read", "dram write")) and fraction < 0.85:
                wrong.append((device, condition, name, "far from theory", fraction, setting))
rest, constant, power = (data[f"device_roof_{name}_power"].values for name in ("rest", "constant", "energy"))
energies = numpy.isfinite(power)
wrong += [(name, "without energy") for name in ("dram read", "l2 read", "fp32 vector") if not energies[names == name].any()]
wrong += [(names[i], "power", rest[i], constant[i], power[i]) for i in numpy.flatnonzero(energies)
          if not 0 < rest[i] < 1.2 * constant[i] < power[i]]
# There is a working set of L2, which is smaller than L2.
level = list(data.memory_level.values).index("l2")
for device in range(gpus):
    own = (data.device_roof_device.values == device) & (names == "l2 read")
    held = numpy.nanmax(data.device_roof_working_set.values[own]) / data.device_cache.values[device, level]
    if not 0.25 <= held <= 1:
        wrong.append((device, "l2 read", "working set", held))
for line in wrong:
    print(*line)
sys.exit(bool(wrong))
' "$gpus" || fail "a roof is missing or wrong"
"$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" roofs roofs.nc
