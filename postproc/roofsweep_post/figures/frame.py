"""Lays out the page around the axes, with legend and caption below them, as high as their texts need."""

import copy
import io
import re
import textwrap

import numpy as np
from matplotlib.ticker import EngFormatter, FixedFormatter, LogLocator, NullLocator

from ..columns import NOISY
from ..devices import driver_word
from ..texts import Refused, listed
from . import style

GAP = 0.04  # inches between the parts of a page
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
TITLE = 0.18  # inches
MARGIN = 0.06  # inches left and right of the caption
DATES = ["time_coverage_start", "time_coverage_end"]
LEAST = 1e-60  # a quantity below LEAST or above 1 / LEAST is damaged
HIGHEST = 9.5  # inches: largest height of a figure, the height of a journal's page
KEY = "Key: "  # start of the sentence that explains shortened labels
LEAST_DECADES = 3  # a logarithmic axis of fewer decades needs more numbers than the powers of ten


class Crowded(Refused):
    """Raised if the chosen rows have no room in the figure."""


class Page(style.plt.Figure):
    """A figure. While facets are drawn, it collects the legend entries and the sentences of the caption, each once."""

    gathered = None  # while facets are drawn: ({label: legend handle}, {sentence of the caption: None})
    notes = ()  # lines that `plot` prints to explain the numbers that stand for long names in the figure
    caption = ""  # text of the caption, even if it is not drawn

    def __init__(self, *arguments, captioned=True, title="", renaming=(), sheet="", **options):
        super().__init__(*arguments, **options)
        self.captioned, self.title, self.renaming, self.sheet = captioned, title, dict(renaming), sheet

    def renamed(self, text):
        if not self.renaming:
            return text
        words = "|".join(map(re.escape, sorted(self.renaming, key=len, reverse=True)))
        return re.sub(rf"(?<!\w)(?:{words})(?!\w)", lambda found: self.renaming[found[0]], text)

    def savefig(self, *arguments, **options):
        """Saves the figure with the settings of the drawing: TrueType fonts, and a page that is not cropped."""
        with style.settings(self.sheet):
            super().savefig(*arguments, **options)

    def _repr_png_(self):
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=150)
        return stream.getvalue()


def sentences(facts):
    """Joins the facts that are not empty into sentences."""
    return " ".join(f"{fact.rstrip('. ')}." for fact in facts if fact)


def days(data):
    """Returns the first and last day on which a file was measured."""
    ends = [data.attrs.get(name, data.attrs.get("date_created", "")) for name in DATES]
    return " to ".join(dict.fromkeys(end[:10] for end in ends if end))


def measured(who, data):
    """Returns the first sentence of a caption: devices, days, version of roofsweep."""
    when, source = days(data), data.attrs.get("source", "")
    return f"{who}, measured" + f" on {when}" * bool(when) + f" by {source}" * bool(source)


def sources(own):
    """Returns sentences that say for how many of these rows FLOPs and bytes were counted, and for how many modelled."""
    found = {}
    for what, name in [("FLOPs", "flops_source"), ("bytes", "bytes_source")]:
        counts = own.loc[own[name] != "", name].value_counts().sort_index()
        several = [f"{how} for {count} row{'s' * (count > 1)}" for how, count in counts.items()]
        found.setdefault(" and ".join(several if len(counts) > 1 else counts.index), []).append(what)
    texts = [f"{' and '.join(names)} were {how}" for how, names in found.items() if how]
    return [text[0].upper() + text[1:] for text in texts]


def level_text(scene):
    """Returns the sentence on memory levels, with the other levels at which rows without bytes at the chosen one are
    drawn."""
    there = list(dict.fromkeys(scene.extent["level"]))
    if scene.level == "all":
        return ""
    if scene.level == "row":
        return f"Bytes are those at the memory level that limits a row: {listed(there, 4)}"
    others = [level for level in there if level != scene.level]
    text = f"Bytes are those at {scene.level}"
    return f"{text}; rows that lack them have those at {listed(others, 3)}" if others else text


