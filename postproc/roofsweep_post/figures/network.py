"""Draws a network from its layers: the time plane, with areas of symbols by total time, and a bar for the total of each
series."""

import numpy as np
from matplotlib.patches import Patch

from ..network import layers_of, totals
from . import frame, marks, planes, style
from .scene import MOST, check_looks
from .scene import NEEDS as SCENE

HELP = "a network (--labels LABEL): its layers in the time plane, areas by total time, and a bar of the total"
PANELS, HEIGHT, LEVEL = 2, {"column": 2.4, "page": 3.4}, "row"
NEEDS = (*SCENE, "listed")
AREA = 150.0  # square points: sum of the areas of all symbols, divided by the root of the number of layers
NAMED = 6  # number of layers that are named in the figure
NOTE = "The area of a layer is its time, as often as the network has it. A line in a bar is the time at the roofs"


def lines_of(scene):
    """Returns the lines of roofsweep_post.network.totals() that have a total, and the number of layers without one.
    Column bar: name of the bar of the line."""
    labels = scene.rows["label"].unique()
    label = labels[0] if len(labels) == 1 else None
    lines, every = (
        totals(layers_of(table.assign(device_name=table["model"]), label), "") for table in (scene.rows, scene.chosen)
    )
    known = [*zip(lines["configuration"], lines["place"])]
    every = every.drop_duplicates(["configuration", "place"])
    missing = every["count"][[key not in known for key in zip(every["configuration"], every["place"])]].sum()
    both = lines["direction"].nunique() > 1
    names = [f"{name} {way * both}".strip() for name, way in zip(lines["series"], lines["direction"])]
    return lines.assign(bar=names)[lines["total"].notna()], missing


def draw_bars(axes, lines, colours):
    """Draws the bars, each with its layers in the order of the list."""
    longest = lines.groupby("bar")["total"].sum().max()
    bars = list(dict.fromkeys(lines["bar"]))
    if len(bars) > MOST:
        raise frame.Crowded(f"{len(bars)} bars have no room")
    axes.set(xlim=(0, 1.03 * longest), ylim=(len(bars) - 0.4, -0.75), yticks=[], ylabel="network")
    axes.set_xlabel("time of the network")
    frame.engineering(axes.xaxis, "s")
    axes.grid(False, axis="y")
    for place, bar in enumerate(bars):
        own = lines[lines["bar"] == bar]
        left = own["total"].cumsum() - own["total"]
        how = {"height": 0.55, "edgecolor": "white", "linewidth": 0.3, "gid": f"bar|{bar}"}
        how["color"] = [colours[name] for name in own["limited_by"]]
        axes.barh(np.full(len(own), place), own["total"], left=left, **how)
        ends = [own["at_roof"].sum()] * 2, [place - 0.34, place + 0.34]
        axes.plot(*ends, color=style.BLACK, linewidth=1.1, gid=f"at roof|{bar}")
        axes.text(0.01 * longest, place - 0.4, bar, fontsize=style.SMALL, va="bottom", gid="label")


def draw_plane(axes, scale, lines, colours, markers, annotate):
    """Draws a symbol for each row, and names the rows with the longest totals. Returns the sentence that explains the
    names."""
    known = lines.dropna(subset=planes.PLACES[0])
    known = known.assign(whole=known.groupby("row")["total"].transform("sum")).drop_duplicates("row")
    known = known.sort_values("whole", ascending=False, kind="stable")
    labels = marks.Labels(axes, scale)
    labels.add_line(*planes.diagonal(axes, 1, color=style.BLACK, linewidth=0.8, linestyle=(0, (4, 1.5)), zorder=1))
    planes.iso_runtimes(axes, labels)
    for series, own in known.groupby("series", sort=False):
        sizes = AREA * np.sqrt(len(known)) * own["whole"] / known["whole"].sum()
        how = {"marker": markers[series], "alpha": 0.6, "linewidths": 0, "gid": f"layers|{series}"}
        how["c"] = [colours[name] for name in own["limited_by"]]
        axes.scatter(*(own[name] for name in planes.PLACES[0]), sizes, **how)
        labels.add_points(*(own[name] for name in planes.PLACES[0]))
    for line in known.head(0 if annotate == "none" else NAMED).to_dict("records"):
        labels.place(line["layer"], *(line[name] for name in planes.PLACES[0]))
    return labels.key_text()


def draw(figure, axes, scene, annotate, height):
    (plane, bars), (lines, missing) = axes, lines_of(scene)
    note = f"{missing} layers are missing: they failed or have no FLOPs. " * bool(missing) + NOTE
    limits = list(dict.fromkeys(lines.sort_values("total", ascending=False)["limited_by"]))
    colours = {name: style.COLOURS[number % len(style.COLOURS)] for number, name in enumerate(limits)}
    markers = {name: style.MARKERS[number % len(style.MARKERS)] for number, name in enumerate(lines["series"].unique())}
    check_looks(list(markers.values()))
    values = frame.finite(*(lines[name] for name in planes.PLACES[0]))
    planes.square(plane, values, values)
    plane.set(xlabel="bandwidth time of an iteration", ylabel="compute time of an iteration")
    plane.grid(False)
    frame.engineering(plane.xaxis, "s")
    frame.engineering(plane.yaxis, "s")
    handles = [Patch(facecolor=colours[name], label=f"limited by {name}") for name in limits]
    handles += [marks.symbol(name, marker=marker) for name, marker in markers.items()] * (len(markers) > 1)
    handles += [marks.line("machine balance", (0, (4, 1.5)), style.BLACK), marks.line("equal run time", (0, (6, 2)))]
    draw_bars(bars, lines, colours)
    scale = frame.settle(figure, axes, height, handles, frame.caption(scene, note, lines=False))
    key = draw_plane(plane, scale, lines, colours, markers, annotate)
    frame.settle(figure, axes, height, handles, frame.caption(scene, note, key, lines=False))
    return axes
