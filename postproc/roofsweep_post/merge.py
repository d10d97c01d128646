"""The command `merge` writes several result files into one, a few thousand rows at a time.

Derived values of a row follow from the row, its kernels, its device and the device's roofs. As a row keeps all these,
`merge` copies values and changes only indices of rows and devices."""

import contextlib
import fcntl
import math
import os
import re
import signal
import stat
import struct
import sys
import tempfile
import time
from datetime import UTC, datetime

import numpy as np

from .arguments import same
from .dataset import (
    COORDINATES,
    FORMAT_VERSION,
    INDICES,
    INVALID,
    SHAPES,
    bounded,
    check_sizes,
    check_version,
    numbers_of,
)
from .frames import merged
from .naming import names
from .texts import Refused, say

HELP = "several result files as one"
DESCRIPTION = """Writes the file that one sweep over all devices of these files would have written.

A device with the same roofs and health in several files becomes one device. If they differ, the rows of each file keep
their file's roofs and health. A configuration that several files measured on the same device is an error that names it,
unless --newest is given. Exit status: 0, 2 the merge was not possible, 3 rows have failed."""

WRITES_NETCDF = True

SLAB = 4096  # rows in memory at a time; a multiple of CHUNK_ROWS
CHUNK_ROWS, CHUNK_ELEMENTS = 1024, 65536  # largest chunk of a NetCDF variable
OPEN = 16  # largest number of open files, each of which takes some 10 MB of the library's memory
NAMED = 3  # largest number of clashes that an error names
NEEDED = [
    *("config_hash", "configuration", "label", "status", "start_time", "wall_time", "config_device", "kernel_config"),
    *("device_key", "device_kind", "device_hostname", "device_uuid", "device_model", "device_roof_device"),
    *("device_roof_name", "device_roof_condition", "device_roof_bandwidth", "device_roof_performance"),
    *("device_roof_time", "memory_level", "number_format"),
]
# Variables of rows that are read for all rows at once; other variables are read in parts of SLAB rows.
ROW_COLUMNS = ["config_hash", "configuration", "label", "name", "status", "start_time", "wall_time", "config_device"]
ROW_COLUMNS += ["uuid", "listed"]
# Variables of the job, and indices: they may differ between two files with the same device, roofs and health.
OF_THE_JOB = {"device_key", "device_index", "device_counters", "device_roofs_reused"}
OF_OTHERS = {"device_roof_device", "device_node"}
LINK_ENDS = ("link_node", "link_node_to")
# A line of the attribute history.
SESSION = re.compile(
    r"(?P<start>\S+) session (?P<id>.*?): roofsweep (?P<version>.*?), \d+ ranks from .*?, job .*?: (?P<command>.*)"
)
YEAR_10000 = 253402300800  # s since 1970; datetime cannot represent later times
TIME = "%Y-%m-%dT%H:%M:%SZ"


def add_options(parser):
    parser.add_argument("files", nargs="+", metavar="file", help="result file of roofsweep")
    parser.add_argument("-o", "--output", metavar="FILE", required=True)
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    newest = "if several files have a row, take the last one, a skipped one only if all are"
    parser.add_argument("--newest", action="store_true", help=newest)
    parser.add_argument("--any-settings", action="store_true", help="also merge files with other settings of [measure]")


def natural(text):
    """Returns a sort key that orders texts like strverscmp() of the C library, by the values of numbers in them: "m=9"
    before "m=16"."""

    def number(found):
        digits = found[0].lstrip("0")
        zeros = len(found[0]) - len(digits)  # a number with leading zeros is ordered as a fraction
        return f"0{chr(0x1000 - zeros)}{digits or chr(0x10FFFF)}" if zeros else f"0{chr(0x1000 + len(digits))}{digits}"

    return re.sub("[0-9]+", number, text)


def netcdf():
    try:
        import netCDF4
    except ModuleNotFoundError as error:
        raise Refused("merge needs the module netCDF4: install python3-netcdf4 (pip: netCDF4)") from error
    return netCDF4


# ---- input files ----


