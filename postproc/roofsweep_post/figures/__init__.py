"""Figures of result files. draw() gives matplotlib axes; the kinds are in KINDS, a module each."""

from . import bars, classic, complexity, counted, four, frame, history, kernels, map, strip, style, time, waves
from .scene import scene

# {word: module with HELP, PANELS, HEIGHT, draw(figure, axes, scene, annotate, height); of nodes also build()}
KINDS = {
    "classic": classic,
    "complexity": complexity,
    "time": time,
    "four": four,
    "bars": bars,
    "counted": counted,
    "waves": waves,
    "kernels": kernels,
    "map": map,
    "strip": strip,
    "history": history,
}


def draw(data, kind="classic", where=(), series=None, by=None, level=None, width="column", annotate="auto", labels=()):
    """The axes of one figure, a list. data: a dataset of load(), or several; where, series, by, level, labels: see
    scene.scene(), without a level that of the kind; width: column or page; annotate: points that are labelled: all,
    ends, none or auto."""
    module = KINDS[kind]
    build = getattr(module, "build", scene)
    level = level or getattr(module, "LEVEL", "dram")
    found = build(data, where=where, series=series, by=by, level=level, labels=labels)
    with style.settings():
        height = module.HEIGHT[width]
        figure, axes = frame.page(width, height, module.PANELS)
        return module.draw(figure, axes, found, annotate, height)
