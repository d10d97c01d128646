"""Reads result files as tables and tests claims about them, for the programs that write pages of docs/."""

import os
import sys

import numpy as np
import pandas
import xarray

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "postproc"))
from roofsweep_post.dataset import completed, with_numbers  # noqa: E402
from roofsweep_post.frames import kernel_parts, kernels  # noqa: E402

HOLDS, PART, NOT, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be told"
SHAPE = ["batch", "filters", "filter_height", "stride", "sequence", "features", "hidden"]
OF_RESULT = ["height", "width", "channels", "filter_width", "groups", "padding"]
# Parameters of the paper's layers. A program without such an axis, and its model, have this value.
DEFAULTS = dict.fromkeys(["batch", "sequence", "hidden"], 16) | {"features": 32, "filters": 64, "filter_height": 3}
DEFAULTS |= {"filter_width": 3, "stride": 2, "height": 112, "width": 112, "channels": 64, "groups": 1}
ALIKE = 1.5  # largest / smallest bytes that count as alike
PRESERVED = 1.15  # largest / smallest arithmetic intensity that counts as preserved


def path_of(name):
    return os.path.join(ROOT, f"tests/data/{name}_h200.nc")


class File:
    """A result file as a table of its measured rows, with columns that the findings need."""

    def __init__(self, path, raw=None):
        self.path, self.raw = path, xarray.open_dataset(path).load() if raw is None else raw
        data = self.data = completed(with_numbers(self.raw))
        self.levels = [str(level) for level in data.memory_level.values]
        self.precisions = [str(precision) for precision in data.number_format.values]
        names = [name for name in data.data_vars if data[name].dims == ("config",)]
        table = pandas.DataFrame({name: data[name].values for name in names})
        table = table.assign(**{name: np.nan for name in SHAPE + OF_RESULT if name not in table})
        table["row"] = np.arange(len(table))
        self.cold = bool((table.cache == "cold").any())
        self.level = "dram" if self.cold else "l2"
        counted = data.bytes_counted.values[:, self.levels.index(self.level)]
        table["memory_bytes"] = np.where(np.isnan(counted), table.bytes_model, counted)
        table["bytes"] = table.memory_bytes + self.left_in_cache(table)
        table["flops"] = table.flops_counted.fillna(table.flops_model)
        table["counted"] = table.flops_counted.notna()
        table["tensor_flops"] = np.nansum(data.flops_tensor.values, axis=1)
        table["ai"] = table.flops / table.bytes
        table["rate"] = table.flops / table.time_median
        # The bound uses the memory level of the row's bandwidth roof, as the limiter does.
        own = table.roof_memory_level.map({level: at for at, level in enumerate(self.levels)}).fillna(0).astype(int)
        table["own_ai"] = data.arithmetic_intensity.values[np.arange(len(table)), own]
        table["balance"] = table.compute_roof / table.bandwidth_roof
        table["bound"] = table.paper_bound.map(self.words("paper_bound"))
        self.add_kernels(table)
        self.kernels = kernels(data)
        self.all = table
        table = table[table.status == self.flag("status", "measured")]
        self.rows = table[table.cache == "cold"] if self.cold else table
        self.hot = table[table.cache == "hot"] if (table.cache == "hot").any() else table
        self.conv2d = self.rows[self.rows.workload == "conv2d"]
        self.lstm = self.rows[self.rows.workload == "lstm"]

    def left_in_cache(self, table):
        """Returns the bytes of a conv2d's result that are still in L2 at the end: at most the bytes of the result.
        Partial sums and other layouts in L2 may never reach memory."""
        if self.level != "dram" or "bytes_written" not in self.data:
            return 0.0
        dram, l2 = (self.data.bytes_written.values[:, self.levels.index(level)] for level in ("dram", "l2"))
        return np.nan_to_num(np.clip(l2 - dram, 0.0, conv2d_result(table.fillna(DEFAULTS))))

    def peak(self, unit, precision):
        return float(np.median(self.data[f"device_peak_{unit}"].values[:, self.precisions.index(precision)]))

    def flag(self, name, word):
        """Returns the value of a flag variable that has this meaning."""
        return self.data[name].attrs["flag_values"][self.data[name].attrs["flag_meanings"].split().index(word)]

    def words(self, name):
        attributes = self.data[name].attrs
        return dict(zip(attributes["flag_values"], attributes["flag_meanings"].split(), strict=True))

    def add_kernels(self, table):
        """Adds for each row the names of its kernels, and the parts of its time."""
        owner, name = self.data.kernel_config.values.astype(int), self.data.kernel_name.values
        table["kernels"] = [" + ".join(sorted(set(name[owner == row]))) for row in range(len(table))]
        for variable, values in kernel_parts(self.data).items():
            table[variable] = values

    def sweep(self, table, label, axis):
        """Yields the name and the rows of each series of a labelled sweep, sorted by the axis."""
        table = table[np.array([label in str(text).split() for text in table.label], bool)]
        columns = ["precision", "pass"] + (["layout"] if label.startswith("conv2d") else [])
        for names, rows in table.groupby(columns, sort=True):
            yield " ".join(str(name) for name in names), rows.sort_values(axis)


