"""Finds rows, roofs and health values that a device lacks although another device of its model has them in the same
file, or although the reference has them. `compare` and `check` use this module, so a device that lost rows or roofs
passes neither."""

from collections import Counter

import numpy as np
import pandas

from . import health
from .frames import places
from .texts import listed

SUSTAINS, ENERGY = ", sustained", ", energy"  # ends of the keys of sustained values and of energies
# {kind of value: verdict on a device that lacks a value of other devices}. Health values may be unreadable for a
# moment.
KINDS = {"roofs": "fail", "configurations": "fail", "health values": "inconclusive"}


def single(lines):
    """Returns the lines that are not for sustained values or energies."""
    return lines[~lines["key"].str.endswith((SUSTAINS, ENERGY))]


def base(key):
    return key.removesuffix(SUSTAINS).removesuffix(ENERGY)


def plain(key):
    return base(key) == key


def with_derived(lines, sustained):
    """Returns the lines, and further lines for sustained values and energies. A roof's sustained value counts even if
    it did not settle, a row's sustained time even if the row was not at the power cap: healthy devices differ in
    this."""
    parts = [lines]
    for name, end in ((sustained, SUSTAINS), ("energy", ENERGY)):
        if name in lines:
            own = lines[lines[name].notna()]
            parts.append(own.assign(key=own["key"] + end))
    return pandas.concat(parts, ignore_index=True)[["file", "place", "model", "key"]]


def health_lines(files, devices):
    found = []
    for _, line in devices.iterrows():
        own = health.health_of(files[line["file"]], line["place"])
        known = [name for name in health.known_of(own) if health.RULES[name][1] == "fail"]
        found += [(line["file"], line["place"], line["model"], name) for name in known]
    return pandas.DataFrame(found, columns=["file", "place", "model", "key"])


def doubts(found):
    """Returns {(file, place of the device): {key: reason}} for the roofs that cannot be compared."""
    usable = {(*line,) for line in found.loc[found["usable"], ["file", "place", "key"]].to_numpy()}
    reasons = {}
    for _, roof in found[~found["usable"]].iterrows():
        if (roof["file"], roof["place"], roof["key"]) not in usable:
            why = roof["setting"] if np.isnan(roof["value"]) else roof["verdict"]
            reasons.setdefault((roof["file"], roof["place"]), {})[roof["key"]] = why
    return reasons


def failures(files):
    """Returns {(file, place of the device): {key: reason}} for the rows that failed or were skipped."""
    found = {}
    for number, data in enumerate(files):
        first, device = places(data), data["config_device"].fillna(-1).values.astype(int)
        for row in np.flatnonzero((data["status"].values != "measured") & (device >= 0)):
            own = found.setdefault((number, first[device[row]]), {})
            own[data["config_hash"].values[row]] = f"{data['status'].values[row]}: {data['error'].values[row]}"
    return found


def lonely(files):
    """Returns {(file, place)} of the devices that no run measured beside another device of their node and kind. They
    have no roofs that are measured together."""
    found = set()
    for number, data in enumerate(files):
        first, sessions = places(data), [key.rpartition("/")[0] for key in data["device_key"].values]
        runs = [*zip(sessions, data["device_node"].values, data["device_kind"].values)]
        counts = Counter(runs)
        beside = {place for place, run in zip(first, runs) if counts[run] > 1}
        found |= {(number, place) for place in {*first} - beside}
    return found


def wants(data, line):
    """Returns whether the manifest has a line, such as "distribute=replicate"."""
    lines = ["".join(line.split()) for line in str(data.attrs.get("manifest", "")).splitlines()]
    return line in [own.partition(";")[0] for own in lines]


class Expected:
    """The keys of one kind of values. own: {(file, place): keys of a device}; here: {(file, model): keys in table
    order}; model: {model: keys of all files, in table order}."""

    def __init__(self, lines):
        self.own = {device: {*keys} for device, keys in lines.groupby(["file", "place"])["key"]}
        self.here = {group: [*dict.fromkeys(keys)] for group, keys in lines.groupby(["file", "model"])["key"]}
        self.model = {model: [*dict.fromkeys(keys)] for model, keys in lines.groupby("model")["key"]}
        self.all = {key for keys in self.model.values() for key in keys}
        devices = lines.groupby(["file", "model", "key"])["place"].nunique()
        self.devices = devices.groupby(["file", "model"]).max().to_dict()  # most devices that have a key


