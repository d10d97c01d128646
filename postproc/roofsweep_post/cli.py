"""The command line: roofsweep-post COMMAND ..., one module for each command."""

import argparse
import contextlib
import ctypes
import os
import signal
import sys
import warnings

from . import __version__, baseline, check, compare, describe, export, merge, plot, report, roof_table, row_table
from .arguments import Parser, check_inputs, check_outputs, named
from .texts import Refused, say

# {word: module with HELP, DESCRIPTION, add_options(parser) and run(options), which returns the exit status; also
# default_output(options), if --output has a default, and WRITES_NETCDF, if it is a result file}
COMMANDS = {
    "rows": row_table,
    "plot": plot,
    "roofs": roof_table,
    "compare": compare,
    "check": check,
    "baseline": baseline,
    "report": report,
    "describe": describe,
    "export": export,
    "merge": merge,
}

# What ends a process that reads a file whose sizes and addresses are wrong.
DEADLY = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGVTALRM}
LONGEST = 3600  # s of a processor: of a damaged file HDF5 may read for ever
PR_SET_PDEATHSIG = 1  # <sys/prctl.h>


def arguments(words):
    words = sys.argv[1:] if words is None else words
    parser = Parser(
        prog="roofsweep-post", description="Reads result files of roofsweep. `roofsweep-post COMMAND --help` says more."
    )
    parser.add_argument("--version", action="version", version=f"roofsweep-post {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        own = commands.add_parser(name, help=module.HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name in words:  # those of figures start matplotlib, which takes most of a second
            own.description = module.DESCRIPTION() if callable(module.DESCRIPTION) else module.DESCRIPTION
            module.add_options(own)
    return parser.parse_args(words)


def run(options):
    """Runs a command in this process. Returns the exit status; raises what is no fault of the user's."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `roofsweep-post ... | head` is no error
    module = COMMANDS[options.command]
    try:
        if hasattr(module, "default_output"):
            options.output = options.output or module.default_output(options)
        check_inputs(options)
        check_outputs(options, getattr(module, "WRITES_NETCDF", False))
        return module.run(options)
    except Refused as refused:
        say(refused)
        return 2


def main(words=None):
    """Runs a command in a process of its own: a damaged file may end it, inside of HDF5."""
    options = arguments(words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: those of OpenBLAS take part in a fork
        child = os.fork()
    if child == 0:
        warnings.filterwarnings("ignore", "DataFrame is highly fragmented")  # pandas 3: each text column is a fragment
        with contextlib.suppress(AttributeError):  # not Linux
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
        try:
            return run(options)
        except Exception as error:
            if sys.flags.dev_mode:
                raise
            how = "a damaged file, or a mistake of roofsweep-post, which `python3 -X dev` shows in full"
            say(f"{type(error).__name__}: {str(error)[:200]}: {how}")
            return 2
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child has it, too
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if -status in DEADLY:
        paths = ", ".join(named(options, ["file", "files"]))
        say(f"{paths}: damaged: reading it ended the process ({signal.Signals(-status).name})")
        return 2
    if status < 0:  # as if there were one process
        with contextlib.suppress(OSError):  # of SIGKILL, which has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status
