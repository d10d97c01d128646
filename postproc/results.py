"""What the scripts here share: reading a roofsweep result file, and words for it.

Which kinds of roofs there are, in which order and in which units, is what the files say."""

import re
import sys
from itertools import pairwise

# What a terminal takes for a command, what turns the direction of writing, and what is no character.
UNSEEN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text):
    """A text as a terminal or a figure may show it. Texts of a file are so once it is loaded; paths are not."""
    return UNSEEN.sub("?", str(text))


def fail(text):
    print(f"{sys.argv[0].rsplit('/', 1)[-1]}: {plain(text)}", file=sys.stderr)
    sys.exit(2)


try:
    import numpy as np
    import xarray
except ImportError as missing:
    fail(
        f"{sys.executable}: {missing} (Debian: /usr/bin/python3 with python3-xarray python3-netcdf4, "
        "pip: xarray netCDF4)"
    )

# What is crossed with the shapes: each value is a curve of its own.
SERIES = ["pass", "config_implementation", "config_algorithm", "layout", "cache"]

# The variables of a roof's value, of which it has one, and how their units are shown.
VALUES = ["bandwidth", "performance", "time"]
UNITS = {"byte s-1": "B/s", "s-1": "FLOP/s", "s": "s"}
DOUBTFUL = ["above-theory", "contradicted"]  # verdicts of roofs that are kept and not used


def clean(data):
    """Makes all texts of a dataset plain."""
    data.attrs = {key: plain(value) if isinstance(value, str) else value for key, value in data.attrs.items()}
    for name in data.variables:
        if data[name].dtype.kind in "OU" and name not in data.indexes:
            data[name].values = np.vectorize(plain, otypes=[object])(data[name].values)


def load(path, configurations=True):
    """A result file as an xarray Dataset in memory; ends the program if it is none.

    With configurations=False a file of roofs alone will do."""
    try:
        data = xarray.open_dataset(path)
    except OSError as error:
        fail(f"{path}: {error.strerror or error}")
    except ValueError:  # its text lists what xarray could install
        fail(f"{path}: no NetCDF file")
    needed = {"config_hash", "label", "status", "time_median", "config_device", "device_model", "device_roof_name"}
    if not needed <= set(data.variables):
        fail(f"{path}: no result file of roofsweep, it has no {sorted(needed - set(data.variables))}")
    data = data.load()  # whole: the netCDF4 module reads strings from disk only in steps of one
    clean(data)
    if configurations and data.sizes["config"] == 0:
        fail(f"{path}: it holds roofs alone, no configurations")
    if configurations and not (words(data, "status") == "measured").any():
        fail(f"{path}: none of its {data.sizes['config']} configurations is measured")
    return data


def words(data, name):
    """A flag variable as its words."""
    return np.array(data[name].attrs["flag_meanings"].split())[data[name].values]


def parameters(data):
    """Names of the variables that hold a configuration's parameters."""
    return [name for name in data.variables if data[name].attrs.get("long_name", "").startswith("parameter ")]


def frame(data):
    """The measured rows as a pandas table: each variable of config, and the roofs of the row's device.

    intensity is at the row's roof_memory_level; peak and bandwidth are the roofs it was set against."""
    rows = data.isel(config=words(data, "status") == "measured")
    table = rows[[name for name in rows.variables if rows[name].dims == ("config",)]].to_dataframe()
    for name in ["unit", "bound"]:
        table[name] = words(rows, name)
    device = rows["config_device"].values
    levels, precisions = list(data["memory_level_name"].values), list(data["precision_name"].values)
    level = [levels.index(name) if name else 0 for name in table["roof_memory_level"]]
    known = np.array(table["roof_memory_level"] != "")
    index = np.arange(len(table))
    table["intensity"] = np.where(known, rows["arithmetic_intensity"].values[index, level], np.nan)
    table["bandwidth"] = np.where(known, data["device_peak_bandwidth"].values[device, level], np.nan)
    at = [precisions.index(name) for name in table["config_precision"]]
    table["peak"] = np.select(
        [table["unit"] == unit for unit in ["vector", "tensor"]],
        [data[f"device_peak_{unit}"].values[device, at] for unit in ["vector", "tensor"]],
        np.nan,
    )
    table["model"] = data["device_model"].values[device]
    return table.reset_index(drop=True)


