#!/usr/bin/env python3
"""Storms of SIGKILL over whole sweeps, and proof that nothing is lost.

One storm is one sweep under mpirun. It is killed in each phase (opening, roofs, measuring, publishing), each time
another victim (a worker, a rank other than 0, rank 0, the launcher; a rank of a job that is stopped; all processes of
the job, by SIGTERM or SIGINT; or the output's folder is removed), and restarted with --resume until it ends with status
0. Then its rows must be those of an undisturbed run, in the journal, in the NetCDF file and in a file that --gather
makes. No process and no temporary file may be left, and no wait may go beyond the bounds of storm.py.

Publishing takes milliseconds, so it is killed in a storm of its own as well (--publishing): --gather over and over,
each time killed at a random moment. The file must be whole after each, and the next run takes away what was left.

A scripted worker stands in for a device, so that hundreds of kills are cheap; `cpu` and `cuda` are the real ones.
--programs N storms over a sweep of N programs instead, see program_storm.py.

Without Python's netCDF4 the journal, --gather and its table are looked at, and no NetCDF file.
"""

import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import program_storm
from storm import ALL, CONFIGURATIONS, END_BOUND, PHASES, Fault, Storm, end_all
from storm_rows import netCDF4

# folder: the output's, which is removed
VICTIMS = ("worker", "rank", "rank 0", "launcher", "folder", "stopped", *ALL)
# `verify`: a scripted device has no results. `part` of CONFIGURATIONS: a GPU is slower to count. `memory`: a roof of a
# CPU's main memory takes seconds in each run, one of its cache does not.
WORKERS = {
    "scripted": {"device": "cuda", "iterations": 3, "verify": "no", "counters": "auto", "part": 1, "memory": "dram"},
    "cpu": {"device": "cpu", "iterations": 2000, "verify": "yes", "counters": "off", "part": 1, "memory": "l2"},
    "cuda": {"device": "cuda", "iterations": 40, "verify": "yes", "counters": "auto", "part": 2, "memory": "dram"},
}