class Files:
    """Opens files on demand, and keeps the OPEN files open that were used last."""

    def __init__(self):
        self.open = {}

    def get(self, path):
        found = self.open.pop(path, None) or self.opened(path)
        self.open[path] = found  # as last entry: the dict is in the order of use
        if len(self.open) > OPEN:
            self.open.pop(next(iter(self.open))).close()
        return found

    @staticmethod
    def opened(path):
        try:
            with bounded(path):
                data = netcdf().Dataset(path)
        except OSError as error:
            reason = error.strerror if error.errno and error.errno > 0 else "no NetCDF file, or it is not whole"
            raise Refused(f"{path}: {reason}") from error
        data.set_auto_maskandscale(False)
        check_sizes(path, data.variables)
        return data

    def close(self):
        for data in self.open.values():
            data.close()
        self.open = {}


class Variable:
    """A variable of a file. words: meanings of the values 0, 1, ... of a flag; missing: the value for "missing"."""

    def __init__(self, dims, dtype, attributes):
        self.dims, self.type, self.attributes, self.kind = dims, dtype, attributes, np.dtype(dtype).kind
        self.words = str(attributes.get("flag_meanings", "")).split() if "flag_values" in attributes else []
        none = self.words.index("unknown") if "unknown" in self.words else len(self.words) or -1
        self.missing = "" if dtype is str else attributes.get("_FillValue", none)

    def with_unknown(self):
        """Returns the variable. If it is a flag without a value for "missing", the result has a further value
        `unknown`."""
        if not self.words or "unknown" in self.words or "_FillValue" in self.attributes:
            return self
        values = np.arange(len(self.words) + 1, dtype=self.type)
        meanings = " ".join([*self.words, "unknown"])
        return Variable(self.dims, self.type, self.attributes | {"flag_values": values, "flag_meanings": meanings})


def variables(data):
    return {
        name: Variable(found.dimensions, found.dtype, {key: found.getncattr(key) for key in found.ncattrs()})
        for name, found in data.variables.items()
        if found.dimensions
    }


class Source:
    """An input file: its variables, its sessions, and the columns that identify and order its rows."""

    def __init__(self, path, files):
        self.path, self.files, data = path, files, files.get(path)
        self.variables = variables(data)
        self.attributes = {name: data.getncattr(name) for name in data.ncattrs()}
        self.check_kind(data)
        self.lengths = {name: len(found) for name, found in data.dimensions.items()}
        self.sessions = self.read_sessions()
        self.names = {dim: list(self.column(dim)) if dim in self.variables else [] for dim in COORDINATES}
        self.rows = {name: self.column(name) for name in ROW_COLUMNS if name in self.variables}
        words = dict(enumerate(self.variables["status"].words))
        self.status = [words.get(value, INVALID) for value in self.rows["status"]]
        self.kernel_config = self.column("kernel_config")
        self.roof_device = self.column("device_roof_device")
        self.links = [self.column(name) for name in LINK_ENDS if name in self.variables] or [np.array([])]
        self.check_rows()

    def check_kind(self, data):
        lacking = [name for name in NEEDED if name not in self.variables]
        if lacking:
            raise Refused(f"{self.path}: no result file of roofsweep, or a damaged one: it has no {lacking[0]}")
        for name, own in self.variables.items():
            dims, kind = SHAPES.get(name, (own.dims, None))
            whole = kind == "flag" or name in INDICES
            other = (own.type is str) != (kind == "text") or (whole and own.kind not in "iu")
            some = len(data[name]) > 0  # a variable of no entries may have any type
            if own.dims != dims or (kind and other and some):
                raise Refused(f"{self.path}: damaged: {name} has a type or dimensions that roofsweep does not write")
        check_version(self.attributes, self.path)

    def read_sessions(self):
        """Returns [(start, id, line, version, command)] for each line of the attribute `history` that roofsweep
        wrote."""
        found = []
        for line in str(self.attributes.get("history", "")).split("\n"):
            parts = SESSION.fullmatch(line)
            with contextlib.suppress(ValueError):
                if parts:
                    start = datetime.strptime(parts["start"], TIME).replace(tzinfo=UTC).timestamp()
                    found.append((start, parts["id"], line, parts["version"], parts["command"]))
        if not found:
            no_session = "its history names no session of roofsweep, so the origin of its rows is unknown"
            raise Refused(f"{self.path}: {no_session}")
        return found

    def column(self, name, low=0, high=None):
        """Returns the values of a variable as stored, for the indices low:high of its first dimension."""
        try:
            data = self.files.get(self.path)
            with bounded(self.path):
                return data.variables[name][low:high]
        except (AttributeError, KeyError, OSError, RuntimeError, IndexError) as error:
            damaged = "the file is damaged, or roofsweep did not write it"
            raise Refused(f"{self.path}: {name}: {error}; {damaged}") from error

    def device_of(self, row):
        """Returns the index of a row's device, -1 without a device."""
        return int(self.rows["config_device"][row])

    def check_rows(self):
        device, kernel = self.rows["config_device"], self.kernel_config
        bad = (device >= self.lengths["device"]).any() or (kernel >= len(device)).any() or (np.diff(kernel) < 0).any()
        if not bad and "uuid" in self.rows and len(device):
            own = self.column("device_uuid")
            bad = (np.where(device >= 0, own[np.maximum(device, 0)], "") != self.rows["uuid"]).any()
        if bad:
            raise Refused(
                f"{self.path}: its rows do not belong to its devices or kernels, for example because ncrcat joined "
                "files or ncks cut them; name the files that roofsweep wrote"
            )


