"""Builds the content of a report as values for JSON. Each distinct text is stored once. Numbers are 32-bit floats with
about four digits."""

import base64

import numpy as np

from ..advice import advise
from ..columns import NOISY
from ..compare import doubts, medians, roof_table
from ..dataset import parameters
from ..deviations import judged
from ..figures.style import PRECISIONS
from ..frames import ceilings, head_line, kernels, places, roofs, rows
from ..levels import with_times
from ..targets import middle
from ..texts import percent, scaled, share

TEXTS = [
    *("text", "label", "status", "error", "algorithm", "device_name", "model", "limited_by", "evidence"),
    *("count_note", "marks", "advice", "roof_memory_level"),
]
FIGURES = [
    *("time_median", "noise", "performance", "roof_fraction", "intensity", "flops", "bytes_at", "compute_plane"),
    *("bandwidth_plane", "compute_floor", "bandwidth_floor", "caller_time", "gap_time", "launches"),
]
# Columns of the table of kernels: variable, head, unit.
KERNELS = [
    ("kernel_count", "launches", ""),
    ("kernel_time", "time", "s"),
    ("kernel_flops_counted", "FLOPs", "FLOP"),
    ("kernel_blocks", "blocks", ""),
    ("kernel_occupancy", "occupancy", "%"),
    ("kernel_waves", "waves", ""),
    ("kernel_tail_loss", "tail lost", "%"),
]
# {head of a column or other word on the page: its meaning, shown as a tooltip}
TERMS = {
    "time": "median time of one iteration",
    "+-": "half the 95 % interval of the median, over the median",
    "performance": "FLOPs of an iteration over its time",
    "of roof": "performance over the lowest roof at the row's arithmetic intensity, measured on the row's device",
    "limiter": "what limits the time: compute, bandwidth, latency (too few blocks), overhead (launches), host, kernel",
    "samples": "notes on the samples: noisy (+- above 5 %), preempted, two modes, host-paced, throttled, inaccurate",
    "arithmetic intensity": "FLOPs over bytes at a memory level",
    "roof": "the best rate that a device reached in a measurement of its own, or the time of a launch",
    "of theory": "roof over the theoretical rate at the nominal clock",
    "of clock": "roof over the theoretical rate at the measured clock",
    "spread": "largest over smallest sample of the roof, minus 1",
    "machine balance": "arithmetic intensity at which compute time and bandwidth time are equal",
    "advice": "the cause, and what made similar rows faster",
}
ROUNDED = np.uint32(0xFFFFF800)  # mask that keeps 12 of the 23 bits of a float's mantissa: a relative error of 1.2e-4


def floats(values):
    """Returns a column of 32-bit floats, rounded so that it compresses well. Missing values are NaN."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    finite = np.isfinite(np.asarray(values, np.float32))
    bits = np.where(finite, (bits + np.uint32(0x400)) & ROUNDED, bits).astype("<u4")
    return {"floats": base64.b64encode(bits.tobytes()).decode()}


def integers(values):
    return {"integers": base64.b64encode(np.asarray(values, "<u4").tobytes()).decode()}


def words(values):
    """Returns a column of texts in two parts: the distinct texts, and for each row the index of its text."""
    index = {}
    texts = ("" if value is None or value != value else str(value) for value in values)
    found = [index.setdefault(text, len(index)) for text in texts]
    return {"words": list(index), "places": base64.b64encode(np.array(found, "<u4").tobytes()).decode()}


def axes_of(table, files):
    """Returns {name: column} for the filters of the report: parameters that vary, device, model, limiter and status."""
    names = list(dict.fromkeys(name for data in files for name in parameters(data)))
    names = [name for name in names if name in table and table.loc[table[name] != "", name].nunique() > 1]
    found = {name.removeprefix("requested_"): table[name] for name in names}
    for name, title in [("device_name", "device"), ("model", "model"), ("limited_by", "limiter"), ("status", "status")]:
        if table[name].nunique() > 1:
            found[title] = table[name]
    return found


def value_word(value):
    """Returns a parameter as a word: 16, not 16.0."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:g}"
    return str(value)


