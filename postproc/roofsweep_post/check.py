"""The command `check` compares every device with its targets and prints a line for each device."""

from collections import Counter
from urllib.parse import unquote

import numpy as np

from . import compare, health, links, verdicts
from .dataset import load, opened, read
from .devices import Devices
from .frames import DISTURBED, ROOFS, ROWS, head_line, places, roofs, rows
from .presence import Presence
from .selection import choose, column, hint, number
from .targets import Ini, Kinds, Targets, figure_of
from .texts import Refused, listed, percent, plain, scaled

HELP = "does every device reach its targets: PASS or FAIL for each"
DESCRIPTION = """Compares the devices of a result file with targets, an INI file. Only a slower value fails.

A section with the name of a model has a target for each roof: a quantity, a share of the theory at the measured clock,
or another roof of the same device. Times are upper limits, other targets lower limits:

    [NVIDIA H200]
    dram triad = 4.28 TB/s +- 2 %
    fp16 tensor wgmma = 90 %
    link copy bandwidth = 390 GB/s +- 2 %
    link all-reduce of 8 latency = 20 us +- 10 %

Nodes with two devices or more have a line for their links. `bandwidth` is that of the largest size, `latency` the time
of the smallest size.

A section MODEL | NAME holds references of configurations, with a tolerance. `where` chooses rows as in `plot`. Each row
must reach the reference of each variable. Times are upper limits, other variables lower limits. `own_time` is
`time_median` without the timer's time, which differs between GPUs of one model:

    [NVIDIA H200 | conv2d 64 filters]
    where = label=conv2d-filters filters=64 pass=forward precision=fp16 cache=hot layout=nhwc
    own_time = 16.2 us +- 5 %
    roof_fraction = 40 % +- 10 %

Every model in the file needs a section, which may be empty. A device also fails if one of its rows failed, or if it
lacks rows or roofs that other devices of its model in the file have. It also fails if its health is bad: uncorrected
memory errors during the run, no spare memory rows, a remapping that failed or needs a restart. Without health at the
end of a run it is inconclusive. If other work disturbed a roof, even the best sample may be too slow, and the device is
inconclusive: measure it again on an idle host.
`roofsweep-post baseline` writes targets from the files of healthy devices. Exit status: 0 all devices pass, 1 a device
fails, 2 the file or the targets cannot be read, or the file is damaged, 6 no device fails but one is inconclusive."""

UNITS = {"s": "s", "byte s-1": "B/s", "s-1": "FLOP/s", "1": "%"}
EXAMPLES = {"s": "16.2 us", "B/s": "2.5 TB/s", "FLOP/s": "500 TFLOP/s", "%": "40 %"}


def add_options(parser):
    parser.add_argument("file", help="result file of roofsweep")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-t", "--targets", metavar="FILE", help="targets to reach")
    what.add_argument("--integrity", action="store_true", help="read every variable, and verify its checksums, instead")
    verdicts.add_options(parser)


def figures_of(data):
    """Returns {name: unit} for the row variables and columns of rows() that can have a target."""
    own = {name: data[name] for name in data.variables if data[name].dims == ("config",)}
    units = {name: UNITS.get(found.attrs.get("units", "1")) for name, found in own.items() if found.dtype.kind in "fiu"}
    return {name: unit for name, unit in units.items() if unit} | {"own_time": "s"}


class Reference:
    """The reference of one variable: `wanted` in SI units, `tolerance` as a fraction of it. units: see figures_of()."""

    def __init__(self, name, text, units):
        if name not in units:
            raise Refused(f"'{name}' is no numeric variable of a row; {hint(name, sorted(units))}")
        own = units[name]
        figure = figure_of(text.strip(), f"{name} = {text}")
        if not figure:
            example = f"as in {name} = {EXAMPLES[own]} or {EXAMPLES[own]} +- 5 %"
            alone = number(text.partition("+-")[0]) is not None
            raise Refused(f"{name} = {text}: {'a number without a unit' if alone else 'no number'}, {example}")
        self.name, self.text = name, text.strip()
        self.wanted, unit, self.tolerance = figure
        if own != unit:
            raise Refused(f"{name} = {text}: {name} is in {own}, as in {name} = {EXAMPLES[own]}")
        self.unit, self.at_most = unit, unit == "s"

    def shown(self, value):
        return f"{100 * value:.4g} %" if self.unit == "%" else scaled(value, self.unit)

    def reason(self, value):
        """Returns why a value misses the target, or None if it reaches the target."""
        if not np.isfinite(value):
            return f"{self.name} is missing"
        least, most = (value, self.wanted) if self.at_most else (self.wanted, value)
        ratio = most / least if least else np.inf
        if ratio >= 1 - self.tolerance:
            return None
        return f"{self.name} {self.shown(value)}, shall be {self.text} ({percent(ratio)})"


class References:
    """The sections MODEL | NAME of a targets file."""

    def __init__(self, path, data):
        self.sections = []
        ini, units = Ini(path), figures_of(data)
        for section in [name for name in ini.sections() if "|" in name]:
            model, name = (part.strip() for part in section.split("|", 1))
            keys = dict(ini[section])
            where = keys.pop("where", "").split()
            if not where or not keys:
                raise Refused(f"{ini.place(section)} needs `where` and at least one variable")
            found = []
            for key, text in keys.items():
                try:
                    found.append(Reference(key, text, units))
                except Refused as refused:
                    raise Refused(f"{ini.place(section, key)} {refused}") from refused
            self.sections.append((unquote(model), name, where, found))

    def judge(self, table, model, verdict):
        """Adds the checks of one device's rows to its verdict."""
        for own, name, where, references in self.sections:
            if own != model:
                continue
            if table.empty:
                verdict.add(name, f"{name}: no row of this device was measured")
                continue
            try:
                found = choose(table, where)
            except Refused as refused:
                verdict.add(name, f"{name}: {refused}")
                continue
            for _, row in found.iterrows():
                for reference in references:
                    value = row[column(found, reference.name)]
                    where = f": {row['name']}" * (len(found) > 1)
                    why = reference.reason(value)
                    verdict.add(
                        f"{name}: {reference.name}{where}",
                        f"{name}: {why}{where}" if why else "",
                        value=float(value),
                        reference=reference.wanted,
                        limit=reference.tolerance,
                        unit="1" if reference.unit == "%" else reference.unit,
                    )


