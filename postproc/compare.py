#!/usr/bin/env python3
"""Compares the devices of one or more roofsweep result files: roofs, and times of the same configurations.

Each device is set against the median of all devices of its model; with several files, of those in the
first file (last quarter's, say). What differs by more than the threshold is marked * and listed.
Every roof compares, alone and together each by itself. Where its samples differ among themselves (launches from
a busy host, copies of all GPUs at once), its limit is twice their spread if that is more, but 50 % at most. A roof
that is above-theory or contradicted, or could not be measured, is compared with nothing; that counts as a
difference where another device of the model has it.
Times compare where a configuration was measured on several devices: `distribute = replicate`, or several
files. A device whose roofs were measured by several runs of one file is one line, their median.

Exit status: 0 nothing differs, 1 something does, 2 the comparison was not possible."""

import argparse
import os
import signal
import sys

from results import fail, frame, kind_order, load, np, percent, places, plain, print_table, roof_rows, scaled


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="file", help="result file; the first is the reference")
    parser.add_argument(
        "-t",
        "--threshold",
        type=float,
        default=5,
        metavar="PERCENT",
        help="largest difference that is not marked (default: 5)",
    )
    parser.add_argument(
        "-m", "--across-models", action="store_true", help="compare devices of different models as well"
    )
    parser.add_argument(
        "-c",
        "--configurations",
        type=int,
        default=20,
        metavar="N",
        help="list the N configurations that differ most (default: 20)",
    )
    options = parser.parse_args()
    if not options.threshold > 0:
        parser.error("--threshold must be more than 0")
    if len({os.path.realpath(path) for path in options.files}) < len(options.files):
        parser.error("a file is named twice")
    return options


class Device:
    """One device of one file: its roofs by (name, unit), the roofs that cannot be compared, by name, with the
    reason, and its median time of each configuration."""

    def __init__(self, number, data, rows, table):
        first = rows[0]
        self.uuid, self.model = (data[f"device_{name}"].values[first] for name in ["uuid", "model"])
        self.number, self.name = number, f"{number}#{first} {data['device_hostname'].values[first]}"
        self.roofs, self.spreads, self.doubts = {}, {}, {}
        own = table[table["config_device"].isin(rows)]
        self.times = own.groupby("config_hash")["time_median"].median().to_dict()
        self.algorithms = own.groupby("config_hash")["algorithm"].first().to_dict()


def take_roofs(devices, rows, order):
    """Gives each device its part of roof_rows(), in the order of kinds. devices: {place: device}."""
    rows = rows.iloc[np.lexsort([rows["condition"], rows["name"].map(order)])]
    usable = rows[rows["usable"]].groupby(["place", "name", "condition", "unit"], sort=False)
    usable = usable[["value", "spread"]].median()
    for (place, name, condition, unit), roof in usable.iterrows():
        devices[place].roofs[f"{name}, {condition}", unit] = roof["value"]
        devices[place].spreads[f"{name}, {condition}", unit] = roof["spread"]
    known = set(usable.index.droplevel("unit"))
    for _, roof in rows[~rows["usable"]].iterrows():
        place, name, condition = roof["place"], roof["name"], roof["condition"]
        if (place, name, condition) not in known:
            why = "setting" if np.isnan(roof["value"]) else "verdict"
            devices[place].doubts[f"{name}, {condition}"] = roof[why]


def devices_of(number, data, table, roofs, order):
    """The devices of a file. One that was opened by several runs is one device. roofs: its roof_rows()."""
    place, devices = places(data), {}
    for first in np.unique(place):
        rows = np.flatnonzero(place == first)
        devices[first] = Device(number, data, rows, table)
    take_roofs(devices, roofs, order)
    return list(devices.values())


