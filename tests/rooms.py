#!/usr/bin/env python3
"""Checks the rooms of the source and prints the arrows between them.

Usage: rooms.py [ROOT]

A room is a folder of src/, or kernels/. An arrow is an #include that names another room. Arrows go down only, each .c
has its own .h, and each folder has a README.md. Exit status 0, or 1 with a line for each fault."""

import collections
import pathlib
import re
import sys

# Each room, and the rooms that it stands on; what those stand on is below it as well.
ROOMS = {
    "base": [],
    "model": ["base"],
    "manifest": ["model"],
    "results": ["manifest"],
    "ranks": ["results"],
    "": ["ranks"],  # src/ itself: the program
    "kernels": ["model"],
    "program": ["model"],
    "program/section": ["program", "manifest"],
    "worker": ["model"],
    "program/run": ["program", "worker"],
    "worker/cpu": ["worker"],
    "worker/gpu": ["worker"],
    "worker/cuda/gpu": ["worker/gpu", "worker/cuda/profiling", "kernels"],
    "worker/cuda/profiling": ["model"],  # links without the worker
    "program/inject": ["worker/cuda/profiling"],  # links without the worker
    "worker/cuda/workloads": ["worker/cuda/gpu"],
    "worker/cuda/roofs": ["worker/cuda/workloads"],
    "worker/cuda": ["worker/cuda/workloads", "worker/cuda/roofs"],
}

# Folders that belong to another room: workload.c lists the rows that these files define.
ALCOVES = {"model/workloads": "model"}

# Files without a header of their own, and why.
HEADERLESS = {
    "src/roofsweep.c": "a program",
    "src/worker/worker.c": "a program",
    "src/worker/cpu/device.c": "defines the one device_ops of its program; worker/device_ops.h declares it",
    "src/program/section/section.c": "defines a section_kind; manifest/section.h declares it",
    "src/program/run/row.c": "defines a row_kind; worker/row_kind.h declares it",
    "src/program/inject/inject.c": "a library that others find by the names of its functions",
    "src/worker/cuda/gpu/vendor.c": "defines what worker/gpu/vendor.h declares",
    "src/worker/cuda/device.c": "defines the one device_ops of its program; worker/device_ops.h declares it",
}

# Folders of files that define a row of a table, which one header declares: what such a file contains.
ROWS = {
    "src/worker/cuda/roofs": "const struct roof_family roofs_",
    "src/worker/cpu": "const struct cpu_workload ",
    "src/worker/cuda/workloads": '#include "worker/cuda/workloads/workloads.h"',
}

# The build writes it: which version it is.
GENERATED = {"version.h"}


def below(room):
    """All rooms below a room."""
    found = set(ROOMS[room])
    for other in ROOMS[room]:
        found |= below(other)
    return found


def circle(room, path=()):
    """The first circle in the table that goes through a room, as a list; empty if there is none."""
    if room in path:
        return [*path[path.index(room) :], room]
    for other in ROOMS[room]:
        if found := circle(other, (*path, room)):
            return found
    return []


def room_of(folder):
    """The room of a folder, relative to src/; None if it is none."""
    folder = ALCOVES.get(folder, folder)
    return folder if folder in ROOMS else None


def source_files(root):
    files = [path for top in ("src", "kernels") for path in (root / top).rglob("*")]
    return sorted(path for path in files if path.suffix in (".c", ".h", ".cpp", ".cu", ".cuh"))


def folder_of(path, root):
    """The folder as an #include names it."""
    folder = path.parent.relative_to(root).as_posix()
    return "" if folder == "src" else folder.removeprefix("src/")


def includes(path, folder):
    """The line and the folder of each #include of our own files."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if (found := re.match(r'\s*#\s*include\s+"([^"]+)"', line)) and found[1] not in GENERATED:
            named = pathlib.PurePosixPath(found[1])
            here = named.name == found[1] and (path.parent / found[1]).is_file()
            yield number, folder if here else "" if named.name == found[1] else named.parent.as_posix()


def arrows_read(root, faults):
    """How many #includes go from room to room, and the faults among them."""
    arrows = collections.Counter()
    for path in source_files(root):
        folder, name = folder_of(path, root), path.relative_to(root)
        here = room_of(folder)
        if here is None:
            faults.append(f"{name}: its folder is no room; add it to ROOMS of tests/rooms.py")
            continue
        for number, target in includes(path, folder):
            there = room_of(target)
            if there is None:
                faults.append(f"{name}:{number}: '{target}' is no room")
            elif there != here:
                arrows[here, there] += 1
                if there not in below(here):
                    faults.append(f"{name}:{number}: an arrow that goes up, from '{here}' to '{there}'")
    return arrows


def headers_check(root, faults):
    for path in source_files(root):
        name = path.relative_to(root).as_posix()
        alone = path.suffix in (".c", ".cpp") and not path.with_suffix(".h").is_file()
        row = ROWS.get(path.parent.relative_to(root).as_posix())
        if alone and name not in HEADERLESS and not (row and row in path.read_text()):
            faults.append(f"{name}: has no header of its own")
        if not alone and name in HEADERLESS:
            faults.append(f"{name}: has a header; take it off HEADERLESS of tests/rooms.py")
    for name in HEADERLESS:
        if not (root / name).is_file():
            faults.append(f"{name}: is not there; take it off HEADERLESS of tests/rooms.py")


def readmes_check(root, faults):
    for folder in sorted({path.parent for path in source_files(root)}):
        if not (folder / "README.md").is_file():
            faults.append(f"{folder.relative_to(root)}: has no README.md")


def arrows_print(arrows):
    print(f"{'room':<24} includes")
    for room in ROOMS:
        targets = [f"{there} ({arrows[room, there]})" for there in ROOMS if arrows[room, there]]
        print(f"{room or 'src':<24} {', '.join(targets)}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    faults = []
    for room in ROOMS:
        if found := circle(room):
            print(f"the rooms go round in a circle: {' -> '.join(found)}", file=sys.stderr)
            return 1
    arrows = arrows_read(root, faults)
    headers_check(root, faults)
    readmes_check(root, faults)
    arrows_print(arrows)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
