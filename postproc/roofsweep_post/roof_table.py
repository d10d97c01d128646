"""The command `roofs` prints a line for each device model and kind of roof."""

from collections import Counter

import numpy as np
import pandas

from .dataset import load
from .devices import Devices, driver_word
from .frames import DISTURBED, DOUBTFUL, ROOFS, head_line, roofs
from .links import fitted, sizes_of
from .targets import Kinds, Targets, middle, of_theory
from .texts import Refused, percent, room, scaled, share, table

HELP = "what each device can do at its best: a line for each kind of roof"
DESCRIPTION = """Prints the measured roofs of a result file: for each device model a line for each kind of roof.

alone          value while the other devices of the node are idle: the best sample, for launches the median sample. For
               several devices: their median
together       value while all devices of the node run at once
node spread    highest minus lowest value of a node's devices, over their mean. Values are those measured together, if
               the file has them. For several nodes this is the largest spread
mean/best      mean of all samples over the value
of theory      value over theory at the nominal clock
of clock       mean of all samples over theory at the measured clock
SM clock       measured clock
energy         energy of a byte or a FLOP without the constant power, if measured
verdict        proven: hardware counters saw the expected work, and no other; unproven: counters could not be read;
               ABOVE-THEORY, CONTRADICTED: errors to investigate; these values have a !, and are used neither in
               medians nor as roofs
?              after a value: samples take on average more than 20 % longer than the best one. Other work disturbed the
               samples, so the value may be too low; `baseline` and `check` refuse it
slowest, on    slowest of several devices, relative to the median
setting        fastest setting; for several devices the most frequent one

The columns after "together" are for the condition `alone` if the file has it. Device N is entry N of the file's
dimension `device`. --device N shows one device in full: a line for each roof and condition, with two more columns:

spread         slowest minus fastest sample, over the median of their times
counted        counted over expected work

--targets FILE has the target of each roof; `roofsweep-post check --help` explains its syntax.
Exit status: 0; 1: a roof misses its target or has no value, or a model has no targets; 2: the file or the targets
cannot be read."""

SETTING_WIDTH = 60  # characters in the table of a model; --device shows the whole setting
LINK_VALUES = [("bandwidth", "B/s"), ("time", "s")]
LEFT = ["condition", "verdict", "counted", "on", "setting", "target"]


def add_options(parser):
    parser.add_argument("file", help="result file of roofsweep")
    parser.add_argument("-d", "--device", type=int, metavar="N", help="show this device in full")
    parser.add_argument("-t", "--targets", metavar="FILE", help="show for each roof whether it reaches its target")


def word(verdict):
    return verdict.upper() if verdict in DOUBTFUL else verdict


def value_text(rows):
    """Returns the median of the usable values as a text, or if no value is usable the median of all, marked with !."""
    for chosen, mark in [(rows[rows["usable"]], ""), (rows[rows["value"].notna()], "!")]:
        if len(chosen):
            disturbed = "?" * bool((chosen["disturbance"] > DISTURBED).any())
            return scaled(middle(chosen["value"]), chosen["unit"].iloc[0]) + mark + disturbed
    return "-"


def verdict_text(rows):
    """Returns the verdicts, with the number of devices for each. If the conditions of a device have several verdicts, a
    doubtful one counts first, then proven, then unproven."""
    order = ["unproven", "proven"] + DOUBTFUL
    known = rows[rows["value"].notna() & rows["verdict"].isin(order)]
    counts = Counter(known.groupby("place")["verdict"].agg(lambda found: max(found, key=order.index)))
    if len(counts) == 1:
        return word(*counts)
    return ", ".join(f"{counts[name]} {word(name)}" for name in order if counts[name]) or "-"


def setting_text(rows):
    """Returns the most frequent setting, or the reason if no device measured the roof."""
    measured = rows[rows["value"].notna()]
    settings = Counter((measured if len(measured) else rows)["setting"])
    text, more = settings.most_common(1)[0][0], len(settings) - 1
    text = text if len(text) <= SETTING_WIDTH else text[: SETTING_WIDTH - 3] + "..."
    return text + f" (and {more} other)" * (more > 0)


