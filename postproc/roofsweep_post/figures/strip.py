"""A strip for each configuration of a `replicate` sweep: the speed of each device against the median of its model."""

import numpy as np
from matplotlib.ticker import MaxNLocator

from ..frames import ROWS
from ..texts import percent
from . import frame, marks, nodes, style

HELP = "configurations of a `replicate` sweep, or of several files: each device's speed against its reference"
build = nodes.time_nodes
PANELS, HEIGHT = 1, {"column": 2.0, "page": 2.4}
NEEDS = ROWS
MOST_EXPLAINED = 5  # slow configurations in the caption
MOST_SERIES = 12  # devices with a symbol of their own; of more, only the slow ones have one


def draw_noise(axes, found, places):
    """What is within the noise, of each configuration."""
    limits = found.groupby("key")["limit"].max()
    low = [100 * (1 - limits[key]) for key in places]
    axes.bar(
        list(places.values()),
        [100 - end for end in low],
        1,
        low,
        color=style.GREY,
        alpha=0.15,
        linewidth=0,
        gid="limit",
    )


def look_of(number):
    """Of a device with a symbol of its own, or (None) of any other."""
    if number is None:
        return {"color": style.GREY, "marker": ".", "markersize": 2, "alpha": 0.5}
    colour = style.COLOURS[number % len(style.COLOURS)]
    return {"color": colour, "marker": style.MARKERS[number % 12], "markersize": 3}


def draw_devices(axes, found, places, devices, own):
    """Handles of those with a symbol of their own."""
    handles = []
    for device in devices:
        line = found[found["device"] == device]
        look = look_of(own.index(device) if device in own else None)
        if device in own:
            handles.append(marks.Line2D([], [], linestyle="none", label=device, **look))
        x = np.array([places[key] for key in line["key"]])
        axes.plot(x, 100 * line["deviation"], linestyle="none", gid=device, zorder=3, **look)
    return handles


def summary(found, places, reference):
    texts = dict(zip(found["key"], found["text"]))
    slowest = found[found["slow"]].sort_values("deviation").head(MOST_EXPLAINED)
    named = "; ".join(
        f"{places[line['key']]}: {texts[line['key']]}, {line['device']} {percent(line['deviation'])}"
        for _, line in slowest.iterrows()
    )
    count = f"{int(found['slow'].sum())} of {len(found)} points are slower than the noise"
    return f"{reference}. {count}" + f". The slowest: {named}" * bool(named)


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    found = scene.found
    rows = found.groupby("key", sort=False)["deviation"].min().sort_values(kind="stable").index
    places = {key: number for number, key in enumerate(rows, 1)}
    devices = list(dict.fromkeys(found["device"]))
    slow = list(dict.fromkeys(found.loc[found["slow"], "device"]))
    own = devices if len(devices) <= MOST_SERIES else slow[:MOST_SERIES]
    draw_noise(axes, found, places)
    handles = draw_devices(axes, found, places, devices, own)
    if len(own) < len(devices):
        handles.append(marks.Line2D([], [], linestyle="none", label="other devices", color=style.GREY, marker="."))
    handles.append(marks.box("within the noise"))
    speeds = 100 * frame.finite(found["deviation"])
    low = min(speeds.min(), 95) - 1
    axes.set(xlim=(0.4, len(places) + 0.6), ylim=(low, max(speeds.max(), 102) + 1))
    axes.set(xlabel="number of the configuration, the slowest first", ylabel="speed (% of the reference)")
    axes.grid(False, axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    text = nodes.caption(scene, summary(found, places, nodes.reference_text(scene)))
    frame.settle(figure, [axes], height, handles, text)
    return [axes]