def judge_roofs(own, targets, model, verdict):
    """Adds the checks of one device's roofs to its verdict."""
    for kind in targets.kinds(model):
        wanted, found = targets.by_model[model][kind], own[own["name"] == kind]
        alone = found[found["condition"] == "alone"]
        main = alone if len(alone) else found
        fit = main[main["usable"] & ~(main["disturbance"] > DISTURBED)]
        main = fit if len(fit) else main  # several runs may have measured the roof
        for target in wanted:
            text, count, _ = target.verdict(main, own)
            word = "pass" if count == "reached" else "fail"
            if count == "not known" and len(main) and (main["usable"] & (main["disturbance"] > DISTURBED)).all():
                word, text = "inconclusive", f"{text}; measure it again on an idle host"
            why = f"{kind}: {text}" * (count != "reached")
            verdict.add(f"{kind}: {target.text}", why, word, **target.values(main, own))


def judge_links(data, targets):
    """Returns a verdict for each node whose devices have targets of links. The value of a GPU is that of its best
    pair."""
    best, found = links.ends(links.pairs([data])), []
    best = best.assign(condition="", disturbance=0.0, usable=True)
    hosts, models = data["device_hostname"].values, data["device_model"].values
    counts = Counter(hosts[list(set(places(data)))])
    lines, model_of = dict(iter(best.groupby("hostname"))), dict(zip(hosts[::-1], models[::-1]))
    for place, host in enumerate(dict.fromkeys(hosts)):
        model, here = model_of[host], lines.get(host, best[:0])
        verdict = verdicts.Verdict(f"#{place} {host}, links", "", model, host)
        for kind, wanted in targets.by_model.get(model, {}).items():
            own = here[here["key"] == kind]
            for target in wanted if kind.startswith("link ") and counts[host] > 1 else ():
                for line in [own.loc[[at]] for at in own.index] or [own]:
                    text, count, _ = target.verdict(line, here)
                    name = f"{kind} {line['uuid'].iloc[0]}" if len(line) else kind
                    why = f"{name}: {text}" * (count != "reached")
                    verdict.add(f"{name}: {target.text}", why, **target.values(line, here))
        found += [verdict] if verdict.checks else []
    return found


def judged(data, targets, references):
    all_roofs, table, devices = roofs(data), rows(data, measured=False), Devices(data)
    lines, times = compare.all_devices([data]), compare.time_table([data])
    presence = Presence([data], lines, compare.roof_table([data]), times, compare.time_texts(times))
    found, first = [], dict(zip(lines["place"], lines.to_dict("records")))
    roofs_of, rows_of = (dict(iter(own.groupby("place", sort=False))) for own in (all_roofs, table))
    for place in dict.fromkeys(devices.places):
        model = devices.text(place, "model")
        name = f"#{place} {devices.text(place, 'hostname')}"
        verdict = verdicts.Verdict(name, devices.text(place, "uuid"), model, devices.text(place, "hostname"))
        judge_roofs(roofs_of.get(place, all_roofs[:0]), targets, model, verdict)
        own = rows_of.get(place, table[:0])
        references.judge(own[own["status"] == "measured"], model, verdict)
        failed = own[~own["status"].isin(["measured", "skipped"])]
        if len(failed):
            verdict.add(
                "rows", f"{len(failed)} rows failed, the first: {failed['error'].iloc[0]}", value=float(len(failed))
            )
        known = [*targets.by_model, *(section[0] for section in references.sections)]
        if model not in known:
            names = ", ".join(dict.fromkeys(known)) or "none"
            verdict.add("targets", f"no targets for {model}; {plain(targets.path)} has: {names}")
        elif not verdict.checks:
            verdict.add("targets")  # an empty section has no target, so the device passes
        presence.add(verdict, first[place])
        health.judge(verdict, data, place)
        found.append(verdict)
    return found + judge_links(data, targets) + verdicts.of_no_device(data, "#")


def print_integrity(path):
    """Reads all variables of a file, which makes HDF5 verify checksums. Raises Refused if a variable cannot be read."""
    with opened(path) as raw:
        sums = sum(bool(variable.encoding.get("fletcher32")) for variable in raw.variables.values())
        found, faults = read(raw)
    if faults:
        raise Refused(f"{path}: damaged: {listed(f'{name} ({why})' for name, why in faults.items())}")
    none = "the file has no checksums, so a changed value goes unnoticed"
    print(f"{plain(path)}: {len(found)} variables can be read; " + (f"the checksums of {sums} hold" if sums else none))
    return 0


def run(options):
    if options.integrity:
        return print_integrity(options.file)
    data = load(options.file, ROWS + ROOFS, judged=True)
    targets = Targets(options.targets, Kinds(data, roofs(data)))
    found = judged(data, targets, References(options.targets, data))
    if not options.quiet:
        print(head_line(data))
    return verdicts.publish(found, "check", options, [data])
