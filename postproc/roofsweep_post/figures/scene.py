"""Prepares the data of a figure: the chosen rows, series (each at one memory level), and roofs. Tests compare the drawn
figure with these data."""

import os
import shlex
from dataclasses import dataclass, field, replace

import numpy as np
import pandas

from ..dataset import parameters
from ..frames import ROWS, ceilings, rows, several
from ..levels import at_levels, with_bandwidths
from ..naming import chosen_label, without_shared
from ..selection import choose, column
from ..texts import Refused
from . import style
from .frame import Crowded

# Parameters that sweeps combine with each shape. By default each combination of their values is a series.
CROSSED = ["precision", "pass", "requested_implementation", "requested_algorithm", "layout", "cache"]
NEEDS = (*ROWS, "performance", "unit", "precision")  # variables that load() must find
FACETS = ["workload", "pass", "precision"]  # workload and pass choose the row of facets, precision the column
MOST = 12  # largest number of series in one axes that a reader can distinguish
ENTRIES = 24  # largest number of entries of a legend that facets share
ROWS_SHOWN = 24  # largest number of rows of a suggested selection


@dataclass
class Series:
    """A series: its rows in the order of the swept parameter, and its look."""

    name: str
    level: str
    colour: str
    marker: str
    dash: object
    rows: object
    by: str | None = None  # column of the swept parameter
    source: str = ""  # the file or device, if several are drawn
    what: str = ""  # name without the source


@dataclass
class Scene:
    files: list
    rows: object
    series: list
    level: str
    roofs: dict = field(default_factory=dict)  # {model: ceilings()}
    sources: tuple = ()  # files or devices, which lighter colours distinguish; empty if all rows are of one
    shared: str = ""  # the words that the rows' names lack because all rows share them
    extent: object = None  # rows of all facets, from which the shared limits and the caption follow
    title: str = ""  # title of a facet; "" without facets
    place: tuple = (0, 0)  # row and column of a facet
    keys: list = field(default_factory=list)  # variables that distinguish series
    chosen_by: str | None = None  # parameter of --by
    order: tuple = ()  # values whose series come first
    left_out: int = 0  # rows that lack what the figure draws
    chosen: object = None  # the chosen rows with those that failed or have no FLOPs

    def __post_init__(self):
        self.extent = self.rows if self.extent is None else self.extent

    def keep(self, names):
        """Removes rows that lack one of the columns."""
        for series in self.series:
            series.rows = series.rows.dropna(subset=names)
        self.series = [series for series in self.series if len(series.rows)]
        if not self.series and not self.title:  # a facet may be empty
            raise Refused("no row has FLOPs, bytes at that memory level and both roofs; try --level row")
        known = self.extent.dropna(subset=names)
        self.left_out, self.extent, self.rows = len(self.extent) - len(known), known, self.rows.dropna(subset=names)

    def one_model(self):
        return len(self.roofs) == 1

    @property
    def by(self):
        """The swept parameter if it is the same for all series, else None."""
        found = {series.by for series in self.series}
        return found.pop() if len(found) == 1 else None

    @property
    def legend(self):
        """Returns {text: series}. Series of several files or devices share a text."""
        found = {(series.what if self.sources else series.name): series for series in reversed(self.series)}
        return {name: found[name] for name in reversed(found) if name}

    @property
    def swept(self):
        return list(dict.fromkeys(short_name(series.by) for series in self.series if series.by))


def varying(table, names):
    return [name for name in names if name in table and table[name].nunique(dropna=False) > 1]


def swept(table, files):
    """Returns the parameter that orders the points of a series: the first one that varies. None if this parameter does
    not determine all others, or if the rows have no common label."""
    if not set.intersection(*(set(label.split()) for label in table["label"])) and any(table["label"]):
        return None
    found = {name: data.variables[name].attrs for data in files for name in parameters(data)}
    # Commands and run modes of programs do not order points.
    names = [
        name for name, own in found.items() if name not in CROSSED and "; program:" not in f"; {own.get('comment', '')}"
    ]
    found = varying(table, names)
    follow = found and len(table[found].drop_duplicates()) == table[found[0]].nunique()
    return found[0] if follow else None


