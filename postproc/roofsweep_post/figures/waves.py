"""Draws the waves of blocks of each kernel, and the empty part of the last wave (tail effect)."""

import numpy as np
from matplotlib.patches import Patch

from ..frames import KERNELS
from ..texts import Refused
from . import frame, style
from .kernel_rows import MOST, kernel_rows, left_out, row_names, short_kernels
from .scene import NEEDS as SCENE

HELP = "waves of blocks of each kernel, and the empty share of the last wave"
PANELS, HEIGHT, LEVEL = 1, {"column": 1.4, "page": 1.4}, "row"
NEEDS = (*SCENE, *KERNELS)
LETTER, RIGHT, BAR = 0.045, 0.55, 0.26  # inches: width of a letter, room at the right of bars, height of a bar
LOST = "Lost is what the last wave leaves empty, as a share of all waves"


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    table = kernel_rows(scene)
    table = table.assign(waves=table["kernel_waves"])
    note = left_out(table[table["waves"] > 0])
    without = (~(table["waves"] > 0)).sum()
    note = ". ".join(filter(None, [note, f"{without} whose waves are not known are left out" if without else ""]))
    table = table[table["waves"] > 0].head(MOST).reset_index(drop=True)
    if table.empty:
        raise Refused("the kernels of these rows have no waves of blocks; only those of GPUs do")
    y, waves = np.arange(len(table)), table["waves"].to_numpy()
    last, full = waves - np.floor(waves), np.floor(waves)
    how = {"height": 0.72, "edgecolor": style.BLACK, "linewidth": 0.4}
    axes.barh(y, full, color=style.COLOURS[0], gid="full", **how)
    axes.barh(y, last, left=full, color=style.COLOURS[5], hatch="////", gid="last", **how)
    empty = np.where(last > 0, 1 - last, 0)
    axes.barh(y, empty, left=full + last, color="white", linestyle=":", gid="empty", **how)
    names, rows = row_names(scene, table, figure.get_size_inches()[0])
    shorts = short_kernels(list(dict.fromkeys(table["kernel_name"])))
    found = zip(table["kernel_name"], names, table["share"])
    ticks = [f"{shorts[name]}\n{row} ({100 * share:.0f} %)" for name, row, share in found]
    axes.set(ylim=(len(table) - 0.4, -0.6), xlabel="waves of blocks")
    axes.set_yticks(y, ticks, fontsize=style.SMALL, linespacing=1.15)
    axes.set_ylabel("kernel, row (share of its time)")
    if waves.max() > 12:
        axes.set_xscale("symlog", linthresh=2)
        frame.engineering(axes.xaxis)
    axes.set_xlim(0, np.ceil(waves).max() * 1.05)
    axes.grid(False, axis="y")
    for place, row in table.iterrows():
        tail = 1 - row["waves"] / np.ceil(row["waves"])
        text = f"{100 * tail:.0f} % lost"
        how = {"va": "center", "ha": "left", "fontsize": style.SMALL, "gid": "label"}
        axes.text(1.02, place, text, transform=axes.get_yaxis_transform(), **how)
    handles = [
        Patch(facecolor=style.COLOURS[0], edgecolor=style.BLACK, linewidth=0.4, label="full waves"),
        Patch(facecolor=style.COLOURS[5], hatch="////", edgecolor=style.BLACK, linewidth=0.4, label="last wave"),
        Patch(facecolor="white", edgecolor=style.BLACK, linestyle=":", linewidth=0.4, label="empty in the last wave"),
    ]
    text = frame.caption(scene, LOST, rows, note, work=False, lines=False)
    left = 0.46 + LETTER * max(len(line) for tick in ticks for line in tick.split("\n"))
    frame.settle(figure, [axes], max(height, BAR * len(table)), handles, text, left=left, right=RIGHT)
    return [axes]
