"""Draws complexity (closed symbols) and time (open symbols) of each row in one plane, both in seconds."""

from .planes import draw_times

HELP = "complexity (closed, at its roofs) and time (open) in one plane; their distance is what is lost"
PANELS, HEIGHT = 1, {"column": 2.9, "page": 4.6}
FACETS = {"column": 1.15, "page": 1.3}  # inches: height of a facet
LEVEL = "row"  # the level that limits the row; at another level it would be on the wrong side of the balance


def draw(figure, axes, scene, annotate, height):
    return draw_times(figure, axes, scene, annotate, height, complexity=True)
