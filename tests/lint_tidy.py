#!/usr/bin/env python3
"""Runs clang-tidy over the C files of a build folder's compile_commands.json, one on each core.

Usage: lint_tidy.py CLANG_TIDY BUILD

What passed is remembered in BUILD/lint-tidy by its preprocessed text, so that a second run looks at what changed only.
Exit status 0, 1 with what clang-tidy found, 2 if something cannot be run."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KNOWN = ROOT / "tests/lint_tidy.h"


def output(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def commands_read(build):
    """The commands that compile our C files, each file once: as the programs have it, which come before the tests."""
    commands = json.loads((build / "compile_commands.json").read_text())
    found = {command["file"]: command for command in reversed(commands) if command["file"].endswith(".c")}
    return [found[file] for file in sorted(found)]


def arguments(command):
    words = command["arguments"] if "arguments" in command else shlex.split(command["command"])
    return words[1:] if pathlib.Path(words[0]).name == "ccache" else words


def preprocessed(command):
    """The text with its comments (they hold NOLINT), and nothing written."""
    words = arguments(command)
    output_at = words.index("-o")
    words = words[:output_at] + words[output_at + 2 :]
    return output([*[word for word in words if word != "-c"], "-E", "-CC"], cwd=command["directory"])


class Tidy:
    def __init__(self, program, build):
        self.build = build
        self.passed = build / "lint-tidy"
        self.passed.mkdir(exist_ok=True)
        # GCC's own headers, such as omp.h, after clang's.
        headers = output(["gcc", "-print-file-name=include"]).strip()
        self.command = [program, "-p", str(build), "--quiet", f"--extra-arg=-idirafter{headers}"]
        self.command += ["--extra-arg=-Wno-unknown-warning-option", f"--extra-arg=-include{KNOWN}"]
        configs = [path.read_text() for path in (ROOT / ".clang-tidy", ROOT / "tests/.clang-tidy", KNOWN)]
        self.salt = output([program, "--version"]) + "".join(configs) + str(self.command)

    def check(self, command):
        """What is wrong with one file, or ''."""
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
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        faults = [fault for fault in pool.map(tidy.check, commands) if fault]
    for fault in faults:
        print(fault)
    print(f"{len(commands)} files, {len(faults)} of them with findings")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
