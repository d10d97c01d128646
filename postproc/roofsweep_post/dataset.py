"""Loads a result file as an xarray Dataset. Flags and memory levels are words: data.status == "measured",
data.sel(memory_level="dram")."""

import contextlib
import importlib
import importlib.util
import math
import os
import re
import signal

import numpy as np
import pandas
import xarray

from .texts import Refused, listed, plain, say

# Without this, HDF5 reports a healthy file as damaged if the file system has no locks or another process has locked it.
os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"

FORMAT_VERSION = 3  # the only format_version that this package reads
# Limit of the CPU time to read a file, because HDF5 may read a damaged file without end. 10^5 rows (258 MB) take 10 s.
READ_SECONDS, READ_RATE = 8.0, 2e6  # s for every file, and one second more for each 2e6 bytes
DEFLATED = 1032  # largest ratio of compression that zlib reaches
# Modules with which xarray reads netCDF-4. (scipy reads only older formats.)
BACK_ENDS = ["netCDF4", "h5netcdf"]
# Every result file has at least one of these variables.
OWN = {"config_hash", "device_roof_name"}
# {dimension with named entries: names that tables need}
COORDINATES = {"memory_level": ["dram", "l2"]}
COORDINATES |= {name: [] for name in ("number_format", "health", "wall_part", "activity", "part")}
# Attributes with several lines. load() keeps their line ends, so commands that print them must call plain().
LINES = ("manifest", "history")

# Variables that this package reads, by dimensions and kind of values. load() drops a variable with other dimensions or
# a different kind. If the file lacks a variable, load() adds it: texts as "", flags as "unknown", others as NaN or NaT.
KNOWN = {
    ("config",): {
        "text": "configuration config_hash label name error workload implementation algorithm layout_chosen axes cache "
        "requested_algorithm requested_implementation precision pass layout launch replay command roof_memory_level "
        "limiter_evidence limit cause accuracy uuid other_processes listed output_hash",
        "flag": "status unit bimodal host_paced paper_bound limiter",
        "time": "start_time",
        "number": "config_device wall_time time_median time_median_low time_median_high busy_time caller_time "
        "caller_uncertainty gap_time overhead_time launches samples performance roof_fraction compute_roof "
        "bandwidth_roof flops_model flops_counted bytes_model workspace footprint sm_clock verify_error energy "
        "energy_time energy_at_roofs energy_constant_share placements threads_running threads_waiting host_load "
        "timer_overhead sample_iterations",
    },
    ("config", "memory_level"): {"number": "arithmetic_intensity bytes_counted bytes_written level_time"},
    ("config", "number_format"): {"number": "flops_vector flops_tensor"},
    ("config", "wall_part"): {"number": "wall_time_part"},
    ("config", "part"): {"number": "time_part"},
    ("config", "sample"): {"number": "time_sample"},
    ("config", "round"): {"number": "round_time round_start"},
    ("kernel",): {
        "text": "kernel_name",
        "number": "kernel_config kernel_count kernel_time kernel_flops_counted kernel_resident "
        "kernel_blocks kernel_threads",
    },
    ("kernel", "memory_level"): {"number": "kernel_bytes_counted"},
    ("device",): {
        "text": "device_key device_kind device_hostname device_uuid device_model device_pci_id device_driver_version "
        "device_library_version device_roofs_reused device_system",
        "number": "device_launch_overhead device_multiprocessors device_multiprocessor_threads device_power_limit "
        "device_sm_clock_free device_node",
    },
    ("device", "memory_level"): {"number": "device_cache device_latency device_peak_bandwidth"},
    ("device", "number_format"): {"number": "device_peak_vector device_peak_tensor"},
    ("device", "health"): {"number": "device_health_start device_health_end"},
    ("device_roof",): {
        "text": "device_roof_name device_roof_setting",
        "flag": "device_roof_condition device_roof_verdict device_roof_settled",
        "time": "device_roof_start_time",
        "number": "device_roof_device device_roof_bandwidth device_roof_performance device_roof_time "
        "device_roof_mean device_roof_spread device_roof_nominal_fraction "
        "device_roof_clock_fraction device_roof_sm_clock device_roof_sustained "
        "device_roof_sustained_clock device_roof_flops_ratio device_roof_energy device_roof_energy_power "
        "device_roof_constant_power device_roof_rest_power",
    },
    ("device_roof", "memory_level"): {"number": "device_roof_bytes_ratio"},
    ("node",): {"text": "node_hostname", "number": "node_devices"},
    ("link",): {
        "text": "link_from link_to",
        "flag": "link_operation",
        "number": "link_node link_node_to link_devices link_nodes link_bytes link_time link_bandwidth",
    },
    ("memory_level",): {"text": "memory_level"},
    ("number_format",): {"text": "number_format"},
    ("health",): {"text": "health"},
    ("wall_part",): {"text": "wall_part"},
    ("part",): {"text": "part"},
    ("activity",): {"text": "activity"},
}
SHAPES = {
    name: (dims, kind) for dims, kinds in KNOWN.items() for kind, names in kinds.items() for name in names.split()
}
DTYPES = {"text": "OUS", "flag": "iuf", "time": "M", "number": "iuf"}
MISSING = {"text": "", "flag": "unknown", "time": np.datetime64("NaT", "ns"), "number": np.nan}
# Variables from which devices are judged.
JUDGED = {"status", "config_device", "time_median", "health", "device_health_start", "device_health_end"}
JUDGED |= {"device_node", "node_hostname", "link_node", "link_node_to", "link_operation", "link_from", "link_to"}
JUDGED |= {"config_hash", "device_roof_device", "device_roof_condition", "device_roof_verdict"}
JUDGED |= {"device_roof_mean", "device_roof_spread", "device_roof_sm_clock", "device_roof_sustained_clock"}
JUDGED |= {"device_roof_settled", "output_hash", "other_processes", "time_sample", "round_time", "timer_overhead"}
JUDGED |= {"sample_iterations"}
# {variable from which devices are judged: its unit}
UNITS = {"time_median": "s", "device_roof_bandwidth": "byte s-1", "device_roof_performance": "s-1"}
UNITS |= {"device_roof_time": "s", "energy": "J", "energy_time": "s", "device_roof_sustained": "s-1"}
UNITS |= {"link_time": "s", "link_bandwidth": "byte s-1", "link_bytes": "byte"}
JUDGED |= set(UNITS)
# A numeric parameter in the text of a configuration.
NUMBER = re.compile(r" (\w+)=(\d+(?:x\d+)?|same|valid)(?= |$)")
ROUNDING = 1e-6  # relative error of values that the file computes from its other values
INVALID = "invalid"  # word for a flag value without a meaning
# Variables that load() does not add if they are absent, because tables then use other variables.
REPLACED = {"time_median_low", "time_median_high", "level_time", *COORDINATES}
# {index variable: dimension that it points to}. None: an index beyond the dimension is no fault, because
# `ncks -d config,0,4` keeps the kernels of removed rows.
INDICES = {
    "config_device": "device",
    "device_roof_device": "device",
    "device_node": "node",
    "link_node": "node",
    "link_node_to": "node",
    "kernel_config": None,
}


