"""Draws the classic Roofline: performance over arithmetic intensity, with measured roofs and, for each row, the ceiling
that launch overhead sets."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
from matplotlib.patches import Patch

from ..texts import Refused, scaled
from . import frame, marks, style

HELP = "classic Roofline with the ceilings of launch overhead; --level all: every memory level, joined per row"
PANELS, HEIGHT = 1, {"column": 2.5, "page": 3.6}
FACETS = {"column": 1.15, "page": 1.3}  # inches: height of a facet
CEILINGS_SEEN = 20  # ceilings above 20 times the highest peak limit nothing, so the axes leave them out
LABELS_RIGHT = 15.0  # right limit of the axes over the highest intensity, if labels stand at the right of rows
LEVEL_FILLS = ["closed", "left", "hollow", "bottom"]  # fills of symbols for memory levels, from far to near
POOR = 0.1  # performance below this share of the roof is in the region "poor performance"
OVERHEAD = "The ceiling of launch overhead is FLOPs / (launches x gap between launches)"


def used_roofs(scene):
    """Returns the roofs to draw, {(model, text): (kind, value)}: all bandwidths, and the peaks of the rows' units and
    precisions. If there are several models, the texts of peaks name the model, or those of bandwidths if there are no
    peaks."""
    found = {}
    units = {*zip(scene.rows["unit"], scene.rows["precision"])}
    for model, roofs in scene.roofs.items():
        name = "" if scene.one_model() else f" ({model})"
        peaks = [key for key in roofs if key[0] != "bandwidth" and key[:2] in units]
        for (kind, what, unit), value in roofs.items():
            if kind == "bandwidth":
                found[model, f"{what} {scaled(value, unit)}{name * (not peaks)}"] = kind, value
            elif (kind, what, unit) in peaks:
                found[model, f"{what} {kind} {scaled(value, unit)}{name}"] = kind, value
    return found


def levels_of(scene):
    """Returns the memory levels at which any row has an intensity."""
    names = [name for name in scene.rows if name.startswith("arithmetic_intensity_")]
    return [name.removeprefix("arithmetic_intensity_") for name in names if scene.rows[name].notna().any()]


def draw_roofs(axes, roofs):
    """Draws the roofs within the limits of the axes. Returns {text: (x, y)}: points along the roof's line, for its
    label."""
    left, right = axes.get_xlim()
    drawn = {}
    for model in dict.fromkeys(model for model, _ in roofs):
        own = {text: found for (other, text), found in roofs.items() if other == model}
        peaks = [value for kind, value in own.values() if kind != "bandwidth"]
        fastest = max((value for kind, value in own.values() if kind == "bandwidth"), default=np.nan)
        for text, (kind, value) in own.items():
            top = max(peaks, default=np.nan) / value
            start, end = (
                (left, min(right, top) if np.isfinite(top) else right)
                if kind == "bandwidth"
                else (max(left, value / fastest) if np.isfinite(fastest) else left, right)
            )
            x = np.geomspace(start, max(end, start * 1.001), 300)
            y = x * value if kind == "bandwidth" else np.full_like(x, value)
            axes.plot(x[[0, -1]], y[[0, -1]], color=style.BLACK, linewidth=0.9, zorder=1, gid=f"roof|{text}")
            drawn[text] = x, y
    return drawn


def limits(axes, scene, intensities, right=3.0):
    """Sets the limits of both axes, which are equal for all facets. right: right limit over the highest intensity."""
    roofs = used_roofs(replace(scene, rows=scene.extent))
    peaks = [value for kind, value in roofs.values() if kind != "bandwidth"]
    widths = [value for kind, value in roofs.values() if kind == "bandwidth"]
    knees = [peak / width for peak in peaks for width in (min(widths), max(widths))] if widths else []
    x = frame.finite(*intensities, knees)
    above = scene.extent["overhead_ceiling"]
    y = frame.finite(scene.extent["performance"], peaks, above[above < CEILINGS_SEEN * max(peaks, default=np.inf)])
    axes.set(xscale="log", yscale="log", xlim=(x.min() / 2.5, x.max() * right), ylim=(y.min() / 3, y.max() * 3.5))


def draw_regions(axes, roofs):
    """Tints the regions of the paper, which lie below the roof of the slowest memory level and the highest peak.
    Returns legend entries."""
    width = min((value for kind, value in roofs.values() if kind == "bandwidth"), default=np.nan)
    if np.isnan(width):
        raise Refused("the rows that were chosen have no roof of a memory level, so there are no regions")
    peak = max((value for kind, value in roofs.values() if kind != "bandwidth"), default=np.inf)
    x = np.union1d(np.geomspace(*axes.get_xlim(), 300), peak / width)
    roof, low = np.minimum(x * width, peak), axes.get_ylim()[0]
    found = {
        "bandwidth-bound": (x * width <= peak, POOR * roof, style.COLOURS[0]),
        "compute-bound": (x * width >= peak, POOR * roof, style.COLOURS[1]),
        f"poor performance (< {100 * POOR:.0f} %)": (x > 0, np.full_like(x, low), style.GREY),
    }
    for name, (where, bottom, colour) in found.items():
        top = np.maximum(roof * (POOR if colour == style.GREY else 1), low)
        how = {"color": colour, "alpha": 0.13, "linewidth": 0, "zorder": 0, "gid": f"region|{name}"}
        axes.fill_between(x, np.maximum(bottom, low), top, where=where, **how)
    patches = [Patch(facecolor=colour, alpha=0.3, label=name) for name, (*_, colour) in found.items()]
    return [*patches, Patch(facecolor="white", edgecolor=style.GREY, linewidth=0.5, label="unattainable")]


def ceilings_in_view(axes, scene):
    """Returns whether the axes show a ceiling of launch overhead."""
    return bool((scene.extent["overhead_ceiling"] < axes.get_ylim()[1]).any())


def handles_of(axes, scene, every):
    handles = marks.series_handles(scene, joined=not every)
    if every:
        handles += [marks.symbol(f"bytes at {level}", fill) for level, fill in zip(levels_of(scene), LEVEL_FILLS)]
        handles.append(marks.line("levels of one row", width=0.4))
    else:
        handles += marks.direction(scene)
    small = {"size": marks.CEILING, "dash": "none" if every or not scene.swept else (0, (1, 1.2))}
    ceiling = marks.symbol("small: ceiling of launch overhead", **small)
    return [*handles, marks.line("measured roofs", colour=style.BLACK), *[ceiling] * ceilings_in_view(axes, scene)]


def draw_at_levels(axes, labels, series, levels):
    """Draws a symbol for each memory level of each row, joins the symbols of a row, and marks their places as
    occupied."""
    names = [f"arithmetic_intensity_{level}" for level in levels]
    joined = marks.segments(series.rows, names, ["performance"] * len(names))
    axes.plot(*joined, color=series.colour, linewidth=0.4, zorder=2, gid="row")
    marks.intervals(axes, series, names[0], "performance")
    labels.add_line(*joined)
    for name, level, fill in zip(names, levels, LEVEL_FILLS):
        how = {"color": series.colour, "marker": series.marker, "markeredgewidth": 0.6, "linestyle": "none"}
        how |= {"zorder": 3, "gid": f"{series.name}|{level}", **style.FILLS[fill]}
        axes.plot(series.rows[name], series.rows["performance"], **how)
        labels.add_points(series.rows[name], series.rows["performance"])


def draw_at_one(axes, labels, scene, series):
    marks.points(axes, series, "intensity_at", "performance")
    marks.arrows(axes, scene, series, "intensity_at", "performance")
    labels.add_points(series.rows["intensity_at"], series.rows["performance"])
    if series.by:
        labels.add_line(series.rows["intensity_at"], series.rows["performance"])


def draw_ceilings(axes, labels, series, joined):
    """Draws a small symbol at each row's ceiling of launch overhead, and marks the symbol's place as occupied."""
    x, y = series.rows["intensity_at"], series.rows["overhead_ceiling"]
    how = {"color": series.colour, "marker": series.marker, "markersize": marks.CEILING, "markeredgewidth": 0.4}
    how |= {"linestyle": (0, (1, 1.2)) if series.by and joined else "none", "linewidth": 0.6, "zorder": 2.6}
    axes.plot(x, y, gid=f"{series.name}|overhead", **how, **style.FILLS["closed"])
    labels.add_points(x, y, marks.CEILING)
    if joined and series.by:
        labels.add_line(x, y)


def draw(figure, axes, scene, annotate, height, regions=False):
    (axes,) = axes
    every = scene.level == "all"
    levels = levels_of(scene) if every else []
    if every and not levels:
        raise Refused("no row has an arithmetic intensity")
    if not every:
        scene.keep(["intensity_at", "performance"])
    intensities = [scene.extent[f"arithmetic_intensity_{level}"] for level in levels] or [scene.extent["intensity_at"]]
    roofs = used_roofs(scene)
    limits(axes, scene, intensities, LABELS_RIGHT if every and scene.swept else 3.0)
    axes.set(xlabel="arithmetic intensity (FLOP/byte)", ylabel="performance (FLOP/s)")
    frame.engineering(axes.xaxis, text=frame.power)
    frame.engineering(axes.yaxis)
    handles = handles_of(axes, scene, every) + (draw_regions(axes, roofs) if regions else [])
    overhead = OVERHEAD * ceilings_in_view(axes, scene)
    scale = frame.settle(figure, [axes], height, handles, frame.caption(scene, overhead))
    drawn = draw_roofs(axes, roofs)
    labels = marks.Labels(axes, scale)
    for x, y in drawn.values():
        labels.add_line(x[[0, -1]], y[[0, -1]])
    for series in scene.series:
        if every:
            # The label of a row is at the right of all its symbols.
            names = [f"arithmetic_intensity_{level}" for level in levels]
            series.rows = series.rows.assign(rightmost=series.rows[names].max(axis=1))
            draw_at_levels(axes, labels, series, levels)
        else:
            draw_at_one(axes, labels, scene, series)
        draw_ceilings(axes, labels, series, joined=not every)
    for text, (x, y) in drawn.items():
        labels.along(text, x, y)
    marks.label_points(labels, scene, annotate, "rightmost" if every else "intensity_at", "performance")
    frame.settle(figure, [axes], height, handles, frame.caption(scene, overhead, labels.key_text()))
    return [axes]


REGIONS = SimpleNamespace(  # as in the paper's figure 2a
    HELP="classic, with tinted regions: bandwidth-bound, compute-bound, poor performance, unattainable",
    PANELS=PANELS,
    HEIGHT=HEIGHT,
    FACETS=FACETS,
    draw=partial(draw, regions=True),
)
