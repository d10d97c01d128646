"""A result file as an xarray Dataset that can be asked by words: .sel(memory_level="dram"), status == "measured"."""

import importlib.util

import numpy as np
import pandas
import xarray

from .texts import Refused, listed, plain, say

FORMAT_VERSION = 2  # the newest that is understood; a file without the attribute is of a version before 2
# Any of them reads netCDF-4 for xarray; scipy reads older files only.
BACK_ENDS = ["netCDF4", "h5netcdf"]
# A file that has none of these is none of ours.
OWN = {"config_hash", "device_roof_name"}
# Variables whose values name the places of a dimension.
COORDINATES = {"memory_level": "memory_level_name", "precision": "precision_name"}
LEAST = {"memory_level": ["dram", "l2"], "precision": []}  # the names that tables ask for

# The variables that this package asks for, by dimensions and kind of values. load() leaves out one that is otherwise.
# One that a file lacks has no value: a missing text is "", a missing flag "unknown", all else NaN or NaT.
KNOWN = {
    ("config",): {
        "text": "configuration config_hash label error workload implementation algorithm math layout_chosen axes cache "
        "config_algorithm config_implementation config_precision pass layout launch replay command roof_memory_level "
        "limiter_evidence accuracy hostname uuid pci_id count_note unit_note other_processes",
        "flag": "status unit bimodal host_paced throttled flops_source bytes_source bound limiter",
        "time": "start_time",
        "number": "config_device attempts wall_time time_median time_median_low time_median_high host_time busy_time "
        "gap_time overhead_time launches samples performance roof roof_fraction compute_roof bandwidth_roof "
        "flops_model flops_counted flops_ratio bytes_model bytes_ratio workspace footprint sm_clock memory_clock power "
        "temperature compute_share bandwidth_share gap_share few_blocks_share verify_error "
        "energy_time placements sm_clock_counted",
    },
    ("config", "memory_level"): {
        "number": "arithmetic_intensity bytes_counted bytes_read bytes_written level_time",
    },
    ("config", "precision"): {"number": "flops_tensor"},
    ("config", "sample"): {"number": "time_sample"},
    ("kernel",): {
        "text": "kernel_name",
        "number": "kernel_config kernel_count kernel_time kernel_flops_counted kernel_waves kernel_grid_x "
        "kernel_grid_y kernel_grid_z kernel_blocks kernel_occupancy kernel_tail_loss",
    },
    ("kernel", "memory_level"): {"number": "kernel_bytes_counted"},
    ("device",): {
        "text": "device_key device_kind device_hostname device_uuid device_model device_pci_id device_driver_version "
        "device_library_version device_counters device_roofs_reused",
        "number": "device_index device_launch_overhead device_multiprocessors device_power_limit",
    },
    ("device", "memory_level"): {"number": "device_cache device_peak_bandwidth"},
    ("device", "precision"): {"number": "device_peak_vector device_peak_tensor"},
    ("device_roof",): {
        "text": "device_roof_name device_roof_setting",
        "flag": "device_roof_condition device_roof_verdict device_roof_throttled device_roof_settled",
        "time": "device_roof_start_time",
        "number": "device_roof_device device_roof_bandwidth device_roof_performance device_roof_time "
        "device_roof_median device_roof_mean device_roof_spread device_roof_samples device_roof_node_spread "
        "device_roof_nominal_fraction device_roof_clock_fraction device_roof_sm_clock device_roof_memory_clock "
        "device_roof_power device_roof_temperature device_roof_sustained device_roof_sustained_clock "
        "device_roof_flops_ratio",
    },
    ("device_roof", "memory_level"): {"number": "device_roof_bytes_ratio"},
    ("memory_level",): {"text": "memory_level_name"},
    ("precision",): {"text": "precision_name"},
}
SHAPES = {
    name: (dims, kind) for dims, kinds in KNOWN.items() for kind, names in kinds.items() for name in names.split()
}
DTYPES = {"text": "OUS", "flag": "iuf", "time": "M", "number": "iuf"}
MISSING = {"text": "", "flag": "unknown", "time": np.datetime64("NaT", "ns"), "number": np.nan}
INVALID = "invalid"  # the word of a flag whose value has no meaning
# Those whose absence tables look at: something else stands in for them.
REPLACED = {
    *("time_median_low", "time_median_high", "gap_time", "limiter", "limiter_evidence", "level_time", "kernel_waves"),
    *COORDINATES.values(),
}
# Indices of rows of another dimension; None: its rows may have been cut away, as by `ncks -d config,0,4`.
INDICES = {"config_device": "device", "device_roof_device": "device", "kernel_config": None}


