#!/usr/bin/env python3
"""Follows the worked example of src/model/workloads/README.md in a copy of the source.

Writes the listings, builds the CPU worker, and measures one row of the new workload.

Usage: worked_example.py, with CMAKE in the environment as ctest sets it. Exit status 0, or 1 with the fault."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "src/model/workloads/README.md"
NEEDED = ("CMakeLists.txt", "CITATION.cff", "LICENSE", "README.md", "cmake", "docs", "kernels", "src")
REQUEST = '{"op":"measure","configuration":"scale elements=1000000","iterations":3,"verify":true}\n'


def lines_insert(text, listing):
    """Inserts the `+...` lines of a listing into the text, each after the line that precedes it in the listing."""
    place = None
    for line in listing.splitlines():
        if line.startswith("+"):
            text = text.replace(place, place + line[1:] + "\n")
            place = line[1:] + "\n"
        else:
            place = line[1:] + "\n"
            if text.count(place) != 1:
                raise ValueError(f"{PAGE}: the line '{line[1:]}' stands there {text.count(place)} times, not once")
    return text


def listings_write(copy):
    """Writes the listings into a copy of the source. Returns their number."""
    found = re.findall(r"^`(src/[\w/.]+)`:\n```(c|diff)\n(.*?)^```", (ROOT / PAGE).read_text(), re.M | re.S)
    for name, kind, listing in found:
        path = copy / name
        path.write_text(listing if kind == "c" else lines_insert(path.read_text(), listing))
    return len(found)


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def row_measure(folder):
    """Builds the CPU worker of a copy of the source, and measures one row with it."""
    copy, build, cmake = folder / "source", folder / "build", os.environ.get("CMAKE", "cmake")
    copy.mkdir()
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name)
        elif (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    if listings_write(copy) < 4:
        raise ValueError(f"{PAGE}: listings are missing")
    off = [f"-DROOFSWEEP_{what}=OFF" for what in ("CUDA", "TESTS")]
    run(cmake, "-S", copy, "-B", build, "-DCMAKE_BUILD_TYPE=Debug", "-DROOFSWEEP_WERROR=ON", *off)
    run(cmake, "--build", build, "--target", "roofsweep-worker-cpu", "--parallel", "2")
    reply = json.loads(run(build / "bin/roofsweep-worker-cpu", text=REQUEST))
    return reply["record"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        try:
            record = row_measure(pathlib.Path(folder))
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
    print(json.dumps(record, indent=1))
    right = record["status"] == "measured" and record.get("verify_elements", 0) > 0
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
