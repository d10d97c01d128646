"""A sweep of programs whose workers, reapers and programs are killed at random: kills.py --programs.

First all processes of the job get a signal, --signals times, and --resume goes on. Every row must be there once, in the
journal and in the file. A program that was killed is a row that says so, one that ended with its job is none; a killed
worker costs a try. Nothing that a program started may be left running, and no folder of what it handed back."""

import collections
import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from storm import ALL, signal_all
from storm_rows import Journal, netCDF4, rows_of_file

VICTIMS = ("worker", "reaper", "program")
PAUSE = {"cpu": 0.25, "cuda": 0.8}  # s, between two kills: a GPU takes seconds to be opened anew
END_BOUND = 10  # s, until all that was started is gone
PROGRESS = 20  # signals or kills, between two lines

# The roofs are measured once, undisturbed: most of the time that a run takes until its first program.
ROOFS = """[sweep]
device = {device}
timeout = 60 s
retries = 100
[measure]
counters = off
[peaks]
memory = dram
compute = fp32
condition = together
launch = no
transfer = no
"""
MANIFEST = (
    ROOFS
    + """reuse = roofs.nc
[program storm]
command = sh storm.sh {{n}}
n = 1:{rows}:+1
iterations = 8
"""
)
# Each leaves a daemon in a session of its own, and times itself. On a GPU it launches kernels where it is traced.
TIMED = 'setsid sleep 4711 &\necho "region 0.001" >"$ROOFSWEEP_REPORT/$$"\n'
TRACED = '[ -n "$CUDA_INJECTION64_PATH" ] || exec sleep 0.1\nexec {hostile} usual\n'
SCRIPTS = {"cuda": TIMED + TRACED, "cpu": TIMED + "sleep 0.4\n"}


