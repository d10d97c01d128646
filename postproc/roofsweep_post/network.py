"""The command `network` adds up the times of a network's layers, which a list of the manifest names."""

import itertools

import numpy as np
import pandas

from . import selection
from .dataset import load
from .export import as_json
from .frames import ROWS, rows
from .naming import entries, parameters_of
from .texts import Refused, column, listed, percent, say, share, table

HELP = "a network from its layers: total, by layer, by limiter, and what could be saved"
DESCRIPTION = """Adds up the times of the rows that a list of the manifest (list = FILE.csv) names.

total        sum of count x time of one iteration (own_time: without the timer's), over all layers. Layers that the list
             leaves out, and the time that a framework takes between layers, are not included
of roof      time that the layers would take at their roofs, over their time. A row above its roof counts as 100 %; rows
             without a roof are left out
saved        total less the time at the roofs: the most that better kernels could save
samples      notes, as in `rows`. Times of noisy or preempted rows are included as measured
backward     gradients of data and of weights, from rows with `pass = backward`, or else from a row for each gradient
training     forward and backward. A row with `pass = training` of conv2d is a "training step" if its layer has no
             backward rows, and is left out otherwise, because these contain it

There are tables for each device, and for each value of the parameters that the sections vary (precision, batch). LABEL
is needed if lists of the file have several labels. --before FILE shows instead the changes of each layer since an
earlier file.

Exit status: 0; 1: layers were not measured, or a table lacks layers of another one, so totals lack them; 2: no list, or
wrong options."""

WORST = 5
WAYS = ["forward", "backward", "training step"]
# Columns of --json.
COLUMNS = [
    *("series", "place", "layer", "name", "workload", "count", "pass", "direction", "configuration", "status"),
    *("time_median", "own_time", "total", "at_roof", "saved", "roof_fraction", "limited_by"),
]


def add_options(parser):
    parser.add_argument("file", help="result file of roofsweep")
    parser.add_argument("label", nargs="?", metavar="LABEL", help="label of the network's sections")
    parser.add_argument("-b", "--before", metavar="FILE", help="what has changed since this file")
    parser.add_argument("-w", "--where", nargs="+", metavar="TERM", help=selection.HELP)
    parser.add_argument("--json", action="store_const", const=True, dest="as_json", help="JSON in SI units")


def layers_of(found, label):
    """Returns a line for each line of the label's list, in the order of the list, with the values of its row."""
    lines = [{"row": row} | entry for row, text in found["listed"].items() for entry in entries(text)]
    labels = list(dict.fromkeys(line["label"] for line in lines))
    if not labels:
        raise Refused("no row comes from a list (list = FILE.csv in a section of the manifest)")
    if label not in labels and (label or len(labels) > 1):
        what = f"no list of {label}" if label else "lists of several labels: name one"
        raise Refused(f"{what}; there are: {listed(labels, 40)}")
    lines = pandas.DataFrame([line for line in lines if line["label"] == (label or labels[0])])
    for name in ("place", "count"):
        lines[name] = lines[name].astype(int)
    found = found.drop(columns=["label", "place", "count"], errors="ignore")
    return lines.join(found, on="row").sort_values(["place", "row"], kind="stable").reset_index(drop=True)


def words_of(text):
    return dict(word.split("=", 1) for word in parameters_of(text) if "=" in word)


def series_of(layers):
    """Returns {name of a series: its lines}. There is a series for each combination of the parameters in which lines of
    one layer differ, such as precision. A workload without such a parameter is in all series."""
    words = [words_of(text) for text in layers["configuration"]]
    if layers.groupby("configuration")["device_name"].nunique().max() > 1:  # else each row is on one device
        words = [own | {"device": name} for own, name in zip(words, layers["device_name"])]
    layers = layers.assign(words=words)
    varied = {}
    for _, own in layers.groupby(["workload", "place"]):
        for key in {key for words in own["words"] for key in words} - {"pass"}:
            values = list(dict.fromkeys(words[key] for words in own["words"] if key in words))
            if len(values) > 1:
                varied[key] = list(dict.fromkeys(varied.get(key, []) + values))
    found = {}
    for values in itertools.product(*varied.values()):
        chosen = dict(zip(varied, values))
        own = layers[
            [all(words.get(key, value) == value for key, value in chosen.items()) for words in layers["words"]]
        ]
        if any(set(chosen) <= set(words) for words in own["words"]):
            found[" ".join(f"{key}={value}".removeprefix("device=") for key, value in chosen.items())] = own
    return found or {"": layers}


def directions(lines):
    """Returns "forward", "backward", "training step" or "" for each line. "" is for lines whose time other lines
    contain: training steps if the layer has backward rows, and gradients of one tensor if it also has the pass
    `backward`. A layer with one configuration is "forward", whatever its pass, because a transposed convolution is
    `backward-data` in a forward network. If all layers are so and have one pass, the pass decides."""
    alone = lines.groupby("place")["configuration"].transform("nunique") == 1
    whole = (lines["pass"] == "backward").groupby(lines["place"]).transform("any")
    backward = lines["pass"].str.startswith("backward")
    step = (lines["pass"] == "training") & (lines["workload"] == "conv2d")
    contained = step & backward.groupby(lines["place"]).transform("any")
    contained |= whole & backward & (lines["pass"] != "backward")
    found = np.select([contained, step, backward], ["", "training step", "backward"], "forward")
    return found if alone.all() and len(set(found)) == 1 else np.where(alone, "forward", found)


