"""The command `compare`: is every device as fast as its neighbour, and as last time?"""

import os

import numpy as np
import pandas

from . import verdicts
from .arguments import whole
from .dataset import load
from .deviations import THRESHOLD, judged
from .frames import ROOFS, ROWS, kind_order, roofs, rows, short_texts
from .texts import Refused, listed, percent, plain, scaled, share, table

HELP = "which device is slower than its neighbours, or than last time"
DESCRIPTION = """Compares the devices of one or more result files: roofs, and times of the same configurations.

Devices of one file are compared with the median of their model, of two with the faster one. With several files the
first is the reference (last quarter's, say): each device of the others is compared with itself there, failing that
with the median of its model there. Only slower counts. What is slower by more than the limit is marked *.
Spread is how much faster the fastest device is than the slowest.

The limit is the threshold, or more where figures are noisy: three times the scatter of the devices, three times the
spread of the samples (median of the devices), the spread of the device's own samples up to 10 %; at most 50 %.
Work of tensor units counts in a clock cycle: their clock is that of the moment. What they sustain is a line by itself.
Gaps between launches have a limit of 15 %, as healthy chips of one model differ by that much.
A roof that is above-theory or contradicted, or could not be measured, is compared with nothing; that counts as a
failure where another device of the model has it.
Times compare where a configuration was measured on several devices: `distribute = replicate`, or several files.
A device whose roofs were measured by several runs of one file is one line, their median.

Below the tables: a line for each device, PASS or FAIL with its reasons. 1#5 node7 is device 5 of the first file, on
host node7; the first lines say which GPU that is.
Exit status: 0 all pass, 1 a device fails, 2 the comparison was not possible."""

# What devices are compared with: those of one file, and of several.
REFERENCES = (
    "reference: the median of the devices of a model, of two the faster one",
    "reference: file 1, each device itself there, failing that the median of its model there",
)
# How well what is sustained repeats on one device, see docs/measurements.md, Burst and sustained.
SUSTAINED_REPEATS = 0.03
# A third of what waits of healthy chips of one model differ by: which parts of a chip are in use decides how far it is
# from a block to L2. See docs/measurements.md, GPUs beside each other.
WAITS_DIFFER = 0.05
DEVICE = ["file", "place", "device_name", "model", "uuid", "hostname"]


def add_options(parser):
    parser.add_argument("files", nargs="+", metavar="file", help="result file; the first is the reference")
    parser.add_argument(
        "-t",
        "--threshold",
        type=float,
        default=100 * THRESHOLD,
        metavar="PERCENT",
        help="largest difference that is not marked (default: %(default)g)",
    )
    parser.add_argument(
        "-m", "--across-models", action="store_true", help="compare devices of different models as well"
    )
    parser.add_argument(
        "-c",
        "--configurations",
        type=whole(0),
        default=20,
        metavar="N",
        help="list the N configurations that differ most (default: %(default)d)",
    )
    verdicts.add_options(parser)


def medians(found, key):
    """One line for each device and key: medians of what several runs have measured."""
    columns = {"value": "median", "spread": "median"}
    return found.groupby([*DEVICE, key, "unit"], sort=False, as_index=False).agg(columns).rename(columns={key: "key"})


def at_equal_clock(found):
    """Tensor units draw all the power that there is: the clock of a burst is that of the moment, and says nothing of
    the device. So their work in a clock cycle is compared."""
    clocked = found["name"].str.contains(" tensor ") & found["performance"].notna() & (found["sm_clock"] > 0)
    work = found["value"] / found["sm_clock"]
    unit = found["unit"].str.replace("/s", "/cycle")
    return found.assign(value=found["value"].mask(clocked, work), unit=found["unit"].mask(clocked, unit))


def with_waits(found):
    """Gaps between launches are spread at least as far as those of healthy chips."""
    waits = found["name"].str.startswith("launch gap")
    return found.assign(spread=found["spread"].mask(waits, found["spread"].fillna(0).clip(lower=WAITS_DIFFER)))


def sustained(found):
    """What was settled, of which the clock is the device's own: further lines."""
    if "sustained" not in found:
        return found[:0]
    own = found[found["sustained"].notna() & (found["settled"] == "yes")]
    return own.assign(key=own["key"] + ", sustained", value=own["sustained"], spread=SUSTAINED_REPEATS)


