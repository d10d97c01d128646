#!/usr/bin/env python3
"""Prints the measured roofs of a roofsweep result file: a line per kind of roof, for each device model.

alone          best value while the node's other devices idle; of several devices the median
together       the same while all of them do this at once
node spread    highest minus lowest of a node's devices, over their mean: the widest of all nodes, together
               if it was measured
median/best    median of the samples over the best one; spread: slowest minus fastest sample over their median
of theory      value over theory at the nominal clock
of clock       value over theory at the clock that was measured meanwhile
SM clock       that clock; power: meanwhile
verdict        proven: counters have seen the work where it should be, and nowhere else; unproven: nobody
               looked; ABOVE-THEORY and CONTRADICTED: an error to look into. Such a value carries !, is in no
               median, and is not used as a roof
slowest        of several devices the slowest one, against the median
setting        what won, of several devices the most frequent

What is right of "together" is of the roofs alone where there are such. Devices are numbered by their row
in the file. --device N shows one of them in full: a line for each roof and condition, and what else was
seen meanwhile; counted is the work that counters saw, over what was expected.

--targets FILE names what each roof shall reach at least (a time: at most), as figure, as part of the theory
at the measured clock, or as another roof of the same run:

    [NVIDIA H200]
    dram triad = 4.48 TB/s
    fp16 tensor wgmma = 97 %, fp16 tensor library

Every model in the file needs a section, if an empty one.

Exit status: 0, 1 a target is missed or not known, or a model has none, 2 the file or the targets cannot be
read."""

import argparse
import configparser
import re
import signal
import sys
from collections import Counter

from results import DOUBTFUL, fail, kind_order, load, np, percent, places, plain, print_table, roof_rows, scaled

SETTING_WIDTH = 60  # of the table of a model; --device shows all of it
NAMED_MOST = 8  # devices of one sentence
LEFT = ["condition", "throttled", "verdict", "counted", "on", "setting", "target"]
PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="result file of roofsweep")
    parser.add_argument("-d", "--device", type=int, metavar="N", help="show this device in full")
    parser.add_argument("-t", "--targets", metavar="FILE", help="say of each roof whether it is reached")
    return parser.parse_args()


def share(value):
    return f"{100 * value:.1f} %" if np.isfinite(value) else "-"


def middle(column):
    """The median of what there is."""
    known = column.dropna()
    return known.median() if len(known) else np.nan


def of_theory(roof):
    """Value over theory at the measured clock; failing that, at the nominal one."""
    return roof["clock_fraction"] if np.isfinite(roof["clock_fraction"]) else roof["nominal_fraction"]


class Devices:
    """Devices by their row in the file; those that are named are explained at the end."""

    def __init__(self, data):
        self.data, self.places, self.named = data, places(data), set()

    def text(self, place, name):
        return self.data[f"device_{name}"].values[place]

    def name(self, place):
        self.named.add(place)
        return f"#{place} {self.text(place, 'hostname')}"

    def names(self, found):
        found = sorted(set(found))
        more = len(found) - NAMED_MOST
        return ", ".join(self.name(place) for place in found[:NAMED_MOST]) + f" and {more} more" * (more > 0)

    def print_named(self):
        if self.named:
            print("Devices named above")
        for place in sorted(self.named):
            bus = self.text(place, "pci_id")
            print(f"  {self.name(place)}: {self.text(place, 'uuid')}{', PCI ' * bool(bus)}{bus}")


class Kinds:
    """The kinds of roofs that a file has, and which others there may be."""

    def __init__(self, data, rows):
        self.rows = rows
        self.models = set(data["device_model"].values[rows["place"]])
        names = [*rows["name"], *data["memory_level_name"].values, *data["precision_name"].values]
        if "unit" in data:
            names += data["unit"].attrs["flag_meanings"].split()
        self.words = {word for name in names for word in name.split()}

    def possible(self, name):
        """A kind that was not measured has words that the file knows; a slip of the pen has not."""
        return set(name.split()) <= self.words

    def order(self, others=()):
        return kind_order([self.rows], others)