def read_all(paths, files, any_settings):
    sources = []
    for place, path in enumerate(paths):
        for earlier in paths[:place]:
            if same(earlier, path):
                raise Refused(f"{earlier} and {path} are the same file")
        sources.append(Source(path, files))
        first, own = (str(source.attributes.get("settings", "")) for source in (sources[0], sources[-1]))
        if first != own and not any_settings:
            other = f"{paths[0]} was measured with '{first}', {path} with '{own}'"
            raise Refused(f"{other}: their rows cannot be compared; --any-settings merges them anyway")
    return sources


# ---- layout of the new file ----


class Layout:
    """The variables of the new file, and the conversion of a source's values to these variables."""

    def __init__(self, sources):
        self.sources = sources
        self.names = {dim: merged(source.names[dim] for source in sources) for dim in COORDINATES}
        newest_first = sorted(sources, key=lambda source: max(source.sessions)[:2], reverse=True)
        self.variables = {}
        for name in merged(source.variables for source in newest_first):
            having = [source.variables[name] for source in newest_first if name in source.variables]
            self.variables[name] = max(having, key=lambda variable: len(variable.words))
            for source in (source for source in sources if name in source.variables):
                own, kept = source.variables[name], self.variables[name]
                if own.type != kept.type or own.attributes.get("units") != kept.attributes.get("units"):
                    raise Refused(f"{source.path}: damaged: {name} has another type or unit than in other files")
            if len(having) < len(sources):
                self.variables[name] = self.variables[name].with_unknown()

    def keep_known(self, dimensions):
        """Drops variables that have other dimensions, which another tool added."""
        self.variables = {name: one for name, one in self.variables.items() if set(one.dims) <= set(dimensions)}

    def missing(self, name, rows, lengths):
        variable = self.variables[name]
        shape = [rows, *(lengths[dim] for dim in variable.dims[1:])]
        return np.full(shape, variable.missing, dtype=object if variable.type is str else variable.type)

    def of(self, dims):
        """Returns the names of the variables whose first dimension is in `dims`."""
        return [name for name, variable in self.variables.items() if variable.dims[0] in dims]

    def read(self, source, name, low, high):
        """Returns values of a source, with the new file's flag values and order of names (such as memory levels)."""
        variable, own, values = self.variables[name], source.variables[name], source.column(name, low, high)
        if own.words != variable.words:
            values = np.clip(values, 0, len(own.words))
            known = [variable.words.index(word) if word in variable.words else variable.missing for word in own.words]
            values = np.array([*known, variable.missing], dtype=values.dtype)[values]
        dim = variable.dims[-1]
        if dim in self.names and own.dims[1:] and source.names[dim] != self.names[dim]:
            wide = np.full((len(values), len(self.names[dim])), variable.missing, dtype=values.dtype)
            wide[:, [self.names[dim].index(word) for word in source.names[dim]]] = values
            values = wide
        return values


# ---- devices ----


