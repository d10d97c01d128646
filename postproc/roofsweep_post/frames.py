"""Makes pandas tables of result files: rows(), roofs(), kernels(). Each function takes one dataset of load() or a list
of them, which the column `file` numbers from 0."""

import re
from itertools import pairwise

import numpy as np
import pandas

from .columns import COMPUTED
from .dataset import INVALID, parameters
from .naming import names
from .texts import plain

# {variable: unit in tables}. A roof has a value in exactly one of these variables.
VALUES = {"bandwidth": "B/s", "performance": "FLOP/s", "time": "s"}
DISTURBED = 0.2  # limit of the column `disturbance` of roofs(), as ROOF_DISTURBED of src/model/roof.h
DOUBTFUL = ["above-theory", "contradicted", INVALID]  # roofs with these verdicts are shown but not used
# Variables that commands pass to load() as `needs`.
DEVICES = ("device_hostname", "device_uuid", "device_model")
ROWS = ("configuration", "config_hash", "label", "status", "time_median", "config_device", *DEVICES)
ROOFS = ("device_roof_name", "device_roof_device", "device_roof_condition", "device_roof_verdict", *DEVICES)
KERNELS = ("kernel_config", "kernel_name", "kernel_time")


def by_device(table):
    """Returns a function of (file, place) that returns the lines of a device. The function does not search the table,
    because there may be 10,000 devices."""
    found = dict(iter(table.groupby(["file", "place"], sort=False)))
    return lambda device: found.get(device, table[:0])


def several(data):
    return list(data) if isinstance(data, (list, tuple)) else [data]


def of_all(data, build):
    """Returns the tables of all datasets below each other."""
    return pandas.concat(
        [build(one).assign(file=number) for number, one in enumerate(several(data))], ignore_index=True
    )


def places(data):
    """Returns for each row of dimension `device` the first row of the same device. Each run that opened a device added
    a row for it."""
    first = {}
    keys = zip(*(data[f"device_{name}"].values for name in ["hostname", "uuid", "model"]))
    return np.array([first.setdefault(key, row) for row, key in enumerate(keys)])


def flat(data, dimension):
    """Returns the variables of one dimension as columns. A variable with a second dimension, whose entries have names,
    becomes a column for each name: bytes_counted_dram."""
    columns = {}
    for name, found in data.variables.items():
        if found.dims == (dimension,):
            columns[name] = found.values
        elif len(found.dims) == 2 and found.dims[0] == dimension and found.dims[1] in data.indexes:
            for place, word in enumerate(data.indexes[found.dims[1]]):
                columns[f"{name}_{word}"] = found.values[:, place]
    return pandas.DataFrame(columns)


def notch(data):
    """Returns for each row 1.57 IQR / sqrt(n) of its n samples, divided by their median; NaN for fewer than 4
    samples."""
    samples = data["time_sample"].values
    count = np.isfinite(samples).sum(axis=1)
    found = np.full(len(samples), np.nan)
    if (enough := count >= 4).any():
        low, middle, high = np.nanpercentile(samples[enough], [25, 50, 75], axis=1)
        found[enough] = 1.57 * (high - low) / np.sqrt(count[enough]) / middle
    return found


def at_level(table, levels, stem):
    """Returns for each row the column STEM_LEVEL of its roof_memory_level; NaN without a level."""
    found = np.full(len(table), np.nan)
    for level in levels:
        own = (table["roof_memory_level"] == level).to_numpy()
        found[own] = table.loc[own, f"{stem}_{level}"]
    return found


def kernel_names(data):
    """Returns two values for each row: the names of its kernels as one text, and their number."""
    names = [[] for _ in range(data.sizes["config"])]
    for row, name in zip(data["kernel_config"].values.astype(int), data["kernel_name"].values):
        if 0 <= row < len(names):
            names[row].append(name)
    return [" ".join(found) for found in names], [len(found) for found in names]


def of_device(data):
    """Returns for each row the index of its device in dimension `device`; -1 without a device."""
    return data["config_device"].fillna(-1).values.astype(int)


def short_kernel(name):
    """Returns a kernel's name without namespaces, arguments and templates."""
    name = name.replace("(anonymous namespace)::", "").split("(")[0].split("<")[0].split("::")[-1]
    return name.removeprefix("void ")