def missing(data, name):
    """(dimensions, values) of a variable without any value."""
    dims, kind = SHAPES[name]
    shape = [data.sizes.get(dim, 0) for dim in dims]
    return dims, np.full(shape, MISSING[kind], dtype=object if kind in ("text", "flag") else None)


def completed(data):
    """The dataset with all variables that this package asks for."""
    names = [name for name in SHAPES if name not in data.variables and name not in REPLACED]
    return data.assign({name: missing(data, name) for name in names})


def back_end():
    """The first module that is there."""
    for name in BACK_ENDS:
        if importlib.util.find_spec(name):
            return name.lower()
    raise Refused("xarray has no module that reads netCDF-4: install python3-netcdf4 (pip: netCDF4) or h5netcdf")


def opened(path):
    """The file as it is. What a damaged one makes the libraries raise may be anything."""
    try:
        return xarray.open_dataset(path, engine=back_end(), decode_cf=False)
    except OSError as error:
        if error.errno is None or error.errno < 0:
            raise Refused(f"{path}: no NetCDF file, or a damaged one") from error
        raise Refused(f"{path}: {error.strerror or error}") from error
    except Refused:
        raise
    except Exception as error:  # of ValueError the text lists what xarray could install
        raise Refused(f"{path}: no NetCDF file, or a damaged one") from error


def decoded(variables):
    """Some variables of a file, in memory, with times and missing values."""
    data = xarray.Dataset(variables).load()  # whole: the netCDF4 module reads strings from disk only in steps of one
    return dict(xarray.decode_cf(data, decode_coords=False, decode_timedelta=False).load().variables)


def read(raw):
    """({name: variable}, {name: what is wrong} of those that cannot be read)."""
    try:
        return decoded(raw.variables), {}
    except Exception:  # one by one, to find out which
        found, faults = {}, {}
    for name, variable in raw.variables.items():
        try:
            found |= decoded({name: variable})
        except Exception as error:
            faults[name] = f"it cannot be read: {str(error) or type(error).__name__}"
    return found, faults


def words_of(variable):
    """A flag variable as its words."""
    values, words = np.atleast_1d(variable.attrs["flag_values"]), str(variable.attrs.get("flag_meanings")).split()
    if len(values) != len(words) or len(set(values.tolist())) < len(values):
        raise ValueError("its flag_values and flag_meanings do not fit together")
    index = pandas.Index(values).get_indexer(variable.values.ravel())
    found = np.array([*words, INVALID], dtype=object)[index].reshape(variable.shape)
    return np.where(pandas.isna(variable.values), MISSING["flag"], found).astype(object)


def understood(name, variable):
    """A variable with flags as words and plain texts. ValueError says what is wrong with it."""
    dims, kind = SHAPES.get(name, (variable.dims, None))
    if variable.dims != dims:
        raise ValueError(f"its dimensions are ({', '.join(variable.dims)}), not ({', '.join(dims)})")
    if variable.size and variable.dtype.kind not in DTYPES.get(kind, "biufMOUS"):
        raise ValueError(f"its values are no {kind or 'number or text'}")
    attributes = {key: plain(value) for key, value in variable.attrs.items() if not key.startswith("flag_")}
    values = variable.values
    if kind == "flag" and "flag_values" not in variable.attrs:
        raise ValueError("it has no flag_values")
    if "flag_values" in variable.attrs and "flag_masks" not in variable.attrs:  # with masks it is several words at once
        values = words_of(variable)
    elif values.dtype.kind in "OUS":
        values = np.vectorize(plain, otypes=[object])(values)
    return xarray.Variable(variable.dims, values, attributes)