class Device:
    """An entry of the dimension `device` in a source. Devices with equal `facts` are the same device with the same
    roofs and health."""

    def __init__(self, number, source, place, columns, layout):
        self.number, self.path, self.place, self.columns = number, source.path, place, columns
        self.roofs = np.flatnonzero(source.roof_device == place)
        self.key, self.host, self.uuid = (self.text(f"device_{name}") for name in ("key", "hostname", "uuid"))
        # An earlier roofsweep did not store nodes: then the host's first device numbers the node.
        hosts = columns.get("device_node", columns["device_hostname"] == self.host)
        self.node = int(hosts[place] if "device_node" in columns else np.argmax(hosts))
        self.fill, self.facts = layout.variables["device_roof_time"].missing, {}
        for name in columns.keys() - OF_THE_JOB - OF_OTHERS:
            variable = layout.variables[name]
            for order, row in enumerate(self.roofs if variable.dims[0] == "device_roof" else [place]):
                known = np.atleast_1d(columns[name][row])
                if (known != variable.missing).any():
                    self.facts[name, order] = known.tolist()

    def text(self, name):
        return str(self.columns[name][self.place])


def read_devices(sources, layout):
    found = []
    for number, source in enumerate(sources):
        names = [name for name in layout.of(["device", "device_roof"]) if name in source.variables]
        columns = {name: layout.read(source, name, 0, None) for name in names}
        found.append([Device(number, source, place, columns, layout) for place in range(source.lengths["device"])])
    return found


def unify(devices):
    """Gives Devices with equal facts one key, that of the first file which has the device. devices: a list of Devices
    for each source."""
    others = {}  # {(host, uuid): the first file of this device, then those that describe it in another way}
    for number, own in enumerate(devices):
        for device in own:
            alike = [
                earlier
                for earlier in (one for files in devices[:number] for one in files)
                if device.uuid and (earlier.host, earlier.uuid) == (device.host, device.uuid)
            ]
            like = next((earlier for earlier in alike if earlier.facts == device.facts), None)
            if like:
                device.key = like.key
            elif alike and all(earlier.key != device.key for earlier in alike):
                others.setdefault((device.host, device.uuid), [alike[0].path]).append(device.path)
    for (host, uuid), (first, *paths) in others.items():
        more = f" and {len(paths) - 1} more" * (len(paths) > 1)
        differ = f"{uuid} of {host} has other roofs or health in {paths[0]}{more} than in {first}"
        say(f"warning: {differ}: all stay, each for the rows of its file")


def choose_devices(devices, used):
    """Returns the Devices of the new file in order, and {(source, index of device): index in the new file}. If several
    Devices have the same key, the Device with most roofs is kept, because a file may have been written before all roofs
    of its device were measured. Other Devices are kept only if kept rows are theirs. used:
    {(source, index of device)} of the kept rows."""
    chosen, numbers = [], {}
    keys = dict.fromkeys(device.key for own in devices for device in own if device.key)
    for key in sorted(keys, key=natural):
        having = [device for own in devices for device in own if device.key == key]
        stay = [max(having, key=lambda device: len(device.roofs))]
        for device in having:
            if (device.number, device.place) in used and all(device.facts != one.facts for one in stay):
                say(f"warning: {key} has other roofs or health in {device.path} than in {stay[0].path}: both stay")
                stay.append(device)
        for device in stay:
            like = [one for one in having if one.facts == device.facts]
            numbers |= {(one.number, one.place): len(chosen) for one in like}
            chosen.append(device)
    return chosen, numbers


# ---- rows ----


def rank_of(sources, row):
    """Returns a key that is larger for later rows. Skipped rows come before all others. row: (source, index)."""
    source, at = sources[row[0]], row[1]
    time = source.rows["start_time"][at]
    return source.status[at] != "skipped", time if math.isfinite(time) else -math.inf


def find_clashes(sources, devices, newest):
    """Returns for each source a mask of the rows that are kept. If several files have a configuration on the same
    device, the last row by rank_of() is kept if `newest` is true; otherwise raises Refused."""
    stay = [np.ones(len(source.rows["config_hash"]), bool) for source in sources]
    holders, clashes = {}, []
    for number, source in enumerate(sources):
        for row, digest in enumerate(source.rows["config_hash"]):
            place = source.device_of(row)
            device = devices[number][place] if place >= 0 else None
            identity = (digest, device.host, device.uuid) if device else (digest, "", "")
            own = (number, row)
            if identity in holders:
                other = holders[identity]
                lost = own if rank_of(sources, other) > rank_of(sources, own) else other
                stay[lost[0]][lost[1]] = False
                clashes.append((number, row, device, sources[other[0]].path, source.path))
                own = own if lost == other else other
            holders[identity] = own
    if clashes and newest:
        which = "the last one is kept, a skipped one only if all are"
        say(f"{len(clashes)} rows are in several files, of the same device: {which}")
    elif clashes:
        own = [(number, row) for number in {clash[0] for clash in clashes} for row in range(len(stay[number]))]
        texts = dict(zip(own, row_names(sources, own)))
        named = "".join(
            f"; {texts[number, row]}{f' on {device.uuid} of {device.host}' if device else ''} in {one} and {other}"
            for number, row, device, one, other in clashes[:NAMED]
        )
        more = "; ..." if len(clashes) > NAMED else ""
        raise Refused(
            f"{len(clashes)} rows are in several files, of the same device{named}{more}; --newest keeps the last ones"
        )
    return stay


