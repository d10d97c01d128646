"""Computes the verdict on each roof and the best roofs of each device from a result file, for recompute.py."""

import math

from raw_file import NAN, largest

SAME = ("device_roof_device", "device_roof_condition")
MIXES = {"read": 0.0, "triad": 1 / 3, "copy": 0.5, "write": 1.0}  # share of the bytes that is written


def roof_kind(file, name):
    """Returns (measure, level, pattern, precision, unit) of a roof."""
    words = name.split()
    if words and words[0] in file.levels:
        return "bandwidth", file.levels.index(words[0]), words[1], None, None
    if words and words[0] in file.precisions:
        return "performance", None, None, file.precisions.index(words[0]), words[1]
    if name.startswith("launch"):
        return "time", None, None, None, None
    return "bandwidth", None, None, None, None


def bytes_evidence(file, row, level):
    """Returns 1 if counters saw the roof's bytes at its level, and few at farther levels; -1 if they contradict this; 0
    if they are missing. A roof of shared memory moves hardly any bytes at these levels."""
    ratios = [float(value) for value in file.values["device_roof_bytes_ratio"][row]]
    farther = [value for value in (ratios if level is None else ratios[:level]) if not math.isnan(value)]
    own = NAN if level is None else ratios[level]
    more = 0.1 if file.values["device_roof_name"][row].endswith(" latency") else 0.03
    if any(value > 0.05 for value in farther) or own > 1 + more or own < 1 - 0.03:
        return -1
    return 1 if not math.isnan(own) or (level is None and farther) else 0


def overtaken(file, row):
    """Returns whether a farther memory level is faster, which contradicts the roof."""
    names, rates = file.values["device_roof_name"], file.values["device_roof_bandwidth"]
    _, level, pattern, *_ = roof_kind(file, names[row])
    others = range(len(names)) if level else ()
    return any(
        roof_kind(file, names[other])[:3] == ("bandwidth", farther, pattern)
        and all(file.values[key][other] == file.values[key][row] for key in SAME)
        and rates[other] > 1.05 * rates[row]
        and verdict(file, other) in ("unproven", "proven")
        for other in others
        for farther in range(level)
    )


def verdict(file, row):
    if file.values["device_roof_name"][row] == "":
        return "unknown"
    measure, level, *_ = roof_kind(file, file.values["device_roof_name"][row])
    fraction = file.values["device_roof_clock_fraction"][row]
    if math.isnan(fraction):
        fraction = file.values["device_roof_nominal_fraction"][row]
    evidence = 0
    if measure == "bandwidth":
        evidence = bytes_evidence(file, row, level)
    if measure == "performance":
        ratio = file.values["device_roof_flops_ratio"][row]
        evidence = 0 if math.isnan(ratio) else 1 if 0.99 <= ratio <= 1.05 else -1
    if fraction > 1.01:
        return "above-theory"
    if measure == "bandwidth" and evidence >= 0 and overtaken(file, row):
        return "contradicted"
    return {0: "unproven", 1: "proven", -1: "contradicted"}[evidence]


def roof_value(file, row):
    return largest(*(file.values[f"device_roof_{name}"][row] for name in ("bandwidth", "performance", "time")))


def usable_roofs(file, device):
    for row, of_device in enumerate(file.values["device_roof_device"]):
        if (
            of_device == device
            and verdict(file, row) in ("unproven", "proven")
            and not math.isnan(roof_value(file, row))
        ):
            yield row


def device_level(file, device, level, patterns, what="bandwidth", choose=largest):
    """Returns the highest bandwidth of a level. CPU ranks share the memory, so for CPUs only roofs that were measured
    together count."""
    rows = list(usable_roofs(file, device))
    together = [row for row in rows if file.word("device_roof_condition", row) == "together"]
    if together and file.values["device_kind"][device] == "cpu":
        rows = together
    values = [
        file.values[f"device_roof_{what}"][row]
        for row in rows
        for kind in [roof_kind(file, file.values["device_roof_name"][row])]
        if kind[1] == level and (patterns is None or kind[2] in patterns)
    ]
    return choose(*values)


def device_compute(file, device, precision, unit, value, choose=largest):
    values = [
        value(row)
        for row in usable_roofs(file, device)
        if roof_kind(file, file.values["device_roof_name"][row])[3:] == (precision, unit)
    ]
    return choose(*values)


def least(*values):
    return -largest(*(-value for value in values))


