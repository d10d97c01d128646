"""The command `export`: tables for spreadsheets and scripts."""

import json
import re
import sys

import numpy as np
import pandas

from . import selection
from .arguments import write, writing
from .dataset import load
from .frames import flat, kernels, roofs, rows

HELP = "rows, roofs, kernels or devices as CSV, JSON or Markdown"
DESCRIPTION = """Writes one table of a result file, or of several below each other: rows (configurations), roofs,
kernels or devices. Flags are words, units are SI, what was not measured is empty (null in JSON).

In CSV, a text that begins with = + - or @ has a ' in front, so that no spreadsheet takes it for a formula."""


def all_rows(files):
    return rows(files, measured=False)


def devices(files):
    tables = [flat(data, "device").assign(file=number) for number, data in enumerate(files)]
    return pandas.concat(tables, ignore_index=True)


# {word: (table, what it needs)}
TABLES = {
    "rows": (all_rows, ()),
    "roofs": (roofs, ["device_roof_device"]),
    "kernels": (kernels, ["kernel_config"]),
    "devices": (devices, ()),
}


def markdown(table):
    """A table of Markdown; bars in texts are escaped."""
    cells = table.astype(object).where(table.notna(), "").astype(str)
    cells = cells.apply(lambda column: column.str.replace("|", "\\|", regex=False))
    lines = [list(cells.columns), ["---"] * len(cells.columns), *cells.to_numpy().tolist()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def json_value(value):
    """A cell as JSON has it: null is what is missing or infinite."""
    if isinstance(value, pandas.Timestamp):
        return value.isoformat(timespec="microseconds")
    return None if pandas.isna(value) or value in (np.inf, -np.inf) else value


def as_json(table):
    """A table of JSON. pandas writes numbers with 15 decimals: of a verify_error of 3e-13 that is three digits."""
    lines = [{name: json_value(value) for name, value in line.items()} for line in table.to_dict("records")]
    return json.dumps(lines, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(table):
    """A table of CSV without formulas: a program's command or a host's name could be one."""

    def safe(cell):
        return re.sub(r"^(?=[=+@\t-])", "'", str(cell))

    texts = table.select_dtypes(exclude=["number", "datetime"])
    return table.assign(**{name: texts[name].map(safe, na_action="ignore") for name in texts}).to_csv(index=False)


FORMATS = {
    "csv": as_csv,
    "json": as_json,
    "markdown": markdown,
}


def add_options(parser):
    parser.add_argument("files", nargs="+", metavar="file", help="result file of roofsweep")
    parser.add_argument("-t", "--table", choices=TABLES, default="rows", help="which table (default: %(default)s)")
    parser.add_argument("-f", "--format", choices=FORMATS, default="csv", help="default: %(default)s")
    parser.add_argument("-w", "--where", nargs="+", metavar="TERM", help=selection.HELP)
    parser.add_argument("-c", "--columns", metavar="NAME,...", help="only these columns, in this order")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")


def run(options):
    build, needs = TABLES[options.table]
    table = build([load(path, needs) for path in options.files])
    table = selection.choose(table, options.where)
    if options.columns:
        names = [selection.column(table, name) for name in options.columns.split(",")]
        table = table[list(dict.fromkeys(names))]
    text = FORMATS[options.format](table)
    if options.output:
        write(options.output, text)
    else:
        with writing("standard output"):
            sys.stdout.write(text)
    return 0