def counted_text(roof):
    """Returns counted over expected work as a text: "flops 1.0001", "dram 1.002, l2 1.01"."""
    ratios = ({"flops": roof["flops_ratio"]} if np.isfinite(roof["flops_ratio"]) else {}) | roof["bytes_ratio"]
    return ", ".join(f"{what} {ratio:.5g}" for what, ratio in ratios.items()) or "-"


def slowest_cells(rows, devices):
    """Returns the cells on the slowest device: its value relative to the median, and its name; {} for a single
    device."""
    by_place = rows[rows["usable"]].groupby("place")["value"].median()
    if len(by_place) < 2:
        return {}
    place = by_place.idxmax() if rows["unit"].iloc[0] == "s" else by_place.idxmin()
    return {"slowest": percent(by_place[place] / by_place.median()), "on": devices.name(place)}


def kind_cells(rows, devices):
    """Returns the cells of the line for one kind of roof, {head: text}."""
    alone, together = (rows[rows["condition"] == condition] for condition in ["alone", "together"])
    main = alone if alone["value"].notna().any() else together
    used = main[main["usable"]] if main["usable"].any() else main[main["value"].notna()]
    spread = (together if together["node_spread"].notna().any() else alone)["node_spread"].max()
    return {
        "alone": value_text(alone),
        "together": value_text(together),
        "node\nspread": share(spread),
        "mean\n/best": share(middle(used["mean"])),
        "of\ntheory": share(middle(used["nominal_fraction"])),
        "of\nclock": share(middle(used["clock_fraction"])),
        "SM clock": scaled(middle(used["sm_clock"]), "Hz"),
        "energy": scaled(middle(used["energy"]), "J/" + used["unit"].iloc[0].removesuffix("/s")) if len(used) else "-",
        "verdict": verdict_text(rows),
        "setting": setting_text(rows),
    } | slowest_cells(main, devices)


def roof_cells(own):
    """Returns the cells of the line for one roof of one device, {head: text}. own: a table with the one line of
    roofs()."""
    roof = own.iloc[0]
    cells = {"roof": roof["name"], "condition": roof["condition"], "setting": roof["setting"]}
    if np.isnan(roof["value"]):
        return cells
    return cells | {
        "value": value_text(own),
        "node\nspread": share(roof["node_spread"]),
        "mean\n/best": share(roof["mean"]),
        "spread": share(roof["spread"]),
        "of\ntheory": share(roof["nominal_fraction"]),
        "of\nclock": share(roof["clock_fraction"]),
        "SM clock": scaled(roof["sm_clock"], "Hz"),
        "energy": scaled(roof["energy"], "J/" + roof["unit"].removesuffix("/s")),
        "verdict": word(roof["verdict"]),
        "counted": counted_text(roof),
    }


def print_lines(head, lines):
    head = [name for name in head if any(line.get(name, "-") != "-" for line in lines)]
    cells = [[line.get(name, "-") for name in head] for line in lines]
    text = table(head, cells, LEFT)
    if head[-1] == "setting" and max(map(len, text.splitlines())) > room():  # too wide: without the setting
        text = table(head[:-1], [line[:-1] for line in cells], LEFT)
    print(text)


def print_conditions(data, rows):
    """Prints conditions that must be equal for roofs to be comparable, such as the power cap, and the time of
    measurement."""
    own = rows["device"].unique().astype(int)
    caps = data["device_power_limit"].values[own]
    powers = {state: middle(rows[f"{state}_power"]) for state in ("constant", "rest")}
    facts = [
        (driver_word(data, own), data["device_driver_version"].values[own]),
        ("power cap", [scaled(cap, "W") for cap in caps if np.isfinite(cap)]),
        *((f"{state} power", [scaled(power, "W")] * bool(power > 0)) for state, power in powers.items()),
        ("roofs taken from", data["device_roofs_reused"].values[own]),
    ]
    texts = [f"{name} {' and '.join(sorted({text for text in found if text}))}" for name, found in facts if any(found)]
    starts = rows["start_time"].dropna()
    print(", ".join(texts + [f"measured {start:%Y-%m-%dT%H:%M:%SZ}" for start in starts.nsmallest(1)]))