def only_moves(data, table, owner, flops):
    """Returns for each kernel whether it only moves data. Transposes and conversions do some arithmetic. So the kernel
    may do less than 1 % of the row's FLOPs, if these FLOPs at their roof take less than 2 % of the time of the kernel's
    bytes. Bytes that were not counted take no time."""
    stem = "kernel_bytes_counted_"
    moved = table[[name for name in table if name.startswith(stem)]]
    roofs = data["device_peak_bandwidth"].sel(memory_level=[name.removeprefix(stem) for name in moved]).values
    moving = (moved / roofs[of_device(data)[owner]]).max(axis=1).fillna(0)
    few = flops < 0.01 * data["flops_counted"].values[owner]
    return (flops == 0) | (few & (flops / data["compute_roof"].values[owner] < 0.02 * moving))


def kernel_parts(data):
    """Returns {variable: values of the rows} that follow from kernels. For kernels that only move data: number of
    launches, share of the time, and the longest kernel. For kernels with too few blocks to fill the device: share of
    the time. A value is missing if it is unknown for one of the row's kernels. The FLOPs of a kernel are known if it
    was counted, if it is the row's only kernel, or if the row has no FLOPs."""
    table, rows = kernels_of(data), data.sizes["config"]
    owner = table["kernel_config"].astype(int)
    whole = data["flops_counted"].values[owner]
    of_all = (owner.groupby(owner).transform("size") == 1) | (whole == 0)
    flops = table["kernel_flops_counted"].where(table["kernel_flops_counted"].notna() | ~of_all, whole)
    moves, time = only_moves(data, table, owner, flops), table["kernel_time"]
    resident = table["kernel_resident"]
    parts = {
        "launches": table["kernel_count"].where(moves, 0).where(flops.notna()),
        "moving": time.where(moves, 0).where(flops.notna()),
        "few": time.where(table["kernel_blocks"] < 0.9 * resident, 0).where(
            (table["kernel_blocks"] * resident).notna()
        ),
        "time": time,
    }
    found = pandas.DataFrame(parts).groupby(owner)
    found = found.sum(min_count=1).where(found.count().eq(found.size(), axis=0)).reindex(range(rows))
    longest = table[moves].sort_values("kernel_time").groupby("kernel_config")["kernel_name"].last()
    return {
        "data_movement_launches": found["launches"].to_numpy(),
        "data_movement_share": (found["moving"] / found["time"]).to_numpy(),
        "data_movement_kernel": longest.map(short_kernel).reindex(range(rows), fill_value="").to_numpy(),
        "few_blocks_share": (found["few"] / found["time"]).to_numpy(),
    }


def counted_precision(table):
    """Returns the precision of each row. A program without an axis `precision` gets the precision in which its unit did
    most FLOPs."""
    found = table["precision"].copy()
    for unit in ("vector", "tensor"):
        own = table[(found == "") & (table["workload"] == "program") & (table["unit"] == unit)]
        flops = own[[name for name in table if name.startswith(f"flops_{unit}_")]].fillna(0)
        flops = flops[(flops > 0).any(axis=1)]
        found[flops.index] = flops.idxmax(axis=1).str.removeprefix(f"flops_{unit}_") if len(flops) else ""
    return found


def peaks_of(table, ceilings, unit):
    """Returns the compute roof of one unit at each row's precision."""
    found = np.full(len(table), np.nan)
    for precision in set(table["precision"]):
        if (name := f"device_peak_{unit}_{precision}") in ceilings:
            own = (table["precision"] == precision).to_numpy()
            found[own] = ceilings.loc[own, name]
    return found


