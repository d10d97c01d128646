"""Draws the parts of each row's time as a stacked bar."""

import numpy as np
from matplotlib.patches import Patch

from ..texts import Refused
from . import frame, style
from .kernel_rows import ROW_LENGTH, row_names
from .scene import NEEDS as SCENE

HELP = "parts of each row's time, stacked: gaps, idle multiprocessors, issuing, waits (counters = causes)"
PANELS, HEIGHT, LEVEL = 1, {"column": 3.0, "page": 4.2}, "row"
NEEDS = (*SCENE, "time_part")
THICK = 6.5  # points: least height of a bar, so that the row's name beside it is readable
ABOVE = 20  # largest number of characters of a name above a bar, for each inch of the figure
LEAST = 0.005  # parts of the time with a smaller share are not drawn


def shares(rows):
    """Returns a column for each part of the time: its share of the sum of the row's parts."""
    parts = rows.filter(regex="^time_part_").rename(columns=lambda name: name.removeprefix("time_part_"))
    parts = parts.loc[:, (parts > 0).any()]
    if parts.empty:
        raise Refused("the rows that were chosen have no parts of their time: they were measured without a trace")
    return parts.div(parts.sum(axis=1), axis=0)


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    rows = scene.rows.reset_index(drop=True)
    table = shares(rows)
    room, inches = axes.get_window_extent().height / figure.dpi * 72 / len(rows), figure.get_size_inches()[0]
    if room < THICK:
        raise frame.Crowded(f"{len(rows)} rows have no room")
    names, numbers = row_names(scene, rows, np.inf)
    longest = max(map(len, names))
    above = ROW_LENGTH * inches < longest <= ABOVE * inches and room > 1.5 * THICK
    if not above:
        names, numbers = row_names(scene, rows, inches)
    thick, handles, left = 0.4 if above else 0.8, [], np.zeros(len(rows))
    for number, (part, found) in enumerate(table.items()):
        how = {"edgecolor": style.BLACK, "linewidth": 0.4, "facecolor": style.COLOURS[number % len(style.COLOURS)]}
        how["hatch"] = style.HATCHES[number // len(style.COLOURS)]
        wide = np.flatnonzero(found > LEAST)
        axes.barh(wide + 0.4 - thick / 2, found[wide], left=left[wide], height=thick, gid=f"part|{part}", **how)
        left += found.fillna(0)
        handles.append(Patch(label=part.replace("_", " "), **how))
    axes.set(xlim=(0, 1), ylim=(len(rows) - 0.4, -0.6), yticks=range(len(rows)))
    axes.set_yticklabels([""] * len(rows) if above else names)
    for place, name in enumerate(names if above else []):
        axes.text(0, place - 0.05, f" {name}", va="bottom", fontsize=style.SMALL)
    if above:
        axes.tick_params(axis="y", length=0)
    axes.set(ylabel="configuration", xlabel="share of an iteration's time (%)")
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
    axes.grid(False, axis="y")
    wide = max(text.get_window_extent().width for text in axes.get_yticklabels()) / figure.dpi
    frame.settle(
        figure, [axes], height, handles, frame.caption(scene, numbers, work=False, lines=False), left=wide + 0.3
    )
    return [axes]
