"""`compare --since` shows how devices changed over many files: slopes of roofs, and changes by new drivers."""

import importlib.util
import multiprocessing
import os
import signal
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas

from . import links
from .dataset import INVALID, bounded, check_sizes, load
from .deviations import at_equal_clock, speed
from .frames import DOUBTFUL, ROOFS, VALUES, roofs
from .texts import Refused, listed, percent, plain, say, table

FIELDS = (*VALUES, "mean", "sm_clock", "start_time")
DEVICE = ("hostname", "uuid", "model", "driver_version")
LONGEST = 3600  # s of CPU time that a child process may use; bounded() allows less for each file
DAY, FILL = np.timedelta64(1, "D"), 1e36  # in NetCDF, numbers from FILL on are missing values


def paths_of(names):
    """Returns the named files, and the .nc files in named folders."""
    found = []
    for name in names:
        inside = sorted(os.listdir(name)) if os.path.isdir(name) else []
        found += [os.path.join(name, one) for one in inside if one.endswith(".nc")] if inside else [name]
    return found


def quick(path):
    """Returns {column: values} of a file's roofs. Uses low-level calls of h5py, because the netCDF library takes a
    quarter of a second to open the variables of a file."""
    from h5py import Dataset, h5d, h5f, h5s

    file = h5f.open(os.fsencode(path), h5f.ACC_RDONLY)

    def column(name):
        own = h5d.open(file, name.encode())
        check_sizes(path, {name: SimpleNamespace(dimensions=range(len(own.shape)), shape=own.shape, dtype=own.dtype)})
        values = np.empty(own.shape, own.dtype)
        own.read(h5s.ALL, h5s.ALL, values)
        return np.array([one.decode() for one in values], object) if values.dtype.kind in "OS" else values

    device = column("device_roof_device")
    found = {"name": column("device_roof_name"), "device": device, "links": b"link_time" in file}
    for name in ("condition", "verdict"):
        words = Dataset(h5d.open(file, f"device_roof_{name}".encode())).attrs["flag_meanings"]
        words = words.decode() if isinstance(words, bytes) else str(words)
        found[name] = np.array([*words.split(), INVALID], object)[column(f"device_roof_{name}")]
    for name in FIELDS:
        there = f"device_roof_{name}".encode() in file
        found[name] = column(f"device_roof_{name}") if there else np.full(len(device), np.nan)
    for name in DEVICE:
        there = f"device_{name}".encode() in file
        found[name] = column(f"device_{name}")[device] if there else np.full(len(device), "")
    return found


