"""Draws parts that several figures share: curves with arrows, labels of points, boxes of overhead, legend entries."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import Affine2D

from ..columns import interval
from . import style
from .labels import Labels

SHARED = 4  # points: symbols at most this far apart share a label
BOXES = "A box of launch overhead has the colour of its series, or is grey if series share it"
TIMES = (0, (3, 1.5))  # dashes of the line that joins measured times
CEILING = 2.2  # points: size of the symbol of a ceiling
HEAD = np.array([[0.0, 0.0], [-2.0, 1.0], [-2.0, -1.0]])  # points: corners of an arrowhead that points to the right
# {column: exponent of the time in its formula}. The interval of the column follows from that of the time.
OF_TIME = {"performance": -1, "compute_plane": 1, "bandwidth_plane": 1, "time_median": 1}
ALL_LABELLED = 16  # up to this number all points have labels; with more points only the ends of each series


def points(axes, series, x, y, fill="closed", dash=None, size=style.SIZE, zorder=3):
    """Draws a series' rows in order as one Line2D and returns it. dash defaults to that of the series."""
    how = {"color": series.colour, "marker": series.marker, "markersize": size, "markeredgewidth": 0.7}
    how |= {"linestyle": (dash or series.dash) if series.by else "none", "linewidth": 0.6, "zorder": zorder}
    (line,) = axes.plot(series.rows[x], series.rows[y], gid=f"{series.name}|{fill}", **how, **style.FILLS[fill])
    intervals(axes, series, x, y)
    return line


def intervals(axes, series, x, y):
    """Draws the 95 % interval of each row along the axes whose column depends on the median time."""
    factors = [end.clip(lower=0).to_numpy(float) for end in interval(series.rows)]
    ends = [
        np.column_stack([series.rows[name] * factor ** OF_TIME.get(name, 0) for name in (x, y)]) for factor in factors
    ]
    found = np.stack(ends, axis=1)
    found = found[np.isfinite(found).all(axis=(1, 2)) & (factors[0] > 0) & (found[:, 0] != found[:, 1]).any(axis=1)]
    how = {"colors": series.colour, "linewidths": 0.8, "zorder": 2.5, "gid": f"{series.name}|interval"}
    axes.add_collection(LineCollection(found, **how), autolim=False)


def clear_of(symbols, start, end, scale):
    """Returns a place between start and end (pixels) at which an arrowhead covers no symbol, as a fraction of the way;
    None if there is no such place."""
    for part in (0.5, 0.4, 0.6, 0.3, 0.7):
        if np.nanmin(np.hypot(*(symbols - (start + (end - start) * part)).T)) > style.SIZE * scale:
            return part
    return None


def arrows(axes, scene, series, x, y, least=14):
    """Draws the direction of a series: a small arrowhead in each segment of its line that is at least `least` points
    long."""
    if not series.by:
        return
    at = axes.transData.transform(series.rows[[x, y]].to_numpy(float))
    symbols = axes.transData.transform(np.vstack([other.rows[[x, y]].to_numpy(float) for other in scene.series]))
    scale, heads, tips = axes.figure.dpi / 72, [], []
    for start, end in pairwise(at):
        if not np.isfinite([start, end]).all() or np.hypot(*(end - start)) < least * scale:
            continue
        part = clear_of(symbols, start, end, scale)
        if part is None:
            continue
        (x_way, y_way) = (end - start) / np.hypot(*(end - start))
        heads.append(HEAD @ [[x_way, y_way], [-y_way, x_way]])
        tips.append(axes.transData.inverted().transform(start + (end - start) * part))
    if heads:  # one collection, because drawing an annotation for each head would take most of the time
        found = PolyCollection(heads, offsets=tips, offset_transform=axes.transData, color=series.colour, zorder=2.8)
        found.set_transform(Affine2D().scale(1 / 72) + axes.figure.dpi_scale_trans)
        found.set(linewidth=0.4, gid=f"{series.name}|direction")
        axes.add_collection(found, autolim=False)


def segments(rows, x, y):
    """Returns x and y of one line with a part for each row, separated by NaN. x, y: names of the columns that each part
    joins."""
    gap = np.full((len(rows), 1), np.nan)
    return [np.hstack([rows[names].to_numpy(float), gap]).ravel() for names in (x, y)]


def value_text(value):
    return f"{value:g}" if isinstance(value, (int, float, np.number)) else str(value)


@dataclass
class Point:
    """The label of one place, which may be shared by several values of a series, or by several series with one
    value."""

    x: float
    y: float
    texts: list
    colours: set

    def shares(self, text, colour):
        return self.texts == [text] or self.colours == {colour}

    def add(self, text, colour):
        self.texts += [text] if text not in self.texts else []
        self.colours.add(colour)


