"""Reads roofsweep's result files. load() returns an xarray Dataset, whose accessor `.roofsweep` makes pandas tables and
matplotlib figures. The module cli has the command line."""

import xarray

from . import frames, selection
from .dataset import load, parameters
from .frames import ceilings, kernels, roofs, rows
from .texts import Refused

__version__ = "0.1.0"
__all__ = ["Refused", "ceilings", "kernels", "load", "parameters", "roofs", "rows"]


@xarray.register_dataset_accessor("roofsweep")
class Accessor:
    """Tables and figures of one file: load(FILE).roofsweep.rows("precision=fp16", "batch>=32")."""

    def __init__(self, data):
        if "path" not in data.attrs:
            raise Refused("this Dataset was not loaded by roofsweep_post.load(FILE)")
        self.data = data

    def rows(self, *where):
        """Returns the measured rows that fulfil all terms; roofsweep_post.rows() describes the columns."""
        return selection.choose(frames.rows(self.data), where)

    def roofs(self, *where):
        return selection.choose(frames.roofs(self.data), where)

    def kernels(self, *where):
        return selection.choose(frames.kernels(self.data), where)

    def draw(self, kind="classic", *where, **options):
        """Draws a figure and returns its list of axes; roofsweep_post.figures.draw() describes the options."""
        from . import figures

        return figures.draw(self.data, kind, where, **options)
