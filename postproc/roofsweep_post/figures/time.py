"""The time plane: compute time against bandwidth time."""

from .planes import draw_times

HELP = "compute time against bandwidth time: equal run time, machine balance, box of launch overhead"
PANELS, HEIGHT = 1, {"column": 2.7, "page": 4.2}
FACETS = {"column": 1.15, "page": 1.3}  # inches, of one of a crowded figure
LEVEL = "row"  # that which limits each row: another one would show it on the wrong side of the balance


def draw(figure, axes, scene, annotate, height):
    return draw_times(figure, axes, scene, annotate, height, complexity=False)
