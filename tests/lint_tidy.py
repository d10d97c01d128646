#!/usr/bin/env python3
"""Runs clang-tidy over changed C files of a build folder's compile_commands.json, one on each core.

Usage: lint_tidy.py CLANG_TIDY BUILD [--all]

Checks files that differ from the base: the commit at which the branch left main, or on main the previous commit. A
changed header is checked with one file that includes it. --all checks every file; CI uses --all each week.
BUILD/lint-tidy remembers files that passed by a hash of their preprocessed text. Exit status 0, 1 with the findings, 2
if a command fails."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KNOWN = ROOT / "tests/lint_tidy.h"


def output(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def commands_read(build):
    """Returns one compile command for each C file: that of the programs, which come before the tests."""
    commands = json.loads((build / "compile_commands.json").read_text())
    found = {command["file"]: command for command in reversed(commands) if command["file"].endswith(".c")}
    return [found[file] for file in sorted(found)]


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False).stdout.split()


def changed_files():
    """Returns the paths that differ from the base; None without a history."""
    head = git("rev-parse", "HEAD")
    bases = [git("merge-base", "HEAD", main) for main in ("origin/main", "main")]
    base = next((found for found in bases if found and found != head), git("rev-parse", "HEAD~1"))
    if len(base) != 1 or base[0] == "HEAD~1":
        return None
    names = git("diff", "--name-only", *base) + git("ls-files", "--others", "--exclude-standard")
    return {str(ROOT / name) for name in names}


def commands_changed(commands, changed):
    """Returns the commands of changed files; for a header, of its own .c file, or else of a file that includes it."""
    chosen = {command["file"] for command in commands} & changed
    for header in sorted(name for name in changed if name.endswith(".h")):
        include = re.compile(rf'#include "([\w/]*/)?{re.escape(os.path.basename(header))}"')
        readers = [c["file"] for c in commands if include.search(pathlib.Path(c["file"]).read_text())]
        readers.sort(key=lambda reader: reader != header[:-1] + "c")
        if not chosen & set(readers):
            chosen |= set(readers[:1])
    return [command for command in commands if command["file"] in chosen]


def arguments(command):
    words = command["arguments"] if "arguments" in command else shlex.split(command["command"])
    return words[1:] if pathlib.Path(words[0]).name == "ccache" else words


def preprocessed(command):
    """Returns the preprocessed text with its comments, which hold NOLINT."""
    words = arguments(command)
    output_at = words.index("-o")
    words = words[:output_at] + words[output_at + 2 :]
    return output([*[word for word in words if word != "-c"], "-E", "-CC"], cwd=command["directory"])


class Tidy:
    def __init__(self, program, build):
        self.build = build
        self.passed = build / "lint-tidy"
        self.passed.mkdir(exist_ok=True)
        # Searches GCC's own headers, such as omp.h, after clang's headers.
        headers = output(["gcc", "-print-file-name=include"]).strip()
        self.command = [program, "-p", str(build), "--quiet", f"--extra-arg=-idirafter{headers}"]
        self.command += ["--extra-arg=-Wno-unknown-warning-option", f"--extra-arg=-include{KNOWN}"]
        configs = [path.read_text() for path in (ROOT / ".clang-tidy", ROOT / "tests/.clang-tidy", KNOWN)]
        self.salt = output([program, "--version"]) + "".join(configs) + str(self.command)

    def check(self, command):
        try:
            text = preprocessed(command)
        except subprocess.CalledProcessError as error:
            return f"{command['file']}: {error.stderr}"
        key = hashlib.sha256((self.salt + shlex.join(arguments(command)) + text).encode()).hexdigest()
        if (self.passed / key).exists():
            return ""
        result = subprocess.run([*self.command, command["file"]], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            return result.stdout + result.stderr
        (self.passed / key).touch()
        return ""


def main():
    build = pathlib.Path(sys.argv[2]).resolve()
    tidy, commands = Tidy(sys.argv[1], build), commands_read(build)
    changed = None if "--all" in sys.argv[3:] else changed_files()
    if changed is not None:
        commands = commands_changed(commands, changed)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        faults = [fault for fault in pool.map(tidy.check, commands) if fault]
    for fault in faults:
        print(fault)
    print(f"{len(commands)} files, {len(faults)} of them with findings")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