def missing(data, name):
    """Returns (dimensions, values) for a variable of KNOWN whose values are all missing."""
    dims, kind = SHAPES[name]
    shape = [data.sizes.get(dim, 0) for dim in dims]
    return dims, np.full(shape, MISSING[kind], dtype=object if kind in ("text", "flag") else None)


def with_nodes(data):
    """Returns the dataset with a node for each host of the devices, if an earlier roofsweep stored no nodes."""
    if "device_node" in data.variables or "device_hostname" not in data.variables:
        return data
    hosts = list(dict.fromkeys(data["device_hostname"].values))
    node = np.array([hosts.index(host) for host in data["device_hostname"].values], int)
    data = data.assign(device_node=("device", node), node_hostname=("node", np.array(hosts, object)))
    if "link_device" in data.variables:
        own = node[data["link_device"].values.astype(int)]
        to = np.where(data["link_from"].values == "", -1, own)
        data = data.assign(link_node=("link", own), link_node_to=("link", to))
    return data


def completed(data):
    """Returns the dataset with its absent variables of KNOWN filled, except those in REPLACED."""
    names = [name for name in SHAPES if name not in data.variables and name not in REPLACED]
    data = data.assign({name: missing(data, name) for name in names})
    for name in ("algorithm", "implementation"):  # the file stores requested_NAME only if it is not auto
        requested = data[f"requested_{name}"]
        auto = [
            word == "" and f" {name}=auto" in text for word, text in zip(requested.values, data.configuration.values)
        ]
        data[f"requested_{name}"] = (requested.dims, np.where(auto, "auto", requested).astype(object), requested.attrs)
    return data


def numbers_of(text):
    """Returns {variable: value} of the numbers in a configuration's text. {} for programs, whose commands may contain
    any numbers."""
    found = {} if text.startswith("program ") else dict(NUMBER.findall(text))
    high, _, wide = found.pop("kernel", "").partition("x")
    found |= {"filter_height": high, "filter_width": wide or high} if high else {}
    return {name: int(value) if value.isdigit() else value for name, value in found.items()}


