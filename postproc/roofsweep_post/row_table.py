"""The command `rows` prints a line for each measured configuration: time, noise, limiter and, with --advice, advice."""

from . import selection
from .advice import advise
from .arguments import whole
from .dataset import load
from .export import as_json
from .frames import ROWS, rows
from .texts import Refused, column, percent, say, share, table

HELP = "configurations: time, noise, limiter, advice"
DESCRIPTION = """Prints a line for each measured configuration.

time         median time of one iteration
+-           half the 95 % interval of the median, over the median
of roof      performance over the lowest roof at the row's arithmetic intensity. Roofs are those of the row's device
limiter      the variable limiter (docs/method.md); the variable limiter_evidence has the shares. If the file was
             measured with counters = causes: the variable limit, or the words of a kernel's cause
samples      notes. noisy: +- is above 5 %; preempted: the threads of a CPU's row waited for a core for more than 5 % of
             the time; two modes: the samples form two groups; host-paced: the device waited for the host; throttled:
             the load lowered the clock; inaccurate: the error of the result exceeds that of rounding, see the variable
             accuracy; modelled FLOPs: only bytes were counted, as for CUDA graphs; a caller needs ...: a caller who
             enqueues iterations in a loop waits for the host

--advice adds a sentence: the cause, and what to try.
--energy prints energies instead: of an iteration, of a FLOP, and of an iteration by the device's energy roofs, with the
         deviation of the latter and its share of constant power. Rows without energy are left out.
--time   prints wall times instead: of each row, with the shares of its parts. Parts that no row has are left out."""

ABOVE = """
"of roof" above 100 % has one of three causes. FLOPs are modelled, and the algorithm did fewer (flops_ratio below 1).
Bytes came from a nearer memory level than that of the roof. The clock was higher than during the roof's measurement."""
# Columns of --json.
COLUMNS = [
    *("name", "configuration", "label", "device_name", "time_median", "noise", "performance", "roof_fraction"),
    *("limited_by", "cause", "marks"),
]

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
    parser.add_argument("-l", "--labels", action="store_true", help="show the labels of the manifest")
    parser.add_argument("-t", "--time", action="store_true", help="parts of the wall time, of each row and of all")
    parser.add_argument("-e", "--energy", action="store_true", help="energy, measured and by the energy roofs")
    parser.add_argument("--json", action="store_const", const=True, dest="as_json", help="JSON in SI units")
    parser.add_argument("-a", "--advice", action="store_true", help="add a sentence on what to try to each row")


PART = "wall_time_part_"
NEAR = 0.1  # largest deviation of a good prediction from the measured energy, as a share of it


def of_wall_time(found):
    """Returns the table of --time, whose last line is the sum of all rows."""
    parts = [name for name in found if name.startswith(PART) and found[name].notna().any()]
    lines = [*zip(found["text"], found["device_name"], found["wall_time"], found[parts].to_numpy())]
    lines.append((f"all {len(found)}", "", found["wall_time"].sum(), found[parts].sum().to_numpy()))
    head = ["configuration", "device", "wall time", *[name.removeprefix(PART).replace("_", "\n") for name in parts]]
    return table(
        head, [[text, device, column(wall, "s"), *map(share, own / wall)] for text, device, wall, own in lines]
    )


def of_energy(found):
    """Returns the table of --energy, and the number of rows whose energy the energy roofs predict within NEAR."""
    known = found[found["energy"].notna() | found["energy_at_roofs"].notna()]
    if known.empty:
        raise Refused("no row has energy: energy = yes in [measure] or in [peaks], on a GPU")
    off = known["energy_at_roofs"] / known["energy"]
    numbers = known["energy"], known["energy"] / known["flops"], known["energy_at_roofs"], off
    lines = [
        [text, device, column(energy, "J"), column(each, "J/FLOP"), column(model, "J"), percent(ratio), share(constant)]
        for text, device, energy, each, model, ratio, constant in zip(
            known["text"], known["device_name"], *numbers, known["energy_constant_share"]
        )
    ]
    head = ["configuration", "device", "energy", "of a FLOP", "at the roofs", "off", "constant"]
    off = (off.dropna() - 1).abs()
    return table(head, lines) + f"{(off <= NEAR).sum()} of {len(off)} rows are within {share(NEAR)}\n"


def run(options):
    all_rows = rows([load(path, ROWS) for path in options.files], measured=False)
    measured = all_rows["status"] == "measured"
    found = selection.choose(all_rows[measured].reset_index(drop=True), options.where)
    by, ascending = SORTS[options.sort]
    found = found.sort_values(by, ascending=ascending, kind="stable") if by else found
    found = found.assign(text=found["name"]).head(options.most)
    if options.labels:
        found["text"] = found["label"] + ": " + found["text"]
    if not measured.all():
        way = f"{' '.join(options.files)} --columns name,status,error --where status!=measured"
        count = f"{(~measured).sum()} of {len(measured)} configurations were not measured"
        say(f"{count}; `roofsweep-post export {way}` says why")
    if options.as_json:
        found = found.assign(advice=advise(found) if options.advice else "")
        times = [name for name in found if name.startswith("wall_time")] if options.time else []
        energies = ["energy", "energy_at_roofs", "energy_constant_share"] * options.energy
        print(as_json(found[COLUMNS + ["advice"] * options.advice + times + energies]), end="")
        return 0
    if options.energy:
        print(of_energy(found), end="")
        return 0
    if options.time:
        print(of_wall_time(found), end="")
        return 0
    lines = [
        [row["text"], row["device_name"], column(row["time_median"], "s"), share(row["noise"])]
        + [column(row["performance"], "FLOP/s"), share(row["roof_fraction"]), row["limiter_cause"], row["marks"]]
        for row in found.to_dict("records")
    ]
    head = ["configuration", "device", "time", "+-", "performance", "of roof", "limiter", "samples"]
    below = [f"    {advice}" for advice in advise(found)] if options.advice else []
    print(table(head, lines, left=["limiter", "samples"], below=below), end="")
    if (found["roof_fraction"] > 1).any():
        print(ABOVE)
    return 0
