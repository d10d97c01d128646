"""The command `describe` explains the variables of a file from the file's own attributes."""

import numpy as np

from . import selection
from .dataset import SHAPES, check_version, opened, read
from .texts import Refused, plain, say, table

HELP = "the variables of a file, with unit and meaning"
DESCRIPTION = """Lists the variables of a result file with unit and meaning. With NAMEs, prints all attributes of these
variables, how many values are missing, and the range of the known values."""
VARIABLES = "`roofsweep --list variables` explains it"
FLAGS = ("flag_values", "flag_masks")


def add_options(parser):
    parser.add_argument("file", help="result file of roofsweep")
    parser.add_argument("names", nargs="*", metavar="NAME", help="variable of the file (default: all, a line each)")


def words(attributes):
    values = next((np.atleast_1d(attributes[name]) for name in FLAGS if name in attributes), np.array([]))
    return dict(zip(values.tolist(), str(attributes.get("flag_meanings", "")).split()))


def counted(values, flags):
    """Summarizes values: how many are missing, then the most frequent words or the range of numbers."""
    known = values[np.array([value == value and value != "" for value in values.ravel()]).reshape(values.shape)]
    missing = f"{values.size - known.size} of {values.size} missing" if known.size < values.size else f"{values.size}"
    if not known.size:
        return "all missing"
    if flags or values.dtype.kind in "OUS":
        found, counts = np.unique(known.astype(str) if values.dtype.kind in "OUS" else known, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:8]
        named = [f"{flags.get(found[at], found[at])} ({counts[at]})" for at in order]
        return f"{missing}; {len(found)} different: {', '.join(named)}" + ", ..." * (len(found) > len(named))
    ends = [f"{end:g}" if values.dtype.kind in "iuf" else str(end)[:19] for end in (known.min(), known.max())]
    return f"{missing}; from {ends[0]} to {ends[1]}"


def explained(name, variable):
    attributes = {**variable.encoding, **variable.attrs}
    flags, text = words(attributes), variable.dtype.kind in "OUS"
    facts = {
        "unit": attributes.get("units", ""),
        "dimensions": ", ".join(variable.dims),
        "type": "text" if text else "flag" if flags else str(np.dtype(attributes.get("dtype", "O"))),
        "words": ", ".join(f"{word} = {value}" for value, word in flags.items()),
        "values": counted(variable.values, flags if "flag_masks" not in attributes else {}),
        "source": variable.attrs.get("source", ""),
        "comment": attributes.get("comment", ""),
    }
    lines = [f"{name}: {attributes.get('long_name', 'no long_name')}"]
    return "\n".join(map(plain, [*lines, *(f"  {key:10} {text}" for key, text in facts.items() if str(text))]))


def run(options):
    with opened(options.file) as raw:
        check_version(raw.attrs, options.file)
        found, faults = read(raw)
    for name, why in faults.items():
        say(f"{options.file}: {name}: {why}")
    lines = []
    for name in options.names:
        # NAME is a variable of the file, or a parameter of the manifest.
        other = {"kernel": "filter_height"}
        own = next((word for word in (name, f"requested_{name}", other.get(name)) if word in found), None)
        if own is None:
            known = f"no row has a value; {VARIABLES}" if name in SHAPES else selection.hint(name, sorted(found))
            raise Refused(f"{options.file}: no variable '{name}'; {known}")
        lines.append(explained(own, found[own]))
    if options.names:
        print("\n\n".join(lines))
        return 0
    rows = [
        [plain(name), plain(", ".join(own.dims)), plain(own.attrs.get("units", "")).split(" since")[0],
         plain(own.attrs.get("long_name", ""))]
        for name, own in sorted(found.items(), key=lambda item: item[1].dims)
    ]  # fmt: skip
    head = ["variable", "dimensions", "unit", "what it is"]
    print(table(head, rows, left=head), end="")
    return 0
