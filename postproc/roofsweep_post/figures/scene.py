"""What a figure is drawn of: rows that were chosen, at one memory level for each series, and their ceilings.

A figure's numbers are made here, so that a test can hold what is drawn against them."""

from dataclasses import dataclass, field

import numpy as np
import pandas

from ..dataset import parameters
from ..frames import ROWS, ceilings, rows, several
from ..levels import at_levels, with_bandwidths
from ..selection import choose, column
from ..texts import Refused
from . import style

# What is crossed with the shapes: each value is a curve of its own.
CROSSED = ["precision", "pass", "requested_implementation", "requested_algorithm", "layout", "cache"]
# What else distinguishes rows, if it differs.
SOURCES = ["model", "file"]
NEEDS = (*ROWS, "performance", "unit", "config_precision")  # of a file, see load()
DEVICE_FILLS = ["closed", "open", "left", "bottom"]  # of devices that are told apart


@dataclass
class Series:
    """One curve: its rows in the order of the swept parameter, and how it looks."""

    name: str
    level: str
    colour: str
    marker: str
    dash: object
    rows: object
    by: str | None = None  # the column of the swept parameter
    fill: str = "closed"  # of its symbols
    model: str = ""
    what: str = ""  # its name without the device


@dataclass
class Scene:
    files: list
    rows: object
    series: list
    level: str
    roofs: dict = field(default_factory=dict)  # {model: ceilings()}
    apart: bool = False  # models are told apart by colour and fill; a symbol stands for the same work on each

    def one_model(self):
        return len(self.roofs) == 1

    @property
    def by(self):
        """The swept parameter, if it is the same for all series."""
        found = {series.by for series in self.series}
        return found.pop() if len(found) == 1 else None

    @property
    def swept(self):
        """The names of the parameters that join points."""
        return list(dict.fromkeys(short_name(series.by) for series in self.series if series.by))


def varying(table, names):
    return [name for name in names if name in table and table[name].nunique(dropna=False) > 1]


def swept(table, files):
    """The parameter that orders a series' points: the first that varies, if all others follow it; or None."""
    names = list(dict.fromkeys(name for data in files for name in parameters(data)))
    found = varying(table, [name for name in names if name not in CROSSED])
    follow = found and len(table[found].drop_duplicates()) == table[found[0]].nunique()
    return found[0] if follow else None


def short_name(name):
    return name.replace("requested_", "").replace("filter_height", "kernel").replace("_", " ")


def one_per_configuration(table, keys):
    """The median over devices that are not told apart."""
    same = [*dict.fromkeys(["config_hash", "model", "file", *keys])]
    how = {name: "median" if kind.kind in "iuf" else "first" for name, kind in table.dtypes.items() if name not in same}
    return table.groupby(same, as_index=False, sort=False, dropna=False).agg(how)[[*same, *how]]


def source_keys(keys, table, level):
    """The keys, with the model where there are several: no curve joins points of two. The file says no more than the
    model where each has its own."""
    if table["model"].nunique() < 2:
        return keys, False
    keys = [*keys, *(["model"] if "model" not in keys else [])]
    if table.groupby("model")["file"].nunique().max() == 1:
        keys = [key for key in keys if key != "file"]
    return keys, keys[0] != "precision" and level != "all"  # these have colours or fills of their own


def words(key):
    return " ".join(str(word) for word in key.values() if word != "")


def groups_of(table, keys):
    """({key: value}, rows) of each combination."""
    groups = table.groupby(keys if keys[1:] else keys[0], sort=True, dropna=False) if keys else [((), table)]
    for key, own in groups:
        yield dict(zip(keys, key if isinstance(key, tuple) else (key,))), own


def series_of(table, keys, by, files, level, apart):
    """One Series for each combination of the keys, and each level where points of several would be joined. apart: see
    Scene."""
    keys = [*keys, *(["level"] if level != "all" and table["level"].nunique() > 1 else [])]
    common = {"model"} | ({"level"} if level != "row" else set())
    found, symbols = [], {}
    heads = {model: number for number, model in enumerate(dict.fromkeys(table["model"]))} if apart else {}
    for key, own in groups_of(table, keys):
        head = key["model"] if apart else next(iter(key.values()), "")
        what = words({name: word for name, word in key.items() if name not in common})
        number = heads.setdefault(head, len(heads))
        symbol = symbols.setdefault(what if apart else words(key), len(symbols))
        own_by = by or swept(own, files)
        found.append(
            Series(
                words(key) or "rows",
                own["level"].iloc[0],
                style.PRECISIONS.get(head, style.COLOURS[number % len(style.COLOURS)]),
                style.MARKERS[symbol % len(style.MARKERS)],
                style.DASHES[number % len(style.DASHES)],
                own.sort_values(own_by, kind="stable") if own_by else own,
                own_by,
                DEVICE_FILLS[number % len(DEVICE_FILLS)] if apart else "closed",
                key.get("model", ""),
                what,
            )
        )
    return found


def by_label(table, labels):
    """The rows of some labels; one that has several of them is a row of each."""
    parts = [choose(table, [f"label={label}"]).assign(label=label) for label in labels]
    return pandas.concat(parts, ignore_index=True)


def check_rows(files):
    if not sum(one.sizes["config"] for one in files):
        names = ", ".join(one.attrs["path"] for one in files)
        raise Refused(f"{names}: it holds roofs alone, no configurations; `plot map` and `plot history` draw roofs")


def scene(data, where=(), series=None, by=None, level="dram", labels=()):
    """A Scene of the rows that fulfil `where` and have one of the labels.

    series: variables that tell curves apart (default: what is crossed with the shapes and differs); by: the parameter
    that orders and joins points; level: dram, l2, ..., row for each row's own, or all."""
    files = several(data)
    check_rows(files)
    table = choose(rows(files), where)
    table = by_label(table, labels) if labels else table
    table = table[table["performance"].notna()]
    if table.empty:
        raise Refused("no row that was chosen is measured and has FLOPs")
    table = with_bandwidths(table.reset_index(drop=True), files)
    if series:
        keys = [column(table, name) for name in series]
    else:
        keys = varying(table, CROSSED + SOURCES + (["label"] if labels else []))
    keys, apart = source_keys(keys, table, level)
    by = column(table, by) if by else None
    table = at_levels(one_per_configuration(table, [*keys, *([by] if by else [])]), level)
    roofs = {}
    for model in dict.fromkeys(table["model"]):
        file = int(table.loc[table["model"] == model, "file"].iloc[0])
        devices = np.flatnonzero(files[file]["device_model"].values == model)
        roofs[model] = ceilings(files[file], devices)
    found = Scene(files, table, series_of(table, keys, by, files, level, apart), level, roofs, apart)
    if len(found.swept) > 1:
        for series in found.series:
            series.name += f" (by {short_name(series.by)})" if series.by else ""
    return found
