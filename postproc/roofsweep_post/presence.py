"""Finds rows, roofs and health values that a device lacks although another device of its model has them in the same
file, or although the reference has them. `compare` and `check` use this module, so a device that lost rows or roofs
passes neither."""

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
    """Returns the lines, and further lines for those that have a sustained value or an energy. A roof's sustained value
    counts even if it did not settle, and a row's even if the row was not at the power cap, because healthy devices
    differ in this."""
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


def replicated(data):
    """Returns whether the manifest has `distribute = replicate`, so that each device measures each configuration."""
    lines = ["".join(line.split()) for line in str(data.attrs.get("manifest", "")).splitlines()]
    return "distribute=replicate" in [line.partition(";")[0] for line in lines]


class Presence:
    """The keys of roofs, rows and health values that each device should have. all_roofs, all_times: tables of
    compare.py. names: {key: text} for rows."""

    def __init__(self, files, devices, all_roofs, all_times, names):
        self.files, self.devices, self.names = files, devices, names
        roofs, rows = single(all_roofs[all_roofs["usable"]]), single(all_times)
        self.alone = {number for number, count in devices["file"].value_counts().items() if count == 1}
        self.lines = {
            "roofs": with_derived(roofs, "sustained"),
            "configurations": with_derived(rows, "energy_time"),
            "health values": health_lines(files, devices),
        }
        self.reasons = doubts(all_roofs)
        for place, failed in failures(files).items():
            self.reasons.setdefault(place, {}).update(failed)
        # A row has an energy run without `energy = yes` if it is at the power cap. Healthy devices differ in this, so
        # the energies of such rows are not expected on other devices.
        free = rows[~rows["held"].astype(bool)]
        wanted = free["key"][free["energy"].notna()]
        self.free = {(*line,) for line in free.loc[~free["key"].isin(wanted), ["file", "place", "key"]].to_numpy()}

    def add(self, verdict, device, across=False):
        """Adds a check to the verdict for each value that the device lacks and other devices of its model have."""
        reasons = self.reasons.get((device["file"], device["place"]), {})
        for what, lines in self.lines.items():
            peers = lines if across else lines[lines["model"] == device["model"]]
            wanted = set(peers["key"])
            for key, why in reasons.items():
                if key in wanted:
                    verdict.add(self.names.get(key, key), f"{self.names.get(key, key)}: {why}")
            self.add_missing(verdict, device, what, lines[lines["model"] == device["model"]], reasons)

    def add_missing(self, verdict, device, what, lines, reasons):
        """Adds checks of keys that the device lacks without one of the `reasons`. lines: lines of all devices of its
        model. what: kind of the values."""
        number, place = device["file"], device["place"]
        if what == "roofs" and number in self.alone:  # a single device has no roofs that are measured together
            lines = lines[~lines["key"].str.contains(", together")]
        here = lines[lines["file"] == number]
        shared = what != "configurations" or number in self.alone or replicated(self.files[number])
        shared = shared or here.groupby("key")["place"].nunique().max() > 1  # else each device measured other rows
        own = {*here.loc[here["place"] == place, "key"], *reasons}
        own |= {key + end for key in reasons for end in (SUSTAINS, ENERGY)}
        own |= {key for key in lines["key"] if (number, place, base(key)) in self.free and not plain(key)}
        among = [key for key in dict.fromkeys(here["key"]) if shared and key not in own]
        earlier = dict.fromkeys(lines.loc[lines["file"] == 0, "key"]) if number > 0 else {}
        earlier = [key for key in earlier if key not in set(here["key"]) and key not in own]
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
