"""Draws the planes of the time-based Roofline (Wang et al., 2020): complexity (FLOPs against bytes), time (compute time
against bandwidth time), and both in four dimensions."""

from functools import partial
from types import SimpleNamespace

import numpy as np

from ..texts import scaled
from . import frame, marks, style

INTENSITIES = {f"{intensity:g} FLOP/B": intensity for intensity in 10.0 ** np.arange(-3, 7)}
PLACES = [("bandwidth_plane", "compute_plane"), ("bandwidth_floor", "compute_floor")]  # x and y: measured; at roofs
OVERHEAD = ("overhead_x", "overhead_y")


def diagonal(axes, ratio, **how):
    """Draws y = x * ratio across the axes. Returns points along the line."""
    low, high = axes.get_xlim()
    axes.plot([low, high], [low * ratio, high * ratio], **how)
    x = np.geomspace(low, high, 400)
    return x, x * ratio


def square(axes, x, y, before=2.0, after=2.0):
    """Sets logarithmic axes with room around x and y."""
    axes.set(
        xscale="log", yscale="log", xlim=(x.min() / before, x.max() * after), ylim=(y.min() / before, y.max() * after)
    )


def iso_runtimes(axes, labels, scales=(1, 1)):
    """Draws curves of equal run time, the larger of the two times. scales: numbers of units of x and y in a second."""
    scales, start = np.array(scales), np.array([axes.get_xlim()[0], axes.get_ylim()[0]])
    low, high = (start / scales).max(), (np.array([axes.get_xlim()[1], axes.get_ylim()[1]]) / scales).min()
    for time in 10.0 ** np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1):
        x, y = [start[0], *[time * scales[0]] * 2], [*[time * scales[1]] * 2, start[1]]
        axes.plot(x, y, color=style.GREY, linewidth=0.45, linestyle=(0, (6, 2)), zorder=0.5, gid="iso run time")
        labels.add_line(x, y)


def draw_ratios(axes, scene):
    """Draws lines of equal arithmetic intensity and of the machine balances. Returns {text: points along the line}."""
    drawn = {}
    for text, intensity in INTENSITIES.items():
        how = {"color": style.GREY, "linewidth": 0.4, "linestyle": (0, (1, 2)), "zorder": 0.5, "gid": "iso AI"}
        drawn[text] = diagonal(axes, intensity, **how)
    for name, balance in balances(scene).items():
        how = {
            "color": style.BLACK,
            "linewidth": 0.8,
            "linestyle": (0, (4, 1.5)),
            "zorder": 1,
            "gid": f"balance|{name}",
        }
        drawn[f"{name}: {balance:.3g} FLOP/B"] = diagonal(axes, balance, **how)
    return drawn


def draw_complexity(figure, axes, scene, annotate, height):
    (axes,) = axes
    scene.keep(["flops", "bytes_at", "peak", "bandwidth_at"])
    for series in scene.series:
        own = series.rows
        series.rows = own.assign(
            overhead_bytes=own["overhead_time"] * own["bandwidth_at"], overhead_flops=own["overhead_time"] * own["peak"]
        )
    every = scene.extent
    x = frame.finite(every["bytes_at"], every["overhead_time"] * every["bandwidth_at"])
    y = frame.finite(every["flops"], every["overhead_time"] * every["peak"])
    square(axes, x, y, 3, 3)
    axes.set(xlabel="bandwidth complexity (bytes)", ylabel="computational complexity (FLOPs)")
    frame.engineering(axes.xaxis, "B")
    frame.engineering(axes.yaxis)
    handles = [
        *marks.series_handles(scene),
        *marks.direction(scene),
        marks.line("equal arithmetic intensity", (0, (1, 2)), width=0.5),
        marks.line("machine balance", (0, (4, 1.5)), style.BLACK),
        marks.box("launch overhead"),
    ]
    scale = frame.settle(figure, [axes], height, handles, frame.caption(scene, marks.BOXES))
    axes.grid(False)
    labels, drawn = marks.Labels(axes, scale), draw_ratios(axes, scene)
    marks.overhead_boxes(labels, scene, "overhead_bytes", "overhead_flops")
    for found in drawn.values():
        labels.add_line(*found)
    for series in scene.series:
        marks.points(axes, series, "bytes_at", "flops")
        marks.arrows(axes, scene, series, "bytes_at", "flops")
        labels.add_points(series.rows["bytes_at"], series.rows["flops"])
        labels.add_line(series.rows["bytes_at"], series.rows["flops"])
    for text, found in drawn.items():
        if not (scene.title and text in INTENSITIES):  # facets have no room for texts of intensities
            labels.along(text, *found, colour=style.GREY if text in INTENSITIES else style.BLACK)
    marks.label_points(labels, scene, annotate, "bytes_at", "flops")
    frame.settle(figure, [axes], height, handles, frame.caption(scene, marks.BOXES, labels.key_text()))
    return [axes]


