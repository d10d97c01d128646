"""The command `export` writes tables for spreadsheets and scripts."""

import json
import os
import re
import sys

import numpy as np
import pandas

from . import selection
from .arguments import write, writing
from .dataset import load
from .frames import flat, kernels, roofs, rows
from .texts import Refused

HELP = "rows, roofs, kernels, devices, nodes or links as CSV, JSON, Markdown, Parquet or a spreadsheet"
DESCRIPTION = """Writes one table of a result file: rows, roofs, kernels, devices, nodes or links. Several files
follow one another in the table. Flags are words, units are SI, missing values are empty (null in JSON), counts are
whole numbers. The output's name chooses the format: .csv, .json, .md, .parquet, .xlsx.

In CSV and .xlsx, a text that begins with = + - or @, also as wide characters, has a ' in front, so that no spreadsheet
runs it as a formula."""


def all_rows(files):
    return rows(files, measured=False)


def of_dimension(dimension):
    def build(files):
        tables = [flat(data, dimension).assign(file=number) for number, data in enumerate(files)]
        return pandas.concat(tables, ignore_index=True)

    return build


# {word: (function that builds the table, variables that load() must find)}
TABLES = {
    "rows": (all_rows, ()),
    "roofs": (roofs, ["device_roof_device"]),
    "kernels": (kernels, ["kernel_config"]),
    "devices": (of_dimension("device"), ()),
    "nodes": (of_dimension("node"), ()),
    "links": (of_dimension("link"), ()),
}


def markdown(table):
    """Returns a table as Markdown. Numbers have six digits; bars and backslashes in texts are escaped."""
    numbers = table.select_dtypes("floating")
    table = table.assign(**{name: numbers[name].map("{:.6g}".format, na_action="ignore") for name in numbers})
    cells = table.astype(object).where(table.notna(), "").astype(str)
    cells = cells.apply(lambda column: column.str.replace(r"([|\\])", r"\\\1", regex=True))
    lines = [list(cells.columns), ["---"] * len(cells.columns), *cells.to_numpy().tolist()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def json_value(value):
    """Returns a cell for JSON: missing and infinite values are null."""
    if isinstance(value, dict):
        return {name: json_value(own) for name, own in value.items()}
    if isinstance(value, pandas.Timestamp):
        return value.isoformat(timespec="microseconds")
    if pandas.isna(value) or value in (np.inf, -np.inf):
        return None
    return value.item() if isinstance(value, np.generic) else value


def as_json(table):
    """Returns a table as JSON. (pandas' to_json() writes 15 decimals: three digits of a number near 3e-13.)"""
    lines = [{name: json_value(value) for name, value in line.items()} for line in table.to_dict("records")]
    return json.dumps(lines, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def safe(table):
    """Returns a table in which no text is a spreadsheet formula, as a program's command or a host's name might be."""

    def text(cell):
        return re.sub(r"^(?=[=+@\t\uff1d\uff0b\uff0d\uff20-])", "'", str(cell))

    texts = table.select_dtypes(exclude=["number", "datetime"])
    return table.assign(**{name: texts[name].map(text, na_action="ignore") for name in texts})


def whole(table, files):
    """Returns the table with counts as whole numbers; missing counts stay missing."""
    stored = {name: found.encoding.get("dtype", found.dtype) for data in files for name, found in data.items()}
    prefix = "device_roof_" if "node_spread" in table else ""  # roofs() drops this prefix of the variables
    names = [name.removeprefix(prefix) for name, kind in stored.items() if kind.kind in "iu"]
    counts = [name for name in names if name in table and table[name].dtype.kind in "fiu"]
    own = table[counts]
    right = (own % 1 == 0) & (own.abs() < 2**63) | own.isna()  # false for values of a damaged file
    counts = list(right.columns[right.all()])
    return table.astype(dict.fromkeys(counts, "Int64"))


# {suffix: function that returns the text of a table}, and {suffix: (function that writes a file, package that it
# needs)}.
TEXTS = {
    "csv": lambda table: safe(table).to_csv(index=False),
    "json": as_json,
    "md": markdown,
}
WRITERS = {
    "parquet": (lambda table, path: table.to_parquet(path, index=False), "pyarrow (pip: pyarrow)"),
    "xlsx": (lambda table, path: safe(table).to_excel(path, index=False), "python3-openpyxl (pip: openpyxl)"),
}
FORMATS = {"markdown": "md"}  # {alias: suffix}


def add_options(parser):
    parser.add_argument("files", nargs="+", metavar="file", help="result file of roofsweep")
    parser.add_argument("-t", "--table", choices=TABLES, default="rows", help="which table (default: %(default)s)")
    formats = [*TEXTS, *WRITERS, *FORMATS]
    parser.add_argument("-f", "--format", choices=formats, help="default: the suffix of the output's name, else csv")
    parser.add_argument("-w", "--where", nargs="+", metavar="TERM", help=selection.HELP)
    parser.add_argument("-c", "--columns", metavar="NAME,...", help="only these, in this order")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")


def run(options):
    build, needs = TABLES[options.table]
    suffix = os.path.splitext(options.output or "table.csv")[1][1:].lower()
    word = FORMATS.get(options.format, options.format or suffix)
    if word not in TEXTS | WRITERS:
        known = ", ".join(f".{name}" for name in TEXTS | WRITERS)
        raise Refused(f"--output {options.output}: its name ends in none of {known}; --format chooses the format")
    if word in WRITERS and not options.output:
        raise Refused(f"--format {word} needs --output FILE.{word}")
    files = [load(path, needs) for path in options.files]
    table = selection.choose(whole(build(files), files), options.where)
    if options.columns:
        names = [selection.column(table, name) for name in options.columns.split(",")]
        table = table[list(dict.fromkeys(names))]
    if word in WRITERS:
        writer, package = WRITERS[word]
        try:
            with writing(options.output):
                # bytes_ratio holds dicts; their values are also in columns bytes_ratio_LEVEL.
                writer(table.drop(columns="bytes_ratio", errors="ignore"), options.output)
        except ImportError as missing:
            raise Refused(f".{word} needs a missing package: install {package}") from missing
    elif options.output:
        write(options.output, TEXTS[word](table))
    else:
        with writing("standard output"):
            sys.stdout.write(TEXTS[word](table))
    return 0
