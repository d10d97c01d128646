"""roofsweep's result files in Python: load() gives an xarray Dataset, whose `.roofsweep` has tables for pandas and
figures of matplotlib. The command line is in cli."""

import xarray

from . import frames, selection
from .dataset import load, parameters
from .frames import ceilings, kernels, roofs, rows
from .texts import Refused

__version__ = "0.1.0"
__all__ = ["Refused", "ceilings", "kernels", "load", "parameters", "roofs", "rows"]


@xarray.register_dataset_accessor("roofsweep")
class Accessor:
    """What a file of load() can be asked: load(FILE).roofsweep.rows("precision=fp16", "batch>=32")."""

    def __init__(self, data):
        if "path" not in data.attrs:
            raise Refused("this Dataset is not as roofsweep_post.load(FILE) gives it")
        self.data = data

    def rows(self, *where):
        """Measured configurations that fulfil these terms; see roofsweep_post.rows()."""
        return selection.choose(frames.rows(self.data), where)

    def roofs(self, *where):
        return selection.choose(frames.roofs(self.data), where)

    def kernels(self, *where):
        return selection.choose(frames.kernels(self.data), where)

    def draw(self, kind="classic", *where, **options):
        """The axes of one figure, a list; options: see roofsweep_post.figures.draw()."""
        from . import figures

        return figures.draw(self.data, kind, where, **options)
