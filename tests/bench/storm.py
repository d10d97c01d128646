#!/usr/bin/env python3
"""Sends storms of signals to sweeps, to prove that no row is lost.

A storm is one sweep under mpirun, which is disturbed once in each phase (opening, roofs, measuring, publishing). The
disturbances take turns: SIGKILL to a worker, a rank, rank 0 or the launcher; SIGKILL to a rank of a stopped job;
SIGTERM or SIGINT to all processes of the job; any signal to some of them; removal of the output's folder. --resume
restarts the sweep until it ends with status 0. Then journal, NetCDF file and a file by --gather must have each row of
an undisturbed run once. No process and no temporary file may be left, and no wait may exceed the bounds below.

--publishing N kills --gather N times at random moments, because publishing takes only milliseconds. After each kill the
file must be whole, and the next run must remove temporary files.

--programs N disturbs a sweep of N programs instead. First it sends signals (--signals) to all processes of the job, or
SIGKILL to those named `roofsweep*`. Then it kills workers, reapers and programs (--kills). A killed program must give a
failed row. A program that ends because its job ends must give no row, so that --resume measures the row. A killed
worker must cost the row one attempt.

Scripted workers replace devices by default, so that hundreds of kills are cheap; `cpu` and `cuda` are the real workers.
Without Python's netCDF4 the storm does not check the NetCDF file."""

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

try:
    import netCDF4
except ImportError:
    netCDF4 = None

MARK = "ROOFSWEEP_STORM"  # environment variable of all processes of a run, except programs
PHASES = ("opening", "roofs", "measuring", "publishing")
ALL = {"all TERM": signal.SIGTERM, "all INT": signal.SIGINT}  # victims: all processes of a job
VICTIMS = ("worker", "rank", "rank 0", "launcher", "folder", "stopped", *ALL, "some")  # some: any signal to any process
SIGNALS = sorted(number for number in signal.valid_signals() if number <= signal.SIGRTMIN)
STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
PROGRAM_VICTIMS = ("worker", "reaper", "program")
NAMED = ("rank 0", "rank", "worker")  # roles of processes that are named roofsweep*
REQUEST_TIMEOUT = 20  # s, `timeout` of the manifest
OPEN_TIMEOUT = 30  # s, the least time for opening a device
LOCK_WAIT = 10  # s that roofsweep waits for another process of this host to release the journal
END_BOUND = 10  # s until the last process of a job must be gone, on an idle machine
CONFIGURATIONS = {"split": 36, "replicate": 20}
PAUSE = {"cpu": 0.25, "cuda": 0.8}  # s, mean time between two kills in a sweep of programs

# `verify` is "no" for scripted devices, which have no results. `part` divides the number of configurations; it exceeds
# 1 for a GPU, which counts slowly. `memory` is a cache for CPUs, because the roof of main memory takes seconds in each
# run.
WORKERS = {
    "scripted": {"device": "cuda", "iterations": 3, "verify": "no", "counters": "auto", "part": 1, "memory": "dram"},
    "cpu": {"device": "cpu", "iterations": 2000, "verify": "yes", "counters": "off", "part": 1, "memory": "l2"},
    "cuda": {"device": "cuda", "iterations": 40, "verify": "yes", "counters": "auto", "part": 2, "memory": "dram"},
}
LAYERS = """[sweep]
device = {device}
distribute = {distribute}
timeout = {timeout} s
[measure]
warmup = 1
iterations = {iterations}
counters = {counters}
verify = {verify}
[peaks]
memory = {memory}
compute = fp32
launch = yes
transfer = no
[conv2d storm]
batch = 1
height = 8
width = 8
kernel = 1
filters = 32, 64
channels = 16:{last}:+16
"""
PROGRAMS = """[sweep]
device = {device}
timeout = 60 s
retries = 100
[measure]
counters = off
[peaks]
memory = l2
compute = fp32
condition = together
launch = no
transfer = no
[program storm]
command = sh storm.sh {{n}}
n = 1:{rows}:+1
iterations = 8
"""
# Each program leaves a daemon in another session, and reports its regions. On a GPU it launches kernels if it is
# traced.
TIMED = 'setsid sleep 4711 &\necho "region 0.001" >"$ROOFSWEEP_REPORT/$$"\n'
TRACED = '[ -n "$CUDA_INJECTION64_PATH" ] || exec sleep 0.1\nexec {hostile} usual\n'
SCRIPTS = {"cuda": TIMED + TRACED, "cpu": TIMED + "sleep 0.4\n"}