def balances(scene):
    """Returns {text with precision, unit and level: median machine balance of these rows}."""
    found = {}
    for _, row in scene.rows.iterrows():
        model = "" if scene.one_model() else f" {row['model']}"
        found.setdefault(f"{row['precision']} {row['unit']}, {row['level']}{model}", []).append(row["balance_at"])
    return {name: float(np.median(values)) for name, values in found.items()}


def draw_losses(axes, labels, scene, series):
    """Draws for each row a closed symbol at its times at the roofs, and a line from there to the measured time."""
    marks.points(axes, series, *PLACES[1], fill="closed")
    marks.arrows(axes, scene, series, *PLACES[1])
    how = {"color": series.colour, "linewidth": 0.4, "linestyle": (0, (1, 1.5)), "zorder": 2, "gid": "loss"}
    found = marks.segments(series.rows, ["bandwidth_floor", "bandwidth_plane"], ["compute_floor", "compute_plane"])
    axes.plot(*found, **how)
    labels.add_line(*found)


def balance_of(scene):
    """Returns ((bytes, FLOPs) that the roofs permit in a second, sentence of the caption). The roofs are the device's
    tensor peak, as in the paper, and the bandwidth of the rows' memory level. (None, "") if devices or levels
    differ."""
    levels = scene.extent["level"].unique()
    if not scene.one_model() or len(levels) > 1:
        return None, ""
    (roofs,) = scene.roofs.values()
    used = {"fp16", *scene.extent["precision"]}
    peaks = {f"{kind} {what}": value for (kind, what, _), value in roofs.items() if kind == "tensor" and what in used}
    peaks = peaks or {"the rows' highest roof": scene.extent["peak"].max()}
    (name, peak), width = max(peaks.items(), key=lambda item: item[1]), roofs["bandwidth", levels[0], "B/s"]
    scales = f"{scaled(peak, 'FLOP/s')} ({name}) and {scaled(width, 'B/s')} ({levels[0]})"
    return (width, peak), f"Times are scaled by {scales}, a balance of {peak / width:.3g} FLOP/B"


def on_axes(rows, scales):
    """Returns the rows with the columns of PLACES and OVERHEAD in the units of the axes. If the axes are bytes and
    FLOPs (scales), times become the bytes and FLOPs that the roofs permit in these times."""
    if not scales:
        return rows.assign(overhead_x=rows["overhead_time"], overhead_y=rows["overhead_time"])
    moved, flops = rows["bytes_at"], rows["flops"]
    longer = rows["own_time"] / np.maximum(moved / scales[0], flops / scales[1])
    found = {name: rows["overhead_time"] * scale for name, scale in zip(OVERHEAD, scales)}
    found |= {"bandwidth_plane": longer * moved, "compute_plane": longer * flops}
    return rows.assign(bandwidth_floor=moved, compute_floor=flops, **found)


def time_handles(scene, complexity, balance):
    closed = "complexity" + " at its roofs" * (not balance)
    return [
        *marks.series_handles(scene, fill="closed" if complexity else "open"),
        *([marks.symbol(closed), marks.symbol("measured time", "open", dash=marks.TIMES)] if complexity else []),
        *marks.direction(scene),
        *([marks.line("complexity to time", (0, (1, 1.5)), width=0.4)] if complexity else []),
        marks.line("machine balance", (0, (4, 1.5)), style.BLACK),
        marks.line("equal run time", (0, (6, 2)), width=0.5),
        marks.box("launch overhead"),
    ]


