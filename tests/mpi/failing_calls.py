#!/usr/bin/env python3
"""Makes each system call of rank 0 fail once, in sweeps of 8 rows with a scripted worker. A run must end with status 0
and all rows in its file, or with an exit status of roofsweep and a message with the text of errno. In both cases
--resume must bring all rows. fail_call.c makes a call fail, and logs the calls of an undisturbed run. Calls from the
same place, such as the many writes of HDF5, are alike: only the first, the middle and the last of them fail, with --all
each of them. Each call of fsync, fdatasync, rename and link fails in one run. There are three sweeps: one without a
launcher; one with two ranks under mpirun; and one that resumes a journal with 4 rows and replaces a file with 4
rows."""

import argparse
import collections
import concurrent.futures
import errno
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import netCDF4

ROWS, LIMIT = 8, 240  # rows of a sweep; s until a run counts as hanging (it takes less than 1 s on an idle machine)
CODES = {"open": errno.EMFILE, "mmap": errno.ENOMEM, "write": errno.ENOSPC}  # errno of failing calls; others: EIO
EACH = ("fsync", "fdatasync", "rename", "link")
MANIFEST = """[sweep]
device = cuda
timeout = 20 s
[measure]
warmup = 1
iterations = 3
verify = no
[peaks]
memory = dram
compute = fp32
launch = no
transfer = no
[conv2d small]
batch = 1
height = 8
width = 8
kernel = 1
channels = 4, 8
filters = 8:32:+8
"""


def rows_of(folder):
    """Returns the number of distinct measured rows in the file. Only one thread may call it, because HDF5 is not
    thread-safe."""
    try:
        with netCDF4.Dataset(folder / "x.nc") as data:
            return len(set(data["config_hash"][:][data["status"][:] == 0]))
    except OSError:
        return 0


class Sweep:
    def __init__(self, work, name, build, launcher=(), resumed=False):
        self.work, self.name, self.program, self.launcher = work, name, work / "bin" / "roofsweep", launcher
        self.preload = {"LD_PRELOAD": str(build / "tests" / "libfail_call.so"), "FAIL_LOG": "calls"}
        self.start = work / f"{name}.start"  # copied for each run
        self.start.mkdir()
        (self.start / "sweep.ini").write_text(MANIFEST)
        if resumed:
            self.run(self.start)
            journal = self.start / "x.nc.journal"
            lines = journal.read_bytes().splitlines(keepends=True)
            counts = itertools.accumulate(b'"kind":"record"' in line[:80] for line in lines)
            journal.write_bytes(b"".join(line for line, records in zip(lines, counts) if records <= ROWS // 2))
            command = [self.program, "--gather", journal, "--overwrite"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, folder, **environment):
        """Returns (exit status, output). The status is None if the run hangs."""
        words = [*self.launcher, self.program, "-q", "-o", "x.nc", "sweep.ini"]
        words += ["--resume"] if (folder / "x.nc.journal").exists() else []
        environment = os.environ | environment | {"TMPDIR": str(folder), "ROOFSWEEP_SIMULATED_PACE": "0"}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with subprocess.Popen(
            words, cwd=folder, env=environment, **pipes, text=True, errors="replace", start_new_session=True
        ) as process:
            try:
                output = process.communicate(timeout=LIMIT)[1]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None, process.communicate()[1]
        return process.returncode, output

    def folder(self, name):
        return Path(shutil.copytree(self.start, self.work / f"{self.name}.{name}"))

    def calls(self, every):
        """Returns (kind, number) for each call that will fail, chosen from the log of an undisturbed run."""
        folder, stacks = self.folder("undisturbed"), collections.defaultdict(list)
        status, output = self.run(folder, **self.preload)
        assert status == 0 and rows_of(folder) == ROWS, output
        for line in (folder / "calls").read_text().splitlines():
            kind, number, stack = line.split(" ", 2)
            stacks[kind, number if kind in EACH or every else stack].append(int(number))
        return [
            (kind, numbers[i])
            for (kind, _), numbers in stacks.items()
            for i in sorted({0, len(numbers) // 2, len(numbers) - 1})
        ]

    def fail(self, kind, number):
        """Runs the sweep with one failing call. Returns (status, fault of roofsweep or "", output, folder of the
        complete file)."""
        folder, code, fault = self.folder(f"{kind}.{number}"), CODES.get(kind, errno.EIO), ""
        status, output = self.run(folder, **self.preload, FAIL_CALL=f"{kind} {number} {code}")
        log = folder / "calls"
        stack = log.read_text() if log.exists() else "no call failed\n"
        # If the process that writes the NetCDF file crashes, the message has no errno.
        causes = [os.strerror(code), *["memory"] * (kind == "mmap"), *["netCDF cannot"] * ("libnetcdf" in stack)]
        if status is None:
            fault = f"hangs for {LIMIT} s"
        elif status not in (0, 1, 2):
            fault = f"status {status}"
        elif status != 0 and not any(cause in output for cause in causes):
            fault = f"status {status} without the cause"
        elif found := re.search(r" rows=(\d+) .* left=(\d+) ", output):
            # Rows in the file that no sync has followed also count as left.
            fault = "" if sum(map(int, found.groups())) >= ROWS else found[0]
        if status != 0:
            again, text = self.run(folder)
            output += f"the next run, status {again}:\n{text}"
            fault += "" if again == 0 else "; the next run fails"
        fault += "".join(f"; {path.name} stays" for path in folder.glob(".*"))
        return status, fault, output + stack, folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=2 * len(os.sched_getaffinity(0)), help="runs mostly wait")
    options = parser.parse_args()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    build = options.build.resolve()
    mpirun = [os.environ.get("ROOFSWEEP_MPIRUN", "mpirun"), "-n", "2", "--oversubscribe", "--bind-to", "none"]
    faults, ends = 0, collections.Counter()
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = Path(work)
        (work / "bin").mkdir()
        shutil.copy(build / "bin" / "roofsweep", work / "bin")
        shutil.copy(build / "tests" / "scripted_worker", work / "bin" / "roofsweep-worker-cuda")
        sweeps = [
            Sweep(work, "single", build),
            Sweep(work, "resumed", build, resumed=True),
            Sweep(work, "two-ranks", build, mpirun),
        ]
        calls = [(sweep, *call) for sweep in sweeps for call in sweep.calls(options.all)]
        runs = [pool.submit(sweep.fail, kind, number) for sweep, kind, number in calls]
        for run, (sweep, kind, number) in zip(runs, calls):
            status, fault, output, folder = run.result()
            fault += "" if (rows := rows_of(folder)) == ROWS else f"; {rows} rows"
            ends[sweep.name, kind, f"status {status}"] += 1
            shutil.rmtree(folder)
            if fault:
                faults += 1
                print(f"{sweep.name}: {kind} {number}: {fault}\n{output}", flush=True)
    for (name, kind, status), count in sorted(ends.items()):
        print(f"{name:9} {kind:9} {status}: {count}")
    print(f"{sum(ends.values())} runs, {faults} faults")
    return faults > 0


if __name__ == "__main__":
    sys.exit(main())
