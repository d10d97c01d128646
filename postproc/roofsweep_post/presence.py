"""Decides what a device should have: all that another device of its model has in the same file, and what it had in the
reference. `compare` and `check` share this notion, so that a device which lost rows or roofs passes neither."""

import numpy as np
import pandas

from . import health
from .frames import places
from .texts import listed

SUSTAINS, ENERGY = ", sustained", ", energy"  # ends of keys
# {kind: verdict of a device that lacks what its peers have}. Health and derived values may be unreadable for a moment.
KINDS = {"roofs": "fail", "configurations": "fail", "health values": "inconclusive"}


def single(lines):
    """Returns the lines without those for sustained values and energies."""
    return lines[~lines["key"].str.endswith((SUSTAINS, ENERGY))]


def base(key):
    return key.removesuffix(SUSTAINS).removesuffix(ENERGY)


def plain(key):
    return base(key) == key


def with_derived(lines, sustained):
    """Returns the lines, and further lines for their sustained values and energies. A sustained value counts even if
    its roof did not settle or its row was not at the power cap, because healthy devices differ in that."""
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
    """Returns {(file, place): {key: reason}} for the roofs that cannot be compared."""
    usable = {(*line,) for line in found.loc[found["usable"], ["file", "place", "key"]].to_numpy()}
    reasons = {}
    for _, roof in found[~found["usable"]].iterrows():
        if (roof["file"], roof["place"], roof["key"]) not in usable:
            why = roof["setting"] if np.isnan(roof["value"]) else roof["verdict"]
            reasons.setdefault((roof["file"], roof["place"]), {})[roof["key"]] = why
    return reasons


def failures(files):
    """Returns {(file, place): {key: reason}} for the rows that failed or were skipped."""
    found = {}
    for number, data in enumerate(files):
        first, device = places(data), data["config_device"].fillna(-1).values.astype(int)
        for row in np.flatnonzero((data["status"].values != "measured") & (device >= 0)):
            own = found.setdefault((number, first[device[row]]), {})
            own[data["config_hash"].values[row]] = f"{data['status'].values[row]}: {data['error'].values[row]}"
    return found


def replicated(data):
    """Returns whether each device was to measure each configuration."""
    lines = ["".join(line.split()) for line in str(data.attrs.get("manifest", "")).splitlines()]
    return "distribute=replicate" in [line.partition(";")[0] for line in lines]


class Presence:
    """The keys that each device should have. all_roofs, all_times: tables of compare. names: {key: text} of rows."""

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
        # Rows at the power cap get an energy run without being asked; healthy devices are there or not.
        free = rows[~rows["held"].astype(bool)]
        wanted = free["key"][free["energy"].notna()]
        self.free = {(*line,) for line in free.loc[~free["key"].isin(wanted), ["file", "place", "key"]].to_numpy()}

    def add(self, verdict, device, across=False):
        """Adds checks of what the device lacks."""
        reasons = self.reasons.get((device["file"], device["place"]), {})
        for what, lines in self.lines.items():
            peers = lines if across else lines[lines["model"] == device["model"]]
            wanted = set(peers["key"])
            for key, why in reasons.items():
                if key in wanted:
                    verdict.add(self.names.get(key, key), f"{self.names.get(key, key)}: {why}")
            self.add_missing(verdict, device, what, lines[lines["model"] == device["model"]], reasons)

    def add_missing(self, verdict, device, what, lines, reasons):
        """Adds checks of the keys that the device lacks without a reason. lines: keys of its model."""
        number, place = device["file"], device["place"]
        if what == "roofs" and number in self.alone:  # one device has nothing to run together with
            lines = lines[~lines["key"].str.contains(", together")]
        here = lines[lines["file"] == number]
        shared = what != "configurations" or number in self.alone or replicated(self.files[number])
        shared = shared or here.groupby("key")["place"].nunique().max() > 1  # else the devices share out the rows
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