class Target:
    """One thing that a roof shall reach."""

    def __init__(self, text, kinds):
        self.text, self.least, self.unit = text, None, None
        number = re.fullmatch(r"(\d+(?:\.\d+)?) *(?:(%)|([numkMGTP]?)(B/s|FLOP/s|OP/s|s))", text)
        if number:
            self.least = float(number[1]) * (0.01 if number[2] else PREFIXES[number[3]])
            self.unit = number[2] or number[4]
        elif not kinds.possible(text):
            raise ValueError(f"'{text}' is neither a figure, as in 4.48 TB/s or 97 %, nor a roof")

    def reached(self, roof, others):
        """How far `roof` gets: 1 or more is enough; NaN if that is not known. others: of its device."""
        if not roof["usable"]:
            return np.nan
        if self.unit == "%":
            return of_theory(roof) / self.least
        least, unit = self.least, self.unit
        if unit is None:
            same = others[(others["name"] == self.text) & (others["condition"] == roof["condition"]) & others["usable"]]
            least, unit = middle(same["value"]), same["unit"].max() if len(same) else roof["unit"]
        if unit != roof["unit"]:
            fail(f"{roof['name']} is in {roof['unit']}, its target '{self.text}' is not")
        return least / roof["value"] if roof["unit"] == "s" else roof["value"] / least

    def verdict(self, found, rows):
        """(text, what it counts as, places that do not reach it), of the rows of one kind and condition
        among all rows."""
        reached = np.array([self.reached(roof, rows[rows["place"] == roof["place"]]) for _, roof in found.iterrows()])
        known, short = reached[np.isfinite(reached)], list(found["place"][~(reached >= 1)])
        missed, unknown = int((known < 1).sum()), len(reached) - len(known)
        if missed:
            some = f" by {missed} of {len(reached)}" * (len(reached) > 1)
            return f"{self.text} MISSED{some}: {percent(known.min())}", "missed", short
        if unknown or not len(reached):
            return (
                f"{self.text} NOT KNOWN" + f" for {unknown} of {len(reached)}" * (len(reached) > 1),
                "not known",
                short,
            )
        return f"{self.text} reached: {percent(known.min())}", "reached", short


class Targets:
    """What the roofs of each model shall reach, how many of them do so far, and which devices do not."""

    def __init__(self, path, kinds):
        self.path, self.counts, self.short, self.by_model = path, Counter(), [], {}
        parser = configparser.ConfigParser(delimiters="=", interpolation=None)
        try:
            if path:
                with open(path, encoding="utf-8") as stream:
                    parser.read_file(stream, path)
            for model in parser.sections():
                self.by_model[model] = {}
                for kind, value in parser[model].items() if model in kinds.models else ():
                    if not kinds.possible(kind):
                        raise ValueError(f"'{kind}' is no roof; there are: {', '.join(kinds.order())}")
                    self.by_model[model][kind] = [Target(text.strip(), kinds) for text in value.split(",")]
        except (OSError, ValueError, configparser.Error) as error:
            fail(f"{path}: {getattr(error, 'strerror', None) or error}")

    def kinds(self, model):
        return list(self.by_model.get(model, {}))

    def head(self, model):
        return ["target"] * (model in self.by_model)

    def text(self, model, kind, found, rows):
        texts = []
        for target in self.by_model.get(model, {}).get(kind, []):
            text, count, short = target.verdict(found, rows)
            texts.append(text)
            self.counts[count] += 1
            self.short += [(f"{kind}, {target.text}: {count}", short)] if short else []
        return "; ".join(texts)

    def print_missing(self, model):
        """A model without a section: another device than was expected, or a slip of the pen."""
        if self.path and model not in self.by_model:
            self.counts["not known"] += 1
            print(f"No targets for {model}; {plain(self.path)} has: {', '.join(self.by_model) or 'none'}\n")

    def print_counts(self, devices):
        if self.path:
            print("Targets: " + ", ".join(f"{self.counts[name]} {name}" for name in ["reached", "missed", "not known"]))
            for what, short in self.short:
                print(f"  {what} on {devices.names(short)}")
            print()

    def all_reached(self):
        return set(self.counts) <= {"reached"}


def word(verdict):
    return verdict.upper() if verdict in DOUBTFUL else verdict


def value_text(rows):
    """The median of what is usable; failing that, of what is not, with its mark."""
    for chosen, mark in [(rows[rows["usable"]], ""), (rows[rows["value"].notna()], "!")]:
        if len(chosen):
            return scaled(middle(chosen["value"]), chosen["unit"].iloc[0]) + mark
    return "-"


