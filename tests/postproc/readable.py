"""Checks that a figure is readable: texts cover nothing and are large enough, and each axis names its quantity."""

import re
from itertools import pairwise

import numpy as np
from roofsweep_post.figures import style

NEARER = 1.2  # least distance from a label to any other symbol, over the distance to its own symbol
SAME = 3.0  # points: symbols at most this far apart may share a label
STEP = 3  # pixels between the points that stand for the area of a slanted text
# Quantities without a unit: plain numbers, or names as ticks.
WITHOUT_UNIT = re.compile("number|^FLOPs|^waves|^blocks|^kernel, row|^device$|^roof,|^configuration$|^network$|UTC")


def corners(line):
    """Returns the points of a Line2D in pixels; NaN separates lines."""
    return line.axes.transData.transform(np.column_stack([line.get_xdata(), line.get_ydata()]).astype(float))


def symbols(axes):
    """Returns (centre in pixels, half size) of each symbol."""
    scale = axes.figure.dpi / 72
    for line in axes.get_lines():
        if line.get_marker() not in ("None", "", None) and "|" in (line.get_gid() or ""):
            yield from ((at, line.get_markersize() / 2 * scale) for at in corners(line) if np.isfinite(at).all())
    for found in axes.collections:
        if found.get_gid() == "kernel":
            yield axes.transData.transform(found.get_offsets())[0], np.sqrt(found.get_sizes()[0]) / 2 * scale


def box_of(text):
    """Returns left, bottom, right and top of a horizontal text, without the margin around its letters."""
    box = text.get_window_extent()
    return np.array([box.x0 + 1, box.y0 + 1, box.x1 - 1, box.y1 - 1])


def area_of(text):
    """Returns points spread over a text, slanted or not."""
    angle = np.radians(text.get_rotation())
    text.set_rotation(0)
    left, low, right, high = box_of(text)
    text.set_rotation(np.degrees(angle))
    x, y = np.meshgrid(np.arange(left, right, STEP), np.arange(low, high, STEP))
    middle = np.array([(left + right) / 2, (low + high) / 2])
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return (np.column_stack([x.ravel(), y.ravel()]) - middle) @ turn + middle


def within(points, box):
    return ((points > box[:2]) & (points < box[2:])).all(axis=1).any()


def check_labels(axes):
    """Fails if a label covers another label or a symbol."""
    level = [text for text in axes.texts if text.get_gid() == "label"]
    slanted = [text for text in axes.texts if text.get_gid() == "roof label"]
    areas = [area_of(text) for text in slanted]
    for number, text in enumerate(level):
        box = box_of(text)
        for other in level[number + 1 :]:
            assert not text.get_window_extent().overlaps(other.get_window_extent()), f"{text} and {other}"
        for other, area in zip(slanted, areas):
            assert not within(area, box), f"{text} and {other}"
        for middle, half in symbols(axes):
            touches = (middle + half > box[:2]).all() and (middle - half < box[2:]).all()
            assert not touches, f"{text} covers a symbol"
    for text, area in zip(slanted, areas):
        for middle, half in symbols(axes):
            assert np.hypot(*(area - middle).T).min() > half, f"{text} covers a symbol"


def check_owners(axes):
    """Fails unless each label is clearly nearest to one symbol (or to several at one place), or a line leads to its
    symbol."""
    near = SAME * axes.figure.dpi / 72
    found = np.array([middle for middle, _ in symbols(axes)])
    ways = np.array([corners(line)[-1] for line in axes.get_lines() if line.get_gid() == "leader"]).reshape(-1, 2)
    for text in axes.texts if len(found) else []:
        box = box_of(text)
        led = ((ways > box[:2] - near) & (ways < box[2:] + near)).all(axis=1).any()
        if text.get_gid() != "label" or led:
            continue
        far = np.hypot(*np.maximum(0, np.maximum(box[:2] - found, found - box[2:])).T)
        others = far[np.hypot(*(found - found[far.argmin()]).T) > near]
        assert far.min() * NEARER < others.min(initial=np.inf), f"{text}: whose label is it?"


def check_lines(axes):
    """Fails if a label is on a line, except the line to its own point."""
    for line in axes.get_lines():
        if line.get_linestyle() == "None" or line.get_gid() in (None, "leader"):
            continue
        for start, end in pairwise(corners(line)):
            if not np.isfinite([start, end]).all():
                continue
            path = np.linspace(start, end, max(2, int(np.hypot(*(end - start)) / 2)))
            for text in axes.texts:
                if text.get_gid() == "label":
                    assert not within(path, box_of(text)), f"{text} lies on {line.get_gid()}"


def scales(axes):
    """Returns the x axis, the y axis, and axes of other units on the opposite sides."""
    opposite = [axis for one in axes.child_axes for axis in (one.xaxis, one.yaxis) if axis.label.get_text()]
    return [axes.xaxis, axes.yaxis, *opposite]


def ticks(axis):
    low, high = sorted(axis.get_view_interval())
    place = 0 if axis.axis_name == "x" else 1
    labels = axis.get_ticklabels() + axis.get_ticklabels(minor=True)
    return [text for text in labels if low <= text.get_position()[place] <= high]


def check_axes(axes):
    """Fails unless each axis names a quantity, with its unit in brackets or at the ticks."""
    for axis in scales(axes):
        label = axis.label.get_text()
        assert label, "an axis without a label"
        units = [text for text in ticks(axis) if re.search(r"\d \S*(s|B)$", text.get_text())]
        assert "(" in label or units or WITHOUT_UNIT.search(label), f"{label}: no unit"
        for before, after in pairwise(text.get_window_extent() for text in ticks(axis) if text.get_text()):
            assert not before.overlaps(after), f"{label}: numbers of ticks overlap"


def check_texts(figure):
    """Fails if a text extends beyond the page or is too small."""
    page = figure.bbox
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        texts += [*axes.texts, *(text for axis in scales(axes) for text in (axis.label, *ticks(axis)))]
    for text in texts:
        if text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1 and box.y0 >= page.y0 - 1, text
            assert text.get_fontsize() >= style.SMALL, f"{text}: {text.get_fontsize()} points"


def look(handle):
    """Returns the visible properties of an entry of a legend."""
    if hasattr(handle, "get_hatch"):
        return *handle.get_facecolor(), *handle.get_edgecolor(), handle.get_hatch(), handle.get_linestyle()
    line = str(handle._dash_pattern) if handle.get_linestyle() != "None" else ""
    symbol = handle.get_marker(), handle.get_markersize(), handle.get_fillstyle(), handle.get_markerfacecolor()
    return handle.get_color(), line, handle.get_linewidth() * bool(line), *symbol


def check_legend(figure):
    """Fails if the legend is wider than the page, covers the caption or an axis, or has two entries that look alike."""
    for legend in figure.legends:
        looks = [look(handle) for handle in [*legend.get_lines(), *legend.get_patches()]]
        assert len(set(looks)) == len(looks), f"entries look alike: {looks}"
        box = legend.get_window_extent()
        assert box.x0 >= figure.bbox.x0 - 1 and box.x1 <= figure.bbox.x1 + 1, "the legend is wider than the page"
        assert not box.overlaps(figure.texts[-1].get_window_extent()), "legend and caption overlap"
        assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes), "the legend covers an axis"


def check(figure):
    figure.canvas.draw()
    check_texts(figure)
    check_legend(figure)
    for axes in figure.axes:
        check_axes(axes)
        check_labels(axes)
        check_owners(axes)
        check_lines(axes)
