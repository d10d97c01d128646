"""Draws kernels on the Roofline. The area of a symbol is the kernel's share of its row's kernel time."""

from dataclasses import replace

import numpy as np

from ..frames import KERNELS
from ..texts import Refused
from . import classic, frame, marks, style
from .kernel_rows import MOST, kernel_rows, left_out, row_names, short_kernels
from .scene import NEEDS as SCENE

HELP = "kernels of the chosen rows on the Roofline, area by share of time (needs kernels = yes)"
PANELS, HEIGHT = 1, {"column": 2.6, "page": 3.6}
NEEDS = (*SCENE, *KERNELS)
AREA = 160  # square points: area of the symbol of a kernel that takes all of its row's kernel time
CORNERS = 1.4  # width over root of the area, for the widest symbol, a diamond


def located(scene):
    """Returns (kernels with FLOPs and with bytes at the scene's memory level, kernels without FLOPs, number of kernels
    with FLOPs whose bytes or times are not known)."""
    level = scene.level if scene.level not in ("row", "all") else "dram"
    table, name = kernel_rows(scene), f"kernel_bytes_counted_{level}"
    if not table["kernel_flops_counted"].notna().any():
        raise Refused("the kernels of these rows were not counted: kernels = yes in [measure]")
    without = table[table["kernel_flops_counted"] == 0]
    table = table[table["kernel_flops_counted"] > 0]
    known = (table[name] > 0) & (table["kernel_time"] > 0)
    if len(table) and not known.any():
        raise Refused(f"no kernel of these rows with FLOPs has counted bytes of {level}: choose another --level")
    table = table.assign(
        intensity=table["kernel_flops_counted"] / table[name],
        speed=table["kernel_flops_counted"] / table["kernel_time"],
    )
    return table[known], without, (~known).sum()


def draw_circles(axes, labels, table, looks):
    """Draws the symbols and marks their places as occupied. looks: {name of a kernel: (colour, marker)}."""
    how = {"alpha": 0.75, "edgecolor": style.BLACK, "linewidth": 0.4, "zorder": 3, "gid": "kernel"}
    for _, row in table.iterrows():
        colour, marker = looks[row["kernel_name"]]
        axes.scatter(row["intensity"], row["speed"], s=AREA * row["share"], color=colour, marker=marker, **how)
        labels.add_points(row["intensity"], row["speed"], CORNERS * np.sqrt(AREA * row["share"]))


def name_rows(labels, table, rows):
    """Labels each kernel with the name of its row, if there are several rows. Kernels at the same place share a
    label."""
    if len(set(rows)) < 2:
        return
    found = zip(table["intensity"], table["speed"], rows, [style.BLACK] * len(rows))
    for point in marks.shared_points(labels, found):
        labels.place(", ".join(point.texts), point.x, point.y)


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    table, without, unknown = located(scene)
    if table.empty:
        raise Refused("no kernel of these rows does FLOPs")
    note = left_out(table)
    table = table.head(MOST).reset_index(drop=True)
    roofs = classic.used_roofs(scene)
    fastest = table["speed"].max()  # upper limit of the axis if there are no roofs
    limited = scene.rows.assign(performance=fastest, overhead_ceiling=np.nan)
    classic.limits(axes, replace(scene, extent=limited), [table["intensity"]])
    low = min(axes.get_ylim()[0], table["speed"].min() / 3)
    axes.set(ylim=(low, axes.get_ylim()[1]), xlabel="arithmetic intensity (FLOP/byte)", ylabel="performance (FLOP/s)")
    frame.engineering(axes.xaxis, text=frame.power)
    frame.engineering(axes.yaxis)
    rows, numbers = row_names(scene, table)
    shorts = short_kernels(list(dict.fromkeys(table["kernel_name"])))
    looks = {
        name: (style.COLOURS[number % len(style.COLOURS)], style.MARKERS[number % len(style.MARKERS)])
        for number, name in enumerate(shorts)
    }
    handles = [
        marks.Line2D([], [], color=colour, marker=marker, linestyle="none", label=shorts[name])
        for name, (colour, marker) in looks.items()
    ]
    handles += [
        marks.line("measured roofs", colour=style.BLACK),
        marks.symbol("area: share of the row's time, here 50 %", size=np.sqrt(AREA / 2)),
    ]
    time = f"{100 * without['share'].sum() / len(scene.rows):.0f} % of the time"
    idle = f"{len(without)} kernels without FLOPs, which take {time}, have no place here" if len(without) else ""
    lost = f"{unknown} kernels whose bytes or times are not known are left out" if unknown else ""
    notes = [numbers, note, idle, lost]
    scale = frame.settle(figure, [axes], height, handles, frame.caption(scene, *notes, lines=False))
    drawn, labels = classic.draw_roofs(axes, roofs), marks.Labels(axes, scale)
    for x, y in drawn.values():
        labels.add_line(x[[0, -1]], y[[0, -1]])
    draw_circles(axes, labels, table, looks)
    for text, (x, y) in drawn.items():
        labels.along(text, x, y)
    name_rows(labels, table, rows)
    frame.settle(figure, [axes], height, handles, frame.caption(scene, *notes, labels.key_text(), lines=False))
    return [axes]
