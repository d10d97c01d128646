"""Runs the sweeps of scaling.sh, which documents the settings, and prints their table.

The columns are the time of the sweep without roofs, from the start of the first row to the last record; its median row;
the tail, from the last row of the first rank that finishes to the last record; the mean first row of a rank, in which
libraries start; and the rows a second after the first rows."""

import collections
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

MANIFEST = """[sweep]
device = {device}
[measure]
warmup = 5
iterations = 20
verify = {verify}
[peaks]
memory = dram
compute = fp32
condition = together
launch = no
transfer = no
[conv2d layers]
batch = {batch}
height = 28, 56
width = 56
channels = 32, 64, 128
filters = 64, 128
kernel = 1, 3
stride = 1
precision = fp16, fp32
pass = forward, backward-data, backward-filter
[lstm steps]
batch = {batch}
sequence = 16, 32
features = 32
hidden = 16, 32, 64
precision = fp16, fp32
pass = forward, backward
"""
START = 4.0  # s until the first row of a job; a guess for the first job
COUNTERS = 1.4  # time of a counted sweep over an uncounted sweep; a guess for the first one
SEARCH = 0.3  # share of all time for one search
HEAD = (
    "| GPUs | counters | rows | counted | sweep s | times faster | median row s | over uncounted | tail % "
    "| first row s | rows a second after it, times faster |"
)


def figures_of(journal):
    """Returns the figures of the finished rows; None without rows."""
    ends, firsts, rows = collections.defaultdict(float), {}, collections.Counter()
    starts, walls, counted, failed = [], [], 0, 0
    with open(journal) as lines:
        entries = [json.loads(line) for line in lines if line.endswith("\n")]
    for record in (entry["entry"] for entry in entries if entry["kind"] == "record"):
        failed += record["status"] not in ("measured", "skipped")
        device, wall = record["device_key"], record["wall_time"]
        starts.append(record["start_time"])
        walls.append(wall)
        counted += record.get("counters") == "counted"
        rows[device] += 1
        ends[device] = max(ends[device], starts[-1] + wall)
        firsts[device] = min(firsts.get(device, (starts[-1], wall)), (starts[-1], wall))
    if not starts:
        return None
    last = os.stat(journal).st_mtime  # the record in the last line of the journal
    return {
        "rows": len(starts),
        "failed": failed,
        "counted": counted,
        "sweep": last - min(starts),
        "row": statistics.median(walls),
        "rows_sum": sum(walls),
        "tail": last - min(ends.values()),
        "first": statistics.mean(wall for _, wall in firsts.values()),
        "rate": sum((rows[device] - 1) / max(last - begin - wall, 1e-3) for device, (begin, wall) in firsts.items()),
    }


