"""Several result files as one: what `roofsweep --merge` does, started from here."""

import os
import shutil

from .texts import Refused

HELP = "several result files as one, by roofsweep --merge"
DESCRIPTION = """Starts `roofsweep --merge FILE... --output FILE`, which must be in the path, or named by ROOFSWEEP.

A device that is the same in several files, roofs included, is one device. A configuration that was measured on the
same device in several files is an error that names it, unless --newest is given."""

WRITES_NETCDF = True


def add_options(parser):
    parser.add_argument("files", nargs="+", metavar="file", help="result file of roofsweep")
    parser.add_argument("-o", "--output", metavar="FILE", required=True)
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--newest", action="store_true", help="of a row in several files, take that measured last")


def run(options):
    name = os.environ.get("ROOFSWEEP", "roofsweep")
    program = shutil.which(name)
    if not program:
        raise Refused(f"no program '{name}' in the path; ROOFSWEEP=/path/to/roofsweep names it")
    # As absolute paths, no name is taken for an option.
    words = [os.path.abspath(path) for path in options.files]
    flags = [f"--{name}" for name in ("overwrite", "newest") if getattr(options, name)]
    os.execv(program, [program, "--quiet", "--merge", *words, "--output", os.path.abspath(options.output), *flags])
