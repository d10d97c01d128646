"""Runs Python code for shell scripts in a process that has already imported all modules, because imports take longer
than most tests.

Usage: serve.py REQUESTS ANSWERS, two FIFOs. A request is a list of NUL-terminated words: the number of words that
follow, the working folder, a kind, and the words of the kind. Kinds: `script ...` runs roofsweep-post, with warnings as
errors; `plot ...` does so, but allows warnings of matplotlib; `code CODE ...` runs Python code; `file PATH ...` runs a
Python file. Each request runs in a child process, whose output goes to the files `served.out` and `served.err`. The
answer is a line with the exit status. The program ends when nobody writes requests any more."""

import os
import runpy
import sys
import traceback
import warnings

import matplotlib.pyplot  # noqa: F401
import netCDF4  # noqa: F401
import xarray  # noqa: F401
from roofsweep_post import cli


def words_of(stream):
    """Returns the words of the next request; None after the last one."""

    def word():
        found = b""
        while (byte := stream.read(1)) != b"\0":
            if not byte:
                return None
            found += byte
        return os.fsdecode(found)

    count = word()
    return count and [word() for _ in range(int(count))]


def run(kind, words):
    if kind in ("script", "plot"):
        warnings.filterwarnings("error", category=FutureWarning if kind == "plot" else Warning)
        return cli.run(cli.arguments(words))  # not main(), which would turn a traceback into one line
    sys.path.insert(0, "" if kind == "code" else os.path.dirname(os.path.abspath(words[0])))
    sys.argv = ["-c", *words[1:]] if kind == "code" else words
    if kind == "code":
        exec(compile(words[0], "<code>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_path(words[0], run_name="__main__")


def status_of(kind, words):
    try:
        return run(kind, words) or 0
    except SystemExit as end:
        if not isinstance(end.code, (int, type(None))):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except BaseException:
        traceback.print_exc()
        return 1


def main():
    requests, answers = sys.argv[1:]
    # The FIFO stays open: a reader that opens it again could see the end of the previous answer.
    with open(requests, "rb", buffering=0) as stream, open(answers, "w", buffering=1) as answer:
        while request := words_of(stream):
            folder, kind, *words = request
            child = os.fork()
            if child == 0:
                os.chdir(folder)
                for number, name in (1, "served.out"), (2, "served.err"):
                    os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
                status = status_of(kind, words)
                sys.stdout.flush()
                os._exit(status)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            answer.write(f"{status}\n")


main()
