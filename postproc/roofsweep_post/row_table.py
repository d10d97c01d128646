"""The command `rows`: configurations with time, noise, limiter and, if asked, advice."""

from . import selection
from .advice import advise
from .arguments import whole
from .dataset import load
from .frames import ROWS, rows, short_texts
from .texts import scaled, share, table

HELP = "configurations: time, noise, what limits them, what to try"
DESCRIPTION = """Prints a line for each measured configuration.

time         of one iteration, median
+-           half the 95 % interval of that median, over it
of roof      performance over the lowest roof at the row's arithmetic intensity, measured on the row's device
limiter      what limits the time, by measured shares of it; the file's limiter_evidence has the shares. A file
             without `limiter` shows `unknown`
samples      what is noteworthy about them: two modes; host-paced, the device waited for the host; throttled, the
             load held the clock down; inaccurate, the result, see the file's accuracy

--advice adds a sentence: the cause, and what to try."""

SORTS = {
    "time": ("time_median", False),
    "noise": ("noise", False),
    "roof": ("roof_fraction", True),
    "file": (None, True),
}


def add_options(parser):
    parser.add_argument("files", nargs="+", metavar="file", help="result file of roofsweep")
    parser.add_argument("-w", "--where", nargs="+", metavar="TERM", help=selection.HELP)
    parser.add_argument(
        "-s",
        "--sort",
        choices=SORTS,
        default="file",
        help="the slowest, the noisiest or the furthest from its roof first",
    )
    parser.add_argument("-n", "--most", type=whole(1), metavar="N", help="only the first N")
    parser.add_argument("-a", "--advice", action="store_true", help="say of each what to try")


def run(options):
    found = selection.choose(rows([load(path, ROWS) for path in options.files]), options.where)
    column, ascending = SORTS[options.sort]
    found = found.sort_values(column, ascending=ascending, kind="stable") if column else found
    found = found.assign(text=short_texts(found)).head(options.most)
    lines = [
        [
            row["text"],
            row["device_name"],
            scaled(row["time_median"], "s"),
            share(row["noise"]),
            scaled(row["performance"], "FLOP/s"),
            share(row["roof_fraction"]),
            row["limited_by"],
            row["marks"],
        ]
        for row in found.to_dict("records")
    ]
    head = ["configuration", "device", "time", "+-", "performance", "of roof", "limiter", "samples"]
    text = table(head, lines, left=["limiter", "samples"])
    if options.advice:
        first, *own = text.splitlines()
        text = "\n".join([first, *[f"{line}\n    {advice}" for line, advice in zip(own, advise(found))]]) + "\n"
    print(text, end="")
    return 0
