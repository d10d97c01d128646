"""What the scripts here share: reading a roofsweep result file, and words for it."""
import sys



def fail(text):
    print(f"{sys.argv[0].rsplit('/', 1)[-1]}: {text}", file=sys.stderr)
    sys.exit(2)


try:
    import numpy as np
    import xarray
except ImportError as missing:
    fail(f"{missing} (Debian: python3-xarray python3-netcdf4, pip: xarray netCDF4)")

# What is crossed with the shapes: each value is a curve of its own.
SERIES = ["pass", "config_implementation", "config_algorithm", "layout", "cache"]


def load(path):
    """A result file as an xarray Dataset in memory; ends the program if it is none."""
    try:
        data = xarray.open_dataset(path)
    except OSError as error:
        fail(f"{path}: {error.strerror or error}")
    except ValueError: # its text lists what xarray could install
        fail(f"{path}: no NetCDF file")
    needed = {"config_hash", "label", "status", "time_median", "config_device", "device_model"}
    if not needed <= set(data.variables):
        fail(f"{path}: no result file of roofsweep, it has no {sorted(needed - set(data.variables))}")
    data = data.load()  # whole: the netCDF4 module reads strings from disk only in steps of one
    if not (words(data, "status") == "measured").any():
        fail(f"{path}: none of its {data.sizes['config']} configurations is measured")
    return data


def words(data, name):
    """A flag variable as its words."""
    return np.array(data[name].attrs["flag_meanings"].split())[data[name].values]


def parameters(data):
    """Names of the variables that hold a configuration's parameters."""
    return [name for name in data.variables
            if data[name].attrs.get("long_name", "").startswith("parameter ")]


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
        [data[f"device_peak_{unit}"].values[device, at] for unit in ["vector", "tensor"]], np.nan)
    table["model"] = data["device_model"].values[device]
    return table.reset_index(drop=True)


def roofs(data):
    """The roofs of each device, as {(kind, what, unit): value per device}; NaN where not measured."""
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
    return f"{value / 10.0 ** power:.4g} {prefixes[power]}{unit}"