class Bench:
    def __init__(self, binary, device, verify):
        self.binary, self.device, self.verify = binary, device, verify
        self.batches = os.environ.get("BATCHES", "16").split()
        self.algorithms = os.environ.get("ALGORITHMS", "run")
        self.rounds = int(os.environ.get("ROUNDS", "3"))
        self.whole = float(os.environ.get("SECONDS_IN_ALL", "inf"))
        self.end = time.monotonic() + self.whole
        self.keep = os.environ.get("KEEP")
        self.runs = collections.defaultdict(list)  # times by (GPUs, name)
        self.work = {}  # {name: s of one GPU}
        self.start = START
        self.number = 0

    def left(self):
        return self.end - time.monotonic()

    def expected(self, gpus, name):
        """Returns the expected seconds of a run, from earlier runs."""
        alone = self.work.get(name, COUNTERS * self.work.get("uncounted", 0))
        return self.start + alone / gpus

    def write_manifest(self):
        text = MANIFEST.format(device=self.device, verify=self.verify, batch=", ".join(self.batches))
        with open("sweep.ini", "w") as stream:
            stream.write(text)

    def command(self, gpus, settings):
        command = ["mpirun", "-n", str(gpus), "--oversubscribe", "--bind-to", "none", self.binary, "--quiet"]
        command += ["--overwrite", "--set", f"algorithms={self.algorithms}"]
        for setting in settings:
            command += ["--set", setting]
        return [*command, "sweep.ini"]

    def wait(self, run, share):
        """Returns whether the run ended within this share of all time."""
        limit = min(self.left(), share * self.whole)
        try:
            status = run.wait(None if limit == float("inf") else max(limit, 1))
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGTERM)
            try:
                run.wait(5)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
            return False
        if status not in (0, 3):  # 3: rows failed
            with open("errors") as stream:
                sys.exit(f"the sweep ends with {status}\n{stream.read()}")
        return True

    def run_once(self, gpus, name, settings, share=1):
        """Returns whether the run ended in time."""
        begin = time.monotonic()
        with open("errors", "w") as errors:
            run = subprocess.Popen(self.command(gpus, settings), stdout=subprocess.DEVNULL, stderr=errors)
            done = self.wait(run, share)
        wall = time.monotonic() - begin
        figures = figures_of("sweep.nc.journal") if os.path.exists("sweep.nc.journal") else None
        told = f"{figures['rows']} rows in {figures['sweep']:.2f} s" if figures else "no row"
        if figures and figures["failed"]:
            told += f", {figures['failed']} FAILED"
        print(f"{gpus} GPUs, {name}: {told}, {wall:.1f} s in all{'' if done else ', CUT OFF'}", flush=True)
        if self.keep and figures:
            self.number += 1
            shutil.move("sweep.nc.journal", f"{self.keep}/{self.number:02}-{gpus}-{name.replace(' ', '-')}.journal")
        if done and figures:
            self.runs[gpus, name].append(figures)
            self.work[name] = max(self.work.get(name, 0), figures["rows_sum"])
            self.start = wall - figures["sweep"]
        return done

    def run(self, gpus, name, *settings):
        for _ in range(self.rounds):
            if self.expected(gpus, name) > self.left():
                print(f"{gpus} GPUs, {name}: left out, {self.left():.0f} s are left", flush=True)
                return
            self.run_once(gpus, name, settings)

    def search(self, gpus):
        """Searches algorithms for all later runs; halves the rows until a search ends in time."""
        while not self.run_once(gpus, "searching", ["counters=off"], SEARCH) and len(self.batches) > 1:
            self.batches.pop()
            self.write_manifest()

    def shrink(self, gpus, lines):
        """Halves the rows until the sweep on one GPU and on all GPUs fits into the time."""
        need = sum(self.expected(1, name) + self.start for name in lines)
        if len(self.batches) > 1 and need > self.left():
            print(f"{need:.0f} s are needed, {self.left():.0f} s are left: half as many rows", flush=True)
            self.batches.pop()
            self.write_manifest()
            self.runs.clear()
            self.work.clear()
            self.run(gpus, "uncounted", "counters=off")

    def print_table(self):
        medians = {
            key: {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}
            for key, rounds in self.runs.items()
        }
        print(HEAD + "\n|" + "---|" * (HEAD.count("|") - 1))
        for (gpus, name), figures in sorted(medians.items(), key=lambda item: item[0][0]):
            sweep, rate, faster = figures["sweep"], f"{figures['rate']:.1f}", ""
            if base := medians.get((min(count for count, _ in medians), name)):
                faster = f"{base['sweep'] / sweep:.2f}"
                rate += f", {figures['rate'] / base['rate']:.2f}"
            plain = medians.get((gpus, "uncounted"))
            over = f"{sweep / plain['sweep']:.2f}" if plain else ""
            print(
                f"| {gpus} | {name} | {figures['rows']:.0f} | {figures['counted']:.0f} | {sweep:.2f} | {faster} "
                f"| {figures['row']:.3f} | {over} | {100 * figures['tail'] / sweep:.1f} | {figures['first']:.2f} "
                f"| {rate} |"
            )


def main():
    bench = Bench(*sys.argv[1:4])
    bench.write_manifest()
    together = os.environ.get("TOGETHER", "16 64").split()
    names = {"uncounted": ["counters=off"]}
    if os.environ.get("SINGLE", "yes") == "yes":
        names["one by one"] = ["count_together=1"]
    for rows in together:
        names["in batches" if rows == "default" else f"batches of {rows}"] = (
            [] if rows == "default" else [f"count_together={rows}"]
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("cut off"))
    try:
        if bench.algorithms not in ("run", "search"):
            bench.search(int(sys.argv[4]))
        for number, gpus in enumerate(map(int, sys.argv[4:])):
            for name, settings in names.items():
                bench.run(gpus, name, *settings)
                if number == 0 and name == "uncounted":
                    bench.shrink(gpus, names)
    finally:
        bench.print_table()


if __name__ == "__main__":
    main()