def roof_table(files):
    """Roofs with a value to compare, in the order of kinds."""
    found = roofs(files)
    found["key"] = found["name"] + ", " + found["condition"]
    found = pandas.concat([at_equal_clock(with_waits(found)), sustained(found)], ignore_index=True)
    return found.iloc[np.lexsort([found["key"], found["condition"], found["name"].map(kind_order(found))])]


def time_table(files):
    """Times of configurations, as values in seconds; the spread is that of the median."""
    found = [rows(one).assign(file=number) for number, one in enumerate(files)]
    found = pandas.concat(found, ignore_index=True)
    return found.rename(columns={"time_median": "value", "noise": "spread"}).assign(unit="s")


def doubts(found):
    """{(file, place): {key: reason}} of roofs that cannot be compared."""
    usable = {(*line,) for line in found.loc[found["usable"], ["file", "place", "key"]].to_numpy()}
    reasons = {}
    for _, roof in found[~found["usable"]].iterrows():
        if (roof["file"], roof["place"], roof["key"]) not in usable:
            why = roof["setting"] if np.isnan(roof["value"]) else roof["verdict"]
            reasons.setdefault((roof["file"], roof["place"]), {})[roof["key"]] = why
    return reasons


def named(line):
    """1#0 node1: the file, the device's row in it, its host."""
    return f"{line['file'] + 1}{line['device_name']}"


def ends(found):
    """Cells of the slowest and the fastest of some lines of one key."""
    cells = []
    for line in (found.loc[found["deviation"].idxmin()], found.loc[found["deviation"].idxmax()]):
        cells += [percent(line["deviation"]) + ("*" if line["slow"] else " "), named(line)]
    return cells


def print_roofs(found, troubled):
    """A line per roof and model. Device by device is what is beyond its limit."""
    if found.empty:
        return
    print("Roofs against the reference, as speeds: - is slower, * by more than the limit")
    for model, own in found.groupby("model", sort=False):
        lines = []
        for key, same in own.groupby("key", sort=False):
            count = f"{len(same)}" + ("!" if key in troubled else " ")
            spread = same["deviation"].max() / same["deviation"].min() - 1
            reference = scaled(same["reference"].median(), same["unit"].iloc[0])
            lines.append([key, count, reference, share(spread), share(same["limit"].median()), *ends(same)])
        print(model)
        head = ["roof", "devices ", "reference", "spread", "limit", "slowest ", "on", "fastest ", "on"]
        print(table(head, lines, left=["on"]))


def print_doubts(reasons, names):
    """What was not compared, and where."""
    found = {}
    for device, own in reasons.items():
        for key, why in own.items():
            found.setdefault((key, why), []).append(names[device])
    if found:
        print("Not compared")
        for (key, why), devices in found.items():
            print(f"  {key}: {why}: {listed(devices)}")
        print()


def mean_of(found):
    """The geometric mean of some deviations."""
    return float(np.exp(np.log(found["deviation"]).mean()))


def print_times(found):
    """A line per device: over all configurations that compare."""
    lines = [
        [
            named(own.iloc[0]),
            str(len(own)),
            percent(mean_of(own)),
            percent(own["deviation"].min()),
            percent(own["deviation"].max()),
            str(int(own["slow"].sum())),
        ]
        for _, own in found.groupby(["file", "place"], sort=False)
    ]
    print("Speed of configurations against the reference: - is slower")
    print(table(["device", "configurations", "geometric mean", "least", "most", "slow"], lines))


def print_configurations(found, all_times, count):
    """The configurations that are slowest against their reference."""
    texts = dict(zip(all_times["config_hash"], short_texts(all_times)))
    algorithms = all_times.groupby("config_hash")["algorithm"].nunique()
    groups = found.groupby("key", sort=False)
    worst = groups["deviation"].min().sort_values(kind="stable").index[:count]
    lines = []
    for key in worst:
        own = groups.get_group(key)
        same = "same" if algorithms[key] == 1 else "differs"
        lines.append([texts[key], str(len(own)), share(own["limit"].median()), *ends(own), same])
    print(f"Configurations, the {len(lines)} of {groups.ngroups} that are slowest")
    print(table(["configuration", "devices", "limit", "slowest ", "on", "fastest ", "on", "algorithm"], lines, ["on"]))


