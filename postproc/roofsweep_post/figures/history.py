"""Draws the roofs of one device over its sessions, in per cent of the first session that has the roof.

Each row of `device` is a session. A file has several if its sweep was resumed or if files were merged."""

from dataclasses import dataclass

import numpy as np
import pandas

from ..compare import medians, roof_table
from ..deviations import THRESHOLD, judged
from ..devices import driver_word
from ..frames import ROOFS, several
from ..history import slopes
from ..selection import choose
from ..texts import Refused, listed, percent
from . import frame, marks, nodes, style

HELP = "roofs of one device over its sessions, in per cent of the first (--where uuid=... chooses the device)"
PANELS, HEIGHT = 1, {"column": 2.2, "page": 2.8}
NEEDS = ROOFS
MOST_NAMED = 7
MOST_LEVEL = 4  # more dates than this are written slanted


@dataclass
class History(nodes.Nodes):
    starts: list  # start of each session's first roof
    undated: list  # paths of files without starts of roofs; their sessions have the date of the file
    drivers: list  # driver version of each session
    left_out: list  # paths of files in which the device has none of the chosen roofs


def session_starts(table, files):
    """Returns {(file, device): start of the device's first roof}. If a file has no starts of roofs, its date is
    used."""
    dates = [data.attrs.get("date_created", "") for data in files]
    written = pandas.to_datetime(pandas.Series(dates), errors="coerce", utc=True).dt.tz_localize(None)
    first = table.groupby(["file", "device"])["start_time"].min()
    return {key: written[key[0]] if pandas.isna(start) else start for key, start in first.items()}


def only_device(table, names):
    """Returns the roofs of the device with most sessions. Raises Refused if several devices share that number, or if
    it is below two."""
    counts = table.groupby("uuid")["session"].nunique()
    most = counts[counts == counts.max()].index
    if not counts.max() >= 2:  # also true without a device, because max() is NaN then
        raise Refused(f"{names}: history needs two sessions or more of one device")
    if len(most) > 1:
        raise Refused(f"several devices are in the files; choose one with --where uuid=: {', '.join(most)}")
    return table[table["uuid"] == most[0]]


def build(data, where=(), **_):
    files = several(data)
    table = choose(roof_table(files), where)
    table = table[table["usable"]]
    table = table if "start_time" in table else table.assign(start_time=pandas.NaT)
    starts = session_starts(table, files)
    table = table.assign(session=[*zip(table["file"], table["device"])])
    table = only_device(table, ", ".join(data.attrs["path"] for data in files))
    order = sorted(set(table["session"]), key=starts.get)  # the table has only the chosen device
    used = sorted(set(table["file"]))
    undated = [files[number].attrs["path"] for number, own in table.groupby("file") if own["start_time"].isna().all()]
    # Each session takes the place of a file, so that judged() compares it with the first one.
    numbered = table.assign(file=[order.index(session) for session in table["session"]])
    found = judged(medians(numbered, "key")).sort_values("file", kind="stable")
    left_out = [data.attrs["path"] for number, data in enumerate(files) if number not in used]
    drivers = [files[file]["device_driver_version"].values[int(device)] for file, device in order]
    begun = [starts[session] for session in order]
    return History([files[file] for file in used], found, begun, undated, drivers, left_out)


def moments(starts):
    """Returns a tick for each session: its date, with the time if two sessions have the same date."""
    days = [f"{start:%Y-%m-%d}" if pandas.notna(start) else "no date" for start in starts]
    twice = {day for day in days if days.count(day) > 1} - {"no date"}
    return [f"{day}\n{start:%H:%M:%S}" if day in twice else day for day, start in zip(days, starts)]


