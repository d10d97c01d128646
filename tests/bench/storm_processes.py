"""The processes of a run, found by a mark in their environment: looked at, described, ended."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

MARK = "ROOFSWEEP_STORM"  # in the environment of every process of a run


def environment_of(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended, or is another user's


def variable(environment, name):
    prefix = name.encode() + b"="
    return next((item[len(prefix) :].decode() for item in environment if item.startswith(prefix)), None)


def program_of(pid):
    try:
        return os.path.basename(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode())
    except OSError:
        return ""


def processes(mark):
    """(pid, program, rank or None) of all processes of a run; zombies have no environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            environment = environment_of(entry)
            if variable(environment, MARK) == mark:
                rank = variable(environment, "OMPI_COMM_WORLD_RANK") or variable(environment, "PMIX_RANK")
                found.append((int(entry), program_of(entry), int(rank) if rank else None))
    return found


def describe_process(pid):
    lines = [f"pid {pid}: {program_of(pid)}"]
    for name in "wchan", "stack", "syscall":
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/{name}").read_text().strip()
            lines.append(f"  {name}: {text}")
    with contextlib.suppress(OSError):
        state = re.search(r"State:.*", Path(f"/proc/{pid}/status").read_text())
        lines.append(f"  {state.group(0)}" if state else "")
    if shutil.which("gdb"):
        command = ["gdb", "-p", str(pid), "-batch", "-ex", "bt 20"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            trace = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20).stdout
            lines += ["  " + line for line in trace.splitlines() if line.startswith("#")]
    return "\n".join(lines)


def end_all(mark):
    for pid, _, _ in processes(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
