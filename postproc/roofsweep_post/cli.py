"""The command line: roofsweep-post COMMAND ..., one module for each command."""

import argparse
import contextlib
import ctypes
import os
import signal
import sys
import warnings

from . import check, compare, export, merge, plot, report, roof_table, row_table
from .arguments import Parser, check_outputs, named
from .dataset import load
from .texts import Refused, say

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

# What ends a process that reads a file whose sizes and addresses are wrong.
DEADLY = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL}
PR_SET_PDEATHSIG = 1  # <sys/prctl.h>


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


def run(words=None):
    """Runs a command in this process. Returns the exit status; raises what is no fault of the user's."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `roofsweep-post ... | head` is no error
    options = arguments(words)
    module = COMMANDS[options.command]
    try:
        if hasattr(module, "default_output"):
            options.output = options.output or module.default_output(options)
        check_outputs(options, getattr(module, "WRITES_NETCDF", False))
        return module.run(options)
    except Refused as refused:
        say(refused)
        return 2


def forked():
    """The id of a new process; 0 in that process, which ends with this one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: those of OpenBLAS take part in a fork
        child = os.fork()
    if child == 0:
        with contextlib.suppress(AttributeError):  # not Linux
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return child


def ended_by(child):
    """(exit status, the signal that ended it or None) of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child has it, too
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return status, signal.Signals(-status) if status < 0 else None


def kills(path):
    """Whether reading a file ends the process that does it."""
    child = forked()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        with contextlib.suppress(Exception):
            load(path)
        os._exit(0)
    return ended_by(child)[1] in DEADLY


def main(words=None):
    """Runs a command in a process of its own: a damaged file may end it, inside of HDF5."""
    child = forked()
    if child == 0:
        try:
            return run(words)
        except Exception as error:
            if sys.flags.dev_mode:
                raise
            how = "a damaged file, or a mistake of roofsweep-post, which `python3 -X dev` shows in full"
            say(f"{type(error).__name__}: {str(error)[:200]}: {how}")
            return 2
    status, ended = ended_by(child)
    if ended in DEADLY:
        options = arguments(words)
        paths = [path for path in named(options, ["file", "files"]) if kills(path)]
        say(f"{', '.join(paths) or 'a file'}: damaged: reading it ended the process ({ended.name})")
        return 2
    if ended:  # as if there were one process
        signal.signal(ended, signal.SIG_DFL)
        os.kill(os.getpid(), ended)
    return status