def noise_text(rows, lines):
    """Returns the sentence on rows whose 95 % interval is wide. lines: whether the figure draws the intervals."""
    count = int((rows["noise"] > NOISY).sum())
    text = "Thin lines are 95 % intervals of the median; " * lines
    text += f"{count} of {len(rows)} rows are known to no better than {100 * NOISY:.0f} %"
    return text if count else ""


def caption(scene, *notes, work=True, lines=True):
    """Returns the caption: device, date, version, driver, library and cache. work: whether the caption also states
    sources and memory level of FLOPs and bytes. lines: as in noise_text(). notes: further sentences."""
    facts = []
    for number, data in enumerate(scene.files):
        own = scene.extent[scene.extent["file"] == number]
        if own.empty:
            facts.append(f"Nothing here is from {data.attrs['path']}")
            continue
        used = sorted(set(own["config_device"].dropna().astype(int)))

        def device(name, data=data, used=used):
            return listed(dict.fromkeys(str(word) for word in data[f"device_{name}"].values[used] if str(word)), 3)

        count = len({data["device_uuid"].values[place] for place in used})
        facts.append(measured(f"{count} x {device('model')}" if count > 1 else device("model"), data))
        versions = [
            f"{driver_word(data, used)} {device('driver_version')}" * bool(device("driver_version")),
            device("library_version"),
        ]
        facts.append(", ".join(filter(None, versions)))
        facts[-1] = facts[-1][:1].upper() + facts[-1][1:]
        facts.append("A configuration that several devices measured is their median" * bool((own["devices"] > 1).any()))
        caches = sorted(set(own["cache"]) - {""})
        facts.append(f"The cache was {' or '.join(caches)}" if caches else "")
        facts += sources(own) if work else []
    facts += [level_text(scene) if work else "", noise_text(scene.extent, lines)]
    rows = f"{scene.left_out} row{'s' * (scene.left_out > 1)}"
    facts.append(f"Not drawn, without FLOPs, bytes or roofs: {rows}" if scene.left_out else "")
    return sentences([*facts, *([f"All rows: {scene.shared}"] if scene.shared else []), *notes])


def power(value, place=None):
    """Returns a power of ten as a text: 10000 as "10⁴"."""
    exponent = f"{np.log10(value):g}"
    return f"{value:g}" if "." in exponent else "10" + exponent.translate(RAISED)


def engineering(axis, unit="", text=None):
    """Formats the numbers of an axis with SI prefixes, or by the function `text`. A logarithmic axis of few decades
    also has numbers at 2 and 5. If a horizontal axis has units, which take more room, it has numbers at 3 instead."""
    digits = "3" if unit and axis.axis_name == "x" else "25"
    text = text or EngFormatter(unit, sep=" ")
    axis.set_major_formatter(text)
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and np.floor(np.log10(high)) - np.ceil(np.log10(low)) < LEAST_DECADES - 1:
        axis.set_minor_formatter(lambda value, place: text(value) if f"{value:e}"[0] in digits else "")


def renamed_axes(axes):
    """Replaces words in titles, axes and ticks, as --rename says. Returns the axes."""
    figure = axes[0].figure
    for one in [part for own in axes for part in (own, *own.child_axes)] if figure.renaming else ():
        for axis in (one.xaxis, one.yaxis):
            if isinstance(formatter := axis.get_major_formatter(), FixedFormatter):
                formatter.seq = [figure.renamed(text) for text in formatter.seq]
        for text in [one.title, one.xaxis.label, one.yaxis.label]:
            text.set_text(figure.renamed(text.get_text()))
    return axes


def page(width, height, panels=1, how=None):
    """Returns (figure, list of axes). Panels are side by side in a figure as wide as a page, and below each other in a
    figure as wide as a column. height: inches of a panel; how: arguments of Page."""
    inches = style.WIDTHS[width]
    across = panels if width == "page" else 1
    down = panels // across
    figure, axes = style.plt.subplots(down, across, squeeze=False, FigureClass=Page, **(how or {}))
    figure.set_size_inches(inches, height * down)
    return figure, list(axes.flat)


