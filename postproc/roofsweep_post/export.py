"""The command `export`: tables for spreadsheets and scripts."""

import sys

import pandas

from . import selection
from .arguments import write, writing
from .dataset import load
from .frames import flat, kernels, roofs, rows

HELP = "rows, roofs, kernels or devices as CSV, JSON or Markdown"
DESCRIPTION = """Writes one table of a result file, or of several below each other: rows (configurations), roofs,
kernels or devices. Flags are words, units are SI, what was not measured is empty (null in JSON)."""


def all_rows(files):
    return rows(files, measured=False)


def devices(files):
    tables = [flat(data, "device").assign(file=number) for number, data in enumerate(files)]
    return pandas.concat(tables, ignore_index=True)


TABLES = {"rows": all_rows, "roofs": roofs, "kernels": kernels, "devices": devices}


def markdown(table):
    """A table of Markdown; bars in texts are escaped."""
    cells = table.astype(object).where(table.notna(), "").astype(str)
    cells = cells.apply(lambda column: column.str.replace("|", "\\|", regex=False))
    lines = [list(cells.columns), ["---"] * len(cells.columns), *cells.to_numpy().tolist()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


FORMATS = {
    "csv": lambda table: table.to_csv(index=False),
    "json": lambda table: (
        table.to_json(orient="records", indent=1, date_format="iso", double_precision=15, force_ascii=False) + "\n"
    ),
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
    table = TABLES[options.table]([load(path) for path in options.files])
    table = selection.choose(table, options.where)
    if options.columns:
        table = table[[selection.column(table, name) for name in options.columns.split(",")]]
    text = FORMATS[options.format](table)
    if options.output:
        write(options.output, text)
    else:
        with writing("standard output"):
            sys.stdout.write(text)
    return 0
