"""Judges the health of devices, and finds drift: facts, such as the driver, that differ between devices of a model."""

import numpy as np
import pandas

from .texts import listed, plain

# {variable without the prefix device_: name in messages} for facts that should be equal on all devices of a model.
SHARED = {
    "driver_version": "driver",
    "library_version": "library",
    "system": "firmware or operating system",
    "multiprocessors": "multiprocessors or cores",
    "power_limit": "power cap (W)",
}
SHARED_HEALTH = (
    "pcie_generation_max",
    "pcie_width",
    "nvlinks_active",
    "persistence_mode",
    "compute_mode",
    "ecc_enabled",
)
# {health value: (condition, verdict if the condition holds)}. "grows", "shrinks": the value at the end is larger or
# smaller than at the start, or than in the reference. "runs": it grows in a run (these counters restart, so the
# reference does not matter). "is": it is more than 0 at the end.
RULES = {
    "ecc_uncorrected": ("runs", "fail"),
    "ecc_uncorrected_ever": ("grows", "fail"),
    "rows_remapped_uncorrected": ("grows", "fail"),
    "pages_retired_uncorrected": ("grows", "fail"),
    "banks_without_spares": ("is", "fail"),
    "remap_pending": ("is", "fail"),
    "remap_failed": ("is", "fail"),
    "retirement_pending": ("is", "fail"),
    "xids": ("runs", "fail"),
    "pcie_width": ("shrinks", "fail"),
    "nvlinks_active": ("shrinks", "fail"),
    "ecc_corrected_ever": ("grows", "pass"),
    "rows_remapped_corrected": ("grows", "pass"),
    "pcie_replays": ("runs", "pass"),
    "nvlink_errors": ("runs", "pass"),
    "throttled_by_heat_s": ("runs", "pass"),
    "xids_of_programs": ("runs", "pass"),
    "xid_last": ("is", "pass"),
}


def health_of(data, place):
    """Returns {name: [(value at the start, value at the end), ...]} of a device, a pair for each of its runs in the
    file. A killed run has no values at its end."""
    if not data.sizes.get("health"):
        return {}
    names = [data[f"device_{name}"].values for name in ("hostname", "uuid", "model")]
    runs = [run for run in range(data.sizes["device"]) if all(own[run] == own[place] for own in names)]
    start, end = (data[f"device_health_{when}"].values[runs] for when in ("start", "end"))
    return {name: list(zip(start[:, i], end[:, i])) for i, name in enumerate(data.indexes["health"])}


def known_of(own):
    """Returns {name: runs that can be judged} for the health values that have any. own: result of health_of()."""
    found = {}
    for name, (what, _) in RULES.items():
        needed = slice(1 if what == "is" else 0, 2)
        found[name] = [run for run in own.get(name, ()) if np.isfinite(run[needed]).all()]
    return {name: runs for name, runs in found.items() if runs}


def judge(verdict, data, place, earlier=None):
    """Adds checks of health values to the verdict. earlier: result of health_of() for the same device in the
    reference."""
    own, told = health_of(data, place), {"fail": [], "pass": []}
    known = known_of(own)
    for name, runs in known.items():
        what, word = RULES[name]
        first, last = max(runs, key=lambda run: run[1] - run[0]) if what == "runs" else (runs[0][0], runs[-1][1])
        before = earlier[name][-1][1] if earlier and name in earlier else np.nan
        if what in ("grows", "shrinks") and np.isfinite(before):
            first = before
        if {"is": last > 0, "shrinks": last < first}.get(what, last > first):
            told[word].append(f"{name} {last:g}" if what == "is" else f"{name} {first:g}, now {last:g}")
    lost = [name for name in RULES for start, end in own.get(name, ()) if np.isfinite(start) and np.isnan(end)]
    if lost:
        verdict.add("health", f"no health at the end: {listed(dict.fromkeys(lost), 3)}", "inconclusive")
    if known:
        verdict.add("health", ", ".join(told["fail"]), value=float(len(told["fail"])), limit=0.0)
    if told["pass"]:
        verdict.add("health, not judged", ", ".join(told["pass"]), "pass", excess=0.0)


def facts(files, devices):
    """Returns a line for each device and each of its facts whose value is known."""
    found = []
    for _, line in devices.iterrows():
        data, place = files[line["file"]], line["place"]
        own = {name: data[f"device_{name}"].values[place] for name in SHARED}
        health = health_of(data, place)
        own |= {name: max(health[name][-1]) for name in SHARED_HEALTH if name in health}
        for name, value in own.items():
            known = value not in ("", "unknown") if isinstance(value, str) else np.isfinite(value)
            shown = plain(value) if isinstance(value, str) else f"{value:g}"
            found += [(line["file"], line["place"], line["model"], SHARED.get(name, name), shown)] * bool(known)
    return pandas.DataFrame(found, columns=["file", "place", "model", "fact", "value"])


def drift(files, devices):
    """Returns a line for each device and each fact that differs from `most`, the most frequent value among devices of
    the model. If two values are equally frequent, `most` is the first one."""
    found = facts(files, devices)
    groups = found.groupby(["model", "fact"], sort=False)["value"]
    found["most"] = groups.transform(lambda values: values.value_counts(sort=False).idxmax())
    return found[found["value"] != found["most"]]


def print_drift(found, names):
    if len(found):
        print("Drift: devices that differ from most of their model")
    for (model, fact, value, most), own in found.groupby(["model", "fact", "value", "most"], sort=False):
        where = listed(names[device] for device in zip(own["file"], own["place"]))
        print(f"  {model}: {fact} {value}, of most {most}: {where}")
    if len(found):
        print()
