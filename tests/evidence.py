"""Evidence for the pages about result files: a file as a table of its rows, and words for what it shows."""

import os
import sys

import numpy as np
import pandas
import xarray

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "postproc"))
from roofsweep_post.dataset import completed, with_numbers  # noqa: E402
from roofsweep_post.frames import kernel_parts, kernels  # noqa: E402

HOLDS, PART, NOT, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be told from this file"
SHAPE = ["batch", "filters", "filter_height", "stride", "sequence", "features", "hidden"]
OF_RESULT = ["height", "width", "channels", "filter_width", "groups", "padding"]
# The paper's layers. What a program has no axis for is the default, in its model, too.
DEFAULTS = dict.fromkeys(["batch", "sequence", "hidden"], 16) | {"features": 32, "filters": 64, "filter_height": 3}
DEFAULTS |= {"filter_width": 3, "stride": 2, "height": 112, "width": 112, "channels": 64, "groups": 1}
ALIKE = 1.5  # bytes, largest over smallest
PRESERVED = 1.15  # of an arithmetic intensity: largest over smallest
FASTER = 0.02  # of a program's kernels: what two runs differ by without a cause


class File:
    """A result file as a table of its measured rows, with what the findings need in columns of their own."""

    def __init__(self, path):
        self.path = path
        data = self.data = completed(with_numbers(xarray.open_dataset(path).load()))
        self.levels = [str(level) for level in data.memory_level.values]
        self.precisions = [str(precision) for precision in data.number_format.values]
        names = [name for name in data.data_vars if data[name].dims == ("config",)]
        table = pandas.DataFrame({name: data[name].values for name in names})
        table = table.assign(**{name: np.nan for name in SHAPE + OF_RESULT if name not in table})  # of no row
        table["row"] = np.arange(len(table))
        self.cold = bool((table.cache == "cold").any())
        self.level = "dram" if self.cold else "l2"
        counted = data.bytes_counted.values[:, self.levels.index(self.level)]
        table["memory_bytes"] = np.where(np.isnan(counted), table.bytes_model, counted)
        table["bytes"] = table.memory_bytes + self.left_in_cache(table)
        table["flops"] = table.flops_counted.fillna(table.flops_model)
        table["tensor_flops"] = np.nansum(data.flops_tensor.values, axis=1)
        table["ai"] = table.flops / table.bytes
        table["rate"] = table.flops / table.time_median
        roofs = data.device_peak_bandwidth.values[:, self.levels.index(self.level)]
        moving = table.bytes / roofs[np.maximum(table.config_device.fillna(0).astype(int), 0)]
        table["balance"] = table.compute_roof * moving / table.bytes
        floors = table.flops / table.compute_roof, moving
        over = [np.maximum(*floors) < table.overhead_time, floors[0] >= moving, moving > 0]
        table["bound"] = np.select(over, ["overhead", "compute", "bandwidth"], "unknown")
        self.kernels_counted = bool(np.isfinite(data.kernel_flops_counted.values).any())
        self.add_kernels(table)
        self.kernels = kernels(data)
        table = table[table.status == self.flag("status", "measured")]
        self.rows = table[table.cache == "cold"] if self.cold else table
        self.hot = table[table.cache == "hot"] if (table.cache == "hot").any() else table
        self.conv2d = self.rows[self.rows.workload == "conv2d"]
        self.lstm = self.rows[self.rows.workload == "lstm"]

    def left_in_cache(self, table):
        """Of a conv2d's result what is still in L2 when its time is over. What else kernels write to L2 (other layouts,
        partial sums, one number several times) need never be moved."""
        if self.level != "dram" or "bytes_written" not in self.data:
            return 0.0
        dram, l2 = (self.data.bytes_written.values[:, self.levels.index(level)] for level in ("dram", "l2"))
        return np.nan_to_num(np.clip(l2 - dram, 0.0, conv2d_result(table.fillna(DEFAULTS))))

    def peak(self, unit, precision):
        """The median of the devices' measured roofs."""
        return float(np.median(self.data[f"device_peak_{unit}"].values[:, self.precisions.index(precision)]))

    def flag(self, name, word):
        """The value of a flag variable that stands for a word."""
        return self.data[name].attrs["flag_values"][self.data[name].attrs["flag_meanings"].split().index(word)]

    def words(self, name):
        """{value: word} of a flag variable."""
        attributes = self.data[name].attrs
        return dict(zip(attributes["flag_values"], attributes["flag_meanings"].split(), strict=True))

    def add_kernels(self, table):
        """Of each row: which kernels ran, as one text; what they share its time by."""
        owner, name = self.data.kernel_config.values.astype(int), self.data.kernel_name.values
        table["kernels"] = [" + ".join(sorted(set(name[owner == row]))) for row in range(len(table))]
        for variable, values in kernel_parts(self.data).items():
            table[variable] = values

    def sweep(self, table, label, axis):
        """For each series of a labelled sweep: its name, and its rows in the order of what varies."""
        table = table[np.array([label in str(text).split() for text in table.label], bool)]
        columns = ["precision", "pass"] + (["layout"] if label.startswith("conv2d") else [])
        for names, rows in table.groupby(columns, sort=True):
            yield " ".join(str(name) for name in names), rows.sort_values(axis)


