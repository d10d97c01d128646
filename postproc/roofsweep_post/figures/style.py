"""How figures look: at the width of a journal's column or page, told apart by the colour-blind and in black and white.

A series has a colour (Okabe and Ito, 2008), a marker and a dash of its own; the marker alone tells it apart."""

import contextlib

import matplotlib

matplotlib.use("Agg")

from matplotlib import patheffects
from matplotlib import pyplot as plt

from ..texts import Refused, listed

WIDTHS = {"column": 3.5, "page": 7.2}  # inches
DPI = 300
FONT, SMALL = 7.0, 6.0  # points; small is 7 where a page of 7.2 inches is shown at 8.5, as on the web

BLACK, GREY, LIGHT = "#000000", "#555555", "#DDDDDD"
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
# The same precision has the same colour in every figure.
PRECISIONS = {
    "fp64": "#000000",
    "fp32": "#0072B2",
    "tf32": "#009E73",
    "fp16": "#D55E00",
    "bf16": "#56B4E9",
    "fp8": "#CC79A7",
    "fp4": "#882255",
    "int8": "#E69F00",
}
MARKERS = "osD^vP*X<>hp"
FILLS = {
    "closed": {},
    "open": {"markerfacecolor": "white"},  # no line shows through it
    "left": {"fillstyle": "left"},
    "bottom": {"fillstyle": "bottom"},
    "hollow": {"fillstyle": "none"},  # another symbol at its place shows through it
}
DASHES = ["-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1))]
HATCHES = ["", "////", "....", "xxxx", "\\\\\\\\", "++++"]
SIZE = 4.0  # of a marker, in points

# The boxes of launch overhead, and what a label stands on.
HALO = [patheffects.withStroke(linewidth=1.5, foreground="white")]

SETTINGS = {
    "font.size": FONT,
    "font.family": "sans-serif",
    "axes.titlesize": FONT,
    "axes.labelsize": FONT,
    "xtick.labelsize": FONT - 0.5,
    "ytick.labelsize": FONT - 0.5,
    "xtick.minor.pad": 5.0,  # numbers of minor ticks stand in a line with those of major ones
    "ytick.minor.pad": 5.0,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.2,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": LIGHT,
    "grid.linewidth": 0.4,
    "axes.axisbelow": True,
    "lines.linewidth": 0.8,
    "lines.markersize": SIZE,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,  # TrueType, which journals ask for
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a $ in a name is a $
    "svg.hashsalt": "roofsweep",
    "figure.dpi": DPI,
}


# What no style sheet changes: where things stand, and that text is text.
LAYOUT = {
    **{name: SETTINGS[name] for name in ("figure.dpi", "pdf.fonttype", "svg.fonttype", "svg.hashsalt")},
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
    "savefig.bbox": None,
}


@contextlib.contextmanager
def settings(sheet=""):
    """A context in which figures look like ours. sheet: name or file of one of matplotlib's style sheets, whose font,
    axes and grid have precedence."""
    with plt.rc_context(SETTINGS):
        if sheet:
            try:
                plt.style.use(sheet)
            except OSError as error:
                there = f"no file and no style sheet of matplotlib; there are: {listed(plt.style.available, 30)}"
                raise Refused(f"--style {sheet}: {there}") from error
            plt.rcParams.update(LAYOUT)
        yield


__all__ = ["plt", "settings"]