ONE_READER = threading.Lock()  # two threads must not enter the HDF5 library


class Fault(Exception):
    """Raised for behaviour that roofsweep must never show."""


def processes(folder, mark=None):
    """Returns (pid, role) for each process whose working folder is `folder`. mark: only processes of this run."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{entry}/cwd") != str(folder):
                continue
            words = Path(f"/proc/{entry}/environ").read_bytes().decode(errors="replace").split("\0")
            environment = dict(word.partition("=")[::2] for word in words)
            name = os.path.basename(
                Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
            )
            if mark and environment.get(MARK) != mark:
                continue
            rank = environment.get("OMPI_COMM_WORLD_RANK") or environment.get("PMIX_RANK")
            role = "worker" if name.startswith("roofsweep-worker") else "reaper" if name == "program-reaper" else ""
            if name == "roofsweep" and rank:
                role = "rank 0" if rank == "0" else "rank"
            elif name in ("sh", "hostile", "sleep"):
                role = "program"
            found.append((int(entry), role or name))
    return found


def parent_of(pid):
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def signal_all(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def holds(pid, folder):
    """Whether the process has anything open in `folder`."""
    with contextlib.suppress(OSError):
        return any(os.readlink(link).startswith(f"{folder}/") for link in Path(f"/proc/{pid}/fd").iterdir())
    return False


def describe(found):
    lines = []
    for pid, role in found:
        with contextlib.suppress(OSError):
            state = re.search(r"State:.*", Path(f"/proc/{pid}/status").read_text())
            lines.append(f"  {pid}: {role}, {state.group(0)}, {Path(f'/proc/{pid}/wchan').read_text()}")
    return "\n".join(lines)


class Journal:
    """Reads the entries of a journal, also while the journal grows."""

    def __init__(self, path):
        self.path, self.counts, self.offset, self.rest = path, collections.Counter(), 0, b""

    def look(self):
        """Returns {kind: number of complete lines} for the lines so far."""
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as stream:
            if (size := os.fstat(stream.fileno()).st_size) < self.offset:  # roofsweep has removed an incomplete line
                self.rest, self.offset = b"", size
            stream.seek(self.offset)
            *lines, self.rest = (self.rest + stream.read()).split(b"\n")
            self.offset = stream.tell()
            for line in lines:
                kind = re.search(rb'"kind":"(\w+)"', line[:80])
                self.counts[kind.group(1).decode() if kind else "damaged"] += 1
        return self.counts

    def entries(self, kind):
        with contextlib.suppress(FileNotFoundError):
            lines = Path(self.path).read_bytes().split(b"\n")[:-1]
            return [json.loads(line)["entry"] for line in lines if f'"kind":"{kind}"'.encode() in line[:80]]
        return []

    def rows(self):
        """Returns (hash, uuid of the device, whether the row was measured) for each row. Does not check
        checksums, although --gather does."""
        uuids = {device["key"]: device["uuid"] for device in self.entries("device")}
        records = self.entries("record")
        return [(one["config_hash"], uuids[one["device_key"]], one["status"] == "measured") for one in records]


def rows_of_file(path):
    """Returns the rows of a NetCDF file in the form of Journal.rows."""
    columns = "config_hash", "config_device", "status", "device_uuid"
    with ONE_READER, netCDF4.Dataset(path) as data:
        hashes, devices, status, uuids = (data[name][:] for name in columns)
    return [(hashes[i], uuids[devices[i]], status[i] == 0) for i in range(len(hashes))]


class Run:
    def __init__(self, storm):
        storm.runs += 1
        self.storm, self.mark = storm, f"{storm.name}.{storm.runs}"
        self.output = storm.folder / f"output.{storm.runs}"
        tool = storm.tool
        command = [tool.mpirun, "-n", str(tool.options.ranks), "--oversubscribe", "--bind-to", "none"]
        command += [tool.bin / "roofsweep", "--verbose", "-o", "out/sweep.nc", "sweep.ini"]
        command += ["--resume"] if storm.runs > 1 else []
        self.before = dict(storm.journal.look())
        self.rows = storm.journal.look()["record"]
        self.start = self.next_look = time.monotonic()
        self.killed = self.alone = None  # times: of the last kill, and when all but the launcher had ended
        with open(self.output, "wb") as stream:
            self.process = subprocess.Popen(
                command,
                cwd=storm.folder,
                env=storm.environment | {MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )

    def phase(self):
        counts, expected = self.storm.journal.look(), self.storm.expected_rows
        device = counts["device"] > self.before.get("device", 0)
        if counts["record"] >= expected and (self.rows < expected or device):
            return "publishing"
        if device:
            return "measuring"
        return "roofs" if counts["session"] > self.before.get("session", 0) else "opening"

    def wait_until(self, reached):
        """Waits until reached() is true, and returns True. Returns False if the job ends before. Raises Fault after the
        storm's limit."""
        while not reached():
            if self.process.poll() is not None:
                return False
            self.end_hung_launcher()
            if time.monotonic() - self.start > self.storm.limit:
                stuck = describe(processes(self.storm.folder, self.mark))
                raise Fault(f"still there after {self.storm.limit:.0f} s\n{self.tail()}\n{stuck}")
            time.sleep(0.002)
        return True

    def wait(self):
        self.wait_until(lambda: False)
        self.storm.ends.append((self.mark, time.monotonic()))
        return self.process.returncode

    def end_hung_launcher(self):
        """Ends mpirun if it hangs, as that of Open MPI 4 does after a rank died in MPI_Init, and counts these cases."""
        now = time.monotonic()
        if self.killed is None or now < self.next_look:
            return
        self.next_look = now + 1
        if any(pid != self.process.pid for pid, _ in processes(self.storm.folder, self.mark)):
            self.alone = None
        elif self.alone is None:
            self.alone = now
        elif now > self.alone + END_BOUND:
            self.process.kill()
            self.storm.tool.totals["launchers hung without a rank, and were ended"] += 1

    def tail(self):
        return "\n".join("  | " + line for line in self.output.read_text(errors="replace").splitlines()[-12:])

    def victims(self, victim):
        found = processes(self.storm.folder, self.mark)
        if victim in ("launcher", "folder"):
            return [self.process.pid]
        return [
            pid
            for pid, role in found
            if victim in (*ALL, "some") or role == victim or (victim == "stopped" and "rank" in role)
        ]

    def kill(self, victim, chance):
        """Disturbs the run. Returns (victim, phase), or None if there was nothing to hit. If no worker is left, a rank
        is the victim instead."""
        if victim == "worker" and self.phase() == "publishing":
            victim = "rank"
        if not self.victims(victim):  # the victim has not started yet
            if not self.wait_until(lambda: self.victims(victim)):
                return None
            time.sleep(0.2 * chance.random())
        found, phase = self.victims(victim), self.phase()
        if not found or self.process.poll() is not None or (victim == "folder" and phase not in PHASES[1:3]):
            return None
        if victim == "folder":  # rank 0 has opened the journal, but may not have read it
            (self.storm.folder / "out").rename(self.storm.folder / "gone")
            shutil.rmtree(self.storm.folder / "gone")
            return victim, phase
        if victim in ALL:  # in random order
            signal_all(chance.sample(found, len(found)), ALL[victim])
        elif victim == "some":
            number, some = chance.choice(SIGNALS), chance.sample(found, chance.randint(1, len(found)))
            self.storm.log.append(f"signal {number} to {len(some)} of {len(found)} processes")
            signal_all(some, number)
            if number in STOPS:
                time.sleep(0.5)
                signal_all(some, signal.SIGCONT)
        elif victim == "stopped":  # stops the whole job, kills one rank, and continues the job
            everyone = self.victims("all TERM")
            signal_all(everyone, signal.SIGSTOP)
            time.sleep(0.5)
            signal_all([chance.choice(found)], signal.SIGKILL)
            signal_all(everyone, signal.SIGCONT)
        else:
            signal_all([chance.choice(found)], signal.SIGKILL)
        self.killed = time.monotonic()
        return victim, phase


