#!/usr/bin/env python3
"""Checks the rooms of the source and prints the arrows between them.

Usage: rooms.py [ROOT]

A room is a folder of src/, or kernels/. An arrow is an #include that names another room. Arrows go down only; the files
of a room include each other in no circle, where a .c and its .h are one noun; each .c has its own .h; each folder has a
README.md. Exit status 0, or 1 with a line for each fault."""

import collections
import pathlib
import re
import sys

# Each room, and the rooms directly below it. Rooms below these are below it, too.
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

# A .c file needs no header of its own if it contains one of these. {room} is its folder.
HEADERLESS = [
    r"^int main\(",  # a program
    r"^const struct \w+ \w+",  # a row of a table, or the functions of one interface, which another header declares
    r"^enum status vendor_\w+\(",  # the functions of worker/gpu/vendor.h
    r'visibility\("default"\)',  # a library that other programs find by the names of its functions
    r'^#include "{room}/workloads\.h"',  # one of the files that define the rows of this header
]

GENERATED = {"version.h"}


def below(room):
    found = set(ROOMS[room])
    for other in ROOMS[room]:
        found |= below(other)
    return found


def circle(room, path=()):
    """Returns the first cycle of rooms, in the table, that contains a room, as a list; empty if there is none."""
    if room in path:
        return [*path[path.index(room) :], room]
    for other in ROOMS[room]:
        if found := circle(other, (*path, room)):
            return found
    return []


def room_of(folder):
    """Returns the room of a folder, which is relative to src/; None if no room has it."""
    folder = ALCOVES.get(folder, folder)
    return folder if folder in ROOMS else None


def source_files(root):
    files = [path for top in ("src", "kernels") for path in (root / top).rglob("*")]
    return sorted(path for path in files if path.suffix in (".c", ".h", ".cpp", ".cu", ".cuh"))


def folder_of(path, root):
    """Returns the folder of a file, in the form in which an #include names it."""
    folder = path.parent.relative_to(root).as_posix()
    return "" if folder == "src" else folder.removeprefix("src/")


def includes(path, folder):
    """Yields line and folder for each #include of our own files."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if (found := re.match(r'\s*#\s*include\s+"([^"]+)"', line)) and found[1] not in GENERATED:
            named = pathlib.PurePosixPath(found[1])
            here = named.name == found[1] and (path.parent / found[1]).is_file()
            yield number, folder if here else "" if named.name == found[1] else named.parent.as_posix()


def arrows_read(root, faults):
    """Returns the number of #includes from room to room; appends a fault for each arrow that goes up."""
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
        if path.suffix in (".c", ".cpp") and not path.with_suffix(".h").is_file():
            room, text = folder_of(path, root), path.read_text()
            if not any(re.search(pattern.replace("{room}", room), text, re.M) for pattern in HEADERLESS):
                faults.append(f"{path.relative_to(root)}: has no header of its own")


def circles_check(root, faults):
    """Removes nouns that include no noun of their folder, again and again, and then nouns that no noun includes. The
    nouns that remain are in circles. A header without #pragma once is a template: a part of its includers, and no noun.
    """
    included = collections.defaultdict(lambda: collections.defaultdict(set))
    for path in source_files(root):
        folder, text = folder_of(path, root), path.read_text()
        if path.suffix in (".h", ".cuh") and "#pragma once" not in text:
            continue
        for found in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
            noun = pathlib.PurePosixPath(found)
            if noun.parent.as_posix().removeprefix(".") == folder and noun.stem != path.stem:
                included[path.parent.relative_to(root).as_posix()][path.stem].add(noun.stem)
    for folder, nouns in included.items():
        circles = set(nouns)
        while ends := {noun for noun in circles if not nouns[noun] & circles}:
            circles -= ends
        while ends := {noun for noun in circles if not any(noun in nouns[other] for other in circles)}:
            circles -= ends
        if circles:
            faults.append(f"{folder}: files include each other in a circle: {', '.join(sorted(circles))}")


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
    circles_check(root, faults)
    readmes_check(root, faults)
    arrows_print(arrows)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
