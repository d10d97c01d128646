"""The command `report` writes one HTML file that needs no network and no server."""

import base64
import gzip
import html
import json
import os
import re

from ..arguments import write
from ..dataset import load
from ..frames import ROOFS, ROWS
from ..texts import Refused, plain

HELP = "one self-contained HTML file: devices, roofs, interactive figures, tables, kernels, advice"
DESCRIPTION = """Writes a report on one or several result files as one HTML file, which any browser of 2023 or later
opens without a network. The file contains the data and the library Plotly (package python3-plotly), compressed."""

PARTS = ["page.html", "report.css", "report.js"]


def add_options(parser):
    parser.add_argument("files", nargs="+", metavar="file", help="result file of roofsweep")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: the first file's name with .html")


def part(name):
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as stream:
        return stream.read()


def plotly():
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as missing:
        raise Refused("the report needs Plotly: install python3-plotly (pip: plotly)") from missing
    return get_plotlyjs()


def packed(text):
    """Returns a text compressed by gzip and encoded in base64, so that HTML needs no escapes."""
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def page(files):
    """Returns the HTML text of a report on datasets of load()."""
    from .content import content

    found = content(files)
    template, style, script = (part(name) for name in PARTS)
    values = {
        "TITLE": html.escape(found["title"]),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": packed(json.dumps(found, allow_nan=False)),
        "PLOTLY": packed(plotly()),
    }
    return re.sub(r"{{(\w+)}}", lambda found: values[found[1]], template)  # in one pass: values may contain {{


def default_output(options):
    return os.path.splitext(os.path.basename(options.files[0]))[0] + ".html"


def run(options):
    write(options.output, page([load(name, ROWS + ROOFS) for name in options.files]))
    print(plain(options.output))
    return 0