def verdict_text(rows):
    """Each device once: what is doubted under one condition is doubtful, what is proven under one proven."""
    order = ["unproven", "proven"] + DOUBTFUL
    known = rows[rows["value"].notna() & rows["verdict"].isin(order)]
    counts = Counter(known.groupby("place")["verdict"].agg(lambda found: max(found, key=order.index)))
    if len(counts) == 1:
        return word(*counts)
    return ", ".join(f"{counts[name]} {word(name)}" for name in order if counts[name]) or "-"


def setting_text(rows):
    """The most frequent setting; without a measured one, why."""
    measured = rows[rows["value"].notna()]
    settings = Counter((measured if len(measured) else rows)["setting"])
    text, more = settings.most_common(1)[0][0], len(settings) - 1
    text = text if len(text) <= SETTING_WIDTH else text[: SETTING_WIDTH - 3] + "..."
    return text + f" (and {more} other)" * (more > 0)


def counted_text(roof):
    """The work that counters saw over what was expected: "flops 1.0001", "dram 1.002, l2 1.01"."""
    ratios = ({"flops": roof["flops_ratio"]} if np.isfinite(roof["flops_ratio"]) else {}) | roof["bytes_ratio"]
    return ", ".join(f"{what} {ratio:.5g}" for what, ratio in ratios.items()) or "-"


def slowest_cells(rows, devices):
    """The slowest device against the median, where there are several."""
    by_place = rows[rows["usable"]].groupby("place")["value"].median()
    if len(by_place) < 2:
        return {}
    place = by_place.idxmax() if rows["unit"].iloc[0] == "s" else by_place.idxmin()
    return {"slowest": percent(by_place[place] / by_place.median()), "on": devices.name(place)}


def kind_cells(rows, devices):
    """The line of one kind, {head: text}."""
    alone, together = (rows[rows["condition"] == condition] for condition in ["alone", "together"])
    main = alone if alone["value"].notna().any() else together
    used = main[main["usable"]] if main["usable"].any() else main[main["value"].notna()]
    spread = (together if together["node_spread"].notna().any() else alone)["node_spread"].max()
    return {
        "alone": value_text(alone),
        "together": value_text(together),
        "node\nspread": share(spread),
        "median\n/best": share(middle(used["median"])),
        "of\ntheory": share(middle(used["nominal_fraction"])),
        "of\nclock": share(middle(used["clock_fraction"])),
        "SM clock": scaled(middle(used["sm_clock"]), "Hz"),
        "power": scaled(middle(used["power"]), "W"),
        "verdict": verdict_text(rows),
        "setting": setting_text(rows),
    } | slowest_cells(main, devices)


def roof_cells(roof):
    """The line of one device's roof under one condition, {head: text}."""
    cells = {"roof": roof["name"], "condition": roof["condition"], "setting": roof["setting"]}
    if np.isnan(roof["value"]):
        return cells
    heat = roof["temperature"] - 273.15
    return cells | {
        "value": scaled(roof["value"], roof["unit"]) + "!" * (not roof["usable"]),
        "node\nspread": share(roof["node_spread"]),
        "median\n/best": share(roof["median"]),
        "spread": share(roof["spread"]),
        "samples": f"{roof['samples']:.0f}",
        "of\ntheory": share(roof["nominal_fraction"]),
        "of\nclock": share(roof["clock_fraction"]),
        "SM clock": scaled(roof["sm_clock"], "Hz"),
        "memory\nclock": scaled(roof["memory_clock"], "Hz"),
        "power": scaled(roof["power"], "W"),
        "temper-\nature": f"{heat:.0f} C" if np.isfinite(heat) else "-",
        "throttled": roof["throttled"],
        "verdict": word(roof["verdict"]),
        "counted": counted_text(roof),
    }


def print_lines(head, lines):
    print_table(head, [[line.get(name, "-") for name in head] for line in lines], LEFT)


def print_conditions(data, rows):
    """What must be equal for roofs to be comparable, and when they were measured."""
    own = rows["device"].unique()
    caps = data["device_power_limit"].values[own]
    facts = [
        ("driver", data["device_driver_version"].values[own]),
        ("power cap", [scaled(cap, "W") for cap in caps if np.isfinite(cap)]),
        ("roofs taken from", data["device_roofs_reused"].values[own]),
    ]
    texts = [f"{name} {' and '.join(sorted({text for text in found if text}))}" for name, found in facts if any(found)]
    starts = rows["start_time"].dropna()
    print(", ".join(texts + [f"measured {start:%Y-%m-%dT%H:%M:%SZ}" for start in starts.nsmallest(1)]))


