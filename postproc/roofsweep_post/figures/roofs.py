"""Draws the roofs of a device model in per cent of theory, at the nominal clock and at the measured clock."""

import numpy as np

from .. import frames
from ..frames import ROOFS, several
from ..selection import choose
from ..texts import Refused, listed, scaled
from . import frame, marks, nodes, style

HELP = "measured roofs (medians over devices) against theory, at the nominal clock and at the measured clock"
PANELS, HEIGHT = 1, {"column": 1.2, "page": 1.2}
NEEDS = ROOFS
LETTER, LINE = 0.043, 0.13  # inches: width of a letter, height of the line of a roof
LEFT, RIGHT = 0.45, 0.85  # inches: other room left and right of the axes
LOOKS = {"alone": (style.COLOURS[0], "o", "closed"), "together": (style.COLOURS[1], "s", "hollow")}


def build(data, where=(), **_):
    """Returns Nodes with the median of each roof and condition."""
    files = several(data)
    table = choose(frames.roofs(files), where)
    table = table[table["usable"]]
    if (models := list(dict.fromkeys(table["model"])))[1:]:
        raise Refused(f"one model at a time: --where 'model={models[0]}', or {' or '.join(models[1:])}")
    numbers = ["value", "nominal_fraction", "clock_fraction"]
    groups = table.groupby(["name", "condition"], sort=False, as_index=False)
    found = groups.agg({**dict.fromkeys(numbers, "median"), "unit": "first"})
    if not found["nominal_fraction"].notna().any():
        raise Refused("the theory of these roofs is not known; it is of GPUs")
    return nodes.Nodes(files, found.assign(devices=table["uuid"].nunique()))


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    known = scene.found[scene.found["nominal_fraction"].notna()]
    names = list(dict.fromkeys(known["name"]))
    handles = []
    for condition, own in known.groupby("condition", sort=False):
        y = [names.index(name) for name in own["name"]]
        colour, marker, fill = LOOKS.get(condition, (style.BLACK, "D", "closed"))
        how = {"color": colour, "linestyle": "none", "markersize": 3.5, "markeredgewidth": 0.7}
        axes.plot(100 * own["nominal_fraction"], y, marker=marker, zorder=3, gid=condition, **how, **style.FILLS[fill])
        how |= {"marker": "x", "markersize": 2.5, "markeredgewidth": 0.5}
        axes.plot(100 * own["clock_fraction"], y, zorder=2, gid=f"{condition}, own clock", **how)
        handles.append(marks.symbol(condition, fill, marker, colour))
    handles.append(marks.symbol("of theory at the measured clock", marker="x", size=2.5))
    axes.axvline(100, color=style.BLACK, linewidth=0.9, zorder=1)
    shares = 100 * known[["nominal_fraction", "clock_fraction"]].to_numpy(float)
    axes.set(xlim=(np.nanmin(shares) - 4, max(np.nanmax(shares), 100) + 3), ylim=(len(names) - 0.4, -0.6))
    axes.set(xlabel="measured value (% of theory)", ylabel="roof, its value on the right")
    axes.set_yticks(range(len(names)), names, fontsize=style.SMALL)
    for _, row in known.drop_duplicates("name").iterrows():
        how = {"va": "center", "fontsize": style.SMALL, "gid": "label", "transform": axes.get_yaxis_transform()}
        axes.text(1.02, names.index(row["name"]), scaled(row["value"], row["unit"]), **how)
    others = scene.found[scene.found["nominal_fraction"].isna()].drop_duplicates("name")
    values = [f"{row['name']} {scaled(row['value'], row['unit'])}" for _, row in others.iterrows()]
    devices = int(known["devices"].iloc[0])
    notes = [
        f"Medians of {devices} devices" if devices > 1 else "",
        f"The values are those {known['condition'].iloc[0]}",
        f"Without theory: {listed(values, 40)}" if values else "",
    ]
    text = nodes.caption(scene, frame.sentences(notes))
    left = LEFT + LETTER * max(map(len, names))
    frame.settle(figure, [axes], max(height, LINE * len(names)), handles, text, left=left, right=RIGHT)
    return [axes]