def with_numbers(data):
    """Adds the parameters that have their default in all rows, which the file stores only in the text
    `configuration`."""
    found = pandas.DataFrame([numbers_of(text) for text in data.configuration.values])
    for name in found.columns.difference(list(data.variables)):
        padding = found[name].dtype.kind == "O"  # pandas 3 has its own type for texts
        values = found[name].fillna("") if padding else found[name]
        data[name] = ("config", values.to_numpy(), {"long_name": f"parameter {name}"})
    return data


def back_end():
    """Returns the first installed module of BACK_ENDS."""
    for name in BACK_ENDS:
        if importlib.util.find_spec(name):
            return name
    raise Refused("xarray has no module that reads netCDF-4: install python3-netcdf4 (pip: netCDF4) or h5netcdf")


@contextlib.contextmanager
def bounded(path):
    """Context in which a file is read. If cli.main() limits the CPU time of this process, SIGPROF ends the process when
    reading takes too long. The signal has no handler, because Python would run it only after HDF5 has returned."""
    left, _ = signal.getitimer(signal.ITIMER_PROF)
    if not left:  # no limit, as in a notebook
        yield
        return
    size = os.path.getsize(path) if os.path.exists(path) else 0
    signal.setitimer(signal.ITIMER_PROF, min(left, READ_SECONDS + size / READ_RATE))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, left)


def check_sizes(path, variables):
    """Raises Refused if a file declares more values than its size allows. A text takes at least a byte; numbers
    compress at most by DEFLATED. Variables of KNOWN that the file lacks are included, because load() adds them.
    variables: {name: variable of netCDF4 or h5netcdf}"""
    size, texts, sizes, widths = os.path.getsize(path), 0, {}, {}
    for own in variables.values():
        sizes |= dict(zip(own.dimensions, own.shape))
    for name, own in variables.items():
        kind = np.dtype(object if own.dtype is str else own.dtype)
        widths[name] = own.dimensions, 0 if kind.kind == "O" else kind.itemsize
    filled = {name: (dims, 8) for name, (dims, _) in SHAPES.items() if set(dims) <= set(sizes)}
    for name, (dims, width) in (filled | widths).items():
        count = math.prod(int(sizes[dim]) for dim in dims)
        texts += 0 if width else count
        if count * width > DEFLATED * size or texts > size:
            raise Refused(f"{path}: damaged: {name} would have {count} values, and the file only {size} bytes")


@contextlib.contextmanager
def opened(path):
    """Context with an open file whose values are not decoded; see bounded(). Raises Refused."""
    with bounded(path), raw_of(path) as raw:
        yield raw


def raw_of(path):
    """Opens a file. Any exception of the libraries, which a damaged file may cause, becomes Refused."""
    try:
        back = importlib.import_module(name := back_end())
        file = back.Dataset(path) if name == "netCDF4" else back.File(path, "r", decode_vlen_strings=True)
        check_sizes(path, file.variables)
        store = xarray.backends.NetCDF4DataStore if name == "netCDF4" else xarray.backends.H5NetCDFStore
        return xarray.open_dataset(store(file), decode_cf=False)
    except OSError as error:
        if error.errno is None or error.errno < 0:
            raise Refused(f"{path}: no NetCDF file, or a damaged one") from error
        raise Refused(f"{path}: {error.strerror or error}") from error
    except Refused:
        raise
    except Exception as error:  # its text does not help users
        raise Refused(f"{path}: no NetCDF file, or a damaged one") from error


def decoded(variables):
    """Reads variables into memory and decodes times and missing values."""
    data = xarray.Dataset(variables).load()  # all at once: netCDF4 reads parts of a text variable value by value
    return dict(xarray.decode_cf(data, decode_coords=False, decode_timedelta=False).load().variables)


def read(raw):
    """Returns ({name: variable}, {name of an unreadable variable: reason})."""
    try:
        return decoded(raw.variables), {}
    except Exception:  # the loop below reads each variable alone, to find the damaged one
        found, faults = {}, {}
    for name, variable in raw.variables.items():
        try:
            found |= decoded({name: variable})
        except Exception as error:
            faults[name] = f"it cannot be read: {str(error) or type(error).__name__}"
    return found, faults


