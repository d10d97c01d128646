"""Prepares the data of a figure: chosen rows, series at one memory level each, and roofs. Tests compare the drawn
figure with these data."""

import shlex
from dataclasses import dataclass, field, replace

import numpy as np
import pandas

from ..dataset import parameters
from ..frames import ROWS, ceilings, rows, several
from ..levels import at_levels, with_bandwidths
from ..naming import chosen_label
from ..selection import choose, column
from ..texts import Refused
from . import style
from .frame import Crowded

# Parameters that sweeps cross with shapes: by default each combination of values is a series.
CROSSED = ["precision", "pass", "requested_implementation", "requested_algorithm", "layout", "cache"]
# Columns that further distinguish series if they differ.
SOURCES = ["model", "file"]
NEEDS = (*ROWS, "performance", "unit", "precision")  # variables that load() must find
FACETS = ["workload", "pass", "precision"]  # the first two choose the row of facets, the last one the column
MOST = 12  # series in one axes; a reader cannot distinguish more
ENTRIES = 24  # entries of a legend that facets share
ROWS_SHOWN = 24  # most rows of a suggested selection
DEVICE_FILLS = ["closed", "open", "left", "bottom"]  # fills that distinguish devices


@dataclass
class Series:
    """A curve: its rows in the order of the swept parameter, and its look."""

    name: str
    level: str
    colour: str
    marker: str
    dash: object
    rows: object
    by: str | None = None  # column of the swept parameter
    fill: str = "closed"
    model: str = ""
    what: str = ""  # name without the device


@dataclass
class Scene:
    files: list
    rows: object
    series: list
    level: str
    roofs: dict = field(default_factory=dict)  # {model: ceilings()}
    apart: bool = False  # colour and fill distinguish models; the marker is the same on each model
    extent: object = None  # rows of all facets, which share limits and caption
    title: str = ""  # title of a facet; "" without facets
    place: tuple = (0, 0)  # row and column of a facet
    keys: list = field(default_factory=list)  # variables that distinguish series
    chosen_by: str | None = None  # parameter of --by
    order: tuple = ()  # values whose series come first

    def __post_init__(self):
        self.extent = self.rows if self.extent is None else self.extent

    def one_model(self):
        return len(self.roofs) == 1

    @property
    def by(self):
        """The swept parameter if all series share one, else None."""
        found = {series.by for series in self.series}
        return found.pop() if len(found) == 1 else None

    @property
    def swept(self):
        return list(dict.fromkeys(short_name(series.by) for series in self.series if series.by))


def varying(table, names):
    return [name for name in names if name in table and table[name].nunique(dropna=False) > 1]


def swept(table, files):
    """Returns the parameter that orders a series' points: the first that varies, if it determines all others and all
    rows share a label; else None."""
    if not set.intersection(*(set(label.split()) for label in table["label"])) and any(table["label"]):
        return None
    found = {name: data.variables[name].attrs for data in files for name in parameters(data)}
    # Run mode and command of programs are not size axes.
    names = [
        name for name, own in found.items() if name not in CROSSED and "; program:" not in f"; {own.get('comment', '')}"
    ]
    found = varying(table, names)
    follow = found and len(table[found].drop_duplicates()) == table[found[0]].nunique()
    return found[0] if follow else None


def short_name(name):
    return name.replace("requested_", "").replace("filter_height", "kernel").replace("_", " ")


def one_per_configuration(table, keys):
    """Returns the medians over devices that the keys do not distinguish, and the number of devices."""
    same = [*dict.fromkeys(["config_hash", "model", "file", *keys])]
    how = {name: "median" if kind.kind in "iuf" else "first" for name, kind in table.dtypes.items() if name not in same}
    groups = table.groupby(same, as_index=False, sort=False, dropna=False)
    return groups.agg(how)[[*same, *how]].assign(devices=groups.size()["size"])


def source_keys(keys, table, level):
    """Returns (keys, apart). With several models the keys include the model, so that no curve joins two models. The key
    `file` is dropped if each model is in one file. apart: see Scene."""
    if table["model"].nunique() < 2:
        return keys, False
    keys = [*keys, *(["model"] if "model" not in keys else [])]
    if table.groupby("model")["file"].nunique().max() == 1:
        keys = [key for key in keys if key != "file"]
    return keys, keys[0] != "precision" and level != "all"  # precisions need the colours, levels the fills


def words(key):
    """Returns the values of a series as a text, its origin first."""
    own = {"origin": "", **key}
    return " ".join(str(word) for word in own.values() if word != "")


def groups_of(table, keys):
    """Yields ({key: value}, rows) for each combination of values."""
    groups = table.groupby(keys if keys[1:] else keys[0], sort=True, dropna=False) if keys else [((), table)]
    for key, own in groups:
        yield dict(zip(keys, key if isinstance(key, tuple) else (key,))), own


