"""A result file as an xarray Dataset that can be asked by words: .sel(memory_level="dram"), status == "measured"."""

import importlib.util

import numpy as np
import xarray

from .texts import Refused, plain

FORMAT_VERSION = 2  # the newest that is understood; a file without the attribute is of a version before 2
# Any of them reads netCDF-4 for xarray; scipy reads older files only.
BACK_ENDS = ["netCDF4", "h5netcdf"]
# Without these a file is none of ours.
NEEDED = {"config_hash", "label", "status", "time_median", "config_device", "device_model", "device_roof_name"}
# Variables whose values name the places of a dimension.
COORDINATES = {"memory_level": "memory_level_name", "precision": "precision_name"}

# A file lacks a variable that no row, device or roof of it can have a value of. Of those, this package asks for these:
# a missing text is "", a missing flag "unknown", a missing number NaN.
TEXTS = ["config_precision", "config_algorithm", "cache", "pci_id", "device_pci_id", "device_roofs_reused"]
FLAGS = ["host_paced", "throttled", "device_roof_throttled", "device_roof_settled"]
BY_LEVEL = ["bytes_counted", "bytes_read", "bytes_written", "device_roof_bytes_ratio"]
BY_PRECISION = ["flops_tensor", "device_peak_tensor"]
NUMBERS = [
    *("flops_counted", "flops_ratio", "bytes_ratio", "host_time", "kernel_flops_counted", "kernel_waves"),
    *("kernel_grid_x", "kernel_grid_y", "kernel_grid_z", "kernel_blocks", "kernel_occupancy", "kernel_tail_loss"),
    *("device_power_limit", "device_roof_nominal_fraction", "device_roof_clock_fraction", "device_roof_sm_clock"),
    *("device_roof_memory_clock", "device_roof_power", "device_roof_temperature", "device_roof_sustained"),
    *("device_roof_sustained_clock", "device_roof_flops_ratio", "device_roof_node_spread"),
]


def missing(data, name):
    """(dimensions, values) of a variable without any value."""
    dims = [next((word for word in ("kernel", "device_roof", "device") if name.startswith(f"{word}_")), "config")]
    dims += ["memory_level"] if name in BY_LEVEL else ["precision"] if name in BY_PRECISION else []
    word = "" if name in TEXTS else "unknown" if name in FLAGS else None
    shape = [data.sizes[dim] for dim in dims]
    return dims, np.full(shape, np.nan) if word is None else np.full(shape, word, dtype=object)


def completed(data):
    """The dataset with all variables that this package asks for."""
    names = [name for name in [*TEXTS, *FLAGS, *BY_LEVEL, *BY_PRECISION, *NUMBERS] if name not in data.variables]
    return data.assign({name: missing(data, name) for name in names})


def back_end():
    """The first module that is there."""
    for name in BACK_ENDS:
        if importlib.util.find_spec(name):
            return name.lower()
    raise Refused("xarray has no module that reads netCDF-4: install python3-netcdf4 (pip: netCDF4) or h5netcdf")


def opened(path):
    try:
        return xarray.open_dataset(path, engine=back_end())
    except OSError as error:
        if error.errno is None or error.errno < 0:
            raise Refused(f"{path}: no NetCDF file, or a damaged one") from error
        raise Refused(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # its text lists what xarray could install
        raise Refused(f"{path}: no NetCDF file, or a damaged one") from error


def decode_flags(data):
    """Flag variables become their words."""
    for name in [name for name in data.variables if "flag_values" in data[name].attrs]:
        if "flag_masks" in data[name].attrs:  # several at once: no one word
            continue
        words = np.array(data[name].attrs["flag_meanings"].split(), dtype=object)
        values = np.atleast_1d(data[name].attrs["flag_values"])
        if len(words) != len(values):
            raise Refused(f"{name}: {len(values)} flag_values, {len(words)} flag_meanings")
        index = np.searchsorted(values, data[name].values)
        attributes = {key: value for key, value in data[name].attrs.items() if not key.startswith("flag_")}
        data[name] = (data[name].dims, words[np.clip(index, 0, len(words) - 1)], attributes | {"words": list(words)})


def clean(data):
    """Makes all texts plain."""
    data.attrs = {key: plain(value) if isinstance(value, str) else value for key, value in data.attrs.items()}
    for name in data.variables:
        if data[name].dtype.kind in "OU" and name not in data.indexes:
            data[name].values = np.vectorize(plain, otypes=[object])(data[name].values)


def check_version(data, path):
    version = data.attrs.get("format_version", 1)
    if version > FORMAT_VERSION:
        raise Refused(f"{path}: format version {version}; this roofsweep-post reads up to {FORMAT_VERSION}: update it")


def check_devices(data, path):
    """Tools that join files row by row, as ncrcat does, keep the devices and kernels of the first file alone."""
    device = data["config_device"].values.astype(int)
    known = device >= 0
    if "uuid" not in data or not known.any():
        return
    own = data["uuid"].values[known]
    if device.max() >= data.sizes["device"] or (own != data["device_uuid"].values[device[known]]).any():
        raise Refused(
            f"{path}: its rows were not measured on its devices, as when ncrcat joins files; "
            "join result files with `roofsweep-post merge A.nc B.nc -o ALL.nc`"
        )


def load(path):
    """The file, whole, in memory. Raises Refused if it is no result file of roofsweep.

    memory_level and precision are coordinates, flags are words, texts hold no control characters. What was not
    measured is NaN, a missing text is empty. A variable that no row could have a value of may be absent."""
    with opened(path) as data:
        if not set(data.variables) >= NEEDED:
            raise Refused(f"{path}: no result file of roofsweep, it has no {sorted(NEEDED - set(data.variables))}")
        try:
            data = data.load()  # whole: the netCDF4 module reads strings from disk only in steps of one
        except (OSError, RuntimeError) as error:
            raise Refused(f"{path}: cannot be read: {error}") from error
    check_version(data, path)
    check_devices(data, path)
    clean(data)
    decode_flags(data)
    data = data.assign_coords({name: (name, data[variable].values) for name, variable in COORDINATES.items()})
    data = data.drop_vars(COORDINATES.values()).assign_attrs(path=plain(path))
    if "format_version" in data.attrs:
        data = completed(data)
    return data.set_coords([name for name in ("config_hash", "device_uuid", "device_roof_name") if name in data])


def parameters(data):
    """Names of the variables that hold a configuration's parameters."""
    return [name for name in data.variables if data[name].attrs.get("long_name", "").startswith("parameter ")]
