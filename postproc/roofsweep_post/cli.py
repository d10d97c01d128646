"""The command line: roofsweep-post COMMAND ..., one module for each command."""

import argparse
import signal
import sys

from . import check, compare, export, merge, plot, report, roof_table, row_table
from .arguments import Parser, check_outputs
from .texts import Refused, plain

# {word: module with HELP, DESCRIPTION, add_options(parser) and run(options), which returns the exit status; also
# default_output(options), if --output has a default, and WRITES_NETCDF, if it is a result file}
COMMANDS = {
    "rows": row_table,
    "plot": plot,
    "roofs": roof_table,
    "compare": compare,
    "check": check,
    "report": report,
    "export": export,
    "merge": merge,
}


def arguments(words):
    parser = Parser(
        prog="roofsweep-post", description="Reads result files of roofsweep. `roofsweep-post COMMAND --help` says more."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        own = commands.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION() if callable(module.DESCRIPTION) else module.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_options(own)
    return parser.parse_args(words)


def main(words=None):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `roofsweep-post ... | head` is no error
    options = arguments(words)
    module = COMMANDS[options.command]
    try:
        if hasattr(module, "default_output"):
            options.output = options.output or module.default_output(options)
        check_outputs(options, getattr(module, "WRITES_NETCDF", False))
        return module.run(options)
    except Refused as refused:
        print(f"roofsweep-post: {plain(refused)}", file=sys.stderr)
        return 2