def outliers(found, ticks):
    """Returns sentences that name the roofs that differ by more than the limit, and the dates of these sessions."""
    texts = []
    for word, own in [("Slower", found[found["slow"]]), ("Faster", found[found["fast"]])]:
        far = own.iloc[np.argsort(-abs(np.log(own["deviation"].to_numpy(float))), kind="stable")]
        names = [
            f"{line['key']} {percent(line['deviation'])} ({' '.join(ticks[line['file']].split())})"
            for _, line in far.iterrows()
        ]
        texts += [f"{word} than the limit: {listed(names, 3)}."] * bool(names)
    return " ".join(texts) or "No roof is slower or faster than the limit."


def look_of(number):
    """Returns the look of named roof `number`. None: look of all roofs without a name in the figure."""
    if number is None:
        return {"color": style.GREY, "linewidth": 0.4, "marker": ".", "markersize": 2}
    return {
        "color": style.COLOURS[number % len(style.COLOURS)],
        "marker": style.MARKERS[number],
        "linestyle": style.DASHES[number % len(style.DASHES)],
        "linewidth": 0.9,
        "markersize": 4,
    }


def changed(scene):
    """Returns the sessions whose driver differs from that of the session before."""
    known = range(1, len(scene.drivers))
    return [number for number in known if scene.drivers[number] != scene.drivers[number - 1]]


def explained(scene, ticks):
    device = f"{scene.found['uuid'].iloc[0]}. {outliers(scene.found, ticks)}"
    if all(pandas.notna(start) for start in scene.starts):
        starts = [scene.starts[session] for session in scene.found["file"]]
        line = slopes(scene.found.assign(start_time=starts, speed=scene.found["deviation"].fillna(1)))
        steep = line[line["whole"].abs() > THRESHOLD].sort_values("whole")
        if len(steep):
            months = [f"{key} {percent(1 + month)}" for key, month in zip(steep["key"], steep["month"])]
            device += f" In 30 days: {listed(months, 3)}."
    cycles = nodes.cycles_text(scene.found)
    device += f" {cycles}." * bool(cycles)
    word = driver_word(scene.files[0], ...).capitalize()
    for number in changed(scene):
        device += f" {word} {scene.drivers[number]} from {' '.join(ticks[number].split())} on."
    if scene.left_out:
        device += f" Left out, without a roof of it: {listed(scene.left_out, 3)}."
    if scene.undated:
        device += f" Without starts of their roofs, dated by the file: {listed(scene.undated, 3)}."
    return device


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    found = scene.found
    far = found.assign(far=-abs(np.log(found["deviation"].astype(float).fillna(1))), fast=~found["slow"])
    shown = list(dict.fromkeys(far.sort_values(["fast", "far"])["key"]))[:MOST_NAMED]
    looks = {key: look_of(number) for number, key in enumerate(shown)}
    ticks = moments(scene.starts)
    for key, own in found.groupby("key", sort=False):
        speed, own_look = 100 * own["deviation"].fillna(1), looks.get(key, look_of(None) | {"alpha": 0.6})
        axes.plot(own["file"], speed, gid=key, zorder=3 if key in looks else 2, **own_look)
    for number in changed(scene):
        axes.axvline(number - 0.5, gid="new driver", color=style.GREY, linewidth=0.6, linestyle=":", zorder=1)
    slanted = {"rotation": 30, "ha": "right"} if len(ticks) > MOST_LEVEL else {}
    axes.set_xticks(range(len(ticks)), ticks, **slanted)
    lowest = min(99.0, 100 * found["deviation"].min())
    axes.set(xlim=(-0.35, len(ticks) - 0.65), ylim=(lowest - 2, None))
    axes.set(xlabel="start of the session (UTC)", ylabel="speed (% of the first session)")
    handles = [marks.Line2D([], [], label=key, **look) for key, look in looks.items()]
    rest = found["key"].nunique() - len(shown)
    handles.append(marks.Line2D([], [], label=f"{rest} {'other ' * bool(shown)}roofs", **look_of(None)))
    text = nodes.caption(scene, explained(scene, ticks))
    frame.settle(figure, [axes], height, handles, text, bottom=0.72 if slanted else 0.52)
    return [axes]
