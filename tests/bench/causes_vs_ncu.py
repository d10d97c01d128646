"""Compares activities of kernels (counters = causes) with those of Nsight Compute, and prints the cost of both
profilers.

Usage: causes_vs_ncu.py WORKER

The worker and ncu profile the longest kernel of each row, with cold caches and with the algorithm that the worker
chose. The worker measures REPEATS times, ncu profiles LAUNCHES launches. Prints for each activity the range of the
worker's values and of ncu's, in per cent. The exit status is 1 if the two ranges of an activity are apart by more than
1 % of the value and more than 1 point, or by more than 2 points if the activity is relative to the elapsed time. The
two profilers differ in three ways, which are corrected:
- ncu divides by the length of its range, which is longer than the kernel; the worker divides by the traced time of the
  kernel. ncu's value is scaled by the quotient of the two times.
- ncu's flush of the caches leaves 2.4 MB in L2, which are written to memory while the kernel runs. So `dram` is
  compared in a separate run of ncu with one pass and without ncu's flush; the worker's flush prepares the launch.
- The clocks differ by up to a tenth (tensor units at full power). The share of active cycles does not depend on the
  clock if a kernel never waits for memory, and is proportional to 1/clock if it only waits. So ncu's range is widened
  by the quotient of the clocks. `multiprocessors` is widened, too, because the time that a kernel takes to start does
  not depend on the clock.
Rows of several kernels are printed but not judged, because ncu flushes the caches between kernels and the worker does
not. The status is 77 without ncu. Needs a GPU with readable counters, and four minutes."""

import csv
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
import time

from worker import WorkerProcess

ROWS = [
    "conv2d precision=fp32 layout=nchw",
    "conv2d precision=fp32 pass=backward-filter",
    "conv2d precision=fp32 pass=backward-filter filters=256",
    "conv2d precision=tf32",
    "conv2d precision=fp16 filters=256",
    "conv2d precision=fp16 kernel=9",
    "conv2d precision=fp16 pass=backward-data",
    "conv2d precision=fp16 pass=backward-data filters=512",
    "lstm precision=fp16 implementation=persistent hidden=256 features=128 sequence=128",
    "matmul precision=fp16",
    "conv2d precision=fp32 algorithm=fft-tiling kernel=7 layout=nchw",
    "conv2d precision=fp32 pass=backward-data filters=512",
    "matmul precision=fp32",
    "matmul precision=tf32",
    "matmul precision=fp64",
    "elementwise",
    "elementwise operation=sigmoid precision=fp16",
    "elementwise operation=add precision=fp64",
    "softmax",
    "softmax implementation=plain precision=bf16",
    "norm implementation=plain",
    "pool",
    "pool operation=average precision=fp16",
    "attention precision=fp16",
    "compute-loop precision=fp64",
]
BUSY = {
    "time": "gpu__time_duration.sum",
    "clock": "sm__cycles_elapsed.avg.per_second",
    "l2": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "data_pipe": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fp64": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    "fma": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "threads": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "multiprocessors": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
}
SINGLE_PASS = {"time": "gpu__time_duration.sum", "dram": "dram__bytes.avg.pct_of_peak_sustained_elapsed"}
ELAPSED = ("dram", "l2", "multiprocessors")  # activities relative to the elapsed time
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
ALGORITHM = ("algorithm", "algorithm_id", "algorithm_launches", "algorithm_origin")
REPEATS = 3  # measurements of each row by the worker
LAUNCHES, LIMIT = 3, 30  # launches that one run of ncu profiles; time limit of the run in s


def algorithm_of(record):
    choice = {name: record[name] for name in ALGORITHM if name in record}
    return {"algorithm": choice} if "algorithm_origin" in choice else {}


def measured(worker, counters, known):
    begin, replies = time.monotonic(), []
    for row, record in zip(ROWS, known):
        asked = {"configuration": f"{row} cache=cold", "counters": counters, "count_later": True}
        replies.append(worker.ask(op="measure", **asked, **algorithm_of(record)))
    replies = [worker.ask(op="count") if reply["reply"] == "timed" else reply for reply in replies]
    seconds = (time.monotonic() - begin) / len(ROWS)
    for reply in replies:
        wanted = ("measured", "off" if counters == "off" else "counted")
        assert reply["reply"] == "record", reply
        assert (reply["record"]["status"], reply["record"].get("counters")) == wanted, reply
    print(f"{seconds:.3f} s a row with counters = {counters}", flush=True)
    return [reply["record"] for reply in replies]


def number(text):
    return float(text.replace(",", "")) if re.fullmatch(r"[\d.,]+(e[+-]\d+)?", text) else math.nan


