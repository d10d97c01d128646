"""Prepares figures of nodes: devices compared with each other, by the statistics of `compare`."""

from dataclasses import dataclass

import numpy as np

from ..compare import REFERENCES, judged_times, medians, named, roof_table, time_table, time_texts
from ..deviations import THRESHOLD, judged
from ..devices import driver_word
from ..frames import several
from ..selection import choose
from ..texts import Refused, listed
from . import frame


@dataclass
class Nodes:
    """The data of a figure of nodes. found: a line for each device and key (roof or configuration), with the columns
    deviation, limit and slow, ordered by key."""

    files: list
    found: object


def named_devices(found, files):
    """Adds the column `device` with the device's name. If there are several files, the name begins with the file's
    number."""
    if len(files) == 1:
        return found.assign(device=found["device_name"])
    return found.assign(device=[named(line) for _, line in found.iterrows()])


def roof_nodes(data, where=(), **_):
    """Returns a Nodes of roofs: each device is compared with others of its model, and in later files with itself."""
    files = several(data)
    table = choose(roof_table(files), where)
    found = judged(medians(table[table["usable"]], "key")).dropna(subset="deviation")
    if found.empty:
        raise Refused("no two devices of a model have a roof in common: name a file of several, or several files")
    return Nodes(files, named_devices(found, files))


def time_nodes(data, where=(), labels=(), **_):
    """Returns a Nodes of times of configurations that several devices measured."""
    files = several(data)
    table = choose(time_table(files), [*where, *([f"label={','.join(labels)}"] if labels else [])])
    roofs_found = roof_table(files)
    roofs_found = judged(medians(roofs_found[roofs_found["usable"]], "key"))
    found = judged_times(medians(table, "key"), roofs_found, THRESHOLD).dropna(subset="deviation")
    if found.empty:
        raise Refused("no configuration was measured on two devices (distribute = replicate does that)")
    found["text"] = found["key"].map(time_texts(table))
    return Nodes(files, named_devices(found, files))


def keys(found):
    return list(dict.fromkeys(found["key"]))


def caption(nodes, key=""):
    """Returns the caption: devices, hosts, days, drivers, then `key`."""
    facts, groups = [], {}  # a group is all files with the same models, days and drivers
    for data in nodes.files:
        models = listed(dict.fromkeys(data["device_model"].values), 3)
        drivers = listed([word for word in dict.fromkeys(data["device_driver_version"].values) if word], 3)
        drivers = f"{driver_word(data, ...).capitalize()} {drivers}" * bool(drivers)
        own = groups.setdefault((models, frame.measured("", data), drivers), set())
        own |= set(zip(data["device_hostname"].values, data["device_uuid"].values))
    for (models, when, drivers), devices in groups.items():
        hosts = len({host for host, _ in devices})
        facts.append(f"{len(devices)} x {models} on {hosts} host{'s' * (hosts > 1)}{when}")
        facts.append(drivers)
    return frame.sentences([*dict.fromkeys(facts), key])  # without repeated facts


def cycles_text(found):
    """Returns a sentence on roofs whose values are not speeds."""
    what = "Roofs of vector and tensor units, sustained roofs, and L2 roofs together are work in a clock cycle"
    return what * bool(found["unit"].str.endswith("/cycle").any())


def reference_text(nodes):
    return REFERENCES[len(nodes.files) > 1].replace("reference:", "The reference is")


def outliers_text(found):
    """Returns a sentence that names the slow devices and roofs."""
    slow = found[found["slow"]].sort_values("deviation")
    if slow.empty:
        return "No device is slower than the noise of its figures."
    return "Slower than the noise: " + listed(
        [
            f"{line['device']} {line.get('text', line['key'])} {100 * (line['deviation'] - 1):+.1f} %"
            for _, line in slow.iterrows()
        ],
        12,
    )


def grid(found, rows, columns, value):
    """Returns the column `value` of the table as a matrix, whose rows and columns are ordered as given; NaN where the
    table has no line."""
    places = {name: number for number, name in enumerate(rows)}, {name: number for number, name in enumerate(columns)}
    matrix = np.full((len(rows), len(columns)), np.nan)
    for key, device, number in zip(found["key"], found["device"], found[value]):
        matrix[places[0][key], places[1][device]] = number
    return matrix