def rows_of(files):
    """Returns the table of all rows, including failed and skipped ones."""
    table = rows(files, measured=False)
    table = with_times(
        table.assign(level=table["roof_memory_level"], intensity_at=table["intensity"], bandwidth_at=table["bandwidth"])
    )
    measured = table["status"] == "measured"
    table["text"] = table["name"]
    table["advice"] = ""
    table.loc[measured, "advice"] = advise(table[measured])
    return table


def kernels_of(files, table):
    """Returns the kernels of all rows, ordered by the index of their row in `table`."""
    found = kernels(files)
    places = {key: number for number, key in enumerate(zip(table["file"], table["config"]))}
    found["row"] = [places.get(key, -1) for key in zip(found["file"], found["kernel_config"].astype(int))]
    found = found[found["row"] >= 0].sort_values(["row", "kernel_time"], ascending=[True, False])
    columns = [(name, head, unit) for name, head, unit in KERNELS if name in found and found[name].notna().any()]
    return {
        "row": integers(found["row"]),
        "name": words(found["kernel_name"]),
        "columns": [{"head": head, "unit": unit} | floats(found[name]) for name, head, unit in columns],
    }


def devices_of(files):
    found = []
    for data in files:
        for place in range(data.sizes["device"]):
            names = ("hostname", "model", "uuid", "pci_id", "driver_version", "library_version")
            texts = [str(data[f"device_{name}"].values[place]) for name in names]
            cap = float(data["device_power_limit"].values[place])
            found.append([f"#{place}", *texts, scaled(cap, "W"), data.attrs.get("date_created", "")])
    head = ["device", "host", "model", "UUID", "PCI", "driver or Linux", "library", "power cap", "file of"]
    return {"head": head, "rows": found}


def roofs_of(files):
    """Returns a line for each model, kind and condition, with the names of slow devices, and then the doubtful
    roofs."""
    table = roof_table(files)
    found = judged(medians(table[table["usable"]], "key"))
    extra = table.groupby(["model", "key"], sort=False)
    lines = []
    for (model, key), own in found.groupby(["model", "key"], sort=False):
        group = extra.get_group((model, key))
        slow = own[own["slow"]]
        names = ", ".join(f"{name} {percent(far)}" for name, far in zip(slow["device_name"], slow["deviation"]))
        value = scaled(float(own["value"].median()), own["unit"].iloc[0])
        shares = [share(middle(one)) for one in (group["nominal_fraction"], group["clock_fraction"], own["spread"])]
        verdicts = ", ".join(sorted(set(group["verdict"])))
        lines.append([model, key, str(len(own)), value, *shares, verdicts, names, str(group["setting"].iloc[0])])
    for (number, place), reasons in doubts(table).items():
        device = table[(table["file"] == number) & (table["place"] == place)].iloc[0]
        lines += [[device["model"], key, "1", "-", "-", "-", "-", "not used", device["device_name"], str(why)]
                  for key, why in reasons.items()]  # fmt: skip
    head = ["model", "roof", "devices", "median", "of theory", "of clock", "spread", "verdict", "slow", "setting"]
    return {"head": head, "rows": lines}


