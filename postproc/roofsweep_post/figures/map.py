"""Draws a map with a column for each device and a row for each roof. Colours are per cent of the median of the device's
model. Slow cells are framed, and the caption names them."""

import numpy as np
from matplotlib.patches import Patch, Rectangle

from ..frames import ROOFS
from . import frame, nodes, style

HELP = "devices x roofs, in per cent of the median of the model; the slow ones are framed and named"
build = nodes.roof_nodes
PANELS, HEIGHT = 1, {"column": 2.0, "page": 2.0}
NEEDS = ROOFS
LINE = 0.095  # inches: height of a row of the map
CELL = 0.5  # inches: above narrower cells the name of the device is turned
PALE = 0.3  # opacity of cells whose deviation is within the noise
MOST_NAMED = 40  # with more devices, the axis does not name all of them
MOST_NUMBERED = 16  # with more devices, cells have no room for numbers
NUMBERED = 2  # per cent: cells with a smaller deviation have no number
RANGE = 5, 10  # per cent: least and largest deviation at the end of the colour scale
LETTER, BESIDE = 0.048, 0.37  # inches: width of a letter, other room beside the axes
CONDITIONS = "Alone: one device at a time was measured; together: all of them at once"
WHAT = f"{CONDITIONS}. Colours are the speed of a device over that of its reference, in per cent"
NUMBER = {"ha": "center", "va": "center", "fontsize": style.SMALL, "gid": "label"}


def ink(image, matrix, alpha, row, column):
    """Returns the colour of a number in a cell: black or white, whichever is readable."""
    colour = np.array(image.cmap(image.norm(matrix[row, column]))[:3])
    shade = alpha[row, column] * colour @ [0.3, 0.59, 0.11] + 1 - alpha[row, column]
    return style.BLACK if shade > 0.5 else "white"


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    found = scene.found
    kinds, devices = nodes.keys(found), list(dict.fromkeys(found["device"]))
    matrix = 100 * (nodes.grid(found, kinds, devices, "deviation") - 1)
    height = max(1.0, LINE * len(kinds))
    most = float(np.clip(np.nanmax(-matrix, initial=0), *RANGE))
    far = nodes.grid(found.assign(far=found["slow"] | found["fast"]), kinds, devices, "far")
    alpha = np.where(far == 1, 1.0, PALE)
    image = axes.imshow(matrix, alpha=alpha, aspect="auto", cmap="PuOr", vmin=-most, vmax=most, interpolation="nearest")
    axes.grid(False)
    axes.set_yticks(range(len(kinds)), kinds, fontsize=style.SMALL)
    slow = set(found.loc[found["slow"], "device"])
    shown = [number for number, name in enumerate(devices) if len(devices) <= MOST_NAMED or name in slow]
    left = min(BESIDE + LETTER * max(map(len, kinds)), 0.6 * figure.get_size_inches()[0])
    turned = len(shown) * CELL > figure.get_size_inches()[0] - left
    names = [devices[number] for number in shown]
    axes.set_xticks(shown, names, fontsize=style.SMALL, rotation=90 if turned else 0)
    axes.set(xlabel="device", ylabel="roof, condition")
    axes.tick_params(length=1.5, pad=1.5)
    if len(devices) <= MOST_NUMBERED:  # numbers show the sign also in black and white
        for row, column in np.argwhere(np.abs(matrix) >= NUMBERED):
            axes.text(
                column, row, f"{matrix[row, column]:+.0f}", **NUMBER, color=ink(image, matrix, alpha, row, column)
            )
    marked = nodes.grid(found, kinds, devices, "slow")
    for row, column in np.argwhere(marked == 1):
        axes.add_patch(
            Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=style.BLACK, linewidth=0.8, gid="slow")
        )
        if MOST_NUMBERED < len(devices) <= MOST_NAMED:
            axes.text(column, row, f"{matrix[row, column]:+.0f}", **NUMBER)
    texts = [
        f"{-most:.3g} % and slower",
        f"{-most / 2:.3g} %",
        "0 %",
        f"+{most / 2:.3g} %",
        f"+{most:.3g} % and faster",
    ]
    handles = [
        Patch(facecolor=image.cmap(image.norm(value)), edgecolor=style.GREY, linewidth=0.3, label=text)
        for value, text in zip(np.linspace(-most, most, 5), texts)
    ]
    handles.append(Patch(facecolor="white", edgecolor=style.BLACK, linewidth=0.8, label="slower than the noise"))
    numbers = f" Cells of {NUMBERED} % or more have a number." * (len(devices) <= MOST_NUMBERED)
    pale = "Pale cells are within the noise of their figures."
    facts = [WHAT, nodes.cycles_text(found), nodes.reference_text(scene)]
    whole = frame.sentences([*facts, f"{numbers} {pale} {nodes.outliers_text(found)}".strip()])
    text = nodes.caption(scene, whole)
    longest = max(len(name) for name in names) if turned else 0
    frame.settle(figure, [axes], height, handles, text, left=left, bottom=0.35 + LETTER * longest)
    return [axes]
