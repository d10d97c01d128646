"""The classic Roofline with its regions tinted and named, as in the paper's figure 2a."""

from . import classic

HELP = "classic, with the regions that memory and peak limit, poor performance and what is unattainable"
PANELS, HEIGHT, FACETS = classic.PANELS, classic.HEIGHT, classic.FACETS


def draw(figure, axes, scene, annotate, height):
    return classic.draw(figure, axes, scene, annotate, height, regions=True)