def whole(path):
    """Returns the result of quick(), but reads the file by load(), for machines without h5py."""
    data = load(path, ROOFS)
    found = roofs(data)
    found["driver_version"] = data["device_driver_version"].values[found["device"].to_numpy(int)]
    found["start_time"] = (found["start_time"] - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    columns = ("name", "device", "condition", "verdict", *FIELDS, *DEVICE)
    return {name: found[name].to_numpy() for name in columns} | {"links": data.sizes["link"] > 0}


def read_one(path):
    """Returns a line with the speed of each usable roof of a file. Raises Refused or ValueError for a damaged file."""
    parts = (quick if importlib.util.find_spec("h5py") else whole)(path)
    found = pandas.DataFrame(parts)
    found[list(FIELDS)] = found[list(FIELDS)].astype(float)
    found[list(FIELDS)] = found[list(FIELDS)].where(found[list(FIELDS)].abs() < FILL)
    found["value"] = found[list(VALUES)].bfill(axis=1).iloc[:, 0]
    found["unit"] = np.where(found["time"].notna(), "s", "B/s")  # speed() inverts times; it treats all rates alike
    found["start_time"] = pandas.to_datetime(found["start_time"], unit="s")
    found = found[(found["device"] >= 0) & ~found["verdict"].isin(DOUBTFUL)]
    found = at_equal_clock(found).dropna(subset=["value", "start_time"])
    if not (found["value"] > 0).all():
        raise ValueError("roofs of 0 or less")
    found = found.assign(key=found["name"] + ", " + found["condition"], speed=speed(found))
    texts = ["hostname", "uuid", "driver_version", "key"]
    if parts["links"]:
        own = links.ends(links.pairs(load(path)))
        first = found.drop_duplicates("hostname").set_index("hostname")[["driver_version", "start_time"]]
        found = pandas.concat([found, own.join(first, on="hostname").dropna(subset="start_time")])
    found[texts] = found[texts].apply(lambda column: column.map(plain))
    return found[["hostname", "uuid", "driver_version", "key", "start_time", "speed"]]


def read_some(paths, at, pipe):
    """Sends a pair through the pipe: the lines of all files (None without any), and {unreadable path: reason}. at.value
    is set to the index of the file that is being read."""
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    parts, faults = [], {}
    for at.value, path in enumerate(paths):  # the parent reads the index if this process dies
        try:
            with bounded(path):
                parts.append(read_one(path))
        except Exception as error:  # a damaged file can cause any exception of the libraries
            faults[path] = str(error) or type(error).__name__
    pipe.send((pandas.concat(parts, ignore_index=True) if parts else None, faults))


def started(paths):
    """Starts read_some() in a child process. Returns (the paths, the shared index of the file that it reads, the end of
    a pipe from it)."""
    fork = multiprocessing.get_context("fork")
    at, (here, there) = fork.RawValue("i"), fork.Pipe(False)
    fork.Process(target=read_some, args=(paths, at, there), daemon=True).start()
    there.close()
    return paths, at, here


def result_of(paths, at, pipe):
    """Returns the result of read_some() in a child process. If a file crashes the child, this function leaves that file
    out and reads all other files again."""
    faults = {}
    while True:
        try:
            found, more = pipe.recv()
            return found, faults | more
        except EOFError:
            faults[paths[at.value]] = "reading it ended the process"
            paths, at, pipe = started([path for path in paths if path not in faults])


def read_all(names):
    """Returns the lines of read_one() for all files, in the order of time. Unreadable files are reported."""
    paths, processes = paths_of(names), min(8, len(os.sched_getaffinity(0)))
    children = [started(share) for share in (paths[first::processes] for first in range(processes)) if share]
    tables, faults = zip(*(result_of(*child) for child in children), strict=True)
    for path, why in (pair for own in faults for pair in own.items()):
        say(f"{path}: left out, no result file with roofs, or a damaged one: {why}")
    tables = [own for own in tables if own is not None]
    if not tables:
        raise Refused(f"{listed(names)}: no file with roofs")
    return pandas.concat(tables, ignore_index=True).sort_values("start_time", kind="stable")


def slopes(found):
    """Returns a line for each device and roof: the relative change in 30 days and over the whole span of time, by
    linear regression."""
    own = found.assign(day=(found["start_time"] - found["start_time"].min()) / DAY)
    groups = own.groupby(["hostname", "uuid", "key"], sort=False)
    x = own["day"] - groups["day"].transform("mean")
    y = own["speed"] / groups["speed"].transform("median")
    parts = own.assign(xx=x * x, xy=x * y).groupby(["hostname", "uuid", "key"], sort=False)
    line = parts[["xx", "xy"]].sum()
    line = line.assign(times=parts["day"].nunique(), span=parts["day"].max() - parts["day"].min())
    line = line[line["span"] >= 1].reset_index()  # changes within a day do not show a trend of 30 days
    slope = line["xy"] / line["xx"]
    return line.assign(month=30 * slope, whole=slope * line["span"])


def driver_changes(found, threshold):
    """Returns [(day, host, uuid, old driver, new driver, {roof: ratio of the medians after and before})]. Ratios that
    differ from 1 by less than the threshold are left out."""
    changes = []
    for (host, uuid), own in found.groupby(["hostname", "uuid"], sort=False):
        runs = (own["driver_version"] != own["driver_version"].shift()).cumsum()
        parts = [part for _, part in own.groupby(runs)]
        for before, after in pairwise(parts):
            step = after.groupby("key")["speed"].median() / before.groupby("key")["speed"].median()
            step = step[(step - 1).abs() > threshold]
            names = before["driver_version"].iloc[0], after["driver_version"].iloc[0]
            changes.append((after["start_time"].iloc[0], host, uuid, *names, step.to_dict()))
    return changes


def show(names, since, threshold):
    """Prints the table. Returns the exit status: 1 if a device became slower by more than the threshold."""
    found = read_all(names)
    found = found[found["start_time"] >= since]
    if found.empty:
        raise Refused(f"no roof was measured since {since}")
    changes, line = driver_changes(found, threshold), slopes(found)
    far = line[line["whole"].abs() > threshold].sort_values("whole")
    days = found["start_time"].iloc[[0, -1]].dt.strftime("%Y-%m-%d")
    devices = found.loc[~found["key"].str.startswith("link "), ["hostname", "uuid"]].drop_duplicates()
    print(f"{len(devices)} devices, {days.iloc[0]} to {days.iloc[1]}")
    rows = [
        [f"{host} {uuid}", key, str(times), percent(1 + month), percent(1 + whole)]
        for host, uuid, key, times, month, whole in far[
            ["hostname", "uuid", "key", "times", "month", "whole"]
        ].itertuples(index=False)
    ]
    print("Roofs that have changed, as speeds: - became slower")
    print(table(["device", "roof", "times", "in 30 days", "over all"], rows, left=["roof"]) if rows else "  none\n")
    print("New drivers" if changes else "No new driver")
    for when, host, uuid, before, after, step in changes:
        what = listed(f"{key} {percent(ratio)}" for key, ratio in sorted(step.items(), key=lambda one: one[1]))
        print(f"  {when:%Y-%m-%d} {host} {uuid}: {before} to {after}: {what or 'no roof changed'}")
    return int((far["whole"] < 0).any())
