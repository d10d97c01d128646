"""Draws figures of result files. draw() returns matplotlib axes. KINDS has a module for each kind of figure."""

from importlib import import_module

import numpy as np

from ..frames import several
from ..texts import Refused
from . import classic, frame, planes, style
from .scene import MOST, facets_of, fewer, scene

# {kind: module}. A module has HELP: the line of `plot --help`; PANELS: number of axes; HEIGHT: their height in inches,
# for a figure as wide as a column and as wide as a page; draw(figure, axes, scene, annotate, height), which returns the
# axes. Optional: build(), which is called instead of scene.scene(); NEEDS: variables that load() must find; LEVEL:
# default of --level; KNOWN: argument `known` of scene.scene(); FACETS: height of a facet in inches.
WORDS = "classic regions complexity time four losses energy bars parts network counted waves kernels"
WORDS += " roofs map strip history"
OWN = {"regions": classic.REGIONS, "complexity": planes.COMPLEXITY, "time": planes.TIME}
OWN |= {"four": planes.FOUR, "losses": planes.LOSSES}
KINDS = {word: OWN.get(word) or import_module(f"{__name__}.{word}") for word in WORDS.split()}

LONGEST = 100  # number of characters to which texts are cut, so that they fit on a page
# Texts that must stay whole.
WHOLE = {"configuration", "config_hash", "kernel_name", "uuid", "device_uuid", "label", "name", "listed"}


def short(data):
    """Returns the dataset with texts cut to LONGEST characters."""
    texts = {name: found for name, found in data.variables.items() if found.dtype == object and name not in WHOLE}
    cut = np.vectorize(lambda text: text[:LONGEST], otypes=[object])
    return data.assign({name: (found.dims, cut(found.values), found.attrs) for name, found in texts.items()})


def draw(
    data,
    kind="classic",
    where=(),
    series=None,
    by=None,
    level=None,
    width="column",
    annotate="auto",
    labels=(),
    caption=True,
    sheet="",
    order=(),
    title="",
    rename=None,
):
    """Draws a figure and returns its list of axes. data: a dataset of load(), or a list of datasets; where, series, by,
    level, labels: see scene.scene(); the default of level is the kind's LEVEL, or else dram; width: column or page;
    annotate: which points have labels: all, ends, none or auto; caption: whether the caption is drawn; sheet: style
    sheet of matplotlib; order: values whose series come first; title: text above the figure; rename: {word: other word}
    for legends, labels and axes. If the figure shows long names as numbers, figure.notes has lines that explain the
    numbers."""
    module = KINDS[kind]
    build = getattr(module, "build", scene)
    level = level or getattr(module, "LEVEL", "dram")
    how = {"where": where, "series": series, "by": by, "level": level, "labels": labels, "order": order}
    page = {"captioned": caption, "title": title, "renaming": rename or {}, "sheet": sheet}
    found = build([short(one) for one in several(data)], **how, known=getattr(module, "KNOWN", None))
    with style.settings(sheet):
        height = module.HEIGHT[width]
        try:
            if hasattr(module, "FACETS") and len(found.legend) > MOST:
                annotate = "none" if annotate == "auto" else annotate
                axes = frame.draw_facets(module, facets_of(found), width, annotate, page)
                return frame.renamed_axes(axes)
            figure, axes = frame.page(width, height, module.PANELS, page)
            return frame.renamed_axes(module.draw(figure, axes, found, annotate, height))
        except frame.Crowded as crowded:
            other = ", as in --where condition=alone" if kind == "map" else ", --width page is wider"
            way = fewer(found) if build is scene else f"--where chooses fewer{other}"
            raise Refused(f"{crowded}; {way}") from crowded