def rows_of(data):
    table = flat(data, "config").assign(time_notch=notch(data))
    table["config"] = range(len(table))
    table["precision"] = counted_precision(table)
    device = of_device(data)
    ceilings = flat(data, "device").reindex(device).reset_index(drop=True)
    levels = data.indexes["memory_level"]
    ceilings["roof_memory_level"] = table["roof_memory_level"]
    table["intensity"] = at_level(table, levels, "arithmetic_intensity")
    table["bandwidth"] = at_level(ceilings, levels, "device_peak_bandwidth")
    table["latency"] = at_level(ceilings, levels, "device_latency")
    for unit in ("vector", "tensor"):
        table[f"peak_{unit}"] = peaks_of(table, ceilings, unit)
    table["peak"] = table["peak_vector"].where(table["unit"] == "vector", table["peak_tensor"])
    table["peak"] = table["peak"].where(table["unit"].isin(["vector", "tensor"]))
    for name, own in [("bandwidth", "bandwidth_roof"), ("peak", "compute_roof")]:  # roofs of the row, if known
        table[name] = table[own].fillna(table[name])
    table["hostname"] = ceilings["device_hostname"].fillna("")
    table["model"], table["device_kind"] = ceilings["device_model"].fillna(""), ceilings["device_kind"].fillna("")
    first = places(data)
    table["place"] = [first[number] if number >= 0 else -1 for number in device]
    table["device_name"] = [f"#{place} {host}" for place, host in zip(table["place"], table["hostname"])]
    table["flops"] = table["flops_counted"].fillna(table["flops_model"]).where(table["performance"].notna())
    table["device_sm_clock_free"] = ceilings["device_sm_clock_free"]
    table["l2_capacity"] = ceilings["device_cache_l2"]
    table["kernel_names"], table["kernel_count"] = kernel_names(data)
    for level in levels:
        table[f"bytes_read_{level}"] = table[f"bytes_counted_{level}"] - table[f"bytes_written_{level}"]
    timed = f"level_time_{levels[0]}" in table  # absent if no row has bytes at a level whose roof was measured
    table["roof_level_time"] = at_level(table, levels, "level_time") if timed else np.nan
    table = table.assign(**kernel_parts(data))
    for name, how in COMPUTED.items():
        table[name] = how(table)
    return table


def rows(data, measured=True):
    """Returns a line for each configuration and device, with all variables of dimension `config`. A variable by memory
    level or precision has a column for each (bytes_counted_dram). Further columns: intensity at the row's
    roof_memory_level; bandwidth: bandwidth_roof, or else device_peak_bandwidth; peak: compute_roof, or else
    device_peak_vector or _tensor; model, device_name; config: index in the file; place: index of the device in
    dimension `device`, the first one if several runs opened it; noise: half the 95 % interval of the median, divided by
    the median; limited_by: the limiter; name: short name (naming.py). measured: return only rows with status
    `measured`."""
    table = of_all(data, rows_of)
    table["name"] = names(
        table["name"], table["label"], table["configuration"], len(several(data)) > 1, table["listed"]
    )
    return table[table["status"] == "measured"].reset_index(drop=True) if measured else table


def of_operations(data):
    """Returns the formats whose unit is not the FLOP, such as "int8". A long name has "(int8: operations)"."""
    return re.findall(r"(\w+): operations", data["device_roof_performance"].attrs.get("long_name", ""))


def roofs_of(data):
    table = flat(data, "device_roof")
    table.columns = [name.removeprefix("device_roof_") for name in table.columns]
    ratios = [name for name in table if name.startswith("bytes_ratio_")]
    table["bytes_ratio"] = [
        {name.removeprefix("bytes_ratio_"): ratio for name, ratio in zip(ratios, line) if np.isfinite(ratio)}
        for line in table[ratios].to_numpy()
    ]
    table["value"], table["unit"] = np.nan, ""
    for name, unit in VALUES.items():
        measured = table[name].notna()
        table.loc[measured, "value"] = table[name]
        table.loc[measured, "unit"] = unit
    precision = table["name"].str.split().str[0]
    table.loc[table["performance"].notna() & precision.isin(of_operations(data)), "unit"] = "OP/s"
    table["usable"] = table["value"].notna() & ~table["verdict"].isin(DOUBTFUL)
    levels = table["bandwidth"].notna() & table["name"].str.split().str[0].isin(data["memory_level"].values)
    table["disturbance"] = (1 / table["mean"] - 1).where(levels | table["performance"].notna()).fillna(0)
    table = table[table["device"] >= 0].copy()  # a file without roofs has one row without a device
    device = table["device"].to_numpy(int)
    table["place"] = places(data)[device]
    for name, variable in (("model", "model"), ("uuid", "uuid"), ("hostname", "hostname"), ("device_kind", "kind")):
        table[name] = data[f"device_{variable}"].values[device]
    table["device_name"] = [f"#{place} {host}" for place, host in zip(table["place"], table["hostname"])]
    node = [table[name] for name in ("hostname", "name", "condition")]
    node += [data["device_kind"].values[device], [key.split("/")[0] for key in data["device_key"].values[device]]]
    own = table["value"].groupby(node)
    spread = (own.transform("max") - own.transform("min")) / own.transform("mean")
    table["node_spread"] = spread.where(own.transform("count") > 1)
    return table