def by_ncu(ncu, program, record, kernel, metrics, cache_control):
    """Returns {name: value} of each launch of the kernel that ncu profiled."""
    request = {"op": "measure", "configuration": record["configuration"], "counters": "off", "verify": False}
    request |= {"warmup": 0, "iterations": 1} | algorithm_of(record)
    name = re.match(r"(?:void )?(?:\w+::)*(\w+)", kernel["name"])[1]
    command = [ncu, "--metrics", ",".join(metrics.values()), "--kernel-name", name, "--cache-control", cache_control]
    command += ["--csv", "--page", "raw", "--print-units", "base"]
    command += ["--launch-count", str(LAUNCHES), "--kill", "yes", "--clock-control", "none", program]
    try:
        done = subprocess.run(command, input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as late:
        print(f"    ncu was not done after {LIMIT} s: {(late.stdout or b'')[-500:]}")
        return []
    table = list(csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')))
    grid = "({grid_x}, {grid_y}, {grid_z})".format(**kernel)
    launches = [one for one in table if one.get("Grid Size") == grid]
    if not launches:
        seen = [one.get("Grid Size") for one in table]
        print(f"    ncu has no {name} of {grid}, but of {seen}: {(done.stdout + done.stderr)[-1000:]}")
    return [{name: number(one.get(metric, "")) for name, metric in metrics.items()} for one in launches]


def activities_by_ncu(ncu, program, records, kernels):
    """Returns {activity: values in per cent}; an empty table if ncu profiled no launch."""
    stalls = {name: STALL.format(name[6:]) for name in kernels[0]["activity"] if name.startswith("stall_")}
    launches = by_ncu(ncu, program, records[0], kernels[0], BUSY | stalls, "all")
    memory = by_ncu(ncu, program, records[0], kernels[0], SINGLE_PASS, "none")
    if not launches or not memory:
        return {}
    traced = [one["time"] / one["count"] * 1e9 for one in kernels]
    clock = statistics.median(one["clock"] for one in launches)
    faster = statistics.median(record["sm_clock_counted"] for record in records) / clock
    print(f"    traced {min(traced) / 1e3:.2f} to {max(traced) / 1e3:.2f} us, clock {faster:.3f} times that of ncu")
    found = {}
    for name in kernels[0]["activity"]:
        some = memory if name == "dram" else launches
        values = [one[name] for one in some]
        if name in stalls:
            sums = [sum(one[stall] for stall in stalls if not math.isnan(one[stall])) for one in launches]
            values = [100 * value / whole for value, whole in zip(values, sums)]
        if name in ELAPSED:
            values = [value * one["time"] / time for value, one in zip(values, some) for time in traced]
        if name not in ("dram", "l2"):  # DRAM and L2 do not run at the multiprocessors' clock
            values += [value / faster for value in values]
        found[name] = values
    return found


def compared(name, own, other):
    """Prints the ranges of an activity by the worker and by ncu. Returns whether they differ too much."""
    apart = max(min(own) - max(other), min(other) - max(own))
    differs = not apart <= max(2 if name in ELAPSED else 1, 0.01 * max(other))
    if differs or max(own + other) >= 1:
        ranges = "".join(f"{min(some):7.1f} to {max(some):5.1f}" for some in (own, other))
        print(f"    {name:24}{ranges}{'  DIFFERENT' * differs}")
    return differs


def main():
    ncu = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if not ncu:
        print("ncu is not installed: nothing to compare with")
        return 77
    worker, judged, different = WorkerProcess(sys.argv[1]), 0, 0
    known = measured(worker, "auto", [{}] * len(ROWS))  # searches for algorithms, and warms up the process
    measured(worker, "off", known)
    measured(worker, "auto", known)
    repeats = list(zip(*(measured(worker, "causes", known) for _ in range(REPEATS))))
    worker.close()
    for row, records in zip(ROWS, repeats):
        kernels = [max(record["kernels"], key=lambda one: one["time"]) for record in records]
        single = records[0]["launches"] == 1
        print(f"{row}: {kernels[0]['name'][:60]}{'' if single else ', not judged: one of several kernels'}", flush=True)
        begin = time.monotonic()
        theirs = activities_by_ncu(ncu, sys.argv[1], records, kernels)
        print(f"    {time.monotonic() - begin:.1f} s of ncu")
        judged += single and bool(theirs)
        for name, values in theirs.items():
            different += compared(name, [100 * one["activity"][name] for one in kernels], values) and single
    print(f"{judged} kernels compared, {different} values differ")
    return 1 if different or judged < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