def short_name(name):
    return name.replace("requested_", "").replace("filter_height", "kernel").replace("_", " ")


def one_per_configuration(table, keys):
    """Returns a line for each configuration and each value of the keys: medians over devices, and the number of
    devices."""
    same = [*dict.fromkeys(["config_hash", "model", "file", *keys])]
    how = {name: "median" if kind.kind in "iuf" else "first" for name, kind in table.dtypes.items() if name not in same}
    how["config"] = "first"  # a median of indices has no meaning
    groups = table.groupby(same, as_index=False, sort=False, dropna=False)
    return groups.agg(how)[[*same, *how]].assign(devices=groups.size()["size"])


def sources_of(table, files):
    """Returns each row's source as a text: its device model, or its file if files share a model; "" if all are one."""
    if table["model"].nunique() > 1 and table.groupby("model")["file"].nunique().max() == 1:
        return table["model"]
    paths = [data.attrs["path"] for data in files]
    stems = [os.path.splitext(os.path.basename(path))[0] for path in paths]
    found = table["file"].map(dict(enumerate(stems if len(set(stems)) == len(stems) else paths)))
    found = found if table["file"].nunique() > 1 else ""
    return found + (" " + table["model"]) * bool(table.groupby("file")["model"].nunique().max() > 1)


def words(key):
    """Returns the values that distinguish a series as a text, its origin first."""
    own = {"origin": "", **key}
    return " ".join(str(word) for word in own.values() if word != "")


def groups_of(table, keys):
    """Yields ({key: value}, rows) for each combination of values."""
    groups = table.groupby(keys if keys[1:] else keys[0], sort=True, dropna=False) if keys else [((), table)]
    for key, own in groups:
        yield dict(zip(keys, key if isinstance(key, tuple) else (key,))), own


def series_of(table, keys, by, files, sources, looks=None, order=()):
    """Returns a Series for each combination of the keys. sources: see Scene. looks: ({first key: colour}, {other keys:
    marker}) that facets share."""
    heads, symbols = looks or ({}, {})
    found = []
    ranks = {word: rank for rank, word in enumerate(order)}

    def rank(group):
        wanted = min(ranks.get(str(word), len(ranks)) for word in [*group[0].values(), ""])
        return sources.index(group[0]["source"]) if sources else 0, wanted

    for key, own in sorted(groups_of(table, keys), key=rank):
        what = {name: word for name, word in key.items() if name != "source" or not sources}
        head = next(iter(what.values()), "")
        number = heads.setdefault(head, len(heads))
        others = words({name: what[name] for name in list(what)[1:]}) if looks and len(what) > 1 else words(what)
        symbol = symbols.setdefault(others, len(symbols))
        own_by = by or swept(own, files)
        source = key["source"] if sources else ""
        colour = style.PRECISIONS.get(head, style.COLOURS[number % len(style.COLOURS)])
        found.append(
            Series(
                words(key) or "rows",
                own["level"].iloc[0],
                style.lighter(colour, sources.index(source) if sources else 0),
                style.MARKERS[symbol % len(style.MARKERS)],
                style.DASHES[number % len(style.DASHES)],
                own.sort_values(own_by, kind="stable") if own_by else own,
                own_by,
                source,
                words(what),
            )
        )
    return found


def by_label(table, labels):
    """Returns the rows with these labels. A row with several of the labels appears once for each."""
    parts = [choose(table, [f"label={label}"]).assign(label=label) for label in labels]
    return pandas.concat(parts, ignore_index=True)


def check_rows(files):
    if not sum(one.sizes["config"] for one in files):
        names = ", ".join(one.attrs["path"] for one in files)
        raise Refused(f"{names}: it has roofs but no configurations; `plot map` and `plot history` draw roofs")