def roofs(data):
    """Returns a line for each device, kind of roof and condition. Columns: the variables device_roof_* without this
    prefix; value and unit; usable: the roof has a value and no doubtful verdict; disturbance: mean time of a sample /
    time of the best sample, minus 1 (0 for times, which are medians, and for transfers, because devices share the bus;
    above DISTURBED other work interfered); place: index of the device in dimension `device`, the first one if several
    runs opened it; bytes_ratio: {level: ratio}; model, uuid, device_kind, device_name; node_spread: (highest - lowest
    value) / mean over the devices of a host with the same kind and session."""
    return of_all(data, roofs_of)


def kernels_of(data):
    table = flat(data, "kernel")
    # A file without kernels has one entry with kernel_config -1. `ncks -d config,0,4` keeps kernels of removed rows.
    table = table[table["kernel_config"].between(0, data.sizes["config"] - 1)].copy()
    config = table["kernel_config"].to_numpy(int)
    device = of_device(data)[config]
    most = data["device_multiprocessors"].values[device] * data["device_multiprocessor_threads"].values[device]
    groups = np.ceil(table["kernel_threads"] / 32) * 32
    waves = table["kernel_blocks"] / table["kernel_resident"]
    table["kernel_waves"] = waves
    table["kernel_occupancy"] = table["kernel_resident"] * groups / np.where(device >= 0, most, np.nan)
    table["kernel_tail_loss"] = 1 - waves / np.ceil(waves)
    for name in ("configuration", "config_hash", "label"):
        table[name] = data[name].values[config]
    return table


def kernels(data):
    """Returns a line for each distinct kernel of a configuration, with the variables kernel_*, configuration,
    config_hash and label. Further columns: kernel_waves: blocks / blocks that the device holds at a time;
    kernel_tail_loss: empty places of blocks in the last wave / places in all waves; kernel_occupancy: threads of the
    blocks that the device holds at a time (in warps of 32) / largest number of threads that the device can hold."""
    return of_all(data, kernels_of)


def ceilings(data, device):
    """Returns the roofs with which rows are compared, for one index of dimension `device`, or the medians for several.
    Keys are (kind, detail, unit): ("bandwidth", "dram", "B/s"), ("tensor", "fp16", "FLOP/s"), ("launch", "", "s").
    int8 has the unit "OP/s"."""
    chosen, found, operations = data.isel(device=np.atleast_1d(device)), {}, of_operations(data)
    for kind, place, unit in [
        ("bandwidth", "memory_level", "B/s"),
        ("vector", "number_format", "FLOP/s"),
        ("tensor", "number_format", "FLOP/s"),
    ]:
        for what in data.indexes[place]:
            found[kind, what, "OP/s" if what in operations else unit] = (
                chosen[f"device_peak_{kind}"].sel({place: what}).values
            )
    found["launch", "", "s"] = chosen["device_launch_overhead"].values
    known = {key: values[np.isfinite(values) & (values > 0)] for key, values in found.items()}
    return {key: float(np.median(values)) for key, values in known.items() if len(values)}


def merged(sequences):
    """Returns all names of the sequences, each once, in an order that keeps the order of each sequence. If the orders
    of two sequences contradict each other, the order of the earlier one is kept."""
    sequences = [list(sequence) for sequence in sequences]
    names, order = list(dict.fromkeys(name for sequence in sequences for name in sequence)), []
    before = {name: set() for name in names}
    for first, second in (pair for sequence in sequences for pair in pairwise(sequence)):
        if second not in before[first] | {first}:
            for name in names:
                if name == second or second in before[name]:
                    before[name] |= before[first] | {first}
    while len(order) < len(names):
        order.append(next(name for name in names if name not in order and before[name] <= set(order)))
    return order


def kind_order(table, others=()):
    """Returns {kind of roof: place}. The kinds keep their order in the table for each device and condition. table:
    roofs(); others: further ordered lists of kinds."""
    sequences = [found["name"] for _, found in table.groupby(["file", "device", "condition"], sort=False)]
    return {name: place for place, name in enumerate(merged([*sequences, *others]))}


def head_line(data):
    """Returns a line of text on a file: path, title, source, date."""
    facts = [data.attrs.get(name) or f"no {name}" for name in ("title", "source", "date_created")]
    return f"{data.attrs['path']}: {', '.join(plain(fact) for fact in facts)}"


__all__ = ["ceilings", "kernels", "parameters", "roofs", "rows"]