def name_axes(axes, scales, facet, closed=""):
    """Names the axes and formats their ticks. scales: bytes and FLOPs in a second; None for axes of times. Axes of
    times stand opposite axes of bytes and FLOPs, except in a facet."""
    words = zip(("xaxis", "yaxis"), ("bandwidth", "compute"), ("bytes", "FLOPs"), ("top", "right"), scales or (1, 1))
    for name, time, work, side, scale in words:
        axis = getattr(axes, name)
        axis.set_label_text(f"{work} (closed)" if scales else f"{time} time{closed.format(work)}")
        frame.engineering(axis, "s" if not scales else "B" * (work == "bytes"))
        if scales and not facet:
            add = axes.secondary_xaxis if side == "top" else axes.secondary_yaxis
            other = add(
                side, functions=(lambda value, scale=scale: value / scale, lambda value, scale=scale: value * scale)
            )
            getattr(other, f"set_{name[0]}lim")(np.divide(axis.get_view_interval(), scale))
            getattr(other, name).set_label_text(f"{time} time (open)")
            frame.engineering(getattr(other, name), "s")


def draw_times(figure, axes, scene, annotate, height, complexity, own_roofs=False):
    """Draws the time plane. complexity: also draw symbols of FLOPs and bytes, on axes of their own. own_roofs: divide
    FLOPs and bytes by the roofs of each row instead."""
    (axes,) = axes
    scene.keep([*PLACES[0], *PLACES[1]])
    scales, text = balance_of(scene) if complexity and not own_roofs else (None, "")
    scene.extent = on_axes(scene.extent, scales)
    for series in scene.series:
        series.rows = on_axes(series.rows, scales)
    drawn = [*PLACES[: 1 + complexity], OVERHEAD]
    x, y = (frame.finite(*[scene.extent[name] for name in names]) for names in zip(*drawn))
    x, y = (x, y) if scales else [np.concatenate([x, y])] * 2
    square(axes, x, y)
    name_axes(axes, scales, scene.title, "; closed: {} / roof" * complexity)
    handles = time_handles(scene, complexity, scales)
    room = {"right": 0.62, "top": 0.42} if scales else {}
    scale = frame.settle(figure, [axes], height, handles, frame.caption(scene, text, marks.BOXES), **room)
    labels = marks.Labels(axes, scale)
    axes.grid(False)
    iso_runtimes(axes, labels, scales or (1, 1))
    balance = {"color": style.BLACK, "linewidth": 0.8, "linestyle": (0, (4, 1.5)), "zorder": 1, "gid": "balance|"}
    labels.add_line(*diagonal(axes, scales[1] / scales[0] if scales else 1, **balance))
    marks.overhead_boxes(labels, scene, *OVERHEAD)
    for series in scene.series:
        if complexity:
            draw_losses(axes, labels, scene, series)
        marks.points(axes, series, *PLACES[0], fill="open", dash=marks.TIMES if complexity else None)
        if not complexity:
            marks.arrows(axes, scene, series, *PLACES[0])
    labelled = PLACES[1] if complexity else PLACES[0]  # labels belong to the joined symbols
    for series in scene.series:
        for x, y in PLACES if complexity else PLACES[:1]:
            labels.add_line(series.rows[x], series.rows[y])
            labels.add_points(series.rows[x], series.rows[y])
    marks.label_points(labels, scene, annotate, *labelled)
    frame.settle(figure, [axes], height, handles, frame.caption(scene, text, marks.BOXES, labels.key_text()), **room)
    return [axes]


# Kinds of figures. LEVEL: at another level than the limiting one a row would be on the wrong side of the balance.
SHARED = {"PANELS": 1, "FACETS": {"column": 1.15, "page": 1.3}}  # FACETS: inches
COMPLEXITY = SimpleNamespace(
    **SHARED,
    HELP="FLOPs against bytes: equal intensity, machine balance, box of launch overhead",
    HEIGHT={"column": 2.7, "page": 4.2},
    LEVEL="row",
    draw=draw_complexity,
)
TIME = SimpleNamespace(
    **SHARED,
    HELP="compute time against bandwidth time: equal run time, machine balance, box of launch overhead",
    HEIGHT={"column": 2.7, "page": 4.2},
    LEVEL="row",
    draw=partial(draw_times, complexity=False),
)
FOUR = SimpleNamespace(
    **SHARED,
    HELP="FLOPs and bytes (closed), times on the opposite axes (open); as `losses` if devices or levels differ",
    HEIGHT={"column": 2.5, "page": 4.6},
    LEVEL="dram",  # level of the paper's balance
    draw=partial(draw_times, complexity=True),
)
LOSSES = SimpleNamespace(
    **SHARED,
    HELP="times at each row's own roofs (closed) and measured times (open); their distance is the loss",
    HEIGHT={"column": 2.9, "page": 4.6},
    LEVEL="row",
    draw=partial(draw_times, complexity=True, own_roofs=True),
)
