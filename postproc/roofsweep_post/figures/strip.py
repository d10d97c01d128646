"""Draws a strip for each configuration that several devices measured: the speed of each device relative to its
reference."""

import numpy as np
from matplotlib.ticker import MaxNLocator

from ..frames import ROWS
from ..texts import percent
from . import frame, marks, nodes, style

HELP = "configurations of a `replicate` sweep, or of several files: each device's speed against its reference"
build = nodes.time_nodes
PANELS, HEIGHT = 1, {"column": 2.0, "page": 2.4}
NEEDS = ROWS
MOST_EXPLAINED = 5  # largest number of slow configurations that the caption names
MOST_NAMED = 80  # with more configurations, the axis has no names
LETTER, LINE, NUMBERS = 0.043, 0.1, 0.5  # inches: width of a letter, height of a line, other room beside the axes
MOST_SERIES = 12  # with more devices, only slow devices have their own symbol


def draw_noise(axes, found, places):
    """Shades for each configuration the range of speeds that its limit allows."""
    limits = found.groupby("key")["limit"].max()
    low = np.array([100 * (1 - limits[key]) for key in places])
    how = {"color": style.GREY, "alpha": 0.15, "linewidth": 0, "gid": "limit"}
    axes.barh(list(places.values()), 100 - low, 1, low, **how)


def look_of(number):
    """Returns the look of device `number`. None: look of the devices without their own symbol."""
    if number is None:
        return {"color": style.GREY, "marker": ".", "markersize": 2, "alpha": 0.5}
    colour = style.COLOURS[number % len(style.COLOURS)]
    return {"color": colour, "marker": style.MARKERS[number % 12], "markersize": 3}


def draw_devices(axes, found, places, devices, own):
    """Draws all devices. Returns legend entries for the devices with their own symbol."""
    handles = []
    for device in devices:
        line = found[found["device"] == device]
        look = look_of(own.index(device) if device in own else None)
        if device in own:
            handles.append(marks.Line2D([], [], linestyle="none", label=device, **look))
        y = np.array([places[key] for key in line["key"]])
        axes.plot(100 * line["deviation"], y, linestyle="none", gid=device, zorder=3, **look)
    return handles


def names_of(found, places):
    """Returns {key: text}. A text has the number of the configuration, its name, and the slowest device."""
    worst = found.sort_values("deviation", kind="stable").drop_duplicates("key").set_index("key")
    ends = {key: f"{worst['device'][key]} {percent(worst['deviation'][key])}" for key in places}
    return {key: f"{number}: {worst['text'][key]}, {ends[key]}" for key, number in places.items()}


def summary(found, names, reference):
    slow = list(dict.fromkeys(found[found["slow"]].sort_values("deviation")["key"]))[:MOST_EXPLAINED]
    count = f"{int(found['slow'].sum())} of {len(found)} points are slower than the noise"
    return f"{reference}. {count}" + f". The slowest: {'; '.join(names[key] for key in slow)}" * bool(slow)


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    found = scene.found
    rows = found.groupby("key", sort=False)["deviation"].min().sort_values(kind="stable").index
    places = {key: number for number, key in enumerate(rows, 1)}
    names, texts = names_of(found, places), dict(zip(found["key"], found["text"]))
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
    axes.set(ylim=(len(places) + 0.6, 0.4), xlim=(low, max(speeds.max(), 102) + 1), xlabel="speed (% of the reference)")
    axes.grid(False, axis="y")
    left = NUMBERS + LETTER * max(map(len, texts.values()))
    if len(places) <= MOST_NAMED and left < 0.6 * figure.get_size_inches()[0]:
        axes.set_yticks(list(places.values()), [texts[key] for key in places], fontsize=style.SMALL)
        axes.set_ylabel("configuration")
        height = max(height, LINE * len(places))
    else:
        left = NUMBERS
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_ylabel("number, the slowest first")
        figure.notes = list(names.values())
    text = nodes.caption(scene, summary(found, names, nodes.reference_text(scene)))
    frame.settle(figure, [axes], height, handles, text, left=left)
    return [axes]