class Tool:
    def __init__(self, options):
        build = Path(options.build).resolve()
        self.ranks, self.options = options.ranks, options
        self.worker = WORKERS[options.worker]
        self.mpirun = os.environ.get("ROOFSWEEP_MPIRUN") or "mpirun"
        self.work = tempfile.mkdtemp(prefix="storms-")
        self.bin = build / "bin"
        if options.worker == "scripted":
            self.bin = Path(self.work) / "bin"
            self.bin.mkdir()
            shutil.copy(build / "bin" / "roofsweep", self.bin / "roofsweep")
            shutil.copy(build / "tests" / "scripted_worker", self.bin / "roofsweep-worker-cuda")
        self.lock, self.begin = threading.Lock(), time.monotonic()
        self.kills, self.storms, self.passed, self.failed = 0, 0, 0, 0
        self.table, self.hung_launchers, self.swept, self.given_back = collections.Counter(), 0, 0, 0

    def at_once(self, chance):
        """Whether the next run starts while the last one may still be ending."""
        return self.options.restart == "at-once" or (self.options.restart == "both" and chance.random() < 0.5)

    def next_storm(self):
        """Its number, or None when there were enough kills, or time is up."""
        with self.lock:
            if self.kills >= self.options.kills or time.monotonic() > self.begin + self.options.limit:
                return None
            self.kills += len(PHASES)  # planned; those that miss are given back
            self.storms += 1
            return self.storms - 1

    def note(self, storm, missed, fault):
        with self.lock:
            self.table.update(storm.hits)
            self.hung_launchers += storm.hung_launchers
            self.swept += storm.swept
            self.given_back += storm.given_back
            self.kills -= missed
            self.passed += fault is None
            self.failed += fault is not None
            if (self.passed + self.failed) % 10 == 0:
                print(f"{self.table.total()} kills, {self.passed} passed, {self.failed} failed", flush=True)
            if fault is not None:
                kept = f"; kept: {storm.folder}" if self.options.keep else ""
                print(f"FAIL: {storm.name}, seed {self.options.seed}: {fault}{kept}")
                print("\n".join("  " + line for line in storm.log), flush=True)

    def run_storm(self, number, undisturbed):
        chance = random.Random(f"{self.options.seed}.{number}")
        distribute = ("split", "replicate")[number % 2]
        name = f"{os.getpid()}.{number}.{distribute}"
        storm = Storm(self, name, distribute, chance, undisturbed[distribute])
        fault = None
        try:
            victims = [victim for victim in VICTIMS if victim != "rank" or self.ranks > 1]
            plan = [(victims[(number + i) % len(victims)], phase) for i, phase in enumerate(PHASES)]
            while plan:
                storm.blow(plan)
            storm.finish()
            storm.check(undisturbed[distribute].rows)
        except Fault as found:
            fault = found
        except Exception as found:  # what the tool did not foresee is a failure, too
            fault = f"{type(found).__name__}: {found}"
        missed = 0 if fault else len(PHASES) - len(storm.hits)
        self.note(storm, missed, fault)
        if fault and self.options.keep:
            for run in range(1, storm.runs + 1):
                end_all(f"{storm.name}.{run}")
        else:
            storm.clear()

    def run_storms(self, undisturbed):
        while (number := self.next_storm()) is not None:
            self.run_storm(number, undisturbed)

    def calibrate(self):
        undisturbed = {}
        for distribute in CONFIGURATIONS:
            storm = Storm(self, f"{os.getpid()}.undisturbed.{distribute}", distribute, random.Random(0))
            try:
                undisturbed[distribute] = storm.undisturbed_run()
            finally:
                storm.clear()
            spans = ", ".join(f"{phase} {span:.2f} s" for phase, span in storm.spans.items())
            print(f"undisturbed, {distribute}: {len(storm.rows)} rows, {spans}", flush=True)
        return undisturbed

    def storm_publishing(self):
        if not self.options.publishing:
            return
        storm = Storm(self, f"{os.getpid()}.publishing", "split", random.Random(f"{self.options.seed}.publishing"))
        try:
            storm.undisturbed_run()
            hits = storm.kill_publishing(self.options.publishing)
            print(f"--gather was killed {hits} times of {self.options.publishing}", flush=True)
            self.swept += storm.swept
            self.given_back += storm.given_back
        finally:
            storm.clear()

    def print_table(self):
        print(f"{'kills':10}" + "".join(f"{phase:>12}" for phase in PHASES) + f"{'all':>8}")
        for victim in VICTIMS:
            row = [self.table[victim, phase] for phase in PHASES]
            print(f"{victim:10}" + "".join(f"{count:12}" for count in row) + f"{sum(row):8}")
        row = [sum(self.table[victim, phase] for victim in VICTIMS) for phase in PHASES]
        print(f"{'all':10}" + "".join(f"{count:12}" for count in row) + f"{sum(row):8}")

    def storm_programs(self):
        try:
            return program_storm.main(self)
        finally:
            shutil.rmtree(self.work, ignore_errors=True)

    def main(self):
        if self.options.programs:
            return self.storm_programs()
        print(f"seed {self.options.seed}, {self.ranks} ranks, {self.options.worker} workers", flush=True)
        if netCDF4 is None:
            print("no netCDF4 here: journal, --gather and its table are looked at", flush=True)
        try:
            self.storm_publishing()
            undisturbed = self.calibrate()
            with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
                for job in [pool.submit(self.run_storms, undisturbed) for _ in range(self.options.jobs)]:
                    job.result()
        except Fault as fault:
            self.failed += 1
            print(f"FAIL: {fault}")
        finally:
            if not (self.options.keep and self.failed):
                shutil.rmtree(self.work, ignore_errors=True)
        self.print_table()
        if self.hung_launchers:
            print(f"{self.hung_launchers} launchers hung with no rank left for {END_BOUND} s, and were ended")
        if self.given_back:
            print(f"{self.given_back} rows were lost with a worker before they were counted, and handed out again")
        if self.swept:
            print(f"{self.swept} temporary files were left by SIGKILLs, and taken away by the next run")
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--publishing", type=int, default=0, help="kills of --gather, before the storms")
    parser.add_argument("--programs", type=int, default=0, help="rows of programs, on cpu or cuda workers")
    parser.add_argument("--signals", type=int, default=0, help="to all processes of a job, of --programs")
    parser.add_argument("--limit", type=float, default=3600, help="s: no storm begins later, or the sweep ends")
    parser.add_argument("--worker", choices=list(WORKERS), default="scripted")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--together", type=int, default=0, help="rows that are counted together; 0: the device's")
    parser.add_argument("--jobs", type=int, default=2, help="storms at the same time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", default="build", help="folder with bin/, and tests/ for scripted workers")
    parser.add_argument("--restart", choices=["at-once", "settled", "both"], default="both")
    parser.add_argument("--keep", action="store_true", help="keep the folders of storms that failed")
    options = parser.parse_args()
    if options.ranks < 1:
        parser.error("--ranks: at least 1; a rank other than 0 is only killed where there is one")
    if options.programs and options.worker == "scripted":
        parser.error("--programs: on real workers, cpu or cuda")
    if options.worker == "cpu" and options.ranks > len(os.sched_getaffinity(0)):
        parser.error("CPU ranks that share cores are one device: fewer --ranks")
    return options


if __name__ == "__main__":
    sys.exit(Tool(parse_options()).main())
