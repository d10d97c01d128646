"""The page around the axes: legend and caption below, as high as they need to be."""

import textwrap

import numpy as np
from matplotlib.ticker import EngFormatter

from ..texts import listed
from . import style

GAP = 0.04  # inches between the parts of a page
MARGIN = 0.06  # inches beside the caption


def caption(scene, key=""):
    """Device, date, driver, library, cache mode, counted or modelled, commit."""
    facts = []
    for number, data in enumerate(scene.files):
        own = scene.rows[scene.rows["file"] == number]
        if own.empty:
            continue
        used = sorted(set(own["config_device"].dropna().astype(int)))

        def device(name, data=data, used=used):
            return listed(dict.fromkeys(str(word) for word in data[f"device_{name}"].values[used] if str(word)), 3)

        count = len({data["device_uuid"].values[place] for place in used})
        facts.append(f"{count} x {device('model')}" if count > 1 else device("model"))
        facts.append(data.attrs.get("time_coverage_start", data.attrs.get("date_created", ""))[:10])
        facts += [f"driver {device('driver_version')}", device("library_version")]
        for name, word in [("cache", "cache {}"), ("flops_source", "FLOPs {}"), ("bytes_source", "bytes {}")]:
            values = sorted(set(own[name]) - {""})
            facts += [word.format(" and ".join(values))] if values else []
        facts.append(data.attrs.get("source", ""))
    level = scene.level if scene.level != "row" else listed(dict.fromkeys(scene.rows["level"]), 3)
    facts.append(f"roofs and bytes at {level}" if level != "all" else "")
    return "; ".join(fact for fact in facts if fact) + (f". Key: {key}" if key else "")


def seconds(axis):
    axis.set_major_formatter(EngFormatter("s", sep=" "))


def page(width, height, panels=1, share=False):
    """(figure, list of axes): panels beside each other at the width of a page, below each other in a column. height:
    of a panel, in inches."""
    inches = style.WIDTHS[width]
    across = panels if width == "page" else 1
    down = panels // across
    figure, axes = style.plt.subplots(down, across, squeeze=False, sharey=share and across > 1)
    figure.set_size_inches(inches, height * down)
    figure.canvas.draw()
    return figure, list(axes.flat)


def wrapped(figure, text, width):
    """Lines of a caption, none wider than so many inches."""
    probe = figure.text(0, 0, "", fontsize=style.SMALL)
    renderer = figure.canvas.get_renderer()
    for characters in range(int(width * 72 / (style.SMALL * 0.5)), 10, -1):
        lines = textwrap.wrap(text, characters, break_on_hyphens=False)
        probe.set_text("\n".join(lines))
        if probe.get_window_extent(renderer).width / figure.dpi <= width:
            break
    probe.remove()
    return lines


def settle(figure, axes, height, handles, text, left=0.62, right=0.1, top=0.12, bottom=0.42):
    """Gives each part its room: panels, legend, caption. Inches. Returns pixels per point."""
    for part in [*figure.legends, *figure.texts]:  # of an earlier call
        part.remove()
    width = figure.get_size_inches()[0]
    down = len({place.get_subplotspec().rowspan.start for place in axes})
    across = len(axes) // down
    lines = wrapped(figure, text, width - 2 * MARGIN)
    text_height = len(lines) * style.SMALL * 1.25 / 72 + GAP
    legend = best_legend(figure, handles, width)
    legend_height = legend.get_window_extent(figure.canvas.get_renderer()).height / figure.dpi if legend else 0
    below = text_height + legend_height + 2 * GAP
    total = top + down * height + (down - 1) * (bottom + top) + bottom + below
    figure.set_size_inches(width, total)
    figure.subplots_adjust(
        left=left / width,
        right=1 - right / width,
        top=1 - top / total,
        bottom=(below + bottom) / total,
        hspace=(bottom + top) / height,
        wspace=left / ((width - right - left * across) / across),
    )
    if legend:
        legend.set_bbox_to_anchor((0.5, (text_height + GAP) / total), figure.transFigure)
    figure.text(
        MARGIN / width,
        (text_height - GAP / 2) / total,
        "\n".join(lines),
        fontsize=style.SMALL,
        color=style.GREY,
        va="top",
        ha="left",
        linespacing=1.25,
        gid="caption",
    )
    figure.canvas.draw()
    return figure.dpi / 72


def best_legend(figure, handles, width):
    """The legend with as many columns as fit."""
    if not handles:
        return None
    legend = None
    for columns in range(min(6, len(handles)), 0, -1):
        legend = figure.legend(
            handles=handles, loc="lower center", ncols=columns, borderaxespad=0, borderpad=0.1, labelspacing=0.35
        )
        if legend.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi <= width - 0.05 or columns == 1:
            return legend
        legend.remove()
    return legend


def decades(low, high, before=1.6, after=1.6):
    """Limits of a logarithmic axis with room around the data."""
    return low / before, high * after


def finite(*columns):
    """All finite positive values of some columns."""
    values = np.concatenate([np.ravel(column).astype(float) for column in columns])
    return values[np.isfinite(values) & (values > 0)]