def references(devices, values, across):
    """{(group, key): median over the reference devices}: those of the first file that has the group and
    the key. values(device) is a dict; the group is the model, or all."""
    samples = {}
    for device in devices:
        for key, value in values(device).items():
            found = samples.setdefault(("" if across else device.model, key), {})
            found.setdefault(device.number, []).append(value)
    return {
        place: float(np.median(found[min(found)]))
        for place, found in samples.items()
        if sum(len(list_) for list_ in found.values()) > 1
    }


def ratios(devices, values, across):
    """{(device, key): value / reference}, where there is another device to compare with."""
    reference = references(devices, values, across)
    return {
        (device, key): value / reference[place]
        for device in devices
        for key, value in values(device).items()
        for place in [("" if across else device.model, key)]
        if place in reference
    }


def roof_limits(devices, limit, across):
    """{(group, key): largest difference that says nothing}: no less than the limit. One device whose samples
    differ does not widen it, since it is the median of the reference devices."""
    spreads = references(devices, lambda device: device.spreads, across)
    return {
        place: max(limit, min(2 * spread, 0.5)) if np.isfinite(spread) else limit for place, spread in spreads.items()
    }


def differs(ratio, limit):
    return abs(ratio - 1) > limit


def described(ratio, unit):
    """-18.0 %, slower: of a time, more is slower."""
    return f"{percent(ratio)}, {'slower' if (ratio > 1) == (unit == 's') else 'faster'}"


def print_roofs(devices, found, reference, limits):
    """A line per roof and model: what its devices have. Device by device is what is beyond its limit."""
    rows = []
    for (model, (name, unit)), value in reference.items():
        same = [device for device in devices if model in ("", device.model)]
        own = [(found[device, (name, unit)], device) for device in same if (device, (name, unit)) in found]
        count = f"{len(own)}!" if any(name in device.doubts for device in same) else f"{len(own)} "
        limit = limits[model, (name, unit)]
        (least, low), (most, high) = (choose(own, key=lambda pair: pair[0]) for choose in (min, max))
        cells = [
            [percent(ratio) + ("*" if differs(ratio, limit) else " "), device.name]
            for ratio, device in [(least, low), (most, high)]
        ]
        ends = cells[1] + cells[0] if unit == "s" else cells[0] + cells[1]
        spread = f"{100 * (most / least - 1):.1f} %"
        rows.append((model, [name, count, scaled(value, unit), spread, f"{100 * limit:.3g} %"] + ends))
    print("Roofs against the reference; of times, + is slower")
    for model in dict.fromkeys(model for model, _ in rows):
        print_table(
            [model or "all models", "devices ", "reference", "spread", "limit", "slowest ", "on", "fastest ", "on"],
            [cells for other, cells in rows if other == model],
            left=["on"],
        )


def print_doubts(devices):
    """What was not compared, and where."""
    found = {}
    for device in devices:
        for name, why in device.doubts.items():
            found.setdefault((name, why), []).append(device.name)
    if found:
        print("Not compared")
    for (name, why), names in found.items():
        print(f"  {name}: {why}: {', '.join(names)}")
    if found:
        print()


def print_times(devices, found, limit):
    """A line per device: its ratios over all configurations that compare."""
    rows = []
    for device in devices:
        own = np.array([ratio for (other, _), ratio in found.items() if other is device])
        if len(own):
            mean = float(np.exp(np.log(own).mean()))
            outside = sum(differs(ratio, limit) for ratio in own)
            rows.append(
                [
                    device.name,
                    str(len(own)),
                    percent(mean) + ("*" if differs(mean, limit) else ""),
                    percent(own.min()),
                    percent(own.max()),
                    str(outside),
                ]
            )
    print("Times against the reference, + is slower")
    print_table(["device", "configurations", "geometric mean", "least", "most", "beyond threshold"], rows)


def short_texts(tables):
    """Canonical texts, by hash, without the parameters that all configurations of the workload share."""
    texts = {key: text.split() for table in tables for key, text in zip(table["config_hash"], table["configuration"])}
    shared = {}
    for words in texts.values():
        shared[words[0]] = shared.get(words[0], set(words)) & set(words)
    return {
        key: " ".join(words[:1] + [word for word in words if word not in shared[words[0]]])
        for key, words in texts.items()
    }