def verdict_of(device, roofs_found, times, reasons, wanted, threshold):
    """The verdict of one device. wanted: keys of roofs that another device of the model has."""
    verdict = verdicts.Verdict(named(device), device["uuid"], device["model"], device["hostname"])
    verdict.checks = len(roofs_found) + len(times)
    for _, line in roofs_found[roofs_found["slow"]].sort_values("deviation").iterrows():
        verdict.reasons.append(f"{line['key']} {percent(line['deviation'])} (limit {share(line['limit'])})")
    verdict.reasons += [f"{key}: {why}" for key, why in reasons.items() if key in wanted]
    if len(times) and mean_of(times) < 1 - threshold:
        verdict.reasons.append(f"times of {len(times)} configurations: geometric mean {percent(mean_of(times))}")
    slow = times[times["slow"]]
    if len(slow):
        worst = percent(slow["deviation"].min())
        verdict.reasons.append(f"{len(slow)} of {len(times)} configurations are slower, at most {worst}")
    return verdict


def verdicts_of(devices, roofs_found, times, reasons, threshold, across):
    """One for each device that was compared; those of a first file that is a reference were not."""
    found = []
    gated = devices if devices["file"].nunique() == 1 else devices[devices["file"] > 0]
    for _, device in gated.iterrows():

        def own(lines, device=device):
            return lines[(lines["file"] == device["file"]) & (lines["place"] == device["place"])]

        peers = roofs_found if across else roofs_found[roofs_found["model"] == device["model"]]
        troubles = reasons.get((device["file"], device["place"]), {})
        found.append(verdict_of(device, own(roofs_found), own(times), troubles, set(peers["key"]), threshold))
    return found


def all_devices(files):
    """A line for each device, opened by however many runs."""
    found = []
    for number, data in enumerate(files):
        for place in range(data.sizes["device"]):
            texts = {name: data[f"device_{name}"].values[place] for name in ("model", "uuid", "hostname")}
            name = f"#{place} {texts['hostname']}"
            found.append({"file": number, "place": place, "device_name": name} | texts)
    return pandas.DataFrame(found).drop_duplicates(["file", "hostname", "uuid", "model"])


def run(options):
    if not options.threshold > 0:
        raise Refused("--threshold must be more than 0")
    if len({os.path.realpath(path) for path in options.files}) < len(options.files):
        raise Refused("a file is named twice")
    threshold, across = options.threshold / 100, options.across_models
    files = [load(path, ROWS + ROOFS) for path in options.files]
    devices, all_roofs, all_times = all_devices(files), roof_table(files), time_table(files)
    usable = all_roofs[all_roofs["usable"]]
    roofs_found = judged(medians(usable, "key"), threshold, across).dropna(subset="deviation")
    times = judged(medians(all_times, "config_hash"), threshold, across).dropna(subset="deviation")
    if roofs_found.empty and times.empty:
        if len(devices) < 2:
            raise Refused("only one device: name a second file, or a file of several devices")
        raise Refused("no two devices are of the same model; --across-models compares them")
    reasons = doubts(all_roofs)
    if not options.quiet:
        names = {(line["file"], line["place"]): named(line) for _, line in devices.iterrows()}
        for number, data in enumerate(files, 1):
            print(f"file {number}: {data.attrs['path']}, {data.attrs.get('date_created', 'no date')}")
        for _, line in devices.iterrows():
            without = (line["file"], line["place"]) not in set(zip(usable["file"], usable["place"]))
            bus = plain(files[line["file"]]["device_pci_id"].values[line["place"]])
            where = f"{line['model']}, {plain(line['uuid'])}" + f", PCI {bus}" * bool(bus)
            print(f"device {named(line)}: {where}" + ", no roofs" * without)
        print(REFERENCES[len(files) > 1])
        print()
        print_roofs(roofs_found, {key for own in reasons.values() for key in own})
        print_doubts(reasons, names)
        if len(times):
            print_times(times)
            print_configurations(times, all_times, options.configurations)
        else:
            print("No configuration was measured on two devices: use distribute = replicate, or one manifest twice.\n")
    found = verdicts_of(devices, roofs_found, times, reasons, threshold, across)
    return verdicts.publish(found, "compare", options)
