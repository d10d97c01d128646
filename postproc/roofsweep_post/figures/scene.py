"""What a figure is drawn of: rows that were chosen, at one memory level for each series, and their ceilings.

A figure's numbers are made here, so that a test can hold what is drawn against them."""

import shlex
from dataclasses import dataclass, field, replace

import numpy as np
import pandas

from ..dataset import parameters
from ..frames import ROWS, ceilings, rows, several
from ..levels import at_levels, with_bandwidths
from ..selection import choose, column
from ..texts import Refused
from . import style
from .frame import Crowded

# What is crossed with the shapes: each value is a curve of its own.
CROSSED = ["precision", "pass", "requested_implementation", "requested_algorithm", "layout", "cache"]
# What else distinguishes rows, if it differs.
SOURCES = ["model", "file"]
NEEDS = (*ROWS, "performance", "unit", "precision")  # of a file, see load()
FACETS = ["workload", "pass", "precision"]  # facets: a row for each of the first two, a column for each last
MOST = 12  # series of one axes; of more a reader cannot tell all apart
ENTRIES = 24  # of a legend that facets share
ROWS_SHOWN = 24  # rows that a suggested selection leaves, at most
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
    extent: object = None  # the rows of all facets of the figure, whose limits and caption they share
    title: str = ""  # of a facet
    place: tuple = (0, 0)  # of a facet: row, column
    keys: list = field(default_factory=list)  # the variables that tell series apart
    chosen_by: str | None = None  # the parameter that --by names

    def __post_init__(self):
        self.extent = self.rows if self.extent is None else self.extent

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
    """The parameter that orders a series' points: the first that varies, if all others follow it and one label has all
    rows; or None."""
    if not set.intersection(*(set(label.split()) for label in table["label"])) and any(table["label"]):
        return None
    found = {name: data.variables[name].attrs for data in files for name in parameters(data)}
    # How a program is run is no size, as a command is none. Before format 3 long_name says what comment does.
    names = {name: f"{own['long_name']}; {own.get('comment', '')}" for name, own in found.items()}
    names = [name for name, meaning in names.items() if name not in CROSSED and "; program:" not in meaning]
    found = varying(table, names)
    follow = found and len(table[found].drop_duplicates()) == table[found[0]].nunique()
    return found[0] if follow else None


def short_name(name):
    return name.replace("requested_", "").replace("filter_height", "kernel").replace("_", " ")


def one_per_configuration(table, keys):
    """The median over devices that are not told apart, and how many these are."""
    same = [*dict.fromkeys(["config_hash", "model", "file", *keys])]
    how = {name: "median" if kind.kind in "iuf" else "first" for name, kind in table.dtypes.items() if name not in same}
    groups = table.groupby(same, as_index=False, sort=False, dropna=False)
    return groups.agg(how)[[*same, *how]].assign(devices=groups.size()["size"])


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


def series_of(table, keys, by, files, level, apart, looks=None):
    """One Series for each combination of the keys. apart: see Scene. looks: the numbers of colours and symbols that
    facets share, where the colour tells the first key and the symbol the others."""
    common = {"model"} | ({"level"} if level != "row" else set())
    heads, symbols = looks or ({}, {})
    found = []
    if apart:
        heads |= {model: number for number, model in enumerate(dict.fromkeys(table["model"]))}
    for key, own in groups_of(table, keys):
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
    """The rows of some labels; one that has several of them is a row of each."""
    parts = [choose(table, [f"label={label}"]).assign(label=label) for label in labels]
    return pandas.concat(parts, ignore_index=True)


def check_rows(files):
    if not sum(one.sizes["config"] for one in files):
        names = ", ".join(one.attrs["path"] for one in files)
        raise Refused(f"{names}: it holds roofs alone, no configurations; `plot map` and `plot history` draw roofs")


def scene(data, where=(), series=None, by=None, level="dram", labels=(), known=None):
    """A Scene of the rows that fulfil `where` and have one of the labels. known: {variable: why rows lack it}, of what
    they must have.

    series: variables that tell curves apart (default: what is crossed with the shapes and differs); by: the parameter
    that orders and joins points; level: dram, l2, ..., row for each row's own, or all."""
    files = several(data)
    check_rows(files)
    table = choose(rows(files), where)
    table = by_label(table, labels) if labels else table
    for name, why in {"performance": "no row that was chosen is measured and has FLOPs", **(known or {})}.items():
        table = table[table[name].notna()]
        if table.empty:
            raise Refused(why)
    table = with_bandwidths(table.reset_index(drop=True), files)
    if series:
        keys = [column(table, name) for name in series]
    else:
        keys = varying(table, CROSSED + SOURCES + (["label"] if labels else []))
    keys, apart = source_keys(keys, table, level)
    by = column(table, by) if by else None
    table = at_levels(one_per_configuration(table, [*keys, *([by] if by else [])]), level)
    keys += ["level"] if level != "all" and table["level"].nunique() > 1 and "level" not in keys else []
    roofs = {}
    for model in dict.fromkeys(table["model"]):
        file = int(table.loc[table["model"] == model, "file"].iloc[0])
        devices = np.flatnonzero(files[file]["device_model"].values == model)
        roofs[model] = ceilings(files[file], devices)
    curves = series_of(table, keys, by, files, level, apart)
    found = Scene(files, table, curves, level, roofs, apart, keys=keys, chosen_by=by)
    if len(found.swept) > 1:
        for series in found.series:
            series.name += f" (by {short_name(series.by)})" if series.by else ""
    return found


def facets_of(scene):
    """A Scene for each workload and pass (a row of facets) and precision (a column). The same colour and symbol have
    the same name in all of them."""
    split = varying(scene.rows, FACETS)
    keys = [name for name in scene.keys if name not in FACETS]
    # Colours tell what has most values, of those that have no more than there are colours.
    counts = {name: scene.rows[name].nunique() for name in keys}
    keys.sort(key=lambda name: -counts[name] if counts[name] <= len(style.COLOURS) else 0)
    looks, found, rows, columns = ({}, {}), [], {}, {}
    for key, own in groups_of(scene.rows, split):
        across = key.pop("precision", "")
        down = words(key)
        place = rows.setdefault(down, len(rows)), columns.setdefault(across, len(columns))
        series = series_of(own, keys, scene.chosen_by, scene.files, scene.level, False, looks)
        title = ", ".join(filter(None, [down, str(across)]))
        found.append(replace(scene, rows=own, series=series, apart=False, title=title, place=place))
    drawn = {series.name: (series.colour, series.marker) for one in found for series in one.series}
    most = max(len(one.series) for one in found)
    if most > MOST or len(drawn) > ENTRIES:
        raise Crowded(f"{len(drawn)} series cannot be told apart")
    check_looks(list(drawn.values()))
    return found


def check_looks(looks):
    """Refuses series of which two look alike."""
    if len(set(looks)) < len(looks):
        raise Crowded(f"{len(looks)} series cannot be told apart")


def fewer(scene):
    """Which options choose rows that a figure has room for: of what varies the most frequent value, one variable after
    the other."""
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
