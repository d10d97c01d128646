#!/usr/bin/env python3
"""Compares the devices of one or more roofsweep result files: roofs, and times of the same configurations.

Each device is set against the median of all devices of its model; with several files, of those in the
first file (last quarter's, say). What differs by more than the threshold is marked * and listed.
Times compare where a configuration was measured on several devices: `distribute = replicate`, or several
files. A device whose roofs were measured by several runs of one file is one line, their median.

Exit status: 0 nothing differs, 1 something does, 2 the comparison was not possible."""
import argparse
import os
import signal
import sys

from results import fail, frame, load, np, roofs, scaled


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="file", help="result file; the first is the reference")
    parser.add_argument("-t", "--threshold", type=float, default=5, metavar="PERCENT",
                        help="largest difference that is not marked (default: 5)")
    parser.add_argument("-m", "--across-models", action="store_true",
                        help="compare devices of different models as well")
    parser.add_argument("-c", "--configurations", type=int, default=20, metavar="N",
                        help="list the N configurations that differ most (default: 20)")
    options = parser.parse_args()
    if not options.threshold > 0:
        parser.error("--threshold must be more than 0")
    if len({os.path.realpath(path) for path in options.files}) < len(options.files):
        parser.error("a file is named twice")
    return options


class Device:
    """One device of one file: its roofs, and its median time of each configuration."""

    def __init__(self, number, data, rows, table, model):
        first = rows[0]
        host, self.uuid = (data[f"device_{name}"].values[first] for name in ["hostname", "uuid"])
        self.number, self.model, self.name = number, model, f"{number}#{first} {host}"
        self.roofs = {key: float(np.median(values[rows][np.isfinite(values[rows])]))
                      for key, values in roofs(data).items() if np.isfinite(values[rows]).any()}
        own = table[table["config_device"].isin(rows)]
        self.times = own.groupby("config_hash")["time_median"].median().to_dict()
        self.algorithms = own.groupby("config_hash")["algorithm"].first().to_dict()


def devices_of(number, data, table):
    """The devices of a file. One that was opened by several runs is one device."""
    places = {}
    keys = zip(data["device_hostname"].values, data["device_uuid"].values, data["device_model"].values)
    for row, key in enumerate(keys):
        places.setdefault(key, []).append(row)
    return [Device(number, data, rows, table, key[2]) for key, rows in places.items()]


def references(devices, values, across):
    """{(group, key): median over the reference devices}: those of the first file that has the group and
    the key. values(device) is a dict; the group is the model, or all."""
    samples = {}
    for device in devices:
        for key, value in values(device).items():
            found = samples.setdefault(("" if across else device.model, key), {})
            found.setdefault(device.number, []).append(value)
    return {place: float(np.median(found[min(found)])) for place, found in samples.items()
            if sum(len(list_) for list_ in found.values()) > 1}


def ratios(devices, values, across):
    """{(device, key): value / reference}, where there is another device to compare with."""
    reference = references(devices, values, across)
    return {(device, key): value / reference[place]
            for device in devices for key, value in values(device).items()
            for place in [("" if across else device.model, key)] if place in reference}


def print_table(head, rows):
    """Columns as wide as they must be; the first to the left. A head may have several lines."""
    depth = max(cell.count("\n") for cell in head) + 1
    heads = list(zip(*[([""] * depth + cell.split("\n"))[-depth:] for cell in head]))
    widths = [max(len(row[i]) for row in heads + rows) for i in range(len(head))]
    for row in heads + rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())
    print()


def percent(ratio):
    return f"{100 * (ratio - 1):+.1f} %"


def differs(ratio, limit):
    return max(ratio, 1 / ratio) > 1 + limit if ratio > 0 else True