def conv2d_result(table):
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


def above(ratios, limit=1.0, null=1.0):
    """Returns for each ratio whether it exceeds the limit. None: it is as close to the limit as ratios of the null set
    are to 1. The null set has ratios of values that should be equal."""
    over = np.atleast_1d(np.asarray(ratios, float)) / limit
    return [None if np.isnan(one) or 1 / null <= one <= null != 1 else bool(one > 1) for one in over]


def below(ratios, limit=1.0, null=1.0):
    return [None if one is None else not one for one in above(ratios, limit, null)]


def verdict(parts):
    """Returns the verdict from the truth values of all parts. None: the part is unclear."""
    known = [part for part in parts if part is not None]
    if 2 * len(known) < max(len(parts), 1):
        return UNKNOWN
    return HOLDS if all(known) else PART if any(known) else NOT


def outcome(test, file):
    """Returns verdict and figures of a test; UNKNOWN if the file lacks rows or variables that the test needs."""
    try:
        parts, figures = test(file)
        parts = list(parts)
    except (AttributeError, IndexError, KeyError, ValueError, ZeroDivisionError) as error:
        return UNKNOWN, f"the file lacks what this needs ({type(error).__name__})"
    return verdict(parts), figures if parts else "the file has no such rows"


def share(parts):
    known = [bool(part) for part in parts if part is not None]
    left = len(parts) - len(known)
    return f"{sum(known)} of {len(known)}" + (f" ({left} unclear)" if left else "")


def span(values, form="{:.2f}"):
    """Returns "smallest to largest", or one number if both look alike."""
    values = np.asarray(list(values), float)
    if not len(values):
        return "none"
    return " to ".join(dict.fromkeys(form.format(value) for value in (np.nanmin(values), np.nanmax(values))))


def listed(values, form):
    return ", ".join(form.format(value) for value in values)


def ratio(values):
    return float(np.max(values) / np.min(values))


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


class Claims:
    """Tests of claims, in the order of a page. A test returns truth values, and a text with the figures that show
    them. Its docstring is the claim."""

    def __init__(self):
        self.tests = []

    def __call__(self, place, source, null, refuted, flip):
        """A decorator: adds a test, with its section in the publication, the name of its file, its null set, the
        outcome that refutes the claim, and a function that changes a Copy of the file so that the verdict changes."""
        return lambda test: self.tests.append((place, source, null, refuted, flip, test)) or test


class Copy:
    """A copy of a result file to be changed."""

    def __init__(self, file):
        self.file, self.raw, self.table = file, file.raw.copy(deep=True), file.all

    def put(self, name, query, value):
        """Sets the variable `name` of the rows, or of their kernels, to `value`, or to what value(rows) returns. query:
        a query of pandas that selects rows."""
        rows = self.table.query(query, engine="python") if query else self.table
        value = value(rows) if callable(value) else value
        value = np.asarray(value if np.ndim(value) else [value] * len(rows))
        values = self.raw[name].values = self.raw[name].values.copy()
        if self.raw[name].dims[0] == "kernel":
            owner = self.raw.kernel_config.values
            for row, one in zip(rows.row, value):
                values[owner == row] = one
        else:
            values[rows.row] = value.reshape(len(rows), *[1] * (values.ndim - 1))
        return self

    def scale(self, names, query, factor):
        """Multiplies variables of rows. factor: a number, or a function of the rows."""
        rows = self.table.query(query, engine="python") if query else self.table
        factor = np.asarray(factor(rows) if callable(factor) else [factor] * len(rows), float)
        for name in names.split():
            values = self.raw[name].values = self.raw[name].values.copy()
            values[rows.row] = (values[rows.row].T * factor).T
        return self

    def limit(self, word):
        """Gives all rows this limiter, or that of word(rows)."""
        words = word(self.table) if callable(word) else [word] * len(self.table)
        return self.put("limiter", "", [self.file.flag("limiter", own) for own in words]).put("cause", "", "")

    def scale_roofs(self, name, word, factor):
        chosen = [word in str(own) for own in self.raw.device_roof_name.values]
        values = self.raw[name].values = self.raw[name].values.copy()
        values[chosen] *= factor
        return self

    def word(self, word):
        return self.file.flag("paper_bound", word)

    def opened(self):
        copy = type(self.file)(self.file.path, self.raw)
        copy.null, copy.others = self.file.null, self.file.others
        return copy


def page_main(name, text, options):
    """Prints the text of docs/NAME.md; --write renews the page, --check compares. Returns the exit status."""
    path = os.path.join(ROOT, "docs", f"{name}.md")
    if options not in ([], ["--write"], ["--check"]):
        raise SystemExit("usage: [--write | --check]")
    if "--write" in options:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    elif "--check" in options:
        with open(path, encoding="utf-8") as stream:
            if stream.read() != text:
                print(f"docs/{name}.md differs from the page of the result files: run tests/{name}.py --write")
                return 1
    else:
        print(text, end="")
    return 0