def print_configurations(found, texts, count, limit):
    """The configurations of the widest spread over devices."""
    by_key = {}
    for (device, key), ratio in found.items():
        by_key.setdefault(key, []).append((ratio, device.name, device.algorithms[key]))
    ordered = sorted(by_key.items(), key=lambda item: -max(item[1])[0] / min(item[1])[0])
    rows = []
    for key, values in ordered[:count]:
        (least, fast, one), (most, slow, other) = min(values), max(values)
        mark = "*" if differs(least, limit) or differs(most, limit) else ""
        rows.append(
            [
                texts[key] + mark,
                str(len(values)),
                percent(least),
                fast,
                percent(most),
                slow,
                "differs" if one != other else "same",
            ]
        )
    print(f"Configurations, the {len(rows)} of {len(by_key)} that differ most")
    print_table(["configuration", "devices", "fastest", "on", "slowest", "on", "algorithm"], rows)


def print_outliers(devices, roof_ratios, limits, time_ratios, limit, across):
    """What is beyond its limit, in a sentence each. Returns how many there are."""
    groups, found, times = {}, {device: [] for device in devices}, {}
    for (device, (name, unit)), ratio in roof_ratios.items():
        if differs(ratio, limits["" if across else device.model, (name, unit)]):
            found[device].append(f"{device.name} {name}: {described(ratio, unit)}")
    for (device, _), ratio in time_ratios.items():
        if differs(ratio, limit):
            times.setdefault(device, []).append(ratio)
    for device in devices:
        groups.setdefault("" if across else device.model, set()).update(name for name, _ in device.roofs)
    for device in devices:
        found[device] += [
            f"{device.name} {name}: {why}"
            for name, why in device.doubts.items()
            if name in groups["" if across else device.model]
        ]  # another one has it
        if device in times:
            worst = max(times[device], key=lambda ratio: max(ratio, 1 / ratio))
            found[device].append(
                f"{device.name} times: {len(times[device])} configurations, at most {described(worst, 's')}"
            )
    lines = [line for device in devices for line in found[device]]
    print(f"Beyond {100 * limit:g} %: {len(lines) or 'nothing'}")
    for line in lines:
        print(f"  {line}")
    return len(lines)


def main():
    options = arguments()
    files = [load(path, configurations=False) for path in options.files]
    tables, roofs = [frame(data) for data in files], [roof_rows(data) for data in files]
    devices, order = [], kind_order(roofs)
    for number, (path, data, table, rows) in enumerate(zip(options.files, files, tables, roofs), 1):
        devices += devices_of(number, data, table, rows, order)
        print(f"file {number}: {plain(path)}, {data.attrs.get('date_created', 'no date')}")
    for device in devices:
        print(f"device {device.name}: {device.model}, {device.uuid}" + ", no roofs" * (not device.roofs))
    print()
    if len(devices) < 2:
        fail("only one device: name a second file, or a file of several devices")
    limit, across = options.threshold / 100, options.across_models
    roof_ratios = ratios(devices, lambda device: device.roofs, across)
    time_ratios = ratios(devices, lambda device: device.times, across)
    if not roof_ratios and not time_ratios:
        fail("no two devices are of the same model; --across-models compares them")
    limits = roof_limits(devices, limit, across)
    if roof_ratios:
        print_roofs(devices, roof_ratios, references(devices, lambda device: device.roofs, across), limits)
    print_doubts(devices)
    if time_ratios:
        print_times(devices, time_ratios, limit)
        print_configurations(time_ratios, short_texts(tables), options.configurations, limit)
    else:
        print("No configuration was measured on two devices (distribute = replicate does that).\n")
    return 1 if print_outliers(devices, roof_ratios, limits, time_ratios, limit, across) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `compare.py ... | head` is no error
    sys.exit(main())
