#!/usr/bin/env python3
"""Storms of SIGKILL over whole sweeps, and proof that nothing is lost.

One storm is one sweep under mpirun. It is killed in each phase (opening, roofs, measuring, publishing), each time
another victim (a worker, a rank other than 0, rank 0, the launcher), and restarted with --resume until it ends with
status 0. Then its rows must be those of an undisturbed run, in the journal, in the NetCDF file and in a file that
--gather makes. No process, no temporary file and no wait beyond the bounds below may be left.

Publishing takes milliseconds, so it is killed in a storm of its own as well (--publishing): --gather over and over,
each time killed at a random moment. The file must be whole after each, and the next run takes away what was left.

A scripted worker stands in for a device, so that hundreds of kills are cheap; `cpu` and `cuda` are the real ones.
--programs N storms over a sweep of N programs instead, see program_storm.py; --measuring N kills one sweep N times
while it measures, see measuring_storm.py.

Needs Python alone; the NetCDF file is read by netCDF4, else h5netcdf, else ncdump.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import measuring_storm
import program_storm

PHASES = ("opening", "roofs", "measuring", "publishing")
VICTIMS = ("worker", "rank", "rank 0", "launcher")
MARK = "ROOFSWEEP_STORM"  # in the environment of every process of a run
REQUEST_TIMEOUT = 20  # s, `timeout` of the manifest
OPEN_TIMEOUT = 30  # s, the least time for opening a device
LOCK_WAIT = 10  # s, for a holder of the journal on the same host
END_BOUND = 10  # s, until the last process of a job is gone
START_SPAN = 0.2  # s, a victim that has just been started lives for so long at most
TICK = 0.002  # s
TABLE_ROWS = 300  # that --gather prints

MANIFEST = """[sweep]
device = {device}
distribute = {distribute}
timeout = {timeout} s
[measure]
warmup = 1
iterations = {iterations}
counters = {counters}
{together}verify = {verify}
[peaks]
memory = dram
compute = fp32
launch = yes
transfer = no
[matmul storm]
k = 64
n = 32, 64
m = 16:{last}:+16
"""
# `verify`: a scripted device has no results.
WORKERS = {
    "scripted": {"device": "cuda", "iterations": 3, "verify": "no", "counters": "auto"},
    "cpu": {"device": "cpu", "iterations": 2000, "verify": "yes", "counters": "off"},
    "cuda": {"device": "cuda", "iterations": 200, "verify": "yes", "counters": "auto"},
}
CONFIGURATIONS = {"split": 36, "replicate": 20}


class Fault(Exception):
    """Something that roofsweep must never do."""


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


class Journal:
    """What a journal holds so far, read while it grows."""

    def __init__(self, path):
        self.path = path
        self.counts = collections.Counter()
        self.offset = 0
        self.rest = b""

    def look(self):
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size < self.offset:  # a torn line was cut off
                self.rest = b""
                self.offset = size
            stream.seek(self.offset)
            data = self.rest + stream.read()
            self.offset = stream.tell()
            *lines, self.rest = data.split(b"\n")
            for line in lines:
                kind = re.search(rb'"kind":"(\w+)"', line[:80])
                self.counts[kind.group(1).decode() if kind else "damaged"] += 1
        return self.counts

    def finished(self):
        """What identifies each record that is there: (hash, start time)."""
        with contextlib.suppress(FileNotFoundError):
            lines = Path(self.path).read_bytes().split(b"\n")[:-1]
            entries = [json.loads(line)["entry"] for line in lines if b'"kind":"record"' in line[:80]]
            return {(entry["config_hash"], entry["start_time"]) for entry in entries}
        return set()

    def rows(self):
        """(hash, uuid, status) of each row; the checksums are for --gather to look at."""
        uuids, rows = {}, []
        for line in Path(self.path).read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] == "device":
                uuids[entry["entry"]["key"]] = entry["entry"]["uuid"]
        for line in Path(self.path).read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] == "record":
                record = entry["entry"]
                rows.append((record["config_hash"], uuids[record["device_key"]], record["status"] == "measured"))
        return rows

    def errors(self):
        """Of the rows that failed, why."""
        entries = [json.loads(line) for line in Path(self.path).read_text().splitlines()]
        records = [entry["entry"] for entry in entries if entry["kind"] == "record"]
        return [record.get("error", "") for record in records if record["status"] != "measured"]


def strings_of_dump(text, name):
    body = re.search(rf"^ {name} =(.*?);$", text, re.S | re.M)
    return re.findall(r'"([^"]*)"', body.group(1)) if body else []


def numbers_of_dump(text, name):
    body = re.search(rf"^ {name} =(.*?);$", text, re.S | re.M)
    return [int(number) for number in body.group(1).replace(",", " ").split()] if body else []


def columns_by_ncdump(path):
    names = "config_hash,config_device,status,device_uuid"
    text = subprocess.run(["ncdump", "-v", names, path], capture_output=True, text=True, check=True).stdout
    text = text[text.index("\ndata:") :]
    return (
        strings_of_dump(text, "config_hash"),
        numbers_of_dump(text, "config_device"),
        numbers_of_dump(text, "status"),
        strings_of_dump(text, "device_uuid"),
    )


# The HDF5 library under either module must not be entered by two threads.
ONE_READER = threading.Lock()


def columns_by_module(open_file, path):
    with ONE_READER, open_file(path) as data:
        columns = [data.variables[name][:] for name in ("config_hash", "config_device", "status", "device_uuid")]
    text = [item.decode() if isinstance(item, bytes) else str(item) for item in columns[0]]
    uuids = [item.decode() if isinstance(item, bytes) else str(item) for item in columns[3]]
    return text, [int(item) for item in columns[1]], [int(item) for item in columns[2]], uuids


def choose_reader():
    """A function of a path, or None where nothing here reads NetCDF."""
    with contextlib.suppress(ImportError):
        import netCDF4

        return lambda path: columns_by_module(netCDF4.Dataset, path)
    with contextlib.suppress(ImportError):
        import h5netcdf

        return lambda path: columns_by_module(lambda name: h5netcdf.File(name, "r"), path)
    return columns_by_ncdump if shutil.which("ncdump") else None


def rows_of_file(reader, path):
    hashes, devices, status, uuids = reader(path)
    return [(hashes[i], uuids[devices[i]], status[i] == 0) for i in range(len(hashes))]


class Run:
    """One start of the job."""

    def __init__(self, storm, number, resume):
        self.storm = storm
        self.mark = f"{storm.name}.{number}"
        self.output = storm.folder / f"output.{number}"
        command = [storm.tool.mpirun, "-n", str(storm.tool.ranks), "--oversubscribe", "--bind-to", "none"]
        command += [str(storm.tool.bin / "roofsweep"), "--verbose", "-o", "out/sweep.nc"]
        command += (["--resume"] if resume else []) + ["sweep.ini"]
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", TMPDIR=str(storm.folder / "tmp"))
        environment[MARK] = self.mark
        environment["OMPI_ALLOW_RUN_AS_ROOT"] = environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        before = storm.journal.look()
        self.sessions, self.devices = before["session"], before["device"]
        self.rows = before["record"]
        self.start = self.next_look = time.monotonic()
        self.killed = self.alone = None  # when something was killed; since when the launcher is alone
        with open(self.output, "wb") as stream:
            self.process = subprocess.Popen(
                command,
                cwd=storm.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    def phase(self):
        counts = self.storm.journal.look()
        complete = counts["record"] >= self.storm.expected_rows
        if complete and (self.rows < self.storm.expected_rows or counts["device"] > self.devices):
            return "publishing"
        if counts["device"] > self.devices:
            return "measuring"
        return "roofs" if counts["session"] > self.sessions else "opening"

    def wait_until(self, reached):
        """True once `reached()`, False if the job has ended before; Fault if it takes too long."""
        while not reached():
            if self.process.poll() is not None:
                return False
            self.check_time()
            time.sleep(TICK)
        return True

    def end_hung_launcher(self):
        """Open MPI 4's mpirun can lock itself up at its end, after a rank died in MPI_Init. That is noted."""
        now = time.monotonic()
        if self.killed is None or now < self.next_look:
            return
        self.next_look = now + 1
        if any(pid != self.process.pid for pid, _, _ in processes(self.mark)):
            self.alone = None
        elif self.alone is None:
            self.alone = now
        elif now > self.alone + END_BOUND:
            self.process.kill()
            self.storm.hung_launchers += 1

    def check_time(self):
        limit = self.storm.limit
        self.end_hung_launcher()
        if time.monotonic() - self.start > limit:
            stuck = [describe_process(pid) for pid, _, _ in processes(self.mark)]
            raise Fault(f"still there after {limit:.0f} s\n{self.tail()}\n" + "\n".join(stuck))

    def wait(self):
        self.wait_until(lambda: False)
        return self.process.returncode

    def tail(self):
        lines = self.output.read_text(errors="replace").splitlines()
        return "\n".join("  | " + line for line in lines[-12:])

    def victims(self):
        found = {"launcher": [self.process.pid], "worker": [], "rank": [], "rank 0": []}
        for pid, program, rank in processes(self.mark):
            if program.startswith("roofsweep-worker"):
                found["worker"].append(pid)
            elif program == "roofsweep" and rank is not None:
                found["rank 0" if rank == 0 else "rank"].append(pid)
        return found

    def kill(self, victim, chance):
        """(victim, phase) that was hit, or None. Where there is no worker any more, a rank dies instead."""
        if victim == "worker" and self.phase() == "publishing":
            victim = "rank"
        if not self.victims()[victim]:  # it has not been started yet
            if not self.wait_until(lambda: self.victims()[victim]):
                return None
            time.sleep(START_SPAN * chance.random())
        found = self.victims()
        if not found[victim] or self.process.poll() is not None:
            return None
        phase = self.phase()
        try:
            os.kill(chance.choice(found[victim]), signal.SIGKILL)
        except ProcessLookupError:
            return None
        self.killed = time.monotonic()
        return victim, phase