def order_rows(sources, devices, stay):
    """Returns (source, row) for each row of the new file. Configurations have the order in which they first appear in
    the sources; rows of one configuration are ordered by device."""
    places, keys, first = [], [], {}
    for number, source in enumerate(sources):
        device_keys = [natural(device.key) for device in devices[number]]
        for row in np.flatnonzero(stay[number]):
            device = source.device_of(row)
            key = device_keys[device] if device >= 0 else ""
            places.append((number, row))
            keys.append((first.setdefault(source.rows["config_hash"][row], len(first)), key))
    order = sorted(range(len(places)), key=keys.__getitem__)
    return np.array([places[at] for at in order], dtype=np.int64).reshape(-1, 2)


def row_names(sources, rows):

    def texts(name):
        return [str(sources[number].rows[name][row]) if name in sources[number].rows else "" for number, row in rows]

    return names(texts("name"), texts("label"), texts("configuration"), True, texts("listed"))


def kernel_places(sources, rows):
    """Returns (source, kernel) for each kernel of the new file, and the index of its row in the new file."""
    first, count = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for number, source in enumerate(sources):
        own = rows[:, 0] == number
        first[own] = np.searchsorted(source.kernel_config, rows[own, 1])
        count[own] = np.searchsorted(source.kernel_config, rows[own, 1], side="right") - first[own]
    config = np.repeat(np.arange(len(rows)), count)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.stack([rows[config, 0], first[config] + within], axis=1), config


def sample_length(source, stay):
    """Returns the largest number of samples among the kept rows."""
    variable = source.variables.get("time_sample")
    if variable is None or stay.all():
        return source.lengths.get("sample", 1) if variable else 1
    longest = 1
    for low in range(0, len(stay), SLAB):
        values = source.column("time_sample", low, low + SLAB)[stay[low : low + SLAB]]
        known = np.isfinite(values) & (values != variable.missing)
        longest = max(longest, int(known.any(axis=0).cumsum().max(initial=0)))
    return longest


# ---- the new file ----


def attributes(sources, chosen, rows):
    """Returns the global attributes of the new file. Title, manifest and similar attributes are those of the last
    session."""
    known = {}
    for source in sources:
        for session in source.sessions:
            known.setdefault(session[1], (session, source))
    sessions = sorted(known.values(), key=lambda found: found[0][:2])
    (*_, version, command), last = sessions[-1]
    first, end = sessions[0][0][0], sessions[-1][0][0]
    for number, source in enumerate(sources):
        own = rows[rows[:, 0] == number, 1]
        ends = (source.rows["start_time"] + source.rows["wall_time"])[own]
        end = max([end, *ends[ends < YEAR_10000]])  # the fill value of missing times is larger
        if int(source.attributes.get("rounds", 1)) > 1 and len(own):  # rows do not store when their last round ended
            end = max(end, datetime.fromisoformat(source.attributes["time_coverage_end"]).timestamp())
    names = {
        name: ", ".join(dict.fromkeys(filter(None, (device.text(f"device_{of}") for device in chosen))))
        for name, of in [("instrument", "model"), ("platform", "hostname")]
    }
    text = {time: datetime.fromtimestamp(time, UTC).strftime(TIME) for time in (first, end)}
    settings = dict.fromkeys(str(source.attributes.get("settings", "")) for source in sources)
    found = last.attributes | {
        "settings": " | ".join(filter(None, settings)),
        "id": sessions[0][0][1],
        "format_version": np.int32(FORMAT_VERSION),
        "product_version": version,
        "source": f"roofsweep {version}",
        "command": command,
        **names,
        "history": "\n".join(session[2] for session, _ in sessions),
        "time_coverage_start": text[first],
        "time_coverage_end": text[end],
        "date_created": text[end],
        "time_coverage_duration": f"PT{math.floor(end) - math.floor(first) if end > first else 0}S",
    }
    return {name: value for name, value in found.items() if value != ""}


