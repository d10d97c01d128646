"""Draws the classic Roofline with tinted and named regions, as in the paper's figure 2a."""

from . import classic

HELP = "classic, with tinted regions: bandwidth-bound, compute-bound, poor performance, unattainable"
PANELS, HEIGHT, FACETS = classic.PANELS, classic.HEIGHT, classic.FACETS


def draw(figure, axes, scene, annotate, height):
    return classic.draw(figure, axes, scene, annotate, height, regions=True)