class Presence:
    """The keys of roofs, rows and health values that each device should have. all_roofs, all_times: tables of
    compare.py. names: {key: text} for rows."""

    def __init__(self, files, devices, all_roofs, all_times, names):
        self.names, self.replicated = names, [wants(data, "distribute=replicate") for data in files]
        roofs, rows = single(all_roofs[all_roofs["usable"]]), single(all_times)
        self.alone = {number for number, count in devices["file"].value_counts().items() if count == 1}
        self.expected = {
            "roofs": Expected(with_derived(roofs, "sustained")),
            "configurations": Expected(with_derived(rows, "energy_time")),
            "health values": Expected(health_lines(files, devices)),
        }
        self.lonely = lonely(files)
        beside = [device not in self.lonely for device in zip(roofs["file"], roofs["place"])]
        self.beside = {group: {*keys} for group, keys in roofs[beside].groupby(["file", "model"])["key"]}
        self.reasons = doubts(all_roofs)
        for place, failed in failures(files).items():
            self.reasons.setdefault(place, {}).update(failed)
        # Rows at the power cap have an energy run even without `energy = yes`. Healthy devices differ in this, so the
        # energies of such rows are not expected on other devices.
        free = rows[~rows["held"].astype(bool)]
        wanted = free["key"][free["energy"].notna()]
        self.free = {(*line,) for line in free.loc[~free["key"].isin(wanted), ["file", "place", "key"]].to_numpy()}

    def add(self, verdict, device, across=False):
        """Adds a check to the verdict for each value that the device lacks and other devices of its model have."""
        reasons = self.reasons.get((device["file"], device["place"]), {})
        for what, expected in self.expected.items():
            wanted = expected.all if across else {*expected.model.get(device["model"], ())}
            for key, why in reasons.items():
                if key in wanted:
                    verdict.add(self.names.get(key, key), f"{self.names.get(key, key)}: {why}")
            self.add_missing(verdict, device, what, expected, reasons)

    def add_missing(self, verdict, device, what, expected, reasons):
        """Adds checks of keys that the device lacks without one of the `reasons`. what: kind of the values."""
        number, place, model = device["file"], device["place"], device["model"]
        here, before = expected.here.get((number, model), []), expected.here.get((0, model), []) if number else []
        if what == "roofs" and (number, place) in self.lonely:
            here, before = ([key for key in keys if ", together" not in key] for keys in (here, before))
        elif what == "roofs":  # with `condition = together` only devices without a neighbour have roofs alone
            here = [key for key in here if base(key) in self.beside.get((number, model), ())]
        shared = what != "configurations" or number in self.alone or self.replicated[number]
        shared = shared or expected.devices.get((number, model), 0) > 1  # else each device measured other rows
        own = {*expected.own.get((number, place), ()), *reasons}
        own |= {key + end for key in reasons for end in (SUSTAINS, ENERGY)}
        free = (key for key in expected.model.get(model, ()) if not plain(key))
        own |= {key for key in free if (number, place, base(key)) in self.free}
        among = [key for key in here if shared and key not in own]
        earlier = [key for key in before if key not in {*here} and key not in own]
        for word, lacks, by in (
            (KINDS[what], [key for key in among if plain(key)], "other devices of the file have"),
            ("inconclusive", [key for key in among if not plain(key)], "other devices of the file have"),
            ("inconclusive", earlier, "the reference has"),
        ):
            lacks = [key for key in lacks if plain(key) or base(key) not in [*among, *earlier]]
            if lacks:
                texts = listed((self.names.get(key, key) for key in lacks), 2)
                why = f"{len(lacks)} {what} not measured, which {by}: {texts}"
                verdict.add(f"missing {what}", why, word, value=float(len(lacks)), limit=0.0)