def shared_points(labels, found):
    """Returns Points for labels (x, y, text, colour). Labels at the same place become one Point."""
    points = []
    for x, y, text, colour in found:
        at = labels.pixels(x, y)[0]
        far = [np.hypot(*(labels.pixels(one.x, one.y)[0] - at)) for one in points]
        near = [
            (distance, number)
            for number, distance in enumerate(far)
            if distance < SHARED * labels.scale and points[number].shares(text, colour)
        ]
        if near:
            points[min(near)[1]].add(text, colour)
        else:
            points.append(Point(x, y, [text], {colour}))
    return points


def chosen(series, which, count, x, y):
    """Returns the rows of a series to label: all rows, or both ends. Without a swept parameter, only rows of programs
    get labels, unless there are too many."""
    known = series.rows.dropna(subset=[x, y])
    known = known if series.by else known[known["workload"] == "program"]
    every = which == "all" or (which == "auto" and count <= ALL_LABELLED)
    return known if every or len(known) < 2 else known.iloc[[0, -1] if series.by else []]


def label_points(labels, scene, which, x, y):
    """Labels points with the value of the swept parameter, or with the program's name. which: all, ends, none or auto;
    x, y: names of columns."""
    if which == "none":
        return
    count = sum(len(series.rows) for series in scene.series)
    found = [
        (row[x], row[y], value_text(row[series.by]) if series.by else row["name"], series.colour)
        for series in scene.series
        for _, row in chosen(series, which, count, x, y).iterrows()
    ]
    for point in shared_points(labels, found):
        colour = style.BLACK if len(point.colours) > 1 else next(iter(point.colours))
        labels.place(", ".join(point.texts), point.x, point.y, colour)


def overhead_box(axes, labels, series, corner, colour):
    """Draws the box of launch overhead of a series: from the lower left corner of the axes to the largest overhead of
    its rows."""
    if not np.isfinite(corner).all():
        return
    right, top = corner
    left, low = axes.get_xlim()[0], axes.get_ylim()[0]
    axes.fill_between([left, right], low, top, color=colour, alpha=0.06, linewidth=0, zorder=0)
    x, y = [left, right, right], [top, top, low]
    how = {"linestyle": series.dash, "linewidth": 0.5, "zorder": 1.5, "gid": f"{series.name}|box"}
    axes.plot(x, y, color=colour, **how)
    labels.add_line(x, y)


def overhead_boxes(labels, scene, x, y):
    """Draws the box of launch overhead for each series in its colour. Series with the same overhead share a grey
    box."""
    edges = {}
    for series in scene.series:
        corner = series.rows[x].max(), series.rows[y].max()
        edges.setdefault(tuple(float(f"{end:.3g}") for end in corner), []).append((series, corner))
    for found in edges.values():
        colours = {series.colour for series, _ in found}
        series, corner = found[0]
        overhead_box(labels.axes, labels, series, corner, series.colour if len(colours) == 1 else style.GREY)


def symbol(label, fill="closed", marker="o", colour=style.GREY, dash="none", size=style.SIZE):
    how = {"linestyle": dash, "linewidth": 0.6, "markersize": size, **style.FILLS[fill]}
    return Line2D([], [], color=colour, marker=marker, markeredgewidth=0.7, label=label, **how)


def series_handles(scene, joined=True, fill="closed"):
    """Returns a legend entry for each series, or for each series and each file or device if several are drawn."""
    found = [
        symbol(name, fill, series.marker, series.colour, series.dash if joined and series.by else "none")
        for name, series in scene.legend.items()
    ]
    return found + source_handles(scene)


def source_handles(scene):
    """Returns a legend entry for each file or device; empty if all rows are of one."""
    colours = [style.lighter(style.BLACK, place) for place in range(len(scene.sources))]
    return [Patch(facecolor=colour, label=name) for name, colour in zip(scene.sources, colours)]


def line(label, dash="-", colour=style.GREY, width=0.8):
    return Line2D([], [], color=colour, linestyle=dash, linewidth=width, label=label)


def box(label):
    return Patch(facecolor=style.GREY, alpha=0.25, edgecolor=style.GREY, linewidth=0.5, label=label)


def direction(scene):
    """Returns the legend entry of arrowheads, which names the parameter that increases in their direction."""
    how = scene.swept[0] if len(scene.swept) == 1 else "parameter in brackets"
    return [symbol(f"increasing {how}", marker=">", dash="-", size=3)] if scene.swept else []


__all__ = ["Labels"]