def places(data):
    """For each row of device the first row of the same device: several runs of a file may have opened it."""
    first = {}
    keys = zip(*(data[f"device_{name}"].values for name in ["hostname", "uuid", "model"]))
    return np.array([first.setdefault(key, row) for row, key in enumerate(keys)])


def roof_rows(data):
    """The measured roofs as a pandas table, a row for each device, kind and condition.

    The variables device_roof_*, without the prefix and with flags as words; value and unit; usable: has a
    value, and its verdict is not doubtful; place: the device's row of places()."""
    names = [name for name in data.variables if data[name].dims == ("device_roof",)]
    table = data[names].to_dataframe().reset_index(drop=True)
    for name in [name for name in names if "flag_meanings" in data[name].attrs]:
        table[name] = words(data, name)
    table.columns = [name[len("device_roof_") :] for name in table.columns]
    levels = data["memory_level_name"].values
    table["bytes_ratio"] = [
        {level: ratio for level, ratio in zip(levels, ratios) if np.isfinite(ratio)}
        for ratios in data["device_roof_bytes_ratio"].values
    ]
    table["value"], table["unit"] = np.nan, ""
    for name in VALUES:
        measured = table[name].notna()
        table.loc[measured, "value"] = table[name]
        table.loc[measured, "unit"] = UNITS[data[f"device_roof_{name}"].attrs["units"]]
    # Of some precisions the file says "(int8: operations)": those are no FLOPs.
    operations = re.findall(r"(\w+): operations", data["device_roof_performance"].attrs["long_name"])
    precision = table["name"].str.split().str[0]
    table.loc[table["performance"].notna() & precision.isin(operations), "unit"] = "OP/s"
    table["usable"] = table["value"].notna() & ~table["verdict"].isin(DOUBTFUL)
    table = table[table["device"] >= 0]  # a file without roofs has one row of no device
    table["place"] = places(data)[table["device"]]
    return table


def merged(sequences):
    """All names of the sequences, once each, in an order that each of them keeps. Where they contradict
    each other, what came first comes first."""
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


def kind_order(tables, others=()):
    """{kind of roof: place}: the order in which the files hold them, each device's and each condition's by
    themselves. tables: of roof_rows(); others: further lists of kinds that are in order."""
    sequences = [rows["name"] for table in tables for _, rows in table.groupby(["device", "condition"], sort=False)]
    return {name: place for place, name in enumerate(merged([*sequences, *others]))}


def roofs(data):
    """The roofs that the model uses: the best usable one of each level, and of each precision and unit.

    {(kind, what, unit): value per device}; NaN where not measured."""
    found = {}
    for i, level in enumerate(data["memory_level_name"].values):
        found["bandwidth", level, "B/s"] = data["device_peak_bandwidth"].values[:, i]
    for unit in ["vector", "tensor"]:
        for i, precision in enumerate(data["precision_name"].values):
            found[unit, precision, "FLOP/s"] = data[f"device_peak_{unit}"].values[:, i]
    found["launch", "", "s"] = data["device_launch_overhead"].values
    return {key: values for key, values in found.items() if np.isfinite(values).any()}


def scaled(value, unit):
    """4.597e12, 'B/s' as '4.6 TB/s'."""
    if not np.isfinite(value):
        return "-"
    prefixes = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
    power = 0 if value == 0 else int(np.clip(3 * np.floor(np.log10(abs(value)) / 3), -9, 15))
    return f"{value / 10.0**power:.4g} {prefixes[power]}{unit}"


def percent(ratio):
    """1.02 as '+2.0 %'."""
    return f"{100 * (ratio - 1):+.1f} %"


def print_table(head, rows, left=()):
    """Columns as wide as they must be, to the right but the first and those in left. A head may have
    several lines."""
    depth = max(cell.count("\n") for cell in head) + 1
    heads = list(zip(*[([""] * depth + cell.split("\n"))[-depth:] for cell in head]))
    widths = [max(len(row[i]) for row in heads + rows) for i in range(len(head))]
    for row in heads + rows:
        cells = [
            cell.ljust(width) if i == 0 or head[i] in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        print("  ".join(cells).rstrip())
    print()