class Storm:
    def __init__(self, tool, name, distribute, chance, undisturbed=None):
        self.tool, self.name, self.chance, self.undisturbed = tool, name, chance, undisturbed
        self.folder = Path(tempfile.mkdtemp(prefix="storm-", dir=tool.work))
        (self.folder / "out").mkdir()
        (self.folder / "tmp").mkdir()
        self.file = self.folder / "out" / "sweep.nc"
        self.journal = Journal(f"{self.file}.journal")
        self.runs, self.hits, self.log, self.ends = 0, [], [], []
        self.finished, self.given_back = set(), 0  # records so far; rows that were timed, and lost with a worker
        self.hung_launchers = self.swept = 0  # swept: left by a kill, and gone after the next run
        count = CONFIGURATIONS[distribute]
        self.expected_rows = count * (tool.ranks if distribute == "replicate" else 1)
        self.limit = REQUEST_TIMEOUT + 2 * OPEN_TIMEOUT + LOCK_WAIT + END_BOUND
        if undisturbed:
            self.limit += 4 * undisturbed.length
        together = f"count_together = {tool.options.together}\n" if tool.options.together else ""
        text = MANIFEST.format(
            distribute=distribute, timeout=REQUEST_TIMEOUT, last=16 * count // 2, together=together, **tool.worker
        )
        (self.folder / "sweep.ini").write_text(text)

    def start(self):
        self.runs += 1
        return Run(self, self.runs, resume=self.runs > 1)

    def ended(self, run):
        self.ends.append((run.mark, time.monotonic()))
        self.given_back += run.output.read_text(errors="replace").count("lost before it was counted")

    def check_finished(self):
        """No record that was in the journal may ever be gone."""
        finished = self.journal.finished()
        if lost := self.finished - finished:
            raise Fault(f"{len(lost)} rows that were finished are lost")
        self.finished = finished

    def undisturbed_run(self):
        """The rows and how long each phase takes."""
        run = self.start()
        times = [run.start]
        for phase in PHASES[1:]:
            run.wait_until(lambda wanted=phase: PHASES.index(run.phase()) >= PHASES.index(wanted))
            times.append(time.monotonic())
        status = run.wait()
        times.append(time.monotonic())
        self.ended(run)
        if status != 0:
            raise Fault(f"an undisturbed run ends with {status}\n{run.tail()}")
        self.length = times[-1] - times[0]
        self.spans = {phase: times[i + 1] - times[i] for i, phase in enumerate(PHASES)}
        self.rows = self.check(None)
        return self

    def aim(self, run, victim, phase):
        """Kills at a random moment of a phase. Returns what was hit, or None if the run ended before."""
        share = 1 - run.rows / self.expected_rows if phase == "measuring" else 1
        if not run.wait_until(lambda: PHASES.index(run.phase()) >= PHASES.index(phase)):
            return None
        moment = time.monotonic() + self.chance.random() * self.undisturbed.spans[phase] * share
        if not run.wait_until(lambda: time.monotonic() >= moment):
            return None
        return run.kill(victim, self.chance)

    def blow(self, plan):
        """One run. Takes from `plan` what it aims at: a job outlives its workers, and is then aimed at again."""
        run = self.start()
        hits = []
        try:
            while plan:
                hit = self.aim(run, *plan.pop(0))
                hits += [hit] if hit else []
                if hit is None or hit[0] != "worker":
                    break
            status = run.wait()
        finally:
            self.ended(run)
            self.hits += hits
            self.log.append(f"run {self.runs}: {hits or 'no kill'}, status {run.process.poll()}")
        self.swept += len(self.leftovers())
        self.check_finished()
        if status != 0 and all(hit[0] == "worker" for hit in hits):
            raise Fault(f"ends with {status} after {hits or 'no kill'}\n{run.tail()}")
        if status != 0 and not self.tool.at_once(self.chance):
            self.check_ends()

    def finish(self):
        run = self.start()
        status = run.wait()
        self.ended(run)
        if status != 0:
            raise Fault(f"the last --resume ends with {status}\n{run.tail()}")

    def check_ends(self):
        """No process of a run that has ended may be there for longer than END_BOUND."""
        for mark, end in self.ends:
            while left := processes(mark):
                if time.monotonic() > end + END_BOUND:
                    stuck = "\n".join(describe_process(pid) for pid, _, _ in left)
                    raise Fault(f"{len(left)} processes are left {END_BOUND} s after the end of {mark}\n{stuck}")
                time.sleep(0.02)
        self.ends = []

    def check_rows(self, what, rows, expected):
        found = collections.Counter(row[:2] for row in rows)
        unmeasured = sum(not row[2] for row in rows)
        doubled = [row for row, count in found.items() if count > 1]
        if doubled:
            raise Fault(f"{what}: {len(doubled)} rows are there more than once: {doubled[:3]}")
        if unmeasured:
            raise Fault(f"{what}: {unmeasured} rows are not measured")
        if len(rows) != self.expected_rows:
            raise Fault(f"{what}: {len(rows)} rows instead of {self.expected_rows}")
        if expected is not None and set(found) != expected:
            raise Fault(f"{what}: {len(set(found) ^ expected)} rows differ from those of an undisturbed run")
        return set(found)

    def gather(self):
        gathered = self.folder / "gathered.nc"
        command = [str(self.tool.bin / "roofsweep"), "--gather", self.journal.path, "-o", str(gathered)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=self.limit)
        if done.returncode != 0:
            raise Fault(f"--gather ends with {done.returncode}: {done.stderr.strip()}")
        return gathered, done.stdout

    def check(self, expected):
        """The rows, as a set of (hash, uuid), or (hash,) where it does not matter who measured it."""
        self.check_ends()
        split = "distribute = split" in (self.folder / "sweep.ini").read_text()

        def keys(rows):  # with split, who measured it is left to chance
            return [(row[0], "" if split else row[1], row[2]) for row in rows]

        self.check_finished()
        rows = self.journal.rows()
        result = self.check_rows("journal", keys(rows), expected)
        gathered, table = self.gather()
        if table.count("\n") <= min(self.expected_rows, TABLE_ROWS):
            raise Fault(f"--gather prints {table.count(chr(10))} lines for {self.expected_rows} rows")
        if self.tool.reader:
            for name in self.file, gathered:
                file_rows = rows_of_file(self.tool.reader, str(name))
                self.check_rows(name.name, keys(file_rows), result)
                if sorted(file_rows) != sorted(rows):
                    raise Fault(f"{name.name}: its rows differ from the journal's")
        self.check_folder()
        return result

    def leftovers(self):
        """Temporary files of roofsweep wherever it may have put some."""
        folders = [self.folder, self.folder / "out", self.folder / "tmp"]
        return [str(name) for folder in folders for name in folder.glob(".roofsweep-*")]

    def check_folder(self):
        allowed = {"sweep.nc", "sweep.nc.journal"}
        found = {entry.name for entry in (self.folder / "out").iterdir()}
        if found != allowed:
            raise Fault(f"in the output's folder: {sorted(found ^ allowed)}")
        if names := self.leftovers():
            raise Fault(f"temporary files are left: {names}")

    def kill_publishing(self, count):
        """SIGKILLs of --gather, which replaces its file each time. Returns how many hit it."""
        gathered = self.folder / "gathered.nc"
        command = [str(self.tool.bin / "roofsweep"), "--gather", self.journal.path, "-o", str(gathered), "--overwrite"]
        environment = dict(os.environ, TMPDIR=str(self.folder / "tmp"))
        begin = time.monotonic()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        length, hits = time.monotonic() - begin, 0
        for number in range(count):
            if number % 4 == 0:
                gathered.unlink()  # every fourth one finds no file to replace
            run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(length * self.chance.random())
            run.kill()
            hits += run.wait() == -signal.SIGKILL
            self.swept += len(self.leftovers())
            if number % 10 == 9 or not gathered.exists():
                subprocess.run(
                    command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
                )
                if names := self.leftovers():
                    raise Fault(f"the next run does not take away {names}")
            if self.tool.reader:
                self.check_rows("gathered.nc", rows_of_file(self.tool.reader, str(gathered)), None)
        return hits

    def clear(self):
        for number in range(1, self.runs + 1):
            end_all(f"{self.name}.{number}")
        shutil.rmtree(self.folder, ignore_errors=True)


