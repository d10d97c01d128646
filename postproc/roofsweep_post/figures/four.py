"""Four dimensions: complexity (closed) and time (open) of each row, both in seconds."""

from .planes import draw_times

HELP = "complexity (closed, at its roofs) and time (open) in one plane; their distance is what is lost"
PANELS, HEIGHT = 1, {"column": 2.9, "page": 4.6}
FACETS = {"column": 1.15, "page": 1.3}  # inches, of one of a crowded figure
LEVEL = "row"  # that which limits each row: another one would show it on the wrong side of the balance


def draw(figure, axes, scene, annotate, height):
    return draw_times(figure, axes, scene, annotate, height, complexity=True)
