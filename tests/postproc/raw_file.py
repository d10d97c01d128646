"""Reads the measured variables of a result file, and computes with missing values as C does."""

import math

import numpy as np  # noqa: F401, scripts import it from here
import xarray

NAN = math.nan
VECTOR, TENSOR = 0, 1


def divide(a, b):
    """Returns a / b; a division by 0 gives infinity or NaN, as in C."""
    if b != 0 or math.isnan(a):
        return a / b if b != 0 else NAN
    return NAN if a == 0 else math.copysign(math.inf, a)


def largest(*values):
    """Returns the largest value that is not NaN, as fmax() in C does."""
    known = [value for value in values if not math.isnan(value)]
    return max(known) if known else NAN


class Missing(float):
    """A variable that the file lacks: each of its values is missing."""

    def __getitem__(self, _):
        return self

    def __str__(self):
        return ""

    def __iter__(self):
        return iter([self] * 16)


class Values(dict):
    def __missing__(self, name):
        return Missing(NAN)


class File:
    def __init__(self, path):
        self.data = xarray.open_dataset(path, decode_times=False).load()
        self.values = Values({name: variable.values for name, variable in self.data.variables.items()})
        self.levels = [str(name) for name in self.values["memory_level"]]
        self.precisions = [str(name) for name in self.values["number_format"]]

    def word(self, name, row):
        if name not in self.data:
            return "unknown"
        return self.data[name].attrs["flag_meanings"].split()[int(self.values[name][row])]

    def derived(self):
        return [name for name, variable in self.data.variables.items() if "derived" in variable.attrs.get("source", "")]