def words_of(variable):
    values, words = np.atleast_1d(variable.attrs["flag_values"]), str(variable.attrs.get("flag_meanings")).split()
    if len(values) != len(words) or len(set(values.tolist())) < len(values):
        raise ValueError("its flag_values and flag_meanings do not fit together")
    index = pandas.Index(values).get_indexer(variable.values.ravel())
    found = np.array([*words, INVALID], dtype=object)[index].reshape(variable.shape)
    return np.where(pandas.isna(variable.values), MISSING["flag"], found).astype(object)


def understood(name, variable):
    """Returns the variable with flags as words, and texts without control characters. Raises ValueError with the reason
    if the variable is damaged."""
    dims, kind = SHAPES.get(name, (variable.dims, None))
    if variable.dims != dims:
        raise ValueError(f"its dimensions are ({', '.join(variable.dims)}), not ({', '.join(dims)})")
    if variable.size and variable.dtype.kind not in DTYPES.get(kind, "biufMOUS"):
        raise ValueError(f"its values are no {kind or 'number or text'}")
    attributes = {key: plain(value) for key, value in variable.attrs.items() if not key.startswith("flag_")}
    values = variable.values
    if kind == "flag" and "flag_values" not in variable.attrs:
        raise ValueError("it has no flag_values")
    if "flag_values" in variable.attrs and "flag_masks" not in variable.attrs:  # a mask holds several words at once
        values = words_of(variable)
    elif kind == "text" or values.dtype.kind in "OUS":  # xarray reads texts of no rows as numbers
        values = np.vectorize(plain, otypes=[object])(values)
        if name == "device_model":  # AMD ends its names with blanks, which earlier files contain
            values = np.vectorize(str.strip, otypes=[object])(values)
    stored = np.dtype(variable.encoding.get("dtype", values.dtype))
    if stored.kind in "iu" and values.dtype.kind == "f" and np.isfinite(values).all():  # xarray reads integers as float
        values = values.astype(stored)
    return xarray.Variable(variable.dims, values, attributes, {"dtype": stored})


def check_version(attributes, path):
    version = attributes.get("format_version", 1)
    if not isinstance(version, (int, np.integer)):
        raise Refused(f"{path}: its format_version is no whole number: no result file, or a damaged one")
    if version < FORMAT_VERSION:
        raise Refused(f"{path}: an earlier roofsweep wrote it; write it again from its journal: roofsweep --gather")
    if version > FORMAT_VERSION:
        raise Refused(f"{path}: format version {version}; this roofsweep-post reads up to {FORMAT_VERSION}: update it")


def check_indices(data, path, faults):
    """Sets indices out of range to -1 and adds them to `faults`. Raises Refused if rows and devices do not match,
    because ncrcat joined the rows of files but took devices and kernels only from the first file."""
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
            f"{path}: its rows were not measured on its devices, for example because ncrcat joined files; "
            "join result files with `roofsweep-post merge A.nc B.nc -o ALL.nc`"
        )


def with_coordinates(data, faults):
    """Returns the dataset with the dimensions of COORDINATES as coordinates. If the names of a dimension are damaged,
    drops the dimension and all its variables."""
    for dim, least in COORDINATES.items():
        names = list(data[dim].values) if dim in data.variables else []
        different = len(set(names) - {""}) == data.sizes.get(dim, 0)
        if not different or not set(least) <= set(names):
            faults.setdefault(dim, f"its names are missing, equal or without dram; variables by {dim} are dropped, too")
            data, names = data.drop_dims(dim, errors="ignore"), least
        attributes = data[dim].attrs if dim in data.variables else {}
        data = data.assign_coords({dim: (dim, np.array(names, dtype=object), attributes)})
    return data


def contradictions(data):
    """Returns the places of roofs whose value contradicts the stored share of theory. Value over share is the
    theoretical value, which must be equal for all roofs of one kind and device. For units, shared memory and L1 the
    theoretical value per cycle and multiprocessor must also be a power of two (src/model/chip.c)."""
    device, rows = data["device_roof_device"].values, data.sizes["device_roof"]
    own = {
        name: data[f"device_roof_{name}"].values if f"device_roof_{name}" in data else np.full(rows, np.nan)
        for name in ("bandwidth", "performance", "mean", "nominal_fraction", "clock_fraction", "sm_clock", "name")
    }
    names = pandas.Series(own.pop("name"), dtype=object).astype(str)
    inside = names.str.contains("vector|tensor|shared|l1")
    own = pandas.DataFrame(own).astype(float)
    theory = own["bandwidth"].fillna(own["performance"]) / own["nominal_fraction"]
    clock = (own["clock_fraction"] * own["sm_clock"] / own["mean"] / own["nominal_fraction"]).where(inside)
    count = data["device_multiprocessors"].values[device] if "device_multiprocessors" in data else np.nan
    exponent = np.log2(theory / clock / count)
    wrong = abs(exponent - exponent.round()) > ROUNDING
    for found, keys in (
        (theory, [device, names.where(~names.str.startswith("dram "), "dram")]),
        (exponent, [data["device_model"].values[device], names]),
        (clock, [device]),
    ):
        wrong |= abs(found / found.groupby(keys).transform("median") - 1) > ROUNDING
    return np.flatnonzero(wrong)


