"""Draws the energy Roofline: energy per FLOP over arithmetic intensity, with the energy roofs as lower limits."""

import numpy as np

from ..frames import roofs
from ..texts import scaled
from . import frame, marks, style

HELP = "energy of a FLOP over arithmetic intensity, measured (closed) and by the energy roofs (open)"
PANELS, HEIGHT = 1, {"column": 2.5, "page": 3.6}
FACETS = {"column": 1.15, "page": 1.3}  # inches: height of a facet
LINES = "A line is a FLOP and its bytes at the roofs of energy and of time, with the constant power meanwhile"
DASHES = (0, (4, 1.5))  # lines without constant power


def energy_roofs(scene, x):
    """Returns {text: (energies, energies without constant power)} for the units of the rows. Energies are those of a
    FLOP at the roofs, for the intensities x."""
    table, found = roofs(scene.files), {}
    level = "dram" if scene.level in ("row", "all") else scene.level
    for model, ceilings in scene.roofs.items():
        own = table[table["usable"] & (table["model"] == model)].groupby("name")[["energy", "constant_power"]].median()
        byte, constant = own.filter(like=f"{level} ", axis=0)["energy"].min(), own["constant_power"].min()
        widest = ceilings.get(("bandwidth", level, "B/s"), np.nan)
        for unit, precision in dict.fromkeys(zip(scene.extent["unit"], scene.extent["precision"])):
            flop = own.filter(like=f"{precision} {unit}", axis=0)["energy"].min()
            text = f"{precision} {unit} {scaled(flop, 'J/FLOP')}" + f" ({model})" * (not scene.one_model())
            lasting = np.maximum(1 / ceilings.get((unit, precision, "FLOP/s"), np.nan), 1 / (x * widest))
            if np.isfinite(flop + byte):
                found[text] = flop + byte / x + constant * lasting, flop + byte / x
    return found


KNOWN = {"energy": "no row that was chosen has its energy: energy = yes in [measure], on a GPU"}


def with_energies(table):
    return table.assign(each=table["energy"] / table["flops"], least=table["energy_at_roofs"] / table["flops"])


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    scene.extent = with_energies(scene.extent).dropna(subset=["intensity_at", "each"])
    x = frame.finite(scene.extent["intensity_at"])
    x = np.geomspace(x.min() / 2.5, x.max() * 3, 300)
    lines = energy_roofs(scene, x)
    y = frame.finite(scene.extent["each"], scene.extent["least"], *(own for own, _ in lines.values()))
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=frame.decades(y.min(), y.max(), 2.5, 2.5))
    axes.set(xlabel="arithmetic intensity (FLOP/byte)", ylabel="energy of a FLOP (J)")
    frame.engineering(axes.xaxis, text=frame.power)
    frame.engineering(axes.yaxis, "J")
    handles = [
        *marks.series_handles(scene),
        marks.symbol("measured"),
        *([marks.symbol("by the energy roofs", "open")] if scene.extent["least"].notna().any() else []),
    ]
    if lines:
        handles += [marks.line("energy roofs", colour=style.BLACK), marks.line("without constant power", DASHES)]
    note = LINES if lines else ""
    scale = frame.settle(figure, [axes], height, handles, frame.caption(scene, note))
    labels = marks.Labels(axes, scale)
    for text, (own, alone) in lines.items():
        axes.plot(x, own, color=style.BLACK, linewidth=0.9, zorder=1, gid=f"roof|{text}")
        axes.plot(x, alone, color=style.GREY, linewidth=0.6, linestyle=DASHES, zorder=1, gid=f"alone|{text}")
        labels.add_line(x, own)
        labels.add_line(x, alone)
    for series in scene.series:
        series.rows = with_energies(series.rows).dropna(subset=["intensity_at", "each"])
        marks.points(axes, series, "intensity_at", "each", fill="closed")
        marks.points(axes, series, "intensity_at", "least", fill="open", dash="none", zorder=2.9)
        for name in ("each", "least"):
            labels.add_points(series.rows["intensity_at"], series.rows[name])
        if series.by:
            labels.add_line(series.rows["intensity_at"], series.rows["each"])
    for text, (own, _) in lines.items():
        labels.along(text, x[150:], own[150:])
    marks.label_points(labels, scene, annotate, "intensity_at", "each")
    frame.settle(figure, [axes], height, handles, frame.caption(scene, note, labels.key_text()))
    return [axes]
