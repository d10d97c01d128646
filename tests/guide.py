#!/usr/bin/env python3
"""The modelled column of docs/guide.md is what `roofsweep --dry-run sweeps/guide.ini` prints, and it is the guide's.

Usage: guide.py FOLDER, which has the programs. Exit status 0, or 1 with what differs."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
QUANTITY = r"([\d.]+) ([kMGTP]?)"


def modelled(roofsweep):
    """Label -> FLOP/byte, of each row of the plan."""
    command = [roofsweep, "--dry-run", ROOT / "sweeps/guide.ini"]
    plan = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    for match in re.finditer(rf"^[0-9a-f]{{12}} +{QUANTITY}FLOP +{QUANTITY}B +\S+ \w+ +(\S+)", plan, re.M):
        flops, flops_scale, size, size_scale, label = match.groups()
        found[label] = float(flops) * SCALES[flops_scale] / (float(size) * SCALES[size_scale])
    return found


def page():
    """Label -> (the guide's number, the modelled one), as text."""
    text = (ROOT / "docs/guide.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| `([^`|]+)` \| ([^|]+) \| ([^|]+) \|", text, re.M)
    return {label: (guide, number) for label, guide, number in rows}


def faults(plan, table):
    if plan.keys() != table.keys():
        yield f"docs/guide.md has {sorted(table)}, sweeps/guide.ini {sorted(plan)}"
    for label in plan.keys() & table.keys():
        guide, number = table[label]
        if f"{plan[label]:.3g}" != number:
            yield f"{label}: docs/guide.md has {number}, the program {plan[label]:.3g}"
        if guide.startswith("<"):
            holds = plan[label] < float(guide[1:])
        else:
            holds = float(f"{plan[label]:.{len(guide.replace('.', '').lstrip('0'))}g}") == float(guide)
        if not holds:
            yield f"{label}: the guide has {guide}, the program {plan[label]:.3g}"


def main(folder):
    wrong = list(faults(modelled(pathlib.Path(folder) / "roofsweep"), page()))
    for text in wrong:
        print(text)
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