def draw_facets(module, facets, width, annotate, how):
    """Draws all facets of a crowded figure with shared axes, one legend and one caption. Returns their axes."""
    down, across = (max(one.place[side] for one in facets) + 1 for side in (0, 1))
    height, inches = module.FACETS[width], style.WIDTHS[width]
    if inches / across < 1 or down * height > HIGHEST:
        page = " (--width page has)" * (width == "column" and across <= style.WIDTHS["page"])
        raise Crowded(f"{down} x {across} facets have no room in a {width}{page}")
    shared = {"sharex": True, "sharey": True}
    figure, grid = style.plt.subplots(down, across, squeeze=False, FigureClass=Page, **how, **shared)
    figure.set_size_inches(inches, height * down)
    room = {"between": (0.1, 0.19), "top": 0.2}
    settle(figure, grid.flat, height, [], "", **room)
    figure.gathered = {}, {}
    for one in facets:
        axes = grid[one.place]
        module.draw(figure, [axes], one, annotate, height)
        axes.set_title(one.title, fontsize=style.SMALL, pad=2)
        words = axes.get_xlabel(), axes.get_ylabel()
    for axis in (axes.xaxis, axes.yaxis):  # shared by all facets
        if np.ptp(np.log10(axis.get_view_interval())) > LEAST_DECADES:
            axis.set_minor_locator(NullLocator())  # minor ticks have no room in a facet, and take seconds
            if axis is axes.xaxis:
                axis.set_major_locator(LogLocator(numticks=4))
    (handles, texts), figure.gathered = figure.gathered, None
    drawn = {one.place for one in facets if one.series}
    for (row, column), axes in np.ndenumerate(grid):
        axes.set(xlabel="", ylabel="", visible=(row, column) in drawn)
        axes.tick_params(which="both", labelbottom=not any((below, column) in drawn for below in range(row + 1, down)))
        axes.tick_params(which="both", labelleft=not any((row, before) in drawn for before in range(column)))
    for text, handle in handles.items():
        handle.set_label(text)
    names = {name for one in facets for name in one.legend}
    own = sorted((handle for text, handle in handles.items() if text in names), key=lambda handle: handle.get_color())
    entries = [*own, *(handle for text, handle in handles.items() if text not in names)]
    cut = dict.fromkeys(word for text in texts if text.startswith(KEY) for word in text[len(KEY) :].split("; "))
    found = {}  # facets may have different machine balances
    for word in cut:
        name, _, value = word.partition(": ")
        found.setdefault(name, []).append(value)
    key = KEY + "; ".join(name + f": {', '.join(values)}" * bool(values[0]) for name, values in found.items())
    facts = [text for text in texts if not text.startswith(KEY)] + [key] * bool(cut)
    settle(figure, grid.flat, height, entries, sentences(facts), **room)
    box = grid[-1, 0].get_position(), grid[0, -1].get_position()
    how = {"fontsize": style.FONT, "ha": "center", "gid": "axis"}
    low = box[0].y0 - 0.36 / figure.get_size_inches()[1]
    figure.text((box[0].x0 + box[1].x1) / 2, low, figure.renamed(words[0]), va="bottom", **how)
    how["ha"] = "left"
    figure.text(0.03 / inches, (box[0].y0 + box[1].y1) / 2, figure.renamed(words[1]), rotation=90, va="center", **how)
    return [grid[one.place] for one in facets if one.series]


def wrapped(figure, text, width):
    """Breaks a text into lines of at most `width` inches."""
    probe = figure.text(0, 0, "", fontsize=style.SMALL)
    renderer = figure.canvas.get_renderer()
    for characters in range(int(width * 72 / (style.SMALL * 0.5)), 10, -1):
        lines = textwrap.wrap(text, characters, break_on_hyphens=False)
        probe.set_text("\n".join(lines))
        if probe.get_window_extent(renderer).width / figure.dpi <= width:
            break
    probe.remove()
    return lines


