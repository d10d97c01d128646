"""A result file as it was measured, with arithmetic as in C. Without xarray: exit status 77, skipped."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "postproc"))
try:
    import numpy as np  # noqa: F401, for those who read the file
    import xarray
    from roofsweep_post.absent import completed
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

NAN = math.nan
VECTOR, TENSOR = 0, 1


def divide(a, b):
    """As in C."""
    if b != 0 or math.isnan(a):
        return a / b if b != 0 else NAN
    return NAN if a == 0 else math.copysign(math.inf, a)


def largest(*values):
    """fmax: of what is known."""
    known = [value for value in values if not math.isnan(value)]
    return max(known) if known else NAN


class File:
    def __init__(self, path):
        self.data = xarray.open_dataset(path, decode_times=False).load()
        self.absent = set()
        if "format_version" in self.data.attrs:  # what no row can have is no variable
            whole = completed(self.data)
            self.absent = set(whole.variables) - set(self.data.variables)
            self.data = whole
        self.values = {name: variable.values for name, variable in self.data.variables.items()}
        self.levels = [str(name) for name in self.values["memory_level_name"]]
        self.precisions = [str(name) for name in self.values["precision_name"]]

    def word(self, name, row):
        if name in self.absent:
            return self.values[name][row]
        return self.data[name].attrs["flag_meanings"].split()[int(self.values[name][row])]

    def derived(self):
        return [name for name, variable in self.data.variables.items() if "derived" in variable.attrs.get("source", "")]
