"""What the planes share: curves with their direction, labels of points, boxes of overhead, legend entries."""

from itertools import pairwise

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from . import style
from .labels import Labels

FILLS = {"closed": None, "open": "white"}  # None: the series' colour
SHARED = 4  # points: so close are symbols that share a label
ALL_LABELLED = 16  # points of a figure; of more, the ends of each series are labelled


def points(axes, series, x, y, fill="closed", joined=True, size=style.SIZE, zorder=3):
    """One Line2D of a series' rows, in their order."""
    (line,) = axes.plot(
        series.rows[x],
        series.rows[y],
        color=series.colour,
        marker=series.marker,
        markersize=size,
        markeredgewidth=0.7,
        markerfacecolor=FILLS[fill] or series.colour,
        linestyle=series.dash if joined and series.by else "none",
        linewidth=0.6,
        zorder=zorder,
        gid=f"{series.name}|{fill}",
    )
    return line


def clear_of(symbols, start, end, scale):
    """Where between start and end a head covers no symbol: a fraction, or None. Pixels."""
    for part in (0.5, 0.4, 0.6, 0.3, 0.7):
        if np.nanmin(np.hypot(*(symbols - (start + (end - start) * part)).T)) > style.SIZE * scale:
            return part
    return None


def arrows(axes, scene, series, x, y, least=14):
    """The direction of a curve: a small head in the middle of each part that has room for it."""
    if not series.by:
        return
    at = axes.transData.transform(series.rows[[x, y]].to_numpy(float))
    symbols = axes.transData.transform(np.vstack([other.rows[[x, y]].to_numpy(float) for other in scene.series]))
    scale = axes.figure.dpi / 72
    for (start, end), ends in zip(pairwise(at), pairwise(series.rows.index)):
        if not np.isfinite([start, end]).all() or np.hypot(*(end - start)) < least * scale:
            continue
        part = clear_of(symbols, start, end, scale)
        if part is None:
            continue
        middle = start + (end - start) * part
        tail = start + (end - start) * (part - 0.05)
        from_, to = axes.transData.inverted().transform([tail, middle])
        axes.annotate(
            "",
            to,
            from_,
            gid=f"{series.name}|{ends}",
            arrowprops={"arrowstyle": "-|>", "color": series.colour, "linewidth": 0.4, "mutation_scale": 5},
            zorder=2.8,
        )


def value_text(value):
    return f"{value:g}" if isinstance(value, (int, float, np.number)) else str(value)


def label_points(labels, scene, which, places):
    """Writes the swept parameter's value beside points: all, the ends of each series, or none. places: (x, y) columns
    of each kind of symbol; the first is labelled."""
    if not scene.swept or which == "none":
        return
    for series in scene.series:
        for x, y in places:
            known = series.rows.dropna(subset=[x, y])
            labels.add_points(known[x], known[y])
            labels.add_line(known[x], known[y])
    count = sum(len(series.rows) for series in scene.series)
    every = which == "all" or (which == "auto" and count <= ALL_LABELLED)
    x, y = places[0]
    wanted = {}  # points of the same value at the same place share a label
    for series in scene.series:
        known = series.rows.dropna(subset=[x, y]) if series.by else series.rows.head(0)
        for _, row in (known if every else known.iloc[[0, -1]] if len(known) > 1 else known).iterrows():
            at = labels.pixels(row[x], row[y])[0]
            place = (value_text(row[series.by]), *np.round(at / (SHARED * labels.scale)))
            wanted.setdefault(place, []).append((row[x], row[y], series.colour))
    for (text, *_), found in wanted.items():
        colours = {colour for *_, colour in found}
        labels.place(text, *found[0][:2], colours.pop() if len(colours) == 1 else style.BLACK)


def overhead_box(axes, series, x, y):
    """The box of a series' launch overhead, from the lower left corner to its largest overhead: below x and y of it."""
    right, top = series.rows[x].max(), series.rows[y].max()
    if not np.isfinite([right, top]).all():
        return
    left, low = axes.get_xlim()[0], axes.get_ylim()[0]
    axes.fill_between([left, right], low, top, color=series.colour, alpha=0.06, linewidth=0, zorder=0)
    axes.plot(
        [left, right, right],
        [top, top, low],
        color=series.colour,
        linestyle=series.dash,
        linewidth=0.5,
        zorder=1.5,
        gid=f"{series.name}|box",
    )


def overhead_boxes(axes, scene, x, y):
    """One box for each series; series of the same overhead share one box, in grey."""
    edges = {}
    for series in scene.series:
        corner = tuple(float(f"{series.rows[name].max():.3g}") for name in (x, y))
        edges.setdefault(corner, []).append(series)
    for found in edges.values():
        overhead_box(axes, found[0], x, y)


def series_handles(scene, joined=True):
    return [
        Line2D(
            [],
            [],
            color=series.colour,
            marker=series.marker,
            linestyle=series.dash if joined and series.by else "none",
            linewidth=0.6,
            label=series.name,
        )
        for series in scene.series
    ]


def symbol(label, fill):
    return Line2D(
        [], [], color=style.GREY, marker="o", markerfacecolor=FILLS[fill] or style.GREY, linestyle="none", label=label
    )


def line(label, dash="-", colour=style.GREY, width=0.8):
    return Line2D([], [], color=colour, linestyle=dash, linewidth=width, label=label)


def box(label):
    return Patch(facecolor=style.GREY, alpha=0.25, edgecolor=style.GREY, linewidth=0.5, label=label)


def direction(scene):
    """How curves run, for the legend."""
    how = scene.swept[0] if len(scene.swept) == 1 else "the parameter in brackets"
    return [line(f"joined by {how}, arrows: increasing", width=0.6)] if scene.swept else []


__all__ = ["Labels"]