def print_doubts(rows, devices):
    """Prints the roofs without a usable value, with the reason and the devices."""
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
    disturbed = rows[rows["disturbance"] > DISTURBED]
    if len(disturbed):
        worst, names = disturbed.loc[disturbed["disturbance"].idxmax()], devices.names(disturbed["place"])
        print(
            f"?: other work disturbed {len(disturbed)} of {len(rows)} roofs, which may be too low: samples of "
            f"{worst['name']}, {worst['condition']}, take {share(worst['disturbance'])} longer than the best, on "
            f"average: {names}"
        )
    if groups or len(disturbed):
        print()


def print_model(model, rows, devices, targets, kinds):
    """Prints a line for each kind of roof: medians over the devices of the model."""
    count, hosts = rows["place"].nunique(), len({devices.text(place, "hostname") for place in rows["place"]})
    print(f"{model}: {count} device{'s' * (count > 1)} on {hosts} host{'s' * (hosts > 1)}")
    print_conditions(devices.data, rows)
    head = ["roof", "alone", "together", "node\nspread", "mean\n/best", "of\ntheory", "of\nclock", "SM clock"]
    head += ["energy"] * bool(rows["energy"].notna().any()) + ["verdict", *["slowest", "on"] * (count > 1)]
    head += [*targets.head(model), "setting"]
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
    """Prints a line for each kind and condition of one device."""
    model = devices.text(number, "model")
    print(f"{model}: {devices.name(number)}")
    print_conditions(devices.data, rows)
    head = [
        "roof",
        "condition",
        "value",
        "node\nspread",
        "mean\n/best",
        "spread",
        "of\ntheory",
        "of\nclock",
        "SM clock",
    ]
    head += ["energy"] * bool(rows["energy"].notna().any()) + ["verdict", "counted", *targets.head(model), "setting"]
    rows = rows.iloc[np.lexsort([rows["condition"], rows["name"].map(kinds.order())])]
    cells = [
        roof_cells(rows.loc[[row]]) | {"target": targets.text(model, roof["name"], rows.loc[[row]], rows)}
        for row, roof in rows.iterrows()
    ]
    print_lines(head, cells)
    targets.print_missing(model)


def print_links(data):
    """Prints a line for each operation between devices of a node, with the range of values over pairs or nodes."""
    own, lines = sizes_of(data), []
    for name, found in own.groupby("name", sort=False):
        alike = found.groupby(["place", "one", "other"], sort=False)
        best, fits = alike.agg({"bandwidth": "max", "time": "min"}), alike[["bytes", "time"]].apply(fitted)
        fits = pandas.DataFrame([*fits], columns=["time", "bandwidth"])
        ranges = [(kind[value], unit) for kind in (best, fits) for value, unit in LINK_VALUES]
        cells = [
            " to ".join(dict.fromkeys(scaled(end, unit) for end in (one.min(), one.max()))) for one, unit in ranges
        ]
        lines.append([name, str(len(best)), *cells])
    head = ["link", "measured", "bandwidth", "latency", "fitted bandwidth", "fitted latency"]
    if lines:
        print(f"Links between devices\n{table(head, lines, ['link'])}")


def run(options):
    data = load(options.file, ROOFS)
    rows, devices = roofs(data), Devices(data)
    kinds = Kinds(data, rows)
    targets = Targets(options.targets, kinds)
    one, count = options.device, data.sizes["device"]
    if one is not None and not 0 <= one < count:
        raise Refused(f"no device {one}; there are: 0 to {count - 1}")
    rows = rows if one is None else rows[rows["device"] == one]
    if rows.empty:
        raise Refused(f"{options.file}: no roofs" + (f" of device {one}" if one is not None else ""))
    print(f"{head_line(data)}\n")
    if one is not None:
        print_device(one, rows, devices, targets, kinds)
    else:
        for model in dict.fromkeys(rows["model"]):
            print_model(model, rows[rows["model"] == model], devices, targets, kinds)
        print_links(data)
        without = set(devices.places) - set(rows["place"])
        if without:
            print(f"No roofs at all: {devices.names(without)}\n")
    targets.print_counts(devices)
    devices.print_named()
    return 0 if targets.all_reached() else 1
