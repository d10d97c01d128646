"""roofsweep's result files in Python: load() gives an xarray Dataset, rows(), roofs() and kernels() pandas tables,
figures.draw() matplotlib figures. The command line is in cli."""

from .dataset import load, parameters
from .frames import ceilings, kernels, roofs, rows
from .texts import Refused

__version__ = "0.1.0"
__all__ = ["Refused", "ceilings", "kernels", "load", "parameters", "roofs", "rows"]