def those_in(folder):
    """(pid, program) of all processes that run there: programs have no mark in their environment."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{entry}/cwd") == str(folder):
                name = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
                found.append((int(entry), os.path.basename(name)))
    return found


def role(program):
    """Which victim it is; None: none."""
    if program.startswith("roofsweep-worker"):
        return "worker"
    if program.startswith("roofsweep-reaper"):
        return "reaper"
    return "program" if program in ("sh", "hostile", "sleep") else None


class Storm:
    def __init__(self, tool):
        self.tool = tool
        self.folder = Path(tempfile.mkdtemp(prefix="programs-", dir=tool.work)).resolve()
        (self.folder / "tmp").mkdir()
        kind = self.kind = tool.options.worker
        hostile = Path(tool.options.build).resolve() / "tests" / "hostile"
        (self.folder / "roofs.ini").write_text(ROOFS.format(device=kind))
        (self.folder / "sweep.ini").write_text(MANIFEST.format(device=kind, rows=tool.options.programs))
        (self.folder / "storm.sh").write_text(SCRIPTS[kind].replace("{hostile}", str(hostile)))
        self.journal = Journal(str(self.folder / "sweep.nc.journal"))
        self.hits, self.over = collections.Counter(), threading.Event()
        self.signals, self.early = 0, []
        self.begin, self.ending = time.monotonic(), {}  # pid -> when it must be gone

    def progress(self, count, what):
        if count % PROGRESS == 0:
            rows, seconds = self.journal.look()["record"], time.monotonic() - self.begin
            print(f"{count} {what} after {seconds:.0f} s, {rows} rows, {len(self.early)} faults", flush=True)

    def kill(self, chance):
        """One victim at random, of each kind in turn, once rows are measured."""
        while not self.over.wait(PAUSE[self.kind] * 2 * chance.random()):
            if not self.journal.look()["record"]:
                continue
            if sum(self.hits.values()) >= self.tool.options.kills:
                return
            kind = VICTIMS[sum(self.hits.values()) % len(VICTIMS)]
            victims = [pid for pid, program in those_in(self.folder) if role(program) == kind]
            if victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    self.hits[kind] += 1
                    self.progress(sum(self.hits.values()), "kills")

    def start(self, stream, name="sweep"):
        command = [self.tool.mpirun, "-n", str(self.tool.ranks), "--oversubscribe", "--bind-to", "none"]
        command += [str(self.tool.bin / "roofsweep"), "--verbose", "-o", f"{name}.nc", f"{name}.ini"]
        command += ["--resume"] if name == "sweep" else []
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", TMPDIR=str(self.folder / "tmp"))
        environment["OMPI_ALLOW_RUN_AS_ROOT"] = environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=stream, stderr=stream)

    def ours(self):
        """(pid, program) of the run: not ranks and launchers that got their signal, where MPI takes 1 to 2 s to end."""
        found = those_in(self.folder)
        self.ending = {pid: self.ending[pid] for pid, _ in found if pid in self.ending}
        return [one for one in found if one[0] not in self.ending]

    def signal(self, chance):
        """One run: while programs run, all of the job get a signal, in no order. Its fault as a text, or None."""
        with open(self.folder / "output", "wb") as stream:
            run = self.start(stream)
        end = time.monotonic() + self.tool.options.limit
        while "program" not in [role(program) for _, program in self.ours()]:
            if run.poll() is not None or time.monotonic() > end:
                return f"no program ran before a signal; exit {run.poll()}, {self.journal.look()['record']} rows"
            time.sleep(0.01)
        # Rows end meanwhile in some of the runs.
        time.sleep(2 * PAUSE[self.kind] * chance.random())
        number = list(ALL.values())[self.signals % len(ALL)]
        everyone = self.ours()
        signal_all([pid for pid, _ in chance.sample(everyone, len(everyone))], number)
        self.signals += 1
        # The next run begins at once where ranks and launchers alone are left, as a batch system may do it.
        end = time.monotonic() + 2 * END_BOUND
        self.ending.update((pid, end) for pid, program in everyone if program in ("roofsweep", "mpirun"))
        while (left := self.ours()) and time.monotonic() < end:
            time.sleep(0.02)
        left += [found for found in those_in(self.folder) if self.ending.get(found[0], end) < time.monotonic()]
        return f"{2 * END_BOUND} s after {number.name} to all there are {left}" if left else None

    def run(self):
        chance = random.Random(self.tool.options.seed)
        with open(self.folder / "output", "wb") as stream:
            if status := self.start(stream, "roofs").wait():
                return status
        for _ in range(self.tool.options.signals):
            if fault := self.signal(chance):
                self.early.append(fault)
                self.clear_processes()
            self.progress(self.signals, "signals")
        killer = threading.Thread(target=self.kill, args=(chance,))
        killer.start()
        try:
            with open(self.folder / "output", "wb") as stream:
                return self.wait(self.start(stream))
        finally:
            self.over.set()
            killer.join()

    def wait(self, done):
        """Its exit status. Out of time the sweep is stopped, and then has what it has measured until then."""
        try:
            return done.wait(self.tool.options.limit)
        except subprocess.TimeoutExpired:
            self.over.set()
            done.send_signal(signal.SIGUSR1)
        try:
            return done.wait(END_BOUND)
        except subprocess.TimeoutExpired:
            done.kill()
            return done.wait()

    def faults(self, status):
        """What is wrong, as texts."""
        yield from self.early
        rows = self.journal.rows()
        hashes = collections.Counter(row[0] for row in rows)
        if status not in (0, 3):  # 3: rows failed
            yield f"the sweep ends with {status}\n" + (self.folder / "output").read_text(errors="replace")[-2000:]
        if len(rows) != self.tool.options.programs or len(hashes) != len(rows):
            yield f"{len(rows)} rows, {len(hashes)} of them different, of {self.tool.options.programs}"
        if netCDF4 and sorted(rows_of_file(str(self.folder / "sweep.nc"))) != sorted(rows):
            yield "the file's rows are not the journal's"
        for text in self.journal.errors():
            if "signal 9" not in text and "killed" not in text.lower():
                yield f"a row failed for another reason: {text}"
        end = time.monotonic() + END_BOUND
        while (left := those_in(self.folder)) and time.monotonic() < end:
            time.sleep(0.05)
        if left:
            yield f"left running: {left}"
        # pmix-*: of a killed mpirun.
        if left := [name for name in os.listdir(self.folder / "tmp") if not name.startswith("pmix-")]:
            yield f"left in TMPDIR: {left}"

    def clear_processes(self):
        signal_all([pid for pid, _ in those_in(self.folder)], signal.SIGKILL)

    def clear(self):
        self.clear_processes()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(tool):
    """0, or 1 with what is wrong."""
    storm = Storm(tool)
    begin = time.monotonic()
    try:
        status = storm.run()
        seconds = time.monotonic() - begin
        faults = list(storm.faults(status))
        rows = storm.journal.rows()
    finally:
        storm.clear()
    hits = ", ".join(f"{storm.hits[kind]} {kind}s" for kind in VICTIMS)
    failed = sum(not row[2] for row in rows)
    print(f"{len(rows)} rows of programs on {tool.ranks} {tool.options.worker} workers, {seconds:.0f} s, exit {status}")
    print(f"{storm.signals} signals to all; killed: {hits}; {failed} rows say that their program was")
    for fault in faults:
        print(f"FAIL: {fault}")
    return 1 if faults else 0