def scene(data, where=(), series=None, by=None, level="dram", labels=(), known=None, order=()):
    """Returns a Scene of the rows that fulfil `where` and have one of the labels. known: {variable that rows must have:
    message if none has it}.

    series: variables that distinguish curves (default: those of CROSSED that differ); by: parameter that orders and
    joins points; level: dram, l2, ..., `row` for each row's own, or `all`; order: values whose series come
    first."""
    files = several(data)
    check_rows(files)
    table = choose(rows(files, measured=False), where)
    chosen = table = by_label(table, labels) if labels else table
    table = table[table["status"] == "measured"]
    for name, why in {"performance": "no row that was chosen is measured and has FLOPs", **(known or {})}.items():
        table = table[table[name].notna()]
        if table.empty:
            raise Refused(why)
    table = with_bandwidths(table.reset_index(drop=True), files)
    table["origin"] = [
        chosen_label(label, workload) if workload == "program" else workload
        for label, workload in zip(table["label"], table["workload"])
    ]
    table["source"] = sources_of(table, files)
    if series:
        keys = [column(table, name) for name in series]
    else:
        keys = [name for name in CROSSED if name in table and table.loc[table[name] != "", name].nunique() > 1]
        keys += varying(table, ["label"] if labels else [])
        named = [*keys, *varying(table, ["origin"])]
        if named and not labels and table.groupby(named, dropna=False).ngroups <= MOST:  # else facets name the origin
            keys = named
    if {"model", "file"} & {*keys}:  # --series names the source
        sources = []
    else:
        keys += varying(table, ["source"])
        sources = list(dict.fromkeys(table.sort_values("file", kind="stable")["source"]))
    sources = tuple(sources if 1 < len(sources) <= len(style.STRENGTHS) else [])
    table["whole_name"] = table["name"]
    table["name"], shared = without_shared(table["name"], [short_name(key) for key in keys])
    by = column(table, by) if by else None
    table = at_levels(one_per_configuration(table, [*keys, *([by] if by else [])]), level)
    keys += ["level"] if level not in ("all", "row") and table["level"].nunique() > 1 and "level" not in keys else []
    roofs = {}
    for model in dict.fromkeys(table["model"]):
        file = int(table.loc[table["model"] == model, "file"].iloc[0])
        devices = np.flatnonzero(files[file]["device_model"].values == model)
        roofs[model] = ceilings(files[file], devices)
    curves = series_of(table, keys, by, files, sources, order=order)
    found = Scene(files, table, curves, level, roofs, sources, shared, keys=keys, chosen_by=by, order=order)
    found.chosen = chosen
    if len(found.swept) > 1:
        for series in found.series:
            by = f" (by {short_name(series.by)})" if series.by else ""
            series.name, series.what = series.name + by, series.what + by
    return found


def facets_of(scene):
    """Returns a Scene for each combination of workload and pass (a row of facets) and precision (a column). A colour or
    marker has the same meaning in all facets."""
    split = varying(scene.rows, FACETS)
    keys = [name for name in scene.keys if name not in FACETS]
    # Colours distinguish the key with most values, unless it has more values than there are colours.
    counts = {name: scene.rows[name].nunique() for name in keys}
    keys.sort(key=lambda name: -counts[name] if counts[name] <= len(style.COLOURS) else 0)
    looks, found, rows, columns = ({}, {}), [], {}, {}
    for key, own in groups_of(scene.rows, split):
        across = key.pop("precision", "")
        down = words(key)
        place = rows.setdefault(down, len(rows)), columns.setdefault(across, len(columns))
        series = series_of(own, keys, scene.chosen_by, scene.files, scene.sources, looks, scene.order)
        title = ", ".join(filter(None, [down, str(across)]))
        found.append(replace(scene, rows=own, series=series, title=title, place=place))
    drawn = {name: (series.colour, series.marker) for one in found for name, series in one.legend.items()}
    if max(len(one.legend) for one in found) > MOST or len(drawn) > ENTRIES:
        raise Crowded(f"{len(drawn)} series cannot be distinguished")
    check_looks(list(drawn.values()))
    return found


def check_looks(looks):
    """Raises Crowded if two series look alike."""
    if len(set(looks)) < len(looks):
        raise Crowded(f"{len(looks)} series cannot be told apart")


def fewer(scene):
    """Returns a hint: options of the command that choose few enough rows. The options fix one variable after the other
    at its most frequent value."""
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
