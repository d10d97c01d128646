"""Sets the style of figures: as wide as a journal's column or page, and readable for the colour-blind and in black and
white. Each series has its own colour (Okabe and Ito, 2008), marker and dash. The marker alone is enough to distinguish
a series."""

import contextlib

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import patheffects
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgb

from ..texts import Refused, listed

WIDTHS = {"column": 3.5, "page": 7.2}  # inches
DPI = 300
FONT, SMALL = 7.0, 6.0  # points; web pages enlarge a figure from 7.2 to 8.5 inches, so SMALL becomes 7 points

BLACK, GREY, LIGHT = "#000000", "#555555", "#DDDDDD"
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
# A precision has the same colour in every figure.
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
STRENGTHS = [1.0, 0.55, 0.3]  # strength of the colours of the first, second and third file or device in a figure
MARKERS = "osD^vP*X<>hp"
FILLS = {
    "closed": {},
    "open": {"markerfacecolor": "white"},  # lines behind the symbol are hidden
    "left": {"fillstyle": "left"},
    "bottom": {"fillstyle": "bottom"},
    "hollow": {"fillstyle": "none"},  # another symbol at the same place stays visible
}
DASHES = ["-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1))]
HATCHES = ["", "////", "....", "xxxx", "\\\\\\\\", "++++"]
SIZE = 4.0  # points: size of a marker

# White outline of labels.
HALO = [patheffects.withStroke(linewidth=1.5, foreground="white")]

SETTINGS = {
    "font.size": FONT,
    "font.family": "sans-serif",
    "axes.titlesize": FONT,
    "axes.labelsize": FONT,
    "xtick.labelsize": FONT - 0.5,
    "ytick.labelsize": FONT - 0.5,
    "xtick.minor.pad": 5.0,  # aligns numbers of minor ticks with those of major ticks
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
    "pdf.fonttype": 42,  # TrueType, which journals require
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a $ in a name does not start a formula
    "svg.hashsalt": "roofsweep",
    "figure.dpi": DPI,
}


# Settings that a style sheet may not change: those of the layout, and text that stays text in PDF and SVG.
LAYOUT = {
    **{name: SETTINGS[name] for name in ("figure.dpi", "pdf.fonttype", "svg.fonttype", "svg.hashsalt")},
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
    "savefig.bbox": None,
}


def lighter(colour, place):
    """Returns the colour of a series in the file or device number `place`."""
    return to_hex(1 - STRENGTHS[place] * (1 - np.array(to_rgb(colour))))


@contextlib.contextmanager
def settings(sheet=""):
    """Context in which figures are drawn with these settings. sheet: name or file of a matplotlib style sheet, whose
    settings of font, axes and grid take precedence."""
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
