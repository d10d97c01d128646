#!/usr/bin/env python3
"""Measures how often `roofsweep-post compare` fails a healthy device, and how often it finds faults that are planted in
copies of healthy files.

    gate.py FILE FILE... [--load FILE]...   FILE: runs of one manifest on the same healthy devices; --load: a run of
                                            these devices beside another load
    gate.py --curve [--write]               the curve of files in tests/data, a table of docs/measurements.md

Each pair of healthy files is compared. Two faults are planted in copies: DRAM, L2 and vector roofs that are 2 % slower,
and a fifth of the configurations that is 5 % slower. A fault is found if the copy fails and the fault is the first
reason. The exit status is 1 if more than 1 of 200 verdicts on healthy devices is FAIL or 2 of 100 are INCONCLUSIVE, or
if fewer than 99 of 100 slow roofs or 95 of 100 slow fifths are found. It is also 1 unless each file with a load has one
failing device, with the load as first reason.

--curve: the values of a file's copies scatter like those of processes and GPUs. Each roof is multiplied by the ratio
that a random roof of its kind had between two processes on one GPU, each configuration by a ratio between two GPUs."""

import argparse
import random
import re
import sys
from itertools import permutations
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "postproc"))

import numpy as np  # noqa: E402
import roofsweep_post  # noqa: E402
from roofsweep_post import compare, deviations  # noqa: E402
from roofsweep_post.compare import LIMITS, SUSTAINS, THRESHOLD, pandas  # noqa: E402

PAGE, DATA = root / "docs" / "measurements.md", root / "tests" / "data"
REPEATS = ("node_2xh100", "roofs_2xh100")  # files of the same GPUs
SIZES = (0.01, 0.02, 0.03, 0.05)


def roofs_like(pattern):
    """Returns a function for PLANTS: all judged roofs whose keys match the pattern become slower."""
    return lambda roofs, rows, dice: ([key for key in roofs if re.search(pattern, key)], f"{pattern}.* slower")


def one_roof(pattern):
    def plant(roofs, rows, dice):
        key = dice.choice([key for key in roofs if re.search(pattern, key) and SUSTAINS not in key])
        return [key], f"^{re.escape(key)} slower"

    return plant


def some_rows(share):
    def plant(roofs, rows, dice):
        return dice.sample(rows, max(int(share * len(rows)), 1)), "configurations"

    return plant


# {name of a fault: function(keys of judged roofs, keys of configurations, random numbers)}. The function returns the
# keys that become slower and a pattern of the expected first reason.
PLANTS = {
    "everything": lambda roofs, rows, dice: ([*roofs, *rows], "slower|configurations"),
    "all configurations": some_rows(1),
    "a fifth of the configurations": some_rows(0.2),
    "one configuration": some_rows(0),
    "all DRAM roofs": roofs_like("^dram"),
    "one DRAM, L2 or vector roof": one_roof("^dram|^l2|vector"),
    "one roof": one_roof(""),
    "sustained roofs": roofs_like("(?<!clock), sustained"),
}


class Tables:
    """The tables of roofs and times of a file, which is read once for all comparisons."""

    def __init__(self, data):
        self.data, self.devices = data, compare.all_devices([data])
        self.roofs, self.times = compare.roof_table([data]), compare.time_table([data])
        self.roofs = self.roofs[self.roofs["usable"] & ~self.roofs["key"].str.endswith(compare.ENERGY)]
        self.judged = list(dict.fromkeys(self.roofs.loc[np.isfinite(self.roofs["least"]), "key"]))
        self.rows = list(dict.fromkeys(compare.single(self.times)["key"]))

    def scaled(self, factors):
        """Returns a copy with slower lines. factors(table) returns the factor for each line."""
        copy = Tables.__new__(Tables)
        copy.__dict__ |= self.__dict__
        for name in ("roofs", "times"):
            table = getattr(self, name)
            slower = factors(table)
            value = table["value"] * np.where(table["unit"].isin(deviations.LESS), slower, 1 / slower)
            cycles = {"cycles": table["cycles"] * slower} if "cycles" in table else {}
            setattr(copy, name, table.assign(value=value, **cycles))
        return copy

    def planted(self, plant, size, dice):
        """Returns a copy with a planted fault, and the pattern of the expected first reason. size: relative slowdown of
        the slow lines."""
        keys, reason = plant(self.judged, self.rows, dice)
        rows = {key + SUSTAINS for key in keys}
        keys = {*keys, *(rows & set(self.times["key"]))}
        return self.scaled(lambda table: 1 + size * table["key"].isin(keys)), reason