def summary_of(files, table):
    """Returns the top of the page: a sentence, the shares of limiters, and the verdicts on devices."""
    measured = table[table["status"] == "measured"]
    noisy, failed = int((measured["noise"] > NOISY).sum()), int((table["status"] == "failed").sum())
    found = roof_table(files)
    slow = judged(medians(found[found["usable"]], "key"))
    slow, doubtful = slow[slow["slow"]], doubts(found)
    lines = []
    for number, data in enumerate(files):
        for place in dict.fromkeys(places(data).tolist()):
            rows_here = table[(table["file"] == number) & (table["place"] == place)]
            own = slow[(slow["file"] == number) & (slow["place"] == place)]
            reasons = [f"{key} {percent(far)}" for key, far in zip(own["key"], own["deviation"])]
            reasons += [f"{key} is {why}" for key, why in doubtful.get((number, place), {}).items()]
            lost = int((rows_here["status"] == "failed").sum())
            reasons += [f"{lost} failed rows"] * bool(lost)
            at = np.flatnonzero(places(data) == place)
            roofs_here = [
                f"{what if kind == 'bandwidth' else f'{what} {kind}'} {scaled(value, unit)}"
                for (kind, what, unit), value in ceilings(data, at).items()
                if (kind == "bandwidth" and what == "dram") or (kind in ("vector", "tensor") and unit)
            ]
            names = [str(data[f"device_{name}"].values[place]) for name in ("hostname", "model")]
            verdict = "; ".join(reasons) or "nothing slow, doubtful or failed"
            lines.append([f"#{place} {names[0]}", names[1], str(len(rows_here)), ", ".join(roofs_here), verdict])
    counts = measured["limited_by"].value_counts()
    text = f"{len(measured)} of {len(table)} rows were measured, {failed} failed; {noisy} are noisy."
    return {
        "text": text if len(table) else "",
        "limiters": [[word, int(count)] for word, count in counts.items()],
        "devices": {"head": ["device", "model", "rows", "roofs", "verdict"], "rows": lines},
    }


def points_of(files):
    """Returns the points of the figure of roofs: all roofs whose theory is known."""
    table = roofs(files)
    table = table[table["usable"] & table["nominal_fraction"].notna()]
    several = len(files) > 1
    return [
        {
            "roof": f"{row['name']}, {row['condition']}",
            "device": row["device_name"] + f", file {row['file']}" * several,
            "share": round(100 * row["nominal_fraction"], 2),
            "value": scaled(row["value"], row["unit"]),
        }
        for _, row in table.iterrows()
    ]


def lines_of(files, table):
    """Returns the roofs that figures show, {model: [[kind, name, value]]}, from the first file that has the model."""
    used, found = {*zip(table["unit"], table["precision"])}, {}
    for data in files:
        for model in dict.fromkeys(data["device_model"].values):
            own = ceilings(data, np.flatnonzero(data["device_model"].values == model))
            lines = [
                [kind, what if kind == "bandwidth" else f"{what} {kind}", value]
                for (kind, what, _), value in own.items()
                if kind == "bandwidth" or (kind, what) in used
            ]
            found.setdefault(str(model), lines)
    return found


def failures_of(table):
    """Returns a line for each reason why rows were not measured: status, reason, number of rows, first row."""
    other = table[table["status"] != "measured"]
    groups = other.groupby(["status", "error"], sort=False)
    lines = [[status, error, str(len(own)), own["text"].iloc[0]] for (status, error), own in groups]
    return {"head": ["status", "reason", "rows", "the first"], "rows": lines}


def content(files):
    table = rows_of(files)
    first = files[0].attrs
    return {
        "summary": summary_of(files, table),
        "terms": TERMS,
        "title": str(first.get("title") or "roofsweep"),
        "heads": [head_line(data) for data in files],
        "manifests": [str(data.attrs.get("manifest", "")) for data in files],
        "settings": [str(data.attrs.get("settings", "")) for data in files],
        "count": len(table),
        "colours": PRECISIONS,  # as in figures of `plot`
        "texts": {name: words(table[name]) for name in TEXTS},
        "figures": {name: floats(table[name]) for name in FIGURES},
        "axes": {name: words(map(value_word, column)) for name, column in axes_of(table, files).items()},
        "labels": words(table["label"]),
        "kernels": kernels_of(files, table),
        "devices": devices_of(files),
        "roofs": roofs_of(files),
        "points": points_of(files),
        "lines": lines_of(files, table),
        "failures": failures_of(table),
    }
