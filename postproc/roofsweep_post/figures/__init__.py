"""Figures of result files. draw() gives matplotlib axes; the kinds are in KINDS, a module each."""

from importlib import import_module

import numpy as np

from ..frames import several
from ..texts import Refused
from . import frame, style
from .scene import MOST, facets_of, fewer, scene

# {word: module with HELP, PANELS, HEIGHT, draw(figure, axes, scene, annotate, height); of nodes also build()}
WORDS = "classic regions complexity time four energy bars counted waves kernels roofs map strip history"
KINDS = {word: import_module(f"{__name__}.{word}") for word in WORDS.split()}

LONGEST = 100  # letters of a text that a page has room for
WHOLE = {"configuration", "config_hash", "kernel_name", "uuid", "device_uuid"}  # are shortened otherwise, or not shown


def short(data):
    """The dataset with texts that a page has room for."""
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
):
    """The axes of one figure, a list. data: a dataset of load(), or several; where, series, by, level, labels: see
    scene.scene(), without a level that of the kind; width: column or page; annotate: points that are labelled: all,
    ends, none or auto; caption: it is drawn; sheet: a style sheet of matplotlib. What a figure prints: .notes."""
    module = KINDS[kind]
    build = getattr(module, "build", scene)
    level = level or getattr(module, "LEVEL", "dram")
    how = {"where": where, "series": series, "by": by, "level": level, "labels": labels}
    found = build([short(one) for one in several(data)], **how, known=getattr(module, "KNOWN", None))
    with style.settings(sheet):
        height = module.HEIGHT[width]
        try:
            if hasattr(module, "FACETS") and len(found.series) > MOST:
                annotate = "none" if annotate == "auto" else annotate
                return frame.draw_facets(module, facets_of(found), width, annotate, caption)
            figure, axes = frame.page(width, height, module.PANELS, caption)
            return module.draw(figure, axes, found, annotate, height)
        except frame.Crowded as crowded:
            other = ", as in --where condition=alone" if kind == "map" else ", --width page is wider"
            way = fewer(found) if build is scene else f"--where chooses fewer{other}"
            raise Refused(f"{crowded}; {way}") from crowded