def print_doubts(rows, devices):
    """What has no value or is not used, and on which devices."""
    groups = {}
    for _, roof in rows[~rows["usable"]].iterrows():
        why = roof["setting"] if np.isnan(roof["value"]) else f"{word(roof['verdict'])}, not used"
        groups.setdefault((f"{roof['name']}, {roof['condition']}", why), []).append(roof)
    if groups:
        print("Not measured, or not used")
    for (what, why), found in groups.items():
        fractions = [of_theory(roof) for roof in found if np.isfinite(of_theory(roof))]
        if fractions and not np.isnan(found[0]["value"]):
            why += f", highest {share(max(fractions))} of theory"
        print(f"  {what}: {why}: {devices.names(roof['place'] for roof in found)}")
    if groups:
        print()


def print_model(model, rows, devices, targets, kinds):
    """A line per kind, median over the devices of the model."""
    count, hosts = rows["place"].nunique(), len({devices.text(place, "hostname") for place in rows["place"]})
    print(f"{model}: {count} device{'s' * (count > 1)} on {hosts} host{'s' * (hosts > 1)}")
    print_conditions(devices.data, rows)
    head = (
        [
            "roof",
            "alone",
            "together",
            "node\nspread",
            "median\n/best",
            "of\ntheory",
            "of\nclock",
            "SM clock",
            "power",
            "verdict",
        ]
        + ["slowest", "on"] * (count > 1)
        + targets.head(model)
        + ["setting"]
    )
    lines = []
    wanted = targets.kinds(model)
    for kind in sorted({*rows["name"], *wanted}, key=kinds.order([wanted]).get):
        own = rows[rows["name"] == kind]
        main = own[own["condition"] == "alone"] if (own["condition"] == "alone").any() else own
        lines.append(
            {"roof": kind, "target": targets.text(model, kind, main, rows)}
            | (kind_cells(own, devices) if len(own) else {})
        )
    print_lines(head, lines)
    targets.print_missing(model)
    print_doubts(rows, devices)


def print_device(number, rows, devices, targets, kinds):
    """One device, a line per kind and condition."""
    model = devices.text(number, "model")
    print(f"{model}: {devices.name(number)}")
    print_conditions(devices.data, rows)
    head = (
        [
            "roof",
            "condition",
            "value",
            "node\nspread",
            "median\n/best",
            "spread",
            "samples",
            "of\ntheory",
            "of\nclock",
            "SM clock",
            "memory\nclock",
            "power",
            "temper-\nature",
            "throttled",
            "verdict",
            "counted",
        ]
        + targets.head(model)
        + ["setting"]
    )
    rows = rows.iloc[np.lexsort([rows["condition"], rows["name"].map(kinds.order())])]
    print_lines(
        head,
        [
            roof_cells(roof) | {"target": targets.text(model, roof["name"], rows.loc[[row]], rows)}
            for row, roof in rows.iterrows()
        ],
    )
    targets.print_missing(model)


def main():
    options = arguments()
    data = load(options.file, configurations=False)
    rows, devices = roof_rows(data), Devices(data)
    kinds = Kinds(data, rows)
    targets = Targets(options.targets, kinds)
    one, count = options.device, data.sizes["device"]
    if one is not None and not 0 <= one < count:
        fail(f"no device {one}; there are: 0 to {count - 1}")
    rows = rows if one is None else rows[rows["device"] == one]
    if rows.empty:
        fail(f"{options.file}: no roofs" + (f" of device {one}" if one is not None else ""))
    print(
        f"{plain(options.file)}: {data.attrs.get('title', 'no title')}, {data.attrs.get('source', 'roofsweep')}, "
        f"{data.attrs.get('date_created', 'no date')}\n"
    )
    if one is not None:
        print_device(one, rows, devices, targets, kinds)
    else:
        models = data["device_model"].values[rows["place"]]
        for model in dict.fromkeys(models):
            print_model(model, rows[models == model], devices, targets, kinds)
        without = set(devices.places) - set(rows["place"])
        if without:
            print(f"No roofs at all: {devices.names(without)}\n")
    targets.print_counts(devices)
    devices.print_named()
    return 0 if targets.all_reached() else 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `roofs.py ... | head` is no error
    sys.exit(main())