def conv2d_result(table):
    """Bytes of what a conv2d writes; missing for other rows."""
    rows, columns = ((table[size] - 1) // table.stride + 1 for size in ("height", "width"))
    numbers = {
        "forward": table.batch * table.filters * rows * columns,
        "backward-data": table.batch * table.channels * table.height * table.width,
        "backward-filter": table.filters * table.channels / table.groups * table.filter_height * table.filter_width,
    }
    numbers["backward"] = numbers["backward-data"] + numbers["backward-filter"]
    known = (table.workload == "conv2d") & (table.padding == "same") | (table.get("modelled_as") == "conv2d")
    element = table.precision.map({"fp16": 2, "bf16": 2, "tf32": 4, "fp32": 4, "fp64": 8})
    return element * np.select([known & (table["pass"] == name) for name in numbers], list(numbers.values()), np.nan)


def better(before, after, noise):
    """Whether what a search took is faster by more than the noise, measured after the search."""
    return before / after > 1 + noise


def verdict(parts):
    """Of a list of truths."""
    parts = list(parts)
    if not parts:
        return UNKNOWN
    return HOLDS if all(parts) else PART if any(parts) else NOT


def told(test, file):
    """The verdict and the figures of a test. A file without the rows or variables that it needs tells nothing."""
    try:
        parts, figures = test(file)
    except (AttributeError, IndexError, KeyError, ValueError, ZeroDivisionError) as error:
        return UNKNOWN, f"the file lacks what this needs ({type(error).__name__})"
    return verdict(parts), figures if len(parts) else "the file has no such rows"


def share(parts):
    parts = list(parts)
    return f"{sum(bool(part) for part in parts)} of {len(parts)}"


def span(values, form="{:.2f}"):
    """The smallest to the largest, or one of them if they look the same."""
    values = np.asarray(list(values), float)
    if not len(values):
        return "none"
    return " to ".join(dict.fromkeys(form.format(value) for value in (np.nanmin(values), np.nanmax(values))))


def listed(values, form):
    return ", ".join(form.format(value) for value in values)


def rises(values):
    return bool(np.all(np.diff(values) > 0))


def ratio(values):
    return float(np.max(values) / np.min(values))


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def page_hand_over(text, name, options):
    """Prints the text of docs/NAME.md; --write renews the page, --check compares. The exit status."""
    path = os.path.join(ROOT, "docs", f"{name}.md")
    if "--write" in options:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    elif "--check" in options:
        with open(path, encoding="utf-8") as stream:
            if stream.read() != text:
                print(f"docs/{name}.md is not that of the result files: run tests/{name}.py --write")
                return 1
    else:
        print(text, end="")
    return 0
