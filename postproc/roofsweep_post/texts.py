"""Formats output for people: plain texts, scaled values, tables of text."""

import os
import re
import shutil
import sys

import numpy as np

# Control characters, marks that change the direction of writing, and codes that stand for no character.
UNSEEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

PREFIXES = {name.strip(): 10.0**power for name, power in zip("pnum kMGTPE", range(-12, 19, 3))}


# {words in tables and verdicts: code of their colour on a terminal}
COLOURS = {
    r"\bFAIL\b|\bmissed\b|ABOVE-THEORY|CONTRADICTED": "31",
    r"\bINCONCLUSIVE\b|\bnoisy\b|\bpreempted\b|\btwo modes\b|\bthrottled\b": "33",
    r"\bPASS\b": "32",
}


class Refused(Exception):
    """Raised for an unusable file, word or option. Its text is one sentence for the user."""


def plain(text):
    """Returns a text with "?" instead of UNSEEN characters. load() calls this for the texts of a file; for paths,
    callers must."""
    return UNSEEN.sub("?", str(text))


def say(text):
    """Prints a line on standard error."""
    print(f"roofsweep-post: {plain(text)}", file=sys.stderr)


def scaled(value, unit):
    """Returns 4.597e12, "B/s" as "4.597 TB/s"; "-" for a missing value."""
    if not np.isfinite(value):
        return "-"
    # A number from 999.95 on would be shown as 1000, so it gets the next prefix.
    power = 0 if value == 0 else int(np.clip(3 * np.floor(np.log10(abs(value) * 1.00005) / 3), -12, 18))
    prefix = next(name for name, factor in PREFIXES.items() if round(np.log10(factor)) == power)
    return f"{value / 10.0**power:.4g} {prefix}{unit}"


def column(value, unit):
    """Returns scaled(value, unit) with exactly four digits, so that the numbers of a table's column line up."""
    number, _, rest = scaled(value, unit).partition(" ")
    return f"{float(number):#.4g} {rest}" if rest else number


def percent(ratio):
    """Returns 1.02 as "+2.0 %"; "-" for a missing value."""
    return f"{100 * (ratio - 1):+.1f} %" if np.isfinite(ratio) else "-"


def share(value):
    """Returns 0.667 as "66.7 %"; "-" for a missing value."""
    return f"{100 * value:.1f} %" if np.isfinite(value) else "-"


def room():
    """Returns the width of the terminal in characters; unlimited if the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10**6


def coloured(text):
    """Returns the text with colours for a terminal, unless the variable NO_COLOR is set (no-color.org)."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        for words, code in COLOURS.items():
            text = re.sub(words, f"\033[{code}m\\g<0>\033[0m", text)
    return text


def table(head, rows, left=(), below=()):
    """Returns the text of a table. The first column and the columns in `left` are aligned left, the others right. The
    words of `head` may have several lines. below: a line of text under each row. On a narrow terminal each cell of the
    first column has a line of its own if that makes the table fit; lines that are still too wide are cut. (The package
    tabulate is seldom installed on clusters.)"""
    depth = max(cell.count("\n") for cell in head) + 1
    heads = list(zip(*[([""] * depth + cell.split("\n"))[-depth:] for cell in head]))
    widths = [max(len(row[i]) for row in heads + rows) for i in range(len(head))]
    whole, wide = sum(widths) + 2 * len(widths) - 2, room()
    narrow = whole > wide and (whole - widths[0] + 2 <= wide or widths[0] > wide / 2)

    def cut(line):
        return line if len(line) <= wide else line[: wide - 3] + "..."

    lines = [head[0]] if narrow else []
    for number, row in enumerate([*heads, *rows], -depth):
        first, *others = (
            cell.ljust(width) if i == 0 or head[i] in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        )
        lines += [cut(first.rstrip())] if narrow and number >= 0 else []
        lines.append(cut("  ".join(["  " if narrow else first, *others]).rstrip()))
        lines += below[number : number + 1] if number >= 0 else []
    return coloured("".join(line.rstrip() + "\n" for line in lines))


def listed(names, most=8):
    """Returns the first `most` names as a text, and the number of the others."""
    names = list(names)
    more = len(names) - most
    return ", ".join(names[:most]) + f" and {more} more" * (more > 0)
