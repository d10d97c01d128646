"""The complexity plane: FLOPs against bytes."""

from .planes import draw_complexity as draw

HELP = "FLOPs against bytes: equal intensity, machine balance, box of launch overhead"
PANELS, HEIGHT = 1, {"column": 2.7, "page": 4.2}

__all__ = ["draw"]