def series_of(table, keys, by, files, level, apart, looks=None, order=()):
    """Returns a Series for each combination of the keys. apart: see Scene. looks: ({first key: colour}, {other keys:
    marker}) that facets share."""
    common = {"model"} | ({"level"} if level != "row" else set())
    heads, symbols = looks or ({}, {})
    found = []
    if apart:
        heads |= {model: number for number, model in enumerate(dict.fromkeys(table["model"]))}
    ranks = {word: rank for rank, word in enumerate(order)}
    for key, own in sorted(
        groups_of(table, keys),
        key=lambda group: min(ranks.get(str(word), len(ranks)) for word in [*group[0].values(), ""]),
    ):
        head = key["model"] if apart else next(iter(key.values()), "")
        what = words({name: word for name, word in key.items() if name not in common})
        number = heads.setdefault(head, len(heads))
        others = words({name: key[name] for name in keys[1:]}) if looks and keys[1:] else words(key)
        symbol = symbols.setdefault(what if apart else others, len(symbols))
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
    """Returns the rows of these labels. A row with several labels appears once for each."""
    parts = [choose(table, [f"label={label}"]).assign(label=label) for label in labels]
    return pandas.concat(parts, ignore_index=True)


def check_rows(files):
    if not sum(one.sizes["config"] for one in files):
        names = ", ".join(one.attrs["path"] for one in files)
        raise Refused(f"{names}: it has roofs but no configurations; `plot map` and `plot history` draw roofs")


def scene(data, where=(), series=None, by=None, level="dram", labels=(), known=None, order=()):
    """Returns a Scene of the rows that fulfil `where` and have one of the labels. known: {variable that rows must have:
    message if none has it}.

    series: variables that distinguish curves (default: those of CROSSED and SOURCES that differ); by: parameter that
    orders and joins points; level: dram, l2, ..., `row` for each row's own, or `all`; order: values whose series come
    first."""
    files = several(data)
    check_rows(files)
    table = choose(rows(files), where)
    table = by_label(table, labels) if labels else table
    for name, why in {"performance": "no row that was chosen is measured and has FLOPs", **(known or {})}.items():
        table = table[table[name].notna()]
        if table.empty:
            raise Refused(why)
    table = with_bandwidths(table.reset_index(drop=True), files)
    table["origin"] = [
        chosen_label(label, workload) if workload == "program" else workload
        for label, workload in zip(table["label"], table["workload"])
    ]
    if series:
        keys = [column(table, name) for name in series]
    else:
        keys = [name for name in CROSSED if name in table and table[name].replace("", np.nan).nunique() > 1]
        keys += varying(table, [*SOURCES, *(["label"] if labels else [])])
        named = [*keys, *varying(table, ["origin"])]
        if named and not labels and table.groupby(named, dropna=False).ngroups <= MOST:  # facets name the workload
            keys = named
    keys, apart = source_keys(keys, table, level)
    by = column(table, by) if by else None
    table = at_levels(one_per_configuration(table, [*keys, *([by] if by else [])]), level)
    keys += ["level"] if level != "all" and table["level"].nunique() > 1 and "level" not in keys else []
    roofs = {}
    for model in dict.fromkeys(table["model"]):
        file = int(table.loc[table["model"] == model, "file"].iloc[0])
        devices = np.flatnonzero(files[file]["device_model"].values == model)
        roofs[model] = ceilings(files[file], devices)
    curves = series_of(table, keys, by, files, level, apart, order=order)
    found = Scene(files, table, curves, level, roofs, apart, keys=keys, chosen_by=by, order=order)
    if len(found.swept) > 1:
        for series in found.series:
            series.name += f" (by {short_name(series.by)})" if series.by else ""
    return found


def facets_of(scene):
    """Returns a Scene for each workload and pass (a row of facets) and precision (a column). All facets share the names
    of colours and markers."""
    split = varying(scene.rows, FACETS)
    keys = [name for name in scene.keys if name not in FACETS]
    # Colours distinguish the key with most values that do not exceed the number of colours.
    counts = {name: scene.rows[name].nunique() for name in keys}
    keys.sort(key=lambda name: -counts[name] if counts[name] <= len(style.COLOURS) else 0)
    looks, found, rows, columns = ({}, {}), [], {}, {}
    for key, own in groups_of(scene.rows, split):
        across = key.pop("precision", "")
        down = words(key)
        place = rows.setdefault(down, len(rows)), columns.setdefault(across, len(columns))
        series = series_of(own, keys, scene.chosen_by, scene.files, scene.level, False, looks, scene.order)
        title = ", ".join(filter(None, [down, str(across)]))
        found.append(replace(scene, rows=own, series=series, apart=False, title=title, place=place))
    drawn = {series.name: (series.colour, series.marker) for one in found for series in one.series}
    most = max(len(one.series) for one in found)
    if most > MOST or len(drawn) > ENTRIES:
        raise Crowded(f"{len(drawn)} series cannot be distinguished")
    check_looks(list(drawn.values()))
    return found


def check_looks(looks):
    """Refuses series of which two look alike."""
    if len(set(looks)) < len(looks):
        raise Crowded(f"{len(looks)} series cannot be told apart")


def fewer(scene):
    """Returns a hint with options that choose few enough rows: for one variable after the other the most frequent
    value."""
    table, label, terms = scene.rows, "", []
    labels = table["label"].str.split().explode().dropna()
    if labels.nunique() > 1:
        label = labels.value_counts().index[0]
        table = choose(table, [f"label={label}"])
    for name in varying(table, ["workload", *CROSSED]):
        if len(table) > ROWS_SHOWN or len(varying(table, CROSSED)) > 1:
            value = table[name].value_counts().index[0]
            table = table[table[name] == value]
            terms.append(shlex.quote(f"{name}={value}"))
    options = [f"--labels {label}" if label else "", f"--where {' '.join(terms)}" if terms else ""]
    return f"choose fewer rows, as with {' '.join(filter(None, options)) or '--where NAME=VALUE, or --annotate none'}"
