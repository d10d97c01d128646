"""Draws the time plane: compute time against bandwidth time."""

from .planes import draw_times

HELP = "compute time against bandwidth time: equal run time, machine balance, box of launch overhead"
PANELS, HEIGHT = 1, {"column": 2.7, "page": 4.2}
FACETS = {"column": 1.15, "page": 1.3}  # inches: height of a facet
LEVEL = "row"  # the level that limits the row; at another level it would be on the wrong side of the balance


def draw(figure, axes, scene, annotate, height):
    return draw_times(figure, axes, scene, annotate, height, complexity=False)