def concatenated(files, name):
    tables = [getattr(own, name).assign(file=number) for number, own in enumerate(files)]
    return pandas.concat(tables, ignore_index=True)


def judged(reference, copies):
    """Returns the verdicts on the devices of each copy, by roofs and configurations."""
    files = [reference, *copies]
    roofs = compare.judged(compare.medians(concatenated(files, "roofs"), "key"), first=0).dropna(subset="deviation")
    times = compare.medians(concatenated(files, "times"), "key")
    times = compare.judged_times(times, roofs, THRESHOLD, False, 0).dropna(subset="deviation")
    names = compare.time_texts(concatenated(files, "times"))
    of = [dict(list(table.groupby(["file", "place"]))) for table in (roofs, times)]
    found = []
    for number in range(1, len(files)):
        lines = files[number].devices.assign(file=number).to_dict("records")
        devices = [(line, [own[number, line["place"]] for own in of]) for line in lines]
        found.append([compare.verdict_of(line, *own, THRESHOLD, names) for line, own in devices])
    return found


def caught(reference, copies, plant, size, dice):
    """Returns (number of found faults, number of verdicts, lines of verdicts that missed a fault)."""
    planted, reasons = zip(*(copy.planted(plant, size, dice) for copy in copies))
    found = [(own, why) for verdicts, why in zip(judged(reference, planted), reasons) for own in verdicts]
    missed = [(own.line(), why) for own, why in found if own.word != "FAIL" or not re.search(why, own.reasons[0])]
    return len(found) - len(missed), len(found), missed


# ---- the curve of committed files ----


def kinds(table):
    """Returns for each line a kind; lines of one kind scatter alike between processes. "": the line is not changed."""
    parts = [next(part for part, *_ in LIMITS if part in key) for key in table["key"]]
    ends = table["key"].str.extract(r"(, clock|)(, sustained|)$").fillna("").agg("".join, axis=1)
    return [(part + end) * (part != "launch") for part, end in zip(parts, ends)]


def ratios():
    """Returns {kind: ratios of two measurements}: of two processes on one GPU for roofs, of two GPUs of a node for
    configurations (kind "row")."""
    files = [Tables(roofsweep_post.load(str(DATA / f"{name}.nc"))) for name in REPEATS]
    roofs = concatenated(files, "roofs")
    found = {}
    for kind, own in roofs.assign(kind=kinds(roofs)).groupby("kind"):
        pairs = [values.to_numpy() for _, values in own.groupby(["key", "uuid"])["value"] if len(values) == 2]
        found[kind] = [(one / other) ** sign for one, other in pairs for sign in (0.5, -0.5)]  # root: both scatter
    rows = compare.single(files[0].times)
    values = [own.to_numpy() for _, own in rows.groupby("key")["value"]]
    return found | {"row": [(one / other) ** sign for one, other in values for sign in (0.5, -0.5)], "": [1.0]}


def resampled(tables, pools, dice):
    def factors(table):
        rows = "configuration" in table
        ends = table["key"].str.endswith((SUSTAINS, compare.ENERGY))
        names = np.where(ends, "", "row") if rows else kinds(table)
        return np.array([dice.choice(pools.get(name) or [1.0]) for name in names])

    return tables.scaled(factors)


def curve(count=13):
    dice, pools = random.Random(1), ratios()
    base = Tables(roofsweep_post.load(str(DATA / "node_4xh200.nc")))

    def copies(number):
        return [resampled(base, pools, dice) for _ in range(number)]

    healthy = [own for verdicts in judged(copies(1)[0], copies(4 * count)) for own in verdicts]
    words = [own.word for own in healthy]
    head = f"{len(healthy)} healthy GPUs: {words.count('FAIL')} FAIL, {words.count('INCONCLUSIVE')} INCONCLUSIVE. "
    head += f"Found of {4 * count} GPUs, with the right first reason:"
    lines = [head, "", "| slower | " + " | ".join(f"{100 * size:.0f} %" for size in SIZES) + " |", "|---" * 5 + "|"]
    for name, plant in PLANTS.items():
        shares = []
        for size in SIZES:
            dice.seed(name)  # equal copies and chosen parts for each size
            shares.append(caught(*copies(1), copies(count), plant, size, dice)[:2])
        lines.append(f"| {name} | " + " | ".join(f"{100 * found / most:.0f} %" for found, most in shares) + " |")
    return "\n".join(lines)


