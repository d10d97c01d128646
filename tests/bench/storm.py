"""One storm: a sweep under mpirun that is killed, and started again with --resume, until it ends with status 0.

Then its rows must be those of an undisturbed run, and nothing may be left."""

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from storm_rows import Journal, netCDF4, rows_of_file

MARK = "ROOFSWEEP_STORM"  # in the environment of every process of a run
PHASES = ("opening", "roofs", "measuring", "publishing")
REQUEST_TIMEOUT = 20  # s, `timeout` of the manifest
OPEN_TIMEOUT = 30  # s, the least time for opening a device
LOCK_WAIT = 10  # s, for a holder of the journal on the same host
END_BOUND = 10  # s, until the last process of a job is gone
START_SPAN = 0.2  # s, a victim that has just been started lives for so long at most
TICK = 0.002  # s
ALL = {"all TERM": signal.SIGTERM, "all INT": signal.SIGINT}  # victims: all processes of a job
STOPPED_SPAN = 0.5  # s
TABLE_ROWS = 200  # that --gather prints at most
CONFIGURATIONS = {"split": 36, "replicate": 20}

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


# ---- the processes of a run, found by the mark in their environment ----


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


def signal_all(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


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
    signal_all([pid for pid, _, _ in processes(mark)], signal.SIGKILL)


# ---- runs ----


class Fault(Exception):
    """Something that roofsweep must never do."""


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
        found = {"launcher": [self.process.pid], "worker": [], "rank": [], "rank 0": [], "folder": [self.process.pid]}
        all_of_it = processes(self.mark)
        for pid, program, rank in all_of_it:
            if program.startswith("roofsweep-worker"):
                found["worker"].append(pid)
            elif program == "roofsweep" and rank is not None:
                found["rank 0" if rank == 0 else "rank"].append(pid)
        found["stopped"] = found["rank"] + found["rank 0"]
        return found | {victim: [pid for pid, _, _ in all_of_it] for victim in ALL}

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
        if victim == "folder":  # rank 0 has opened the journal, and not yet read it
            if phase not in PHASES[1:3]:
                return None
            self.storm.file.parent.rename(self.storm.folder / "gone")
            shutil.rmtree(self.storm.folder / "gone")
            return victim, phase
        if victim in ALL:  # in no order
            signal_all(chance.sample(found[victim], len(found[victim])), ALL[victim])
        elif victim == "stopped":  # the whole job; one of its ranks is killed before it goes on
            stopped = [pid for pid, _, _ in processes(self.mark)]
            signal_all(stopped, signal.SIGSTOP)
            time.sleep(STOPPED_SPAN)
            signal_all([chance.choice(found[victim])], signal.SIGKILL)
            signal_all(stopped, signal.SIGCONT)
        else:
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
        count = CONFIGURATIONS[distribute] // tool.worker["part"]
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
        if victim == "folder":
            phase = {"opening": "roofs", "publishing": "measuring"}.get(phase, phase)
        share = 1 - run.rows / self.expected_rows if phase == "measuring" else 1
        if not run.wait_until(lambda: PHASES.index(run.phase()) >= PHASES.index(phase)):
            return None
        moment = time.monotonic() + self.chance.random() * self.undisturbed.spans[phase] * share
        if not run.wait_until(lambda: time.monotonic() >= moment):
            return None
        return run.kill(victim, self.chance)

    def blow(self, plan):
        """One run. Takes from `plan` what it aims at: a job outlives its workers, and is then aimed at again."""
        if plan[0][0] == "folder":  # only what this run writes may tell its phase
            self.check_ends()
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
        if ("folder", "roofs") in hits or ("folder", "measuring") in hits:
            self.restore_folder(run, status)
        self.check_finished()
        if status != 0 and all(hit[0] == "worker" for hit in hits):
            raise Fault(f"ends with {status} after {hits or 'no kill'}\n{run.tail()}")
        if status != 0 and not self.tool.at_once(self.chance):
            self.check_ends()

    def restore_folder(self, run, status):
        """The journal has gone on in the working folder."""
        spare = self.folder / "sweep.nc.spare-1"
        if status == 0 or not Path(f"{spare}.journal").exists():
            raise Fault(f"ends with {status} after its folder was removed\n{run.tail()}")
        self.file.parent.mkdir()
        os.replace(f"{spare}.journal", self.journal.path)
        spare.unlink(missing_ok=True)

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
        if netCDF4:
            for name in self.file, gathered:
                file_rows = rows_of_file(str(name))
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
            if netCDF4:
                self.check_rows("gathered.nc", rows_of_file(str(gathered)), None)
        return hits

    def clear(self):
        for number in range(1, self.runs + 1):
            end_all(f"{self.name}.{number}")
        shutil.rmtree(self.folder, ignore_errors=True)