def per_cycle(file):
    names = ("performance", "mean", "sm_clock", "sustained", "sustained_clock")
    roof = {name: file.values[f"device_roof_{name}"] for name in names}
    return lambda row: largest(
        roof["performance"][row] * roof["mean"][row] / roof["sm_clock"][row],
        roof["sustained"][row] / roof["sustained_clock"][row],
    )


def device_time(file, device, name):
    found = {
        file.word("device_roof_condition", row): file.values["device_roof_time"][row]
        for row in usable_roofs(file, device)
        if file.values["device_roof_name"][row] == name
    }
    return found.get("alone", found.get("together", NAN))


def devices(file):
    result = []
    for device in range(file.data.sizes["device"]):
        own = {
            "launch_overhead": device_time(file, device, "launch gap"),
            "launch_overhead_graph": device_time(file, device, "launch gap graph"),
            "launch_dependent": device_time(file, device, "launch gap dependent"),
        }
        levels = range(len(file.levels))
        own["peak_bandwidth"] = [device_level(file, device, level, None) for level in levels]
        own["latency"] = [device_level(file, device, level, ["latency"], "time", least) for level in levels]
        for name, how in (("mixes", ()), ("energies", ("energy", least))):
            of_mix = [
                {part: device_level(file, device, level, (name,), *how) for name, part in MIXES.items()}
                for level in levels
            ]
            own[name] = [{part: value for part, value in found.items() if not math.isnan(value)} for found in of_mix]
        of_device = zip(file.values["device_roof_device"], file.values["device_roof_constant_power"])
        own["constant_power"] = least(*(power for owner, power in of_device if owner == device))
        own["working_set"] = [
            device_level(file, device, level, None, "working_set") for level in range(len(file.levels))
        ]
        for unit in ("vector", "tensor"):
            for name, value in (
                ("peak", lambda row: file.values["device_roof_performance"][row]),
                ("cycle", per_cycle(file)),
                ("sustained", lambda row: file.values["device_roof_sustained"][row]),
            ):
                own[f"{name}_{unit}"] = [
                    device_compute(file, device, p, unit, value) for p in range(len(file.precisions))
                ]
            own[f"energy_{unit}"] = [
                device_compute(file, device, p, unit, lambda row: file.values["device_roof_energy"][row], least)
                for p in range(len(file.precisions))
            ]
        result.append(own)
    return result


def node_sum(file, own, fits):
    """Returns the sum over devices of the best roof whose kind fits. The roofs are those
    measured together, or alone if there is one device."""
    condition = "together" if len(own) > 1 else "alone"
    return sum(
        largest(
            *(
                roof_value(file, row)
                for row in usable_roofs(file, device)
                if file.word("device_roof_condition", row) == condition
                and fits(roof_kind(file, file.values["device_roof_name"][row]))
            )
        )
        for device in own
    )


def nodes(file):
    """Returns {variable: values by row} of nodes and links."""
    links, found = range(file.data.sizes.get("link", 0)), {}
    share = {"copy": lambda n: 1, "all-reduce": lambda n: 2 * (n - 1) / n, "all-gather": lambda n: (n - 1) / n}
    operation = [file.word("link_operation", link) for link in links]
    size, time, among, count = (file.values[f"link_{name}"] for name in ("bytes", "time", "devices", "nodes"))
    rate = [share.get(operation[at], share["copy"])(among[at]) * size[at] / time[at] for at in links]
    for node in range(file.data.sizes.get("node", 0)):
        own = [device for device, of in enumerate(file.values["device_node"]) if of == node]
        here = [link for link in links if file.values["link_node"][link] == node]
        copies = [link for link in here if operation[link] == "copy"]
        most = max((size[link] for link in copies), default=0)
        values = {
            "bandwidth": [
                node_sum(file, own, lambda kind, level=level: kind[:2] == ("bandwidth", level) and kind[2] != "latency")
                for level in range(len(file.levels))
            ],
            "copy_bandwidth": least(*(rate[link] for link in copies if size[link] == most)),
            "all_reduce_bandwidth": largest(
                *(rate[link] for link in here if operation[link] == "all-reduce" and not count[link] > 1)
            ),
        }
        for unit in ("vector", "tensor"):
            values[unit] = [
                node_sum(file, own, lambda kind, part=(place, unit): kind[3:] == part)
                for place in range(len(file.precisions))
            ]
        for name, value in values.items():
            found.setdefault(f"node_{name}", []).append(value)
    return found | {"link_bandwidth": rate}
