"""Runs commands on damaged result files. A command must print its output or one line of error, never a traceback.

Usage: fuzz.py SECONDS [SEED] [CASE]. A case is a damaged file and some commands that read it. In most files some
variables or attributes are removed, or get a wrong type, a wrong dimension or absurd values. Every eighth file has
flipped bits; child processes read it, because it may crash them. A seed determines the cases, which run until SECONDS
are over. With CASE, only this case runs, and its output is shown."""

import contextlib
import io
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter

try:
    import netCDF4  # noqa: F401
    import numpy as np
    from matplotlib import pyplot as plt
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "postproc"))
from roofsweep_post import check, cli, dataset, describe, export  # noqa: E402
from roofsweep_post.figures import KINDS  # noqa: E402

TARGETS = """[NVIDIA H200]
dram triad = 4.28 TB/s
fp16 tensor wgmma = 90 %
[NVIDIA H200 | one]
where = cache=cold
time_median = 1 s
"""
QUICK = [
    *("rows A", "rows A --advice --sort roof", "rows A B --where cache=hot", "rows A --where batch>=16 --sort noise"),
    *("roofs A", "roofs A --device 0", "roofs A --targets targets.ini", "roofs A --device 1 --targets targets.ini"),
    *("compare A", "compare A B", "compare A B --quiet --json v.json --junit v.xml", "compare B A --across-models"),
    *("check A --targets targets.ini --quiet", "check A --targets targets.ini --junit v.xml"),
    *("describe A", "describe A status throttle_reasons time_sample start_time kernel_name"),
    *(f"export A --table {table} --format {form}" for table in export.TABLES for form in export.TEXTS),
]
SLOW = [
    *(f"plot {kind} A --output f.svg" for kind in KINDS),
    *("plot history A B --output f.svg", "plot classic A --level all --output f.svg", "plot strip A B --output f.svg"),
    "report A --output r.html",
    *(FROM_FILES := ["check A --integrity", "merge A golden.nc --output m.nc --overwrite --newest"]),
]
TEXTS = ["", " ", "a" * 100_000, "$x_{", "$\\frac{a}{b}$", "=1", "a 'b", "\x1b[31m", "0", "nan", "measured", "a\tb|c=d"]
NUMBERS = [0, -1, 1, 5, 99, 2**31, 2**62, -(2**62), 1e-308, 1e308, -1e308, np.inf, -np.inf, np.nan]
cli.LONGEST = 60
OPENED, READ = dataset.opened, dataset.read
STATUSES = (0, 1, 2, 3, 6)
ENDED = "ended"  # message of a command whose process ended within HDF5


def base_files():
    """Returns two small files in memory (see feed()): the golden sample, and some rows of a node of four GPUs."""
    subprocess.run(["ncgen", "-4", "-o", "golden.nc", ROOT / "tests/data/golden.cdl"], check=True)
    pathlib.Path("targets.ini").write_text(TARGETS)
    for name in "AB":  # commands check that their files exist, although most cases are in memory
        pathlib.Path(name).touch()
    golden, node = (dataset.raw_of(path).load() for path in ("golden.nc", ROOT / "tests/data/node_4xh200.nc"))
    rows = slice(0, 12)
    own = np.flatnonzero(node["kernel_config"].values < rows.stop)
    node = node.isel(config=rows, kernel=own, device_roof=slice(None, None, 4))
    return [(data, READ(data)) for data in (golden, node)]


def as_other_type(choose, values):
    if values.dtype.kind in "OU":
        return choose.choice([np.full(values.shape, 0.5), np.full(values.shape, 3, "i1")])
    return choose.choice([values.astype(str).astype(object), values.astype("f4"), np.nan_to_num(values).astype("i2")])


def change_attribute(choose, attributes):
    if not attributes:
        return
    name = choose.choice(sorted(attributes))
    others = [choose.choice(TEXTS), choose.choice(NUMBERS), np.array([1.5, 2.5]), np.array([3], "i1")]
    attributes[name] = choose.choice(others)
    if choose.random() < 0.3:
        del attributes[name]