def define(output, layout, lengths):
    """Defines dimensions and variables with the storage settings of roofsweep."""
    for dim, length in lengths.items():
        output.createDimension(dim, None if dim == "config" else length)
    for name, variable in layout.variables.items():
        width = math.prod(lengths[dim] for dim in variable.dims[1:])
        height = max(1, min(CHUNK_ELEMENTS // width, CHUNK_ROWS, lengths[variable.dims[0]]))
        packed = {} if variable.type is str else {"zlib": True, "complevel": 1}
        made = output.createVariable(
            name,
            variable.type,
            variable.dims,
            chunksizes=[height, *(lengths[dim] for dim in variable.dims[1:])],
            fill_value=variable.attributes.get("_FillValue"),
            **packed,
        )
        made.setncatts({key: value for key, value in variable.attributes.items() if key != "_FillValue"})
    output.set_auto_maskandscale(False)


def gather(layout, lengths, dim, places):
    """Returns {variable: values} of one dimension for the (source, index) in `places`. Values of variables that a
    source lacks are missing; but parameters that have their default in all rows of a source are taken from the texts of
    its configurations."""
    columns = {name: layout.missing(name, len(places), lengths) for name in layout.of([dim])}
    for number in np.unique(places[:, 0]):
        source, own = layout.sources[number], np.flatnonzero(places[:, 0] == number)
        rows = places[own, 1]
        low, high = rows.min(), rows.max() + 1
        for name in source.variables.keys() & columns.keys():
            values = layout.read(source, name, low, high)[rows - low]
            if columns[name].ndim == 2:
                width = min(values.shape[1], columns[name].shape[1])
                columns[name][own, :width] = values[:, :width]
            else:
                columns[name][own] = values
        numbers = [numbers_of(text) for text in source.rows["configuration"][rows]] if dim == "config" else []
        for name in set().union(*numbers) & columns.keys() - source.variables.keys():
            columns[name][own] = [found.get(name, layout.variables[name].missing) for found in numbers]
    return columns


def write_rows(output, layout, lengths, dim, places, new):
    """Writes the variables of one dimension. new: {variable: values} for variables that are not copied from sources."""
    if len(places) == 0 and dim != "config":  # only config may have length 0; others get one entry without values
        for name in layout.of([dim]):
            output.variables[name][:] = layout.missing(name, 1, lengths)
    for low in range(0, len(places), SLAB):
        slab = slice(low, min(low + SLAB, len(places)))
        columns = gather(layout, lengths, dim, places[slab])
        for name, values in columns.items():
            output.variables[name][slab] = new[name][slab] if name in new else values


def stop(number, _):
    """Ends the process by an exception, so that published() removes its temporary file. Ignores further signals,
    because `timeout` sends its signal twice."""
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, signal.SIG_IGN)
    sys.exit(128 + number)


def lock(file):
    """Locks a file that is open for writing until it is closed. Raises OSError if another process has locked it. HDF5
    cannot write a file that flock() locks, but does not look at this kind of lock."""
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


def remove_drafts(folder, prefix):
    """Removes temporary files of killed processes: files that this user owns and that no process has locked."""
    for name in os.listdir(folder):
        if not re.fullmatch(re.escape(prefix) + "[a-z0-9_]{8}", name):
            continue
        path = os.path.join(folder, name)
        with (
            contextlib.suppress(OSError),
            open(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), "rb+") as own,
        ):
            about = os.fstat(own.fileno())
            if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid():
                lock(own)
                os.unlink(path)


