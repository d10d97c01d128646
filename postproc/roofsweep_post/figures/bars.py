"""Draws the run time of each row as a bar: busy time, gaps between kernels, and a line at the caller's time."""

import itertools

import numpy as np
from matplotlib.patches import Patch

from ..columns import interval
from ..naming import parameters_of
from ..texts import Refused, listed
from . import frame, marks, style
from .scene import check_looks

HELP = "run time by the swept parameter: busy, gap, and a caller's time"
PANELS, HEIGHT, LEVEL = 1, {"column": 1.9, "page": 2.4}, "row"
BARS = 0.8  # width of all bars of a group, as a share of the group's width
NARROW = 1.5  # points; narrower bars have no hatches, which would not be visible
ROOM = 10  # points; the labels of narrower groups are turned
LETTERS = 15  # names of groups with more letters an inch of the figure's width are in the caption
RANGE = 30  # longest / shortest time; beyond this ratio the axis is logarithmic, so that short bars stay visible


def groups(scene):
    """Returns the groups of bars as pairs: (text below the group, {index of a series: row})."""
    found = {}
    for number, series in enumerate(scene.series):
        for _, row in series.rows.iterrows():
            key = row[scene.by] if scene.by else row["name"]
            group = found.setdefault(key, {})
            if number in group:
                one, other = (parameters_of(text["configuration"]) for text in (group[number], row))
                differ = [word for word in other if word not in one] or ["another file or device"]
                raise Refused(
                    f"'{series.name}' has two rows with {scene.by or 'name'}={marks.value_text(key)}, the second with "
                    f"{listed(differ)}: tell them apart by --series, or choose with --where"
                )
            group[number] = row
    return sorted(found.items()) if scene.by else list(found.items())


def draw_bar(axes, series, hatch, row, x, width):
    """Draws busy time and gap of a row as a bar, and a line across the bar at the caller's time."""
    how = {"width": 0.9 * width, "edgecolor": style.BLACK, "linewidth": 0.4}
    whole = np.isfinite(row["gap_time"])
    time = row["busy"] if whole else row["own_time"]
    axes.bar(x, time, color=series.colour, hatch=hatch, gid=f"{series.name}|busy", **how)
    if whole:
        axes.bar(x, row["gap_time"], bottom=row["busy"], color="white", gid=f"{series.name}|gap", **how)
    if np.isfinite(row["noise"]):
        ends = [max(row["own_time"] + (end - 1) * row["time_median"], 0) for end in interval(row)]
        axes.vlines(x, *ends, color=style.BLACK, linewidth=0.8)
    ends, caller = [x - 0.5 * width, x + 0.5 * width], [row["caller_time"]] * 2
    axes.plot(ends, caller, color=style.BLACK, linewidth=1.1, gid=f"{series.name}|host")


def handles_of(scene, hatches):
    how = {"edgecolor": style.BLACK, "linewidth": 0.4}
    handles = [
        Patch(facecolor=series.colour, hatch=hatches[series.what], label=name, **how)
        for name, series in scene.legend.items()
    ]
    handles += marks.source_handles(scene)
    gap = Patch(facecolor="white", label="gap: device idle between kernels", **how)
    handles += [gap] * bool((scene.rows["gap_time"] > 0).any())
    caller = marks.line("time for a caller in a loop", colour=style.BLACK, width=1.1)
    return handles + [caller] * bool(scene.rows["caller_time"].notna().any())


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    hatches = dict(zip(dict.fromkeys(series.what for series in scene.series), itertools.cycle(style.HATCHES)))
    check_looks([(series.colour, hatches[series.what]) for series in scene.series])
    found = groups(scene)
    count = max(len(rows) for _, rows in found)
    width = BARS / count
    if axes.get_window_extent().width / figure.dpi * 72 / max(len(found), 1) * width < NARROW:
        raise frame.Crowded(f"{len(found)} groups of {count} bars have no room")
    texts = [marks.value_text(key) for key, _ in found]
    numbered = max(map(len, texts)) * len(texts) > LETTERS * figure.get_size_inches()[0]
    key = "Key: " + ", ".join(f"{number}: {text}" for number, text in enumerate(texts, 1)) if numbered else ""
    times = frame.finite(scene.rows["own_time"], scene.rows["caller_time"])
    wide = bool(times.max() > RANGE * times.min())
    axes.set(
        xlim=(-0.6, len(found) - 0.4),
        yscale="log" if wide else "linear",
        ylim=(times.min() / 3, times.max() * 1.5) if wide else (0, times.max() * 1.05),
        xticks=range(len(found)),
        xticklabels=range(1, len(found) + 1) if numbered else texts,
        xlabel=f"{scene.swept[0]} (parameter)" if scene.by else "configuration",
        ylabel="time of an iteration" + " (logarithmic)" * wide,
    )
    room = axes.get_window_extent().width / figure.dpi * 72 / len(found)
    axes.tick_params(axis="x", rotation=90 if numbered and room < ROOM and len(found) > 9 else 0)
    axes.grid(False, axis="x")
    frame.engineering(axes.yaxis, "s")
    for place, (_, rows) in enumerate(found):
        for side, (number, row) in enumerate(rows.items()):
            x = place + (side - (len(rows) - 1) / 2) * width
            draw_bar(axes, scene.series[number], hatches[scene.series[number].what], row, x, width)
    frame.settle(figure, [axes], height, handles_of(scene, hatches), frame.caption(scene, key, work=False))
    return [axes]
