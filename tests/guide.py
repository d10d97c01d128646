#!/usr/bin/env python3
"""docs/guide.md is what the program and the committed file of sweeps/guide.ini say, and the models are the guide's.

Usage: guide.py FOLDER [--write], FOLDER with the programs. --write renews the columns "modelled", "counted" and
"limiter" of the page, the last two from tests/data/guide_h200.nc. Exit status 0; 1 with what differs; 77 (skipped)
without xarray."""

import pathlib
import re
import subprocess
import sys

try:
    import xarray
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/guide.md"
FILE = ROOT / "tests/data/guide_h200.nc"
SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
QUANTITY = r"([\d.]+) ([kMGTP]?)"
# operation | row | guide | modelled | counted | limiter in the guide | limiter as measured
ROW = re.compile(r"^\| ([^|]+) \| `([^`|]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.M)


def modelled(roofsweep):
    """Label -> FLOP/byte, of each row of the plan."""
    command = [roofsweep, "--dry-run", ROOT / "sweeps/guide.ini"]
    plan = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    for match in re.finditer(rf"^[0-9a-f]{{12}} +{QUANTITY}FLOP +{QUANTITY}B +\S+ \w+ +(\S+)", plan, re.M):
        flops, flops_scale, size, size_scale, label = match.groups()
        found[label] = float(flops) * SCALES[flops_scale] / (float(size) * SCALES[size_scale])
    return found


def measured():
    """Label -> (counted FLOP/byte of device memory, limiter), as text, of each row of the committed file."""
    data = xarray.open_dataset(FILE).load()
    names = data["memory_level" if "memory_level" in data.variables else "memory_level_name"]  # before format 3
    dram = list(names.values.astype(str)).index("dram")
    intensity = (data.flops_counted / data.bytes_counted[:, dram]).values
    words = dict(zip(data.limiter.attrs["flag_values"], data.limiter.attrs["flag_meanings"].split()))
    return {
        str(label): (f"{value:.3g}", words[limiter])
        for label, value, limiter in zip(data.label.values, intensity, data.limiter.values)
    }


def expected(label, plan, counts):
    """The columns of a row that are not the guide's: modelled, counted, limiter."""
    return f"{plan[label]:.3g}" if label in plan else "-", *counts.get(label, ("-", "-"))


def faults(plan, counts, rows):
    if plan.keys() != rows.keys():
        yield f"docs/guide.md has {sorted(rows)}, sweeps/guide.ini {sorted(plan)}"
    for label in plan.keys() & rows.keys():
        guide, *found = rows[label]
        wanted = list(expected(label, plan, counts))
        if found != wanted:
            yield f"{label}: docs/guide.md has {found}, the program and the file {wanted}: guide.py FOLDER --write"
        if guide.startswith("<"):
            holds = plan[label] < float(guide[1:])
        else:
            holds = float(f"{plan[label]:.{len(guide.replace('.', '').lstrip('0'))}g}") == float(guide)
        if not holds:
            yield f"{label}: the guide has {guide}, the program {plan[label]:.3g}"


def renewed(text, plan, counts):
    def row(match):
        operation, label, guide, _, _, limited, _ = match.groups()
        model, counted, limiter = expected(label, plan, counts)
        return f"| {operation} | `{label}` | {guide} | {model} | {counted} | {limited} | {limiter} |"

    return ROW.sub(row, text)


def main(folder, *options):
    plan, counts = modelled(pathlib.Path(folder) / "roofsweep"), measured()
    text = PAGE.read_text()
    if "--write" in options:
        text = renewed(text, plan, counts)
        PAGE.write_text(text)
    rows = {match[2]: (match[3], match[4], match[5], match[7]) for match in ROW.finditer(text)}
    wrong = list(faults(plan, counts, rows))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