@contextlib.contextmanager
def published(path):
    """Context with a temporary file, which replaces `path` on success and is removed on failure."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    draft = ""
    prefix = f".roofsweep-post.{name[:64]}."
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        remove_drafts(folder, prefix)
        handle, draft = tempfile.mkstemp(prefix=prefix, dir=folder)
        with contextlib.suppress(OSError):  # some file systems have no locks
            lock(handle)
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(handle, 0o666 & ~mask)
        yield draft
        os.fsync(handle)
        os.close(handle)
        os.replace(draft, target)
        draft = ""
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror or error}") from error
    except RuntimeError as error:  # the NetCDF library raises it on a full disk
        raise Refused(f"cannot write {path}: {error}; is there room in its folder?") from error
    finally:
        if draft:
            os.unlink(draft)


def merge(sources, path, newest):
    """Writes the merged file. Returns ({status: number of rows}, number of devices, number of roofs)."""
    layout = Layout(sources)
    devices = read_devices(sources, layout)
    unify(devices)
    stay = find_clashes(sources, devices, newest)
    rows = order_rows(sources, devices, stay)
    own_devices = [(number, sources[number].device_of(row)) for number, row in rows]
    chosen, numbers = choose_devices(devices, set(own_devices))
    kernels, kernel_config = kernel_places(sources, rows)
    roofs = [(number, row) for number, device in enumerate(chosen) for row in device.roofs]
    nodes = dict.fromkeys((device.number, device.node) for device in chosen)
    hosts = {(device.number, device.node): device.host for device in chosen}
    node_at = {own: at for at, own in enumerate(nodes)}
    links = [(number, row) for number, node in nodes for row in np.flatnonzero(sources[number].links[0] == node)]
    lengths = {
        "config": len(rows),
        "kernel": max(len(kernels), 1),
        "device": max(len(chosen), 1),
        "device_roof": max(len(roofs), 1),
        **({"node": max(len(nodes), 1)} if "device_node" in layout.variables else {}),
        **({"link": len(links)} if links else {}),
        **{dim: len(names) for dim, names in layout.names.items() if names},
        "sample": max(map(sample_length, sources, stay)),
    }
    if rounds := max(source.lengths.get("round", 0) for source in sources):
        lengths["round"] = rounds
    layout.keep_known(lengths)
    # {dimension: ((source, index) of each new entry, {index variable: new values})}
    parts = {
        "config": (
            rows,
            {"config_device": [numbers.get(own, -1) for own in own_devices], "name": row_names(sources, rows)},
        ),
        "kernel": (kernels, {"kernel_config": kernel_config}),
        "device": (
            [(device.number, device.place) for device in chosen],
            {"device_node": [node_at[device.number, device.node] for device in chosen]},
        ),
        "node": (list(nodes), {"node_hostname": [hosts[own] for own in nodes]}),
        "device_roof": (
            [(chosen[number].number, row) for number, row in roofs],
            {"device_roof_device": [number for number, _ in roofs]},
        ),
        "link": (
            links,
            {
                name: [node_at.get((number, sources[number].links[end][row]), -1) for number, row in links]
                for end, name in enumerate(LINK_ENDS)
            },
        ),
    }
    with published(path) as draft, netcdf().Dataset(draft, "w") as output:
        output.setncatts(attributes(sources, chosen, rows))
        define(output, layout, lengths)
        for dim in lengths.keys() & layout.names.keys():
            output.variables[dim][:] = np.array(layout.names[dim], dtype=object)
        for dim, (places, new) in parts.items():
            places = np.array(places, dtype=np.int64).reshape(-1, 2)
            write_rows(
                output,
                layout,
                lengths,
                dim,
                places,
                {name: np.array(new[name], object if name in ("name", "node_hostname") else None) for name in new},
            )
    status = [sources[number].status[row] for number, row in rows]
    words = dict.fromkeys([*layout.variables["status"].words, *status])
    return {word: status.count(word) for word in words}, len(chosen), len(roofs)


def check_output(path, overwrite):
    if os.path.isdir(path):
        raise Refused(f"cannot write {path}: it is a folder")
    if os.path.lexists(path) and not overwrite:
        raise Refused(f"{path} exists; --overwrite replaces it, --output names another")


def run(options):
    start = time.monotonic()
    if len(options.files) < 2:
        raise Refused("merge needs two files or more")
    check_output(options.output, options.overwrite)
    netcdf().set_chunk_cache(1 << 16)  # bytes per variable; enough, because entries are read and written in order
    with contextlib.closing(Files()) as files:
        sources = read_all(options.files, files, options.any_settings)
        counts, devices, roofs = merge(sources, options.output, options.newest)
    failed, total = counts.get("failed", 0), sum(counts.values())
    words = " ".join(f"{word}={count}" for word, count in counts.items())
    if failed:
        reasons = f"the variable error of {options.output} has the reasons"
        say(f"error: {failed} of {total} rows failed: {reasons}")
    say(
        f"summary status={3 if failed else 0} rows={total} {words} devices={devices} roofs={roofs} "
        f"seconds={time.monotonic() - start:.1f} file={options.output}"
    )
    return 3 if failed else 0
