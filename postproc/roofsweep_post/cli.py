"""The command line, roofsweep-post COMMAND ... Each command is a module."""

import argparse
import contextlib
import ctypes
import os
import signal
import sys
import warnings

from . import (
    __version__,
    baseline,
    check,
    compare,
    describe,
    export,
    merge,
    network,
    plot,
    predict,
    report,
    roof_table,
    row_table,
    spread,
    watch,
)
from .arguments import Parser, check_inputs, check_outputs, named
from .texts import Refused, say

# {command: module}. A module has HELP, DESCRIPTION, add_options(parser) and run(options), which returns the exit
# status. It may have default_output(options), the default of --output, and WRITES_NETCDF if its output is a result
# file.
COMMANDS = {
    "rows": row_table,
    "plot": plot,
    "network": network,
    "predict": predict,
    "roofs": roof_table,
    "compare": compare,
    "check": check,
    "baseline": baseline,
    "report": report,
    "describe": describe,
    "export": export,
    "merge": merge,
    "spread": spread,
    "watch": watch,
}

# Signals by which a process ends if a damaged file, with wrong sizes and addresses, crashes HDF5.
DEADLY = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGPROF}
LONGEST = 3600  # s of CPU time that a command may use; dataset.bounded() allows less for reading a file
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
        if name in words:  # add_options of figures imports matplotlib, which takes most of a second
            own.description = module.DESCRIPTION() if callable(module.DESCRIPTION) else module.DESCRIPTION
            module.add_options(own)
    return parser.parse_args(words)


def run(options):
    """Runs a command in this process and returns its exit status. Prints the text of Refused, a user's mistake, and
    raises all other exceptions."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `roofsweep-post ... | head` ends quietly
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
    """Runs a command in a child process, because a damaged file can crash HDF5. Returns the exit status."""
    options = arguments(words)
    for stream in (sys.stdout, sys.stderr):  # the locale may lack a character of a title
        stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about fork() with the threads of OpenBLAS
        child = os.fork()
    if child == 0:
        warnings.filterwarnings("ignore", "DataFrame is highly fragmented")  # pandas 3 stores each text column apart
        with contextlib.suppress(AttributeError):  # not Linux
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a SIGTERM of the parent ends both
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        try:
            return run(options)
        except Exception as error:
            if sys.flags.dev_mode:
                raise
            how = "a damaged file, or a mistake of roofsweep-post, which `python3 -X dev` shows in full"
            say(f"{type(error).__name__}: {str(error)[:200]}: {how}")
            return 2
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends Ctrl-C to the child too
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if -status in DEADLY:
        paths = ", ".join(named(options, ["file", "files"]))
        say(f"{paths}: damaged: reading it ended the process ({signal.Signals(-status).name})")
        return 2
    if status < 0:  # the parent ends by the same signal, as if there were one process
        with contextlib.suppress(OSError):  # SIGKILL takes no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status
