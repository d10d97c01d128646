"""Draws counted FLOPs and bytes against modelled ones."""

import numpy as np

from ..texts import Refused
from . import frame, marks, style
from .scene import check_looks

HELP = "counted FLOPs and bytes against the model's"
PANELS, HEIGHT = 2, {"column": 2.1, "page": 2.9}


def draw(figure, axes, scene, annotate, height):
    check_looks([(series.colour, series.marker) for series in scene.series])
    level = scene.level if scene.level not in ("row", "all") else "dram"
    panels = [
        ("flops_model", "flops_counted", "FLOPs", ""),
        ("bytes_model", f"bytes_counted_{level}", f"bytes at {level}", "B"),
    ]
    handles = [*marks.series_handles(scene, joined=False), marks.line("counted = modelled", (0, (4, 1.5)), style.BLACK)]
    for place, (x, y, what, unit) in zip(axes, panels):
        values = frame.finite(scene.rows[x], scene.rows[y])
        if not scene.rows[y].notna().any():
            raise Refused(f"no row has counted {what}: counters = auto, on a device whose counters can be read")
        place.set(xscale="log", yscale="log", xlabel=f"{what}, modelled", ylabel=f"{what}, counted")
        place.set(xlim=frame.decades(values.min(), values.max()), ylim=frame.decades(values.min(), values.max()))
        for axis in (place.xaxis, place.yaxis):
            frame.engineering(axis, unit)
    scale = frame.settle(figure, axes, height, handles, frame.caption(scene, work=False, lines=False))
    keys = []
    for place, (x, y, _, _) in zip(axes, panels):
        ends = np.array(place.get_xlim())
        place.plot(ends, ends, color=style.BLACK, linewidth=0.8, linestyle=(0, (4, 1.5)), zorder=1, gid="equal")
        labels = marks.Labels(place, scale)
        labels.add_line(ends, ends)
        for series in scene.series:
            marks.points(place, series, x, y, dash="none")
            labels.add_points(series.rows[x], series.rows[y])
        marks.label_points(labels, scene, annotate, x, y)
        keys.append(labels.key_text())
    frame.settle(figure, axes, height, handles, frame.caption(scene, *keys, work=False, lines=False))
    return axes