def check_values(path, data):
    """Raises Refused if a value from which devices are judged is impossible, or belongs to no device."""
    for name, unit in UNITS.items():
        if name in data and (found := data[name].attrs.get("units", "none")) != unit:
            raise Refused(f"{path}: damaged: {name} has the unit {found}, not {unit}")
    count = {}
    if {"time_median", "status", "config_device"} <= set(data.variables):
        measured, times = data["status"].values == "measured", data["time_median"].values
        count["measured rows have no time"] = (measured & ~(np.isfinite(times) & (times > 0))).sum()
        count["measured rows have no device"] = (measured & ~(data["config_device"].values >= 0)).sum()
        count["rows have no known status"] = (data["status"].values == INVALID).sum()
    for name in ("bandwidth", "performance", "time"):
        if (name := f"device_roof_{name}") in data and "device_roof_device" in data:
            values = data[name].values
            wrong = ~(np.isfinite(values) & (values > 0)) | ~(data["device_roof_device"].values >= 0)
            count[f"values of {name} are impossible, or of no device"] = (wrong & ~np.isnan(values)).sum()
    for what, number in count.items():
        if number:
            raise Refused(f"{path}: damaged: {number} {what}")
    if {"device_roof_device", "device_roof_name", "device_model"} <= set(data.variables):
        wrong = [data["device_roof_name"].values[place] for place in contradictions(data)]
        if wrong:
            raise Refused(f"{path}: damaged: values and shares of theory contradict each other: {listed(wrong)}")


def load(path, needs=(), judged=False):
    """Reads a whole result file into memory. Raises Refused if the file is no result file of roofsweep, or if it lacks
    a variable of `needs` whose dimension has entries. Flags are words. Texts have no control characters. Missing
    numbers are NaN, missing texts "". A variable without values may be absent. A damaged variable is left out with a
    message. judged: the file is used to judge devices. Raises Refused also if a variable of JUDGED is damaged, or if a
    measured row has no time."""
    with opened(path) as raw:
        if not OWN & set(raw.variables):
            raise Refused(f"{path}: no result file of roofsweep, it has no {' and no '.join(sorted(OWN))}")
        check_version(raw.attrs, path)
        found, faults = read(raw)
        attributes = {
            key: value if key in LINES else plain(value) for key, value in raw.attrs.items() if key != "format_version"
        }
    variables = {}
    for name, variable in found.items():
        try:
            variables[name] = understood(name, variable)
        except ValueError as error:
            faults[name] = str(error)
        else:
            words = variables[name].values if "flag_values" in variable.attrs else np.array([])
            if words.dtype == object and (count := (words == INVALID).sum()):
                say(f"{path}: {name}: {count} of its values are none of its flag_values; they are shown as '{INVALID}'")
    data = xarray.Dataset(variables, attrs=attributes | {"path": plain(path)})
    check_indices(data, path, faults)
    data = with_coordinates(data.drop_vars([name for name in faults if name in data]), faults)
    if judged:
        check_values(path, data)
    if judged and (wrong := sorted(JUDGED & set(faults))):
        raise Refused(f"{path}: damaged: {listed(f'{name} ({faults[name]})' for name in wrong)}")
    if faults:
        say(f"{path}: damaged, left out: {listed(f'{name} ({why})' for name, why in faults.items())}")
    lacking = [name for name in needs if name not in data.variables and data.sizes.get(SHAPES[name][0][0])]
    if lacking and "status" in data and not (data["status"] == "measured").any():
        why = f"`roofsweep-post export {path} --columns configuration,error` says why"
        raise Refused(f"{path}: no configuration was measured; {why}")
    if lacking:
        why = "an older roofsweep wrote the file, or another tool left it out: measure again"
        raise Refused(f"{path}: it has no {', '.join(lacking)}, which this command needs; {why}")
    data = with_numbers(completed(with_nodes(data)))
    return data.set_coords(["config_hash", "device_uuid", "device_roof_name"])


def parameters(data):
    """Returns the names of the variables that are parameters of a configuration."""
    found = data.variables.items()
    return [name for name, own in found if own.attrs.get("long_name", "").startswith("parameter ")]