class Storm:
    """One sweep in a folder of its own."""

    def __init__(self, tool, number, distribute="split", undisturbed=None):
        self.tool, self.undisturbed, self.split = tool, undisturbed, distribute == "split"
        self.name, self.chance = f"{os.getpid()}.{number}", random.Random(f"{tool.options.seed}.{number}")
        self.folder = Path(tempfile.mkdtemp(prefix="storm-", dir=tool.work)).resolve()
        for name in "out", "tmp":
            (self.folder / name).mkdir()
        self.file = self.folder / "out" / "sweep.nc"
        self.journal = Journal(f"{self.file}.journal")
        self.environment = dict(os.environ, OMP_WAIT_POLICY="passive", TMPDIR=str(self.folder / "tmp"))
        self.environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.runs, self.hits, self.log, self.ends, self.finished = 0, [], [], [], set()
        count = CONFIGURATIONS[distribute] // tool.worker["part"]
        self.expected_rows = count * (1 if self.split else tool.options.ranks)
        length = undisturbed.length if undisturbed else 30  # s; limits grow with it, because a busy machine is slow
        self.end_bound = END_BOUND + length
        self.limit = REQUEST_TIMEOUT + 2 * OPEN_TIMEOUT + LOCK_WAIT + END_BOUND + 4 * length
        text = LAYERS.format(distribute=distribute, timeout=REQUEST_TIMEOUT, last=16 * count // 2, **tool.worker)
        (self.folder / "sweep.ini").write_text(text)

    def undisturbed_run(self):
        """Runs the sweep without a disturbance. Sets `rows`, and `spans`, the length of each phase in s."""
        run = Run(self)
        times = [run.start]
        for phase in PHASES[1:]:
            run.wait_until(lambda wanted=phase: PHASES.index(run.phase()) >= PHASES.index(wanted))
            times.append(time.monotonic())
        if run.wait() != 0:
            raise Fault(f"an undisturbed run ends with {run.process.returncode}\n{run.tail()}")
        times.append(time.monotonic())
        self.length = times[-1] - times[0]
        self.spans = {phase: times[i + 1] - times[i] for i, phase in enumerate(PHASES)}
        self.rows = self.check(None)
        return self

    def aim(self, run, victim, phase):
        """Disturbs the run at a random moment of a phase. Returns the hit, or None if the run ended before."""
        if victim == "folder":
            phase = {"opening": "roofs", "publishing": "measuring"}.get(phase, phase)
        share = 1 - run.rows / self.expected_rows if phase == "measuring" else 1
        if not run.wait_until(lambda: PHASES.index(run.phase()) >= PHASES.index(phase)):
            return None
        moment = time.monotonic() + self.chance.random() * self.undisturbed.spans[phase] * share
        return run.kill(victim, self.chance) if run.wait_until(lambda: time.monotonic() >= moment) else None

    def blow(self, plan):
        """Starts one run and disturbs it as `plan` says. A job that survives the death of a worker is disturbed
        again."""
        if plan[0][0] == "folder":  # records show the phase, so earlier runs must have ended
            self.check_ends()
        run, hits = Run(self), []
        while plan:
            hit = self.aim(run, *plan.pop(0))
            hits += [hit] if hit else []
            if hit is None or hit[0] != "worker":
                break
        status = run.wait()
        self.hits += hits
        self.log.append(f"run {self.runs}: {hits or 'no kill'}, status {status}")
        self.tool.totals["temporary files left by SIGKILL, removed by the next run"] += len(self.leftovers())
        lost = run.output.read_text(errors="replace").count("lost before it was counted")
        self.tool.totals["rows lost with a worker before they were counted, and repeated"] += lost
        if any(victim == "folder" for victim, _ in hits):
            self.restore_folder(run, status)
        self.check_finished()
        if status != 0 and all(victim == "worker" for victim, _ in hits):
            raise Fault(f"ends with {status} after {hits or 'no kill'}\n{run.tail()}")
        if status != 0 and self.chance.random() < 0.5:  # else the next run may begin while this one is still ending
            self.check_ends()

    def restore_folder(self, run, status):
        """Moves the journal, which the run has continued in the working folder, back to the output's folder."""
        spare = self.folder / "sweep.nc.spare-1"
        if status == 0 or not Path(f"{spare}.journal").exists():
            raise Fault(f"ends with {status} after its folder was removed\n{run.tail()}")
        self.file.parent.mkdir()
        os.replace(f"{spare}.journal", self.journal.path)
        spare.unlink(missing_ok=True)

    def check_ends(self, marks=True):
        """Raises Fault if a process of a run is left `end_bound` s after the end of the run."""
        for mark, end in self.ends:
            while left := processes(self.folder, mark if marks else None):
                if time.monotonic() > end + self.end_bound:
                    raise Fault(f"processes are left {self.end_bound:.0f} s after {mark}\n{describe(left)}")
                time.sleep(0.02)
        self.ends = []

    def check_finished(self):
        """Raises Fault if a record has disappeared from the journal."""
        finished = {(one["config_hash"], one["start_time"]) for one in self.journal.entries("record")}
        if lost := self.finished - finished:
            raise Fault(f"{len(lost)} rows that were finished are lost")
        self.finished = finished

    def check_rows(self, what, rows, expected):
        """Raises Fault unless each row was measured and occurs once. With `distribute = split` any device may have
        measured the row."""
        found = collections.Counter((one[0], "" if self.split else one[1]) for one in rows)
        doubled, unmeasured = [one for one, count in found.items() if count > 1], sum(not one[2] for one in rows)
        if doubled or unmeasured or len(rows) != self.expected_rows:
            counts = f"{len(rows)} rows of {self.expected_rows}, {unmeasured} not measured, twice: {doubled[:3]}"
            raise Fault(f"{what}: {counts}")
        if expected is not None and set(found) != expected:
            raise Fault(f"{what}: {len(set(found) ^ expected)} rows differ from those of an undisturbed run")
        return set(found)

    def gather(self, *more):
        command = [self.tool.bin / "roofsweep", "--gather", self.journal.path, "-o", "gathered.nc", *more]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def check(self, expected):
        """Checks journal, files and temporary files after the last run. Returns the set of rows."""
        self.check_ends()
        self.check_finished()
        rows = self.journal.rows()
        result = self.check_rows("journal", rows, expected)
        run = self.gather("--overwrite")
        table, log = run.communicate()
        if run.returncode != 0 or table.count("\n") <= self.expected_rows:
            raise Fault(f"--gather ends with {run.returncode}: {log.strip()}; {table.count(chr(10))} lines")
        for path in (self.file, self.folder / "gathered.nc") if netCDF4 else ():
            if sorted(rows_of_file(path)) != sorted(rows):
                raise Fault(f"{path.name}: its rows differ from the journal's")
        if (found := set(os.listdir(self.file.parent))) != {"sweep.nc", "sweep.nc.journal"}:
            raise Fault(f"in the output's folder: {sorted(found)}")
        if names := self.leftovers():
            raise Fault(f"temporary files are left: {names}")
        return result

    def leftovers(self):
        """Returns the temporary files of roofsweep in all folders that it may write to."""
        folders = [self.folder, self.folder / "out", self.folder / "tmp"]
        return [str(name) for folder in folders for name in folder.glob(".roofsweep-*")]

    def kill_publishing(self, count):
        """Kills --gather at random moments. Returns the number of hits."""
        begin, gathered = time.monotonic(), self.folder / "gathered.nc"
        self.gather("--overwrite").communicate()
        length, hits = time.monotonic() - begin, 0
        for number in range(count):
            if number % 4 == 0:
                gathered.unlink()  # so that every fourth run has no file to replace
            run = self.gather("--overwrite")
            time.sleep(length * self.chance.random())
            run.kill()
            run.communicate()
            hits += run.returncode == -signal.SIGKILL
            if number % 10 == 9 or not gathered.exists():
                self.gather("--overwrite").communicate()
                if names := self.leftovers():
                    raise Fault(f"the next run does not remove {names}")
            if netCDF4:
                self.check_rows("gathered.nc", rows_of_file(gathered), None)
        return hits

    def clear(self):
        signal_all([pid for pid, _ in processes(self.folder)], signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


class ProgramStorm(Storm):
    """A sweep of programs. roofsweep removes MARK from their environment, so their working folder identifies them."""

    def __init__(self, tool):
        super().__init__(tool, "programs")
        kind, self.expected_rows = tool.options.worker, tool.options.programs
        self.pause, self.limit = PAUSE[kind], tool.options.limit + END_BOUND
        (self.folder / "sweep.ini").write_text(PROGRAMS.format(device=kind, rows=self.expected_rows))
        hostile = tool.build / "tests" / "hostile"
        (self.folder / "storm.sh").write_text(SCRIPTS[kind].replace("{hostile}", str(hostile)))
        self.over, self.killed = threading.Event(), collections.Counter()

    def signal(self, kind):
        """While programs run, sends one signal to all processes of a run in random order, or SIGKILL to the processes
        named `roofsweep*`, as `pkill -9 roofsweep` does."""
        run = Run(self)
        if not run.wait_until(lambda: any(role == "program" for _, role in processes(self.folder))):
            raise Fault(f"no program ran before a signal; status {run.process.returncode}\n{run.tail()}")
        time.sleep(2 * self.pause * self.chance.random())
        everyone = self.guarded() if kind == "named" else [pid for pid, _ in processes(self.folder)]
        signal_all(self.chance.sample(everyone, len(everyone)), ALL.get(kind, signal.SIGKILL))
        run.killed = time.monotonic()
        run.wait()
        self.check_ends(marks=False)
        self.check_temporary(kind)

    def guarded(self):
        """Stops and returns the processes named `roofsweep*` when each worker with a folder of a program has a reaper.
        (If a worker dies before its reaper runs, the next worker removes the folder.)"""
        while True:
            found = processes(self.folder)
            named = [pid for pid, role in found if role in NAMED]
            signal_all(named, signal.SIGSTOP)
            time.sleep(0.01)  # running system calls end first
            workers = [pid for pid, role in found if role == "worker" and holds(pid, self.folder / "tmp")]
            guarded = {parent_of(pid) for pid, role in processes(self.folder) if role == "reaper"}
            if guarded.issuperset(workers):
                return named
            signal_all(named, signal.SIGCONT)
            time.sleep(0.01)

    def check_temporary(self, what):
        """Raises Fault if a folder of a program is left in TMPDIR. (Folders pmix-* are those of a killed mpirun.)"""
        if left := [name for name in os.listdir(self.folder / "tmp") if not name.startswith("pmix-")]:
            raise Fault(f"left in TMPDIR after {what}: {left}")

    def kill(self):
        """Kills victims of each kind in turn, at random moments after the first measured row."""
        while not self.over.wait(2 * self.pause * self.chance.random()):
            kind = PROGRAM_VICTIMS[self.killed.total() % len(PROGRAM_VICTIMS)]
            everyone = dict(processes(self.folder))
            # If both reaper and worker of a program are killed, its daemons may survive (docs/programs.md).
            found = [
                pid
                for pid, role in everyone.items()
                if role == kind and (kind != "reaper" or everyone.get(parent_of(pid)) == "worker")
            ]
            if found and self.journal.look()["record"]:
                signal_all([self.chance.choice(found)], signal.SIGKILL)
                self.killed[kind] += 1
            if self.killed.total() >= self.tool.options.kills:
                return

    def storm(self):
        for number in range(self.tool.options.signals):
            self.signal((*ALL, "named")[number % (len(ALL) + 1)])
        run = Run(self)
        timer = threading.Timer(self.tool.options.limit, run.process.send_signal, (signal.SIGUSR1,))
        killer = threading.Thread(target=self.kill)
        killer.start()
        timer.start()
        try:
            status = run.wait()
        finally:
            timer.cancel()
            self.over.set()
            killer.join()
        if status not in (0, 3):  # 3: rows failed
            raise Fault(f"the sweep ends with {status}\n{run.tail()}")
        self.check_ends(marks=False)
        rows, records = self.journal.rows(), self.journal.entries("record")
        errors = [record.get("error", "") for record in records if record["status"] != "measured"]
        if other := [text for text in errors if "signal 9" not in text and "killed" not in text.lower()]:
            raise Fault(f"rows failed for another reason: {other}")
        self.check_rows("journal", [(*row[:2], True) for row in rows], None)
        if netCDF4 and sorted(rows_of_file(self.file)) != sorted(rows):
            raise Fault("the file's rows are not the journal's")
        self.check_temporary("the sweep")
        print(f"{len(rows)} rows, {len(errors)} of killed programs; killed: {dict(self.killed)}")


class Tool:
    def __init__(self, options):
        self.options, self.worker, self.build = options, WORKERS[options.worker], Path(options.build).resolve()
        self.mpirun = os.environ.get("ROOFSWEEP_MPIRUN") or "mpirun"
        self.work, self.bin = tempfile.mkdtemp(prefix="storms-"), self.build / "bin"
        if options.worker == "scripted":
            self.bin = Path(self.work) / "bin"
            self.bin.mkdir()
            shutil.copy(self.build / "bin" / "roofsweep", self.bin / "roofsweep")
            shutil.copy(self.build / "tests" / "scripted_worker", self.bin / "roofsweep-worker-cuda")
        self.lock, self.begin = threading.Lock(), time.monotonic()
        self.kills, self.storms, self.ended = 0, 0, collections.Counter()
        self.table, self.totals = collections.Counter(), collections.Counter()

    def guarded(self, storm, work):
        fault = None
        try:
            work(storm)
        except Exception as found:  # also an error of this program itself
            fault = found if isinstance(found, Fault) else f"{type(found).__name__}: {found}"
        with self.lock:
            self.table.update(storm.hits)
            self.ended["failed" if fault else "passed"] += 1
            if fault:
                log = "\n".join(["", *storm.log])
                print(f"FAIL: {storm.name}, seed {self.options.seed}: {fault}{log}\nkept: {storm.folder}", flush=True)
            elif self.ended["passed"] % 10 == 0:
                print(f"{self.table.total()} kills, {dict(self.ended)}", flush=True)
        if fault is None or not self.options.keep:
            storm.clear()

    def blow(self, storm):
        victims = [victim for victim in self.options.victims if victim != "rank" or self.options.ranks > 1]
        first = int(storm.name.split(".")[1])
        plan = [(victims[(first + i) % len(victims)], phase) for i, phase in enumerate(PHASES)]
        while plan:
            storm.blow(plan)
        run = Run(storm)
        if run.wait() != 0:
            raise Fault(f"the last --resume ends with {run.process.returncode}\n{run.tail()}")
        storm.check(storm.undisturbed.rows)
        with self.lock:
            self.kills -= len(PHASES) - len(storm.hits)  # planned disturbances that hit nothing

    def blow_all(self, undisturbed):
        """Runs storms until there were enough kills, or the time limit is reached."""
        while True:
            with self.lock:
                if self.kills >= self.options.kills or time.monotonic() > self.begin + self.options.limit:
                    return
                self.kills += len(PHASES)
                number, self.storms = self.storms, self.storms + 1
            distribute = list(CONFIGURATIONS)[number % 2]
            self.guarded(Storm(self, number, distribute, undisturbed[distribute]), self.blow)

    def main(self):
        options = self.options
        print(f"seed {options.seed}, {options.ranks} ranks, {options.worker} workers", flush=True)
        if options.programs:
            self.guarded(ProgramStorm(self), ProgramStorm.storm)
        else:
            self.main_layers()
        if not (options.keep and self.ended["failed"]):
            shutil.rmtree(self.work, ignore_errors=True)
        for what, count in self.totals.items():
            print(f"{count} {what}")
        print(f"{self.ended['passed']} passed, {self.ended['failed']} failed")
        return 1 if self.ended["failed"] else 0

    def main_layers(self):
        undisturbed = {name: Storm(self, f"undisturbed.{name}", name) for name in CONFIGURATIONS}
        for name, storm in undisturbed.items():
            self.guarded(storm, Storm.undisturbed_run)
            if self.ended["failed"]:
                return
            print(f"{name}: {len(storm.rows)} rows, { ({phase: round(s, 2) for phase, s in storm.spans.items()}) }")
        if self.options.publishing:
            self.guarded(Storm(self, "publishing"), self.publish)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for job in [pool.submit(self.blow_all, undisturbed) for _ in range(self.options.jobs)]:
                job.result()
        print(f"{'kills':10}" + "".join(f"{phase:>12}" for phase in PHASES))
        for victim in VICTIMS:
            print(f"{victim:10}" + "".join(f"{self.table[victim, phase]:12}" for phase in PHASES))

    def publish(self, storm):
        hits = storm.undisturbed_run().kill_publishing(self.options.publishing)
        print(f"--gather was killed {hits} times of {self.options.publishing}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--victims", nargs="+", choices=VICTIMS, default=VICTIMS, help="of --kills, in turn")
    parser.add_argument("--publishing", type=int, default=0, help="kills of --gather, before the storms")
    parser.add_argument("--programs", type=int, default=0, help="rows of programs, on cpu or cuda workers")
    parser.add_argument("--signals", type=int, default=0, help="signals to all processes of a job, with --programs")
    parser.add_argument("--limit", type=float, default=3600, help="s; no storm begins later, a sweep of programs ends")
    parser.add_argument("--worker", choices=list(WORKERS), default="scripted")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="storms at the same time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", default="build", help="folder with bin/, and tests/ for scripted workers")
    parser.add_argument("--keep", action="store_true", help="keep the folders of storms that failed")
    options = parser.parse_args()
    if options.programs and options.worker == "scripted":
        parser.error("--programs: on real workers, cpu or cuda")
    if options.worker == "cpu" and options.ranks > len(os.sched_getaffinity(0)):
        parser.error("CPU ranks that share cores are one device: fewer --ranks")
    return Tool(options).main()


if __name__ == "__main__":
    sys.exit(main())