def check_version(attributes, path):
    version = attributes.get("format_version", 1)
    if not isinstance(version, (int, np.integer)):
        raise Refused(f"{path}: its format_version is no whole number: no result file, or a damaged one")
    if version > FORMAT_VERSION:
        raise Refused(f"{path}: format version {version}; this roofsweep-post reads up to {FORMAT_VERSION}: update it")


def check_indices(data, path, faults):
    """Drops indices of nothing. Tools that join files row by row, as ncrcat does, keep the devices and kernels of the
    first file alone."""
    for name, dim in INDICES.items():
        if name not in data:
            continue
        values = data[name].values
        index = np.where((values >= 0) & (values < 2**31), values, -1).astype(int)
        data[name] = (data[name].dims, index, data[name].attrs)
        if dim and (index >= data.sizes.get(dim, 0)).any():
            faults[name] = f"it names a {dim} that the file does not have"
    if "config_device" not in data or not {"uuid", "device_uuid"} <= set(data):
        return
    device = data["config_device"].values
    known = device >= 0
    if "config_device" in faults or (data["uuid"].values != data["device_uuid"].values[device])[known].any():
        raise Refused(
            f"{path}: its rows were not measured on its devices, as when ncrcat joins files; "
            "join result files with `roofsweep-post merge A.nc B.nc -o ALL.nc`"
        )


def with_coordinates(data, faults):
    """The dataset with its levels and precisions as coordinates; without their names, without all that is by them."""
    for dim, name in COORDINATES.items():
        names = list(data[name].values) if name in data else []
        different = len(set(names) - {""}) == data.sizes.get(dim, 0)
        if not different or not set(LEAST[dim]) <= set(names):
            faults.setdefault(name, f"its names are missing, equal or without dram; so is what is by {dim}")
            data, names = data.drop_dims(dim, errors="ignore"), LEAST[dim]
        data = data.drop_vars(name, errors="ignore").assign_coords({dim: (dim, np.array(names, dtype=object))})
    return data


def load(path, needs=()):
    """The file, whole, in memory. Raises Refused if it is no result file of roofsweep, or has rows of a dimension
    without variables of it in `needs`.

    memory_level and precision are coordinates, flags are words, texts hold no control characters. What was not
    measured is NaN, a missing text is empty. A variable that no row could have a value of may be absent. One that is
    damaged is left out, which is said."""
    with opened(path) as raw:
        if not OWN & set(raw.variables):
            raise Refused(f"{path}: no result file of roofsweep, it has no {' and no '.join(sorted(OWN))}")
        check_version(raw.attrs, path)
        found, faults = read(raw)
        attributes = {key: plain(value) for key, value in raw.attrs.items() if key != "format_version"}
    variables = {}
    for name, variable in found.items():
        try:
            variables[name] = understood(name, variable)
        except ValueError as error:
            faults[name] = str(error)
        else:
            words = variables[name].values if "flag_values" in variable.attrs else np.array([])
            if words.dtype == object and (count := (words == INVALID).sum()):
                say(f"{path}: {name}: {count} of its values are none of its flag_values, and shown as '{INVALID}'")
    data = xarray.Dataset(variables, attrs=attributes | {"path": plain(path)})
    check_indices(data, path, faults)
    data = with_coordinates(data.drop_vars([name for name in faults if name in data]), faults)
    if faults:
        say(f"{path}: damaged, left out: {listed(f'{name} ({why})' for name, why in faults.items())}")
    lacking = [name for name in needs if name not in data.variables and data.sizes.get(SHAPES[name][0][0])]
    if lacking:
        raise Refused(f"{path}: it has no {', '.join(lacking)}, which this needs")
    data = completed(data)
    return data.set_coords(["config_hash", "device_uuid", "device_roof_name"])


def parameters(data):
    """Names of the variables that hold a configuration's parameters."""
    return [name for name in data.variables if data[name].attrs.get("long_name", "").startswith("parameter ")]
