"""Words and figures for people: plain texts, scaled values, tables of text."""

import re
import sys

import numpy as np

# What a terminal takes for a command, what turns the direction of writing, and what is no character.
UNSEEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

PREFIXES = {name.strip(): 10.0**power for name, power in zip("pnum kMGTPE", range(-12, 19, 3))}


class Refused(Exception):
    """A file, a word or an option that cannot be used. Its text is one sentence for the user."""


def plain(text):
    """A text as a terminal or a figure may show it. Texts of a file are so once it is loaded; paths are not."""
    return UNSEEN.sub("?", str(text))


def say(text):
    """A line of this program on standard error."""
    print(f"roofsweep-post: {plain(text)}", file=sys.stderr)


def scaled(value, unit):
    """4.597e12, "B/s" as "4.597 TB/s"; "-" for what is missing."""
    if not np.isfinite(value):
        return "-"
    # From 999.95 on, four digits would print 1000: that belongs to the next prefix.
    power = 0 if value == 0 else int(np.clip(3 * np.floor(np.log10(abs(value) * 1.00005) / 3), -12, 18))
    prefix = next(name for name, factor in PREFIXES.items() if round(np.log10(factor)) == power)
    return f"{value / 10.0**power:.4g} {prefix}{unit}"


def column(value, unit):
    """scaled() with four digits in any case: the numbers of a column have one form."""
    number, _, rest = scaled(value, unit).partition(" ")
    return f"{float(number):#.4g} {rest}" if rest else number


def percent(ratio):
    """1.02 as "+2.0 %"; "-" for what is missing."""
    return f"{100 * (ratio - 1):+.1f} %" if np.isfinite(ratio) else "-"


def share(value):
    """0.667 as "66.7 %"; "-" for what is missing."""
    return f"{100 * value:.1f} %" if np.isfinite(value) else "-"


def table(head, rows, left=()):
    """The text of a table. Columns are as wide as they must be, to the right but the first and those in `left`.
    A head may have several lines. (tabulate would do it, too; a cluster's Python seldom has it.)"""
    depth = max(cell.count("\n") for cell in head) + 1
    heads = list(zip(*[([""] * depth + cell.split("\n"))[-depth:] for cell in head]))
    widths = [max(len(row[i]) for row in heads + rows) for i in range(len(head))]
    return "".join(
        "  ".join(
            cell.ljust(width) if i == 0 or head[i] in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        + "\n"
        for row in heads + rows
    )


def listed(names, most=8):
    """At most so many names, and how many more there are."""
    names = list(names)
    more = len(names) - most
    return ", ".join(names[:most]) + f" and {more} more" * (more > 0)