class Tool:
    def __init__(self, options):
        build = Path(options.build).resolve()
        self.ranks, self.options = options.ranks, options
        self.worker = WORKERS[options.worker]
        self.mpirun = os.environ.get("ROOFSWEEP_MPIRUN") or "mpirun"
        self.reader = choose_reader()
        self.work = tempfile.mkdtemp(prefix="storms-")
        self.bin = build / "bin"
        if options.worker == "scripted":
            self.bin = Path(self.work) / "bin"
            self.bin.mkdir()
            shutil.copy(build / "bin" / "roofsweep", self.bin / "roofsweep")
            shutil.copy(build / "tests" / "scripted_worker", self.bin / "roofsweep-worker-cuda")
        self.lock = threading.Lock()
        self.kills, self.storms, self.passed, self.failed = 0, 0, 0, 0
        self.table, self.hung_launchers, self.swept, self.given_back = collections.Counter(), 0, 0, 0

    def at_once(self, chance):
        """Whether the next run starts while the last one may still be ending."""
        return self.options.restart == "at-once" or (self.options.restart == "both" and chance.random() < 0.5)

    def next_storm(self):
        """Its number, or None when there were enough kills."""
        with self.lock:
            if self.kills >= self.options.kills:
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
            plan = [(victims[(number // 2 + i) % len(victims)], phase) for i, phase in enumerate(PHASES)]
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
            return program_storm.main(self, Journal, rows_of_file)
        finally:
            shutil.rmtree(self.work, ignore_errors=True)

    def storm_measuring(self):
        try:
            return measuring_storm.main(self, Storm, Fault)
        finally:
            shutil.rmtree(self.work, ignore_errors=True)

    def main(self):
        if self.options.programs:
            return self.storm_programs()
        if self.options.measuring:
            return self.storm_measuring()
        print(f"seed {self.options.seed}, {self.ranks} ranks, {self.options.worker} workers", flush=True)
        if self.reader is None:
            print("nothing here reads NetCDF: journal, --gather and its table are looked at", flush=True)
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
    parser.add_argument("--limit", type=float, default=600, help="s, of --programs and --measuring")
    parser.add_argument("--measuring", type=int, default=0, help="kills of one sweep while it measures")
    parser.add_argument("--victims", default="worker, rank 0, launcher", help="of --measuring, in turns")
    parser.add_argument("--rows", type=int, default=0, help="of --measuring, even; 0: as many as the workers bear")
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