def compare_page(write):
    page, own = PAGE.read_text(), f"<!-- curve of the gate -->\n\n{curve()}\n\n<!-- end -->"
    wanted = re.sub(r"<!-- curve of the gate -->\n.*?<!-- end -->", lambda _: own, page, flags=re.S)
    if write:
        PAGE.write_text(wanted)
    elif page != wanted:
        sys.exit(f"{PAGE}: the curve of the gate differs; tests/bench/gate.py --curve --write renews it:\n{own}")


# ---- measured files ----


def whole(reference, tested):
    """Returns the verdicts of `compare` with all its checks."""
    files = [roofsweep_post.load(path) for path in (reference, tested)]
    tables = [compare.roof_table(files), compare.time_table(files)]
    return compare.verdicts_of(files, compare.all_devices(files), *tables, deviations.THRESHOLD, False)[0]


def share(count, all_of_them):
    return f"{count} of {all_of_them} ({100 * count / max(all_of_them, 1):.1f} %)"


def false_alarms(paths):
    found = [(pair, own) for pair in permutations(paths, 2) for own in whole(*map(str, pair))]
    words = [own.word for _, own in found]
    for pair, own in found:
        if own.word != "PASS":
            print(f"  {pair[0].stem} -> {pair[1].stem}: {own.line()}")
    counts = [words.count(word) for word in ("FAIL", "INCONCLUSIVE")]
    print("healthy devices: " + ", ".join(f"{name} {share(count, len(words))}" for name, count in
                                          zip(("FAIL", "INCONCLUSIVE"), counts)))  # fmt: skip
    return [count / len(words) for count in counts]


def found_share(tables, name, size, copies, dice):
    pairs, found, most = list(permutations(tables, 2)), 0, 0
    while most < copies:
        one, other = dice.choice(pairs)
        more, all_of_them, missed = caught(one, [other], PLANTS[name], size, dice)
        found, most = found + more, most + all_of_them
        print("".join(f"  {line} (planted: {why})\n" for line, why in missed), end="")
    print(f"{100 * size:.0f} % slower, {name}: found {share(found, most)}")
    return found / most


def loads_named(paths, loads):
    """Returns whether each file that was measured beside a load has exactly one failing device, whose first reason is
    the load."""
    good = True
    for load in loads:
        for path in paths:
            found = [own for own in whole(str(path), load) if own.word != "PASS"]
            named = len(found) == 1 and "another load takes" in found[0].reasons[0]
            good &= named
            print(f"{path.stem} -> {load}: {'load named' if named else 'LOAD NOT NAMED'}")
            print("".join(f"  {own.line()}\n" for own in found), end="")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path, help="healthy runs of one manifest")
    parser.add_argument("--load", action="append", default=[], metavar="FILE", help="measured beside a load")
    parser.add_argument("--copies", type=int, default=200, metavar="N", help="slower devices of each kind")
    parser.add_argument("--curve", action="store_true", help="the curve of committed files, as in docs/measurements.md")
    parser.add_argument("--write", action="store_true", help="renew the table of docs/measurements.md")
    options = parser.parse_args()
    if options.curve:
        return compare_page(options.write)
    fails, unsure = false_alarms(options.files)
    tables, dice = [Tables(roofsweep_post.load(str(path))) for path in options.files], random.Random(1)
    roofs = found_share(tables, "one DRAM, L2 or vector roof", 0.02, options.copies, dice)
    rows = found_share(tables, "a fifth of the configurations", 0.05, options.copies, dice)
    named = loads_named(options.files, options.load)
    return sys.exit(int(fails > 1 / 200 or unsure > 0.02 or roofs < 0.99 or rows < 0.95 or not named))


if __name__ == "__main__":
    main()
