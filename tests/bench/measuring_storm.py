"""One sweep that is killed while it measures, again and again: kills.py --measuring N.

Workers of the age of YOUNG and more, ranks, rank 0 and the launcher in turns, or those of --victims. A job outlives its
workers; after the others it is started again with --resume. In the end each row must be there once, measured, in the
journal and in the files. Kills end in time for the sweep to end within --limit."""

import collections
import os
import random
import re
import signal
import time

from storm import Fault, Storm

YOUNG = {"scripted": 0.1, "cpu": 0.3, "cuda": 2.0}  # s, a worker that opens its device is not killed
PAUSE = {"scripted": 0.1, "cpu": 0.3, "cuda": 0.7}  # s, in the mean, between kills of workers
ITERATIONS = {"scripted": 3, "cpu": 500, "cuda": 20}
ROWS = {"scripted": 400, "cpu": 60, "cuda": 400}
RESERVE = {"scripted": 10, "cpu": 20, "cuda": 18}  # s, for the last start and the rest of the sweep


def manifest(text, rows, iterations):
    """kills.py's, of other and shorter rows, and with as many tries as there may be kills."""
    head, _, _ = text.partition("[matmul storm]")
    head = re.sub(r"iterations = \d+", f"iterations = {iterations}", head)
    last = 16 * max(1, rows // 2)
    return head.replace("[sweep]\n", "[sweep]\nretries = 100\n") + (
        f"[matmul storm]\nk = 64\nn = 32, 64\nm = 16:{last}:+16\n"
    )


class Killer:
    def __init__(self, tool, storm, victims):
        self.tool, self.storm, self.victims = tool, storm, victims
        self.kind = tool.options.worker
        self.chance = random.Random(tool.options.seed)
        self.hits = collections.Counter()
        self.seen = {}  # when a worker was first seen, by pid
        self.end = time.monotonic() + tool.options.limit
        self.last = self.end - RESERVE[self.kind]

    def more(self):
        return sum(self.hits.values()) < self.tool.options.measuring and time.monotonic() < self.last

    def grown(self, pids):
        now = time.monotonic()
        return [pid for pid in pids if now - self.seen.setdefault(pid, now) >= YOUNG[self.kind]]

    def kill(self, run, victim):
        """Whether it was hit."""
        pids = run.victims()[victim]
        pids = self.grown(pids) if victim == "worker" else pids
        if not pids:
            return False
        try:
            os.kill(self.chance.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            return False
        run.killed = time.monotonic()
        self.hits[victim] += 1
        return True

    def pause(self, run):
        """False: the job has ended meanwhile."""
        moment = time.monotonic() + 2 * PAUSE[self.kind] * self.chance.random()
        return run.wait_until(lambda: time.monotonic() >= moment)

    def aim(self, run):
        """One start of the job, until it ends or something but a worker is killed."""
        if not run.wait_until(lambda: run.phase() == "measuring"):
            return
        for pid in run.victims()["worker"]:
            self.seen[pid] = -YOUNG[self.kind]  # it has measured roofs
        while self.more() and self.pause(run) and run.phase() == "measuring":
            victim = self.victims[sum(self.hits.values()) % len(self.victims)]
            if self.kill(run, victim) and victim != "worker":
                return


def storm_until_done(killer, storm):
    while True:
        storm.limit = killer.end - 3 - time.monotonic()
        run = storm.start()
        try:
            killer.aim(run)
            status = run.wait()
        finally:
            storm.ended(run)
        storm.swept += len(storm.leftovers())
        storm.check_finished()
        if status == 0:
            return
        if run.killed is None:
            raise Fault(f"a run that nobody disturbed ends with {status}\n{run.tail()}")
        storm.check_ends()


def main(tool):
    """0, or 1 with what is wrong."""
    options, begin, fault = tool.options, time.monotonic(), None
    storm = Storm(tool, f"{os.getpid()}.measuring", "split", random.Random(options.seed))
    rows = storm.expected_rows = options.rows or ROWS[options.worker]
    path = storm.folder / "sweep.ini"
    path.write_text(manifest(path.read_text(), rows, ITERATIONS[options.worker]))
    killer = Killer(tool, storm, [name.strip() for name in options.victims.split(",")])
    try:
        storm_until_done(killer, storm)
        storm.check(None)
    except Fault as found:
        fault = found
    finally:
        records = storm.journal.look()["record"]
        if not (fault and options.keep):
            storm.clear()
    hits = ", ".join(f"{name} {killer.hits[name]}" for name in dict.fromkeys(killer.victims))
    print(f"{records} of {rows} rows on {tool.ranks} {options.worker} workers, {storm.runs} starts, "
          f"{time.monotonic() - begin:.0f} s")  # fmt: skip
    print(f"killed: {hits}; {storm.given_back} rows were lost with a worker before they were counted")
    print(f"FAIL: {fault}" if fault else "each row is there once, measured; no finished row was lost")
    return 1 if fault else 0
