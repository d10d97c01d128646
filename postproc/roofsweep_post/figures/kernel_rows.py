"""Selects the kernels that a figure shows, shortens their names, and names the rows that they belong to."""

import re

from .. import frames
from ..frames import kernels
from ..naming import without_shared
from ..texts import Refused
from . import style
from .marks import value_text
from .scene import short_name

MOST = 14  # a figure shows the kernels that take longest; the caption has the number of the others
LENGTH = 34  # number of characters to which names of kernels are cut
ROW_LENGTH = 11  # largest number of characters of a row's name, for each inch of the figure; else rows have numbers


def kernel_rows(scene):
    """Returns the kernels of the scene's rows, the longest first. Column share: time of the kernel / time of all
    kernels of the row. The first device of each model gives the kernels."""
    rows = scene.rows[["file", "config"]].drop_duplicates().rename(columns={"config": "kernel_config"})
    table = kernels(scene.files).merge(rows, on=["file", "kernel_config"])
    if table.empty:
        raise Refused("the rows that were chosen have no kernels")
    whole = table.groupby(["file", "kernel_config"])["kernel_time"].transform("sum")
    return table.assign(share=table["kernel_time"] / whole).sort_values("kernel_time", ascending=False)


def short_kernel(name):
    name = frames.short_kernel(name)
    return name if len(name) <= LENGTH else name[:LENGTH].rpartition("_")[0] + "..."


def words(name):
    return re.findall("[A-Za-z0-9]+", name)


def short_kernels(names):
    """Returns {name: unique short name}. Names that begin alike get the first word in which they differ, and a number
    if that word is not unique."""
    groups, found = {}, {}
    for name in names:
        groups.setdefault(short_kernel(name), []).append(name)
    for short, own in groups.items():
        shared = set.intersection(*(set(words(name)) for name in own))
        tails = [next((word for word in words(name) if word not in shared), "") for name in own]
        for number, (name, tail) in enumerate(zip(own, tails), 1):
            ends = [tail if len(own) > 1 else "", f"#{number}" if tails.count(tail) > 1 else ""]
            room = LENGTH - len(" ".join(ends))
            cut = short if len(short) <= room else short[:room].rpartition("_")[0] + "..."
            found[name] = " ".join(filter(None, [cut, *ends]))
    return found


def left_out(table):
    """Returns a sentence on the kernels that the figure leaves out."""
    more = len(table) - MOST
    return f"{more} more, which take less time, {'is' if more == 1 else 'are'} not shown" if more > 0 else ""


def row_names(scene, table, inches=style.WIDTHS["column"]):
    """Returns (the name of each kernel's row, a sentence that explains numbers). A name is the swept value and the
    series. inches: width of the figure."""
    names, all_rows = {}, ""
    for series in scene.series:
        for _, row in series.rows.iterrows():
            value = f"{short_name(series.by)} {value_text(row[series.by])} " if series.by else ""
            own = "" if series.name == "rows" and value else series.name
            names[row["config_hash"], row["file"]] = (value + own).strip()
    keys = list(zip(table["config_hash"], table["file"]))
    if len({names[key] for key in keys}) < len(set(keys)):  # two rows of a series have the same swept value
        rows = scene.rows[[key in keys for key in zip(scene.rows["config_hash"], scene.rows["file"])]]
        short, shared = without_shared(rows["whole_name"], ())
        names = dict(zip(zip(rows["config_hash"], rows["file"]), short))
        all_rows = f"All rows shown: {shared}. " * (shared not in ("", scene.shared))
    found = [names[key] for key in keys]
    if max(map(len, found)) <= ROW_LENGTH * inches:
        return found, all_rows
    numbers = {name: f"row {number}" for number, name in enumerate(dict.fromkeys(found), 1)}
    key = "; ".join(f"{number}: {name}" for name, number in numbers.items())
    return [numbers[name] for name in found], all_rows + key