def change_variable(choose, data, name):
    ways = ["gone", "type", "dims", "value", "values", "attribute"]
    how = choose.choice(
        [way for way in ways if way != "dims" or name not in data.sizes]
    )  # xarray cannot write a coordinate with other dimensions
    values, dims, attributes = data[name].values.copy(), data[name].dims, data[name].attrs
    if how == "gone":
        return data.drop_vars(name)
    if how == "attribute":
        change_attribute(choose, attributes)
    elif how == "type":
        values = as_other_type(choose, values)
    elif how == "dims":
        dims = choose.choice([(), *((dim,) for dim in data.sizes), ("config", "device"), ("device", "sample")])
        shape = [data.sizes.get(dim, 2) for dim in dims]
        values = np.resize(values, shape) if values.size else np.zeros(shape)
    elif values.size:
        text = values.dtype.kind in "OU"
        value = choose.choice(TEXTS if text else NUMBERS)
        values = values.astype(object if text else np.result_type(values.dtype, np.array(value).dtype))
        values.flat[choose.randrange(values.size) if how == "value" else slice(None)] = value
    return data.assign({name: (dims, values, attributes)})


def changed(choose, base):
    """Returns a copy with some changes, mostly in variables that commands need."""
    data = base.copy()
    for name in data.variables:
        data[name].attrs = dict(data[name].attrs)
    for _ in range(choose.choice([1, 1, 1, 2, 5, 40])):
        known, every = [name for name in data.variables if name in dataset.SHAPES], list(data.variables)
        if choose.random() < 0.1:
            change_attribute(choose, data.attrs)
        elif known:
            data = change_variable(choose, data, choose.choice(known if choose.random() < 0.8 else every))
    return data


def flipped(choose, source, target):
    """Writes a copy of a file with some bits flipped."""
    data = bytearray(pathlib.Path(source).read_bytes())
    for _ in range(choose.choice([1, 2, 8, 64])):
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    pathlib.Path(target).write_bytes(data)


def feed(own):
    """Makes commands read datasets in memory as if they were files. own: {path: (dataset, result of read())}."""
    read_by(
        lambda path: own[path][0],
        lambda raw: next(tuple(map(dict, found)) for data, found in own.values() if data is raw),
    )


def read_by(opened, read):
    for module in (dataset, check, describe):
        module.opened, module.read = opened, read


def in_process(words, shown):
    """Runs a command in this process. Returns its fault, such as a traceback; "" if it has none."""
    out, err, status = io.StringIO(), io.StringIO(), None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.run(cli.arguments(words))
    except BaseException:
        return traceback.format_exc()
    finally:
        if shown:
            print(f"{words}\n{out.getvalue()[-3000:]}{err.getvalue()[-3000:]}exit status {status}")
    said = err.getvalue().splitlines()
    right = status in STATUSES and all(line.startswith("roofsweep-post: ") for line in said)
    return "" if right and (said or status != 2) else f"exit status {status}: {said}"


def by_itself(words, shown):
    """Runs a command in a child process, as a shell does. Returns its fault; "" if it has none."""
    child = os.fork()
    if child == 0:
        for number, name in (1, "out"), (2, "err"):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
        status = cli.main(words)
        sys.stdout.flush()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = pathlib.Path("err").read_text(errors="replace")
    if shown:
        print(f"{words}\n{said[-3000:]}exit status {status}")
    wrong = status not in STATUSES or "Traceback" in said or "`python3 -X dev`" in said
    return f"{said[-2000:]}\nexit status {status}" if wrong else ENDED * ("ended the process" in said)


def run_case(number, seed, bases, figures, shown):
    choose = random.Random(f"{seed}/{number}")
    base, bits = choose.choice(bases), number % 8 == 7
    read_by(OPENED, READ)
    if bits:
        flipped(choose, "golden.nc", "A")
        shutil.copy("golden.nc", "B")
    else:
        data = changed(choose, base[0])
        feed({"A": (data, READ(data)), "B": base})
    figures["files"] += 1
    for command in [*choose.sample(QUICK, 3), choose.choice(QUICK + SLOW)]:
        from_file = command in FROM_FILES
        if from_file and not bits:
            with contextlib.suppress(Exception):  # some cases cannot be written by xarray
                data.to_netcdf("A", engine="netcdf4")
        wrong = (by_itself if bits or from_file else in_process)(command.split(), shown)
        figures["commands"] += 1
        if wrong == ENDED:
            figures["processes that HDF5 ended"] += 1
        elif wrong:
            figures["tracebacks"] += 1
            print(f"case {number} of seed {seed}: {command}\n{wrong}", flush=True)
        plt.close("all")


def main(seconds, seed=1, case=None):
    warnings.simplefilter("ignore")
    end, figures = time.monotonic() + float(seconds), Counter()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        bases = base_files()
        for number in [int(case)] if case else itertools.count():
            if time.monotonic() > end:
                break
            run_case(number, seed, bases, figures, bool(case))
        os.chdir("/")
    names = ["files", "commands", "processes that HDF5 ended", "tracebacks"]
    print(", ".join(f"{figures[name]} {name}" for name in names))
    return 1 if figures["tracebacks"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
