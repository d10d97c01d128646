"""Draws the complexity plane: FLOPs against bytes."""

from .planes import draw_complexity as draw

HELP = "FLOPs against bytes: equal intensity, machine balance, box of launch overhead"
PANELS, HEIGHT = 1, {"column": 2.7, "page": 4.2}
FACETS = {"column": 1.15, "page": 1.3}  # inches: height of a facet
LEVEL = "row"  # the level that limits the row; at another level it would be on the wrong side of the balance

__all__ = ["draw"]
