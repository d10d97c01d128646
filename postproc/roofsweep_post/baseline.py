"""The command `baseline` writes targets for `check` from the files of healthy devices."""

import re
from collections import Counter

import numpy as np
import pandas

from . import compare, links
from .arguments import write
from .dataset import load
from .deviations import THRESHOLD, centre_of, most_of, scatter, speed, spread_of
from .frames import DISTURBED, ROOFS, ROWS
from .targets import of_theory, section_of
from .texts import Refused, say, scaled, share

HELP = "make targets for `check` from the files of healthy devices"
DESCRIPTION = """Writes the values that healthy devices of each model reach into an INI file for `check --targets`.

Each target is the median of the devices, with a tolerance of 4 to 10 %. Targets of tensor units are shares of the
theory at the measured clock. A configuration gets a section if at least two devices measured it. A value gets no target
if `compare` does not judge it, or if fewer than half of the devices measured it."""


def add_options(parser):
    parser.add_argument("files", nargs="+", metavar="file", help="result file of roofsweep")
    parser.add_argument("-o", "--output", metavar="FILE", required=True)


def centres(found):
    """Returns a line for each model and key (roof or configuration): the median over the devices, and its tolerance."""
    lines = []
    for (model, key), own in found.groupby(["model", "key"], sort=False):
        values = speed(own)
        middle = centre_of(values)
        tolerance = max(THRESHOLD, most_of(own, "between"), spread_of(own, scatter(values / middle, 1.0)))
        most = found.loc[found["model"] == model, ["file", "place"]].drop_duplicates().shape[0]
        if np.isfinite(tolerance) and 2 * len(own) >= most:
            middle = 1 / middle if own["unit"].iloc[0] == "s" else middle
            lines.append((model, key, own["unit"].iloc[0], middle, min(tolerance, compare.WIDEST), len(own)))
    table = pandas.DataFrame(lines, columns=["model", "key", "unit", "value", "tolerance", "devices"])
    return table.astype({"value": float, "tolerance": float, "devices": int})  # an empty table has no types


def roof_centres(files):
    """Returns centres() of each kind of roof. If a model's roof was measured alone, only these values are used, as in
    `check`."""
    table = compare.roof_table(files)
    table = compare.single(table[table["usable"]])
    alone = table["condition"] == "alone"
    has = alone.groupby([table["model"], table["name"]]).transform("max")
    table = table[alone | ~has]
    if (table["disturbance"] > DISTURBED).any():
        worst = table.loc[table["disturbance"].idxmax()]
        raise Refused(
            f"{files[worst['file']].attrs['path']}: other work disturbed {worst['name']} of {worst['device_name']}: a "
            f"sample takes {share(worst['disturbance'])} longer than the best, on average; measure it on an idle host"
        )
    for _, line in table[table["unfit"].astype(bool)].iterrows():
        place = f"{files[line['file']].attrs['path']}: {line['key']} of {line['device_name']}"
        say(
            f"{place} is left out: other work disturbed it, samples differ by {share(line['spread'])}; measure it again"
        )
    table = table[~table["unfit"].astype(bool)]
    cycles = table["unit"].str.endswith("/cycle")
    theory = table.apply(of_theory, axis=1) if len(table) else np.nan
    known = cycles & pandas.notna(theory)  # L2 caches have no theory
    rate = table["value"] * table["sm_clock"] / table["mean"]
    table = table.assign(
        value=table["value"].mask(cycles, rate).mask(known, theory),
        unit=table["unit"].str.replace("/cycle", "/s").mask(known, "%"),
    )
    return centres(compare.medians(table.dropna(subset="value").assign(key=table["name"]), "key"))


def link_centres(files):
    """Returns centres() of links within nodes. The value of a GPU is that of its best pair. Links within a host of CPUs
    get no target, because `compare` does not fail them."""
    found = links.ends(compare.link_table(files))
    return centres(found[~found["name"].str.contains("node") & ~found["soft"]])


def row_centres(files):
    table = compare.time_table(files)
    table = table[table["key"] == table["config_hash"]]  # without lines for sustained times and energies
    found = centres(compare.medians(table.assign(value=table["own_time"]), "key"))
    found = found[found["devices"] > 1]
    names = dict(zip(table["key"], table["name"]))
    counts = Counter(names.values())
    unique = {key: f"{name} {key[:8]}" if counts[name] > 1 else name for key, name in names.items()}
    return found.assign(
        text=found["key"].map(dict(zip(table["key"], table["configuration"]))),
        name=[re.sub(r"[|\[\]]", "_", unique[key]) for key in found["key"]],
    )


def run(options):
    files = [load(path, ROWS + ROOFS) for path in options.files]
    roofs, rows = pandas.concat([roof_centres(files), link_centres(files)], ignore_index=True), row_centres(files)
    if roofs.empty and rows.empty:
        raise Refused("the files have no roof and no configuration to make a target from")
    devices = compare.all_devices(files).drop_duplicates(["hostname", "uuid", "model"])["model"]
    if nameless := int((devices == "").sum()):
        say(f"{nameless} devices without the name of a model are left out: `check` fails them")
    devices, lines = devices[devices != ""].value_counts(sort=False), []
    for model, count in devices.items():
        lines += [f"; {count} devices of {len(files)} files", f"[{section_of(model)}]"]
        for _, line in roofs[roofs["model"] == model].iterrows():
            value = f"{100 * line['value']:.4g} %" if line["unit"] == "%" else scaled(line["value"], line["unit"])
            lines.append(f"{line['key']} = {value} +- {100 * line['tolerance']:.1f} %")
        lines.append("")
        for _, line in rows[rows["model"] == model].iterrows():
            section = f"[{section_of(model)} | {line['name']}]"
            lines += [f"; {line['text']}", section, f"where = config_hash={line['key']}"]
            lines += [f"own_time = {scaled(line['value'], 's')} +- {100 * line['tolerance']:.1f} %", ""]
    write(options.output, "\n".join(lines))
    models = f"{len(devices)} model{'s' * (len(devices) > 1)}"
    say(f"{models}, {len(roofs)} roofs and {len(rows)} configurations in {options.output}")
    return 0