def print_roofs(devices, found, limit):
    """A line per device, a column per roof, and for each model their spread: largest over least."""
    keys = list(dict.fromkeys(key for device in devices for key in device.roofs))
    rows = []
    for device in devices:
        cells = [device.name]
        for key in keys:
            mark = "*" if differs(found.get((device, key), 1), limit) else " "
            cells.append(scaled(device.roofs.get(key, np.nan), "").replace(" ", "") + mark)
        rows.append(cells)
    for model in dict.fromkeys(device.model for device in devices):
        same = [device for device in devices if device.model == model]
        cells = [f"spread {model}"]
        for key in keys:
            values = [device.roofs[key] for device in same if key in device.roofs]
            cells.append(f"{100 * (max(values) / min(values) - 1):.1f}%" if len(values) > 1 else "- ")
        rows.append(cells)
    print("Roofs, as measured")
    print_table(["device"] + ["\n".join(key) + " " for key in keys], rows)


def print_times(devices, found, limit):
    """A line per device: its ratios over all configurations that compare."""
    rows = []
    for device in devices:
        own = np.array([ratio for (other, _), ratio in found.items() if other is device])
        if len(own):
            mean = float(np.exp(np.log(own).mean()))
            outside = sum(differs(ratio, limit) for ratio in own)
            rows.append([device.name, str(len(own)), percent(mean) + ("*" if differs(mean, limit) else ""),
                         percent(own.min()), percent(own.max()), str(outside)])
    print("Times against the reference, + is slower")
    print_table(["device", "configurations", "geometric mean", "least", "most", "beyond threshold"], rows)


def short_texts(tables):
    """Canonical texts, by hash, without the parameters that all configurations of the workload share."""
    texts = {key: text.split() for table in tables
             for key, text in zip(table["config_hash"], table["configuration"])}
    shared = {}
    for words in texts.values():
        shared[words[0]] = shared.get(words[0], set(words)) & set(words)
    return {key: " ".join(words[:1] + [word for word in words if word not in shared[words[0]]])
            for key, words in texts.items()}


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
        rows.append([texts[key] + mark, str(len(values)), percent(least), fast, percent(most), slow,
                     "differs" if one != other else "same"])
    print(f"Configurations, the {len(rows)} of {len(by_key)} that differ most")
    print_table(["configuration", "devices", "fastest", "on", "slowest", "on", "algorithm"], rows)


def print_outliers(devices, roof_ratios, time_ratios, limit):
    """What is beyond the threshold, in a sentence each. Returns how many there are."""
    lines = [f"{device.name} {' '.join(part for part in key[:2] if part)}: {percent(ratio)}"
             for (device, key), ratio in roof_ratios.items() if differs(ratio, limit)]
    for device in devices:
        outside = [ratio for (other, _), ratio in time_ratios.items()
                   if other is device and differs(ratio, limit)]
        if outside:
            worst = max(outside, key=lambda ratio: max(ratio, 1 / ratio))
            lines.append(f"{device.name} times: {len(outside)} configurations, at most {percent(worst)}")
    print(f"Beyond {100 * limit:g} %: {len(lines) or 'nothing'}")
    for line in lines:
        print(f"  {line}")
    return len(lines)


def main():
    options = arguments()
    files = [load(path) for path in options.files]
    tables = [frame(data) for data in files]
    devices = []
    for number, (path, data, table) in enumerate(zip(options.files, files, tables), 1):
        devices += devices_of(number, data, table)
        print(f"file {number}: {path}, {data.attrs.get('date_created', 'no date')}")
    for device in devices:
        print(f"device {device.name}: {device.model}, {device.uuid}")
    print()
    if len(devices) < 2:
        fail("only one device: name a second file, or a file of several devices")
    limit = options.threshold / 100
    roof_ratios = ratios(devices, lambda device: device.roofs, options.across_models)
    time_ratios = ratios(devices, lambda device: device.times, options.across_models)
    if not roof_ratios and not time_ratios:
        fail("no two devices are of the same model; --across-models compares them")
    print_roofs(devices, roof_ratios, limit)
    if time_ratios:
        print_times(devices, time_ratios, limit)
        print_configurations(time_ratios, short_texts(tables), options.configurations, limit)
    else:
        print("No configuration was measured on two devices (distribute = replicate does that).\n")
    return 1 if print_outliers(devices, roof_ratios, time_ratios, limit) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `compare.py ... | head` is no error
    sys.exit(main())