def totals(layers, file):
    """Returns the lines of all series, with the columns direction, total, at_roof and saved."""
    found = []
    for name, lines in series_of(layers).items():
        lines = lines.assign(series=name, direction=directions(lines))
        lines = lines[lines["direction"] != ""]
        lines["total"] = lines["count"] * lines["own_time"].where(lines["status"] == "measured")
        lines["at_roof"] = lines["total"] * lines["roof_fraction"].clip(upper=1)
        lines["saved"] = lines["total"] - lines["at_roof"]
        lines["layer"] = lines["layer"].fillna("").where(lines["layer"].fillna("") != "", lines["name"])
        found.append(lines.assign(file=file))
    return pandas.concat(found, ignore_index=True)


def added(values):
    return values.sum(min_count=1)


def sums(lines):
    parts = {name: lines[lines["direction"] == name] for name in WAYS if (lines["direction"] == name).any()}
    if {"forward", "backward"} <= set(parts):
        parts["training"] = lines[lines["direction"] != "training step"]
    return table(
        ["", "layers", "total", "of roof", "saved"],
        [
            [name, f"{own['count'].sum()}", column(added(own["total"]), "s")]
            + [
                share(added(own["at_roof"]) / own["total"][own["at_roof"].notna()].sum()),
                column(added(own["saved"]), "s"),
            ]
            for name, own in parts.items()
        ],
    )


def by_layer(lines, whole):
    head = ["layer", "pass", "count", "time", "total", "of all", "of roof", "saved", "limiter", "samples"]
    return table(
        head,
        [
            [
                line["layer"],
                line["pass"],
                f"{line['count']}",
                column(line["own_time"], "s"),
                column(line["total"], "s"),
            ]
            + [share(line["total"] / whole), share(line["roof_fraction"]), column(line["saved"], "s")]
            + ([line["limiter_cause"], line["marks"]] if line["status"] == "measured" else [line["status"], ""])
            for line in lines.to_dict("records")
        ],
        left=["pass", "limiter", "samples"],
    )


def worst_of(lines):
    """Returns the rows that could save most time. A row that several layers share appears once, with the sum over its
    layers."""
    own = lines.groupby("row", sort=False)
    summed = own[["count", "total", "saved"]].agg(added)
    found = own.first().assign(**summed, layer=own["layer"].agg(", ".join))
    return found.sort_values("saved", ascending=False, kind="stable").head(WORST)


def by_limiter(lines, whole):
    own = lines[lines["status"] == "measured"].groupby("limited_by")[["count", "total", "saved"]].agg(added)
    own = own.sort_values("total", ascending=False)
    return table(
        ["limiter", "layers", "total", "of all", "saved"],
        [
            [name, f"{count:.0f}", column(total, "s"), share(total / whole), column(saved, "s")]
            for name, count, total, saved in own.itertuples()
        ],
    )


def changes(now, before):
    """Returns the table of --before: a line for each layer that both files have, then a line for the whole network. If
    both files have the same series, these are compared, otherwise equal configurations."""
    same = set(now["series"]) == set(before["series"])
    keys = ["series" if same else "configuration", "place", "layer", "pass"]
    before = before.groupby(keys)["total"].median().rename("total_before")
    found = now.merge(before.reset_index(), on=keys, how="left")
    pairs = [
        (line["series"], line["layer"], line["pass"], line["total_before"], line["total"])
        for line in found.to_dict("records")
    ]
    both = found[found["total"].notna() & found["total_before"].notna()]
    if both.empty:
        say("no layer can be compared: the files have no configuration in common")
    for name, own in both.groupby("series", sort=False):
        pairs.append(
            (name, f"all {own['count'].sum()} layers of both", "", own["total_before"].sum(), own["total"].sum())
        )
    return table(
        ["series", "layer", "pass", "before", "now", "change"],
        [[*words, column(old, "s"), column(new, "s"), percent(new / old)] for *words, old, new in pairs],
        left=["layer", "pass"],
    )


def read(path, label, where):
    found = selection.choose(rows(load(path, ROWS), measured=False), where)
    return totals(layers_of(found, label), path)


def gaps(found):
    """Returns {" in SERIES": places of the list without a row}; "" stands for all series."""
    series = {f" in {name}": {*own["place"]} for name, own in found.groupby("series", sort=False)}
    series = {"": {*found["place"]}} if len(set(map(frozenset, series.values()))) == 1 else series
    every = {*range(1, found["place"].max() + 1)}
    return {text: sorted(every - places) for text, places in series.items() if every - places}


def run(options):
    if options.before and options.as_json:
        raise Refused("--json prints no changes: leave out --before")
    found = read(options.file, options.label, options.where)
    for text, places in gaps(found).items():
        which = f"the list's configurations {listed(map(str, places))} have no row{text}"
        say(f"{which}: no section takes their workload, or exclude or --where leaves them out")
    lacking = found.groupby("series")["place"].nunique() < found["place"].nunique()
    if options.as_json:
        print(as_json(found[COLUMNS]), end="")
    elif options.before:
        print(changes(found, read(options.before, options.label, options.where)), end="")
    else:
        for name, lines in found.groupby("series", sort=False):
            whole = lines["total"].sum() or np.nan
            print(f"{lines['label'].iloc[0]} {name}".rstrip() + "\n" + sums(lines))
            print(by_layer(lines, whole) + "\n" + by_limiter(lines, whole))
            print("where most time could be saved\n" + by_layer(worst_of(lines), whole))
    return int(lacking.any() or (found["status"] != "measured").any())