def settle(figure, axes, height, handles, text, left=0.62, right=0.17, top=0.12, bottom=0.42, between=None):
    """Places panels, legend and caption, and sets the height of the figure. Margins are in inches. between: (distance
    of panels side by side, distance of panels below each other). Returns the number of pixels in a point."""
    if figure.gathered:
        for handle in handles:
            name = handle.get_label()
            figure.gathered[0].setdefault("increasing parameter" if name.startswith("increasing ") else name, handle)
        figure.gathered[1].update(dict.fromkeys(text.rstrip(".").split(". ")))
        return figure.dpi / 72
    figure.caption = figure.renamed(text)
    text = figure.caption if figure.captioned else ""
    top += TITLE if figure.title else 0
    aside, apart = between or (left + right, bottom + top)
    axes = list(axes)
    for part in [*figure.legends, *figure.texts]:  # an earlier call added them
        part.remove()
    width = figure.get_size_inches()[0]
    down = len({place.get_subplotspec().rowspan.start for place in axes})
    across = len(axes) // down
    if down * height + len(text) * style.SMALL**2 / 72**2 / 2 / width > HIGHEST:
        raise Crowded(f"the names of all that is drawn would make the figure more than {HIGHEST:g} inches high")
    lines = wrapped(figure, text, width - 2 * MARGIN)
    text_height = len(lines) * style.SMALL * 1.25 / 72 + GAP
    legend = best_legend(figure, [renamed_handle(figure, handle) for handle in handles], width)
    legend_height = legend.get_window_extent(figure.canvas.get_renderer()).height / figure.dpi if legend else 0
    below = text_height + legend_height + 2 * GAP
    total = top + down * height + (down - 1) * apart + bottom + below
    if total > HIGHEST:
        raise Crowded(f"the figure would be {total:.0f} inches high, and a page has {HIGHEST:g}")
    figure.set_size_inches(width, total)
    figure.subplots_adjust(
        left=left / width,
        right=1 - right / width,
        top=1 - top / total,
        bottom=(below + bottom) / total,
        hspace=apart / height,
        wspace=aside * across / (width - left - right - (across - 1) * aside),
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
    if figure.title:
        figure.text(0.5, 1 - GAP / total, figure.title, fontsize=style.FONT, va="top", ha="center", gid="title")
    return figure.dpi / 72


def renamed_handle(figure, handle):
    """Returns the legend entry with the words of --rename, on several lines if the figure is too narrow."""
    handle, letters = copy.copy(handle), int((figure.get_size_inches()[0] - 0.5) * 72 / (0.6 * style.SMALL))
    handle.set_label("\n".join(textwrap.wrap(figure.renamed(handle.get_label()), letters, break_on_hyphens=False)))
    return handle


def best_legend(figure, handles, width):
    """Returns the legend with the fewest rows that fits the width; None without handles."""
    if not handles:
        return None
    legend = None
    for rows in range(-(-len(handles) // 6), len(handles) + 1):
        columns = -(-len(handles) // rows)
        legend = figure.legend(
            handles=handles, loc="lower center", ncols=columns, borderaxespad=0, borderpad=0.1, labelspacing=0.35
        )
        if legend.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi <= width - 0.05 or columns == 1:
            return legend
        legend.remove()
    return legend


def decades(low, high, before=1.6, after=1.6):
    """Returns limits of a logarithmic axis with room before and after the data."""
    return low / before, high * after


def finite(*columns):
    """Returns all positive values of the columns, except values that damage made too small or too large. Raises Refused
    if there is none."""
    values = np.concatenate([np.ravel(column).astype(float) for column in columns])
    values = values[(values > LEAST) & (values < 1 / LEAST)]
    if not len(values):
        raise Refused("nothing that was chosen has a value above 0, so there is nothing to draw")
    return values
