"""Compares activities of kernels (counters = causes) with those of Nsight Compute, and the cost of both profilers.

Usage: causes_vs_ncu.py WORKER

Both profile the longest kernel of each row after a flush of the caches, with the worker's algorithm. Prints a table
with each activity in per cent by the worker and by ncu. The exit status is 1 if worker and ncu differ in an activity
of a row with one kernel: by more than 1 % and more than 1 point, or, for activities relative to the elapsed time, by
more than 2 points. For the latter the table also shows ncu's value relative to the time that the worker traced.
Rows of several kernels are not judged, because ncu flushes the caches between kernels and the worker does not. The
status is 77 without ncu. Needs a GPU with readable counters, and three minutes."""

import csv
import json
import math
import re
import shutil
import subprocess
import sys
import time

from asked_worker import AskedWorker

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
    "elementwise operation=add precision=fp64 implementation=plain",
    "softmax",
    "softmax implementation=plain precision=bf16",
    "norm implementation=plain",
    "pool",
    "pool implementation=plain operation=average precision=fp16",
    "attention precision=fp16",
    "compute-loop precision=fp64",
]
BUSY = {
    "time": "gpu__time_duration.sum",
    "dram": "dram__bytes.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "data_pipe": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fp64": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    "fma": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "threads": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "multiprocessors": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
}
ELAPSED = ("dram", "l2", "multiprocessors")  # of the elapsed time, which for ncu is the time of its own range
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
ALGORITHM = ("algorithm", "algorithm_id", "algorithm_launches", "algorithm_origin", "layout_chosen")
LAUNCHES, LIMIT = 3, 30  # launches in one run of ncu; its time limit in s


def algorithm_of(record):
    choice = {name: record[name] for name in ALGORITHM if name in record}
    return {"algorithm": choice} if "algorithm_origin" in choice else {}


def measured(worker, counters, known):
    """Returns the record of each row. The rows are counted together, as in a sweep."""
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


def by_ncu(ncu, program, record, kernel):
    """Returns {activity: per cent} of a launch of the kernel; None if ncu profiled no launch."""
    request = {"op": "measure", "configuration": record["configuration"], "counters": "off", "verify": False}
    request |= {"warmup": 0, "iterations": 1} | algorithm_of(record)
    stalls = {name: STALL.format(name[6:]) for name in kernel["activity"] if name.startswith("stall_")}
    metrics = BUSY | stalls
    name = re.match(r"(?:void )?(?:\w+::)*(\w+)", kernel["name"])[1]
    command = [ncu, "--metrics", ",".join(metrics.values()), "--kernel-name", name]
    command += ["--csv", "--page", "raw", "--print-units", "base"]
    command += ["--launch-count", str(LAUNCHES), "--kill", "yes", "--clock-control", "none", program]
    try:
        done = subprocess.run(command, input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as late:
        print(f"    ncu was not done after {LIMIT} s: {(late.stdout or b'')[-500:]}")
        return None
    table = list(csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')))
    grid = "({grid_x}, {grid_y}, {grid_z})".format(**kernel)
    launches = [one for one in table if one.get("Grid Size") == grid]
    if not launches:
        seen = [one.get("Grid Size") for one in table]
        print(f"    ncu has no {name} of {grid}, but of {seen}: {(done.stdout + done.stderr)[-1000:]}")
        return None
    found = {name: number(launches[0].get(metric, "")) for name, metric in metrics.items()}
    whole = sum(found[name] for name in stalls if not math.isnan(found[name]))
    return {name: 100 * value / whole if name in stalls else value for name, value in found.items()}


def main():
    ncu = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if not ncu:
        print("ncu is not installed: nothing to compare with")
        return 77
    worker, compared, different = AskedWorker(sys.argv[1]), 0, 0
    known = measured(worker, "auto", [{}] * len(ROWS))  # searches, and pays the first-use costs of a process
    measured(worker, "off", known)
    measured(worker, "auto", known)
    records = measured(worker, "causes", known)
    worker.close()
    for row, record in zip(ROWS, records):
        kernel = max(record["kernels"], key=lambda one: one["time"])
        judged = record["launches"] == 1
        print(f"{row}: {kernel['name'][:60]}{'' if judged else ', not judged: one of several kernels'}", flush=True)
        begin = time.monotonic()
        theirs = by_ncu(ncu, sys.argv[1], record, kernel)
        print(f"    {time.monotonic() - begin:.1f} s of ncu")
        compared += judged and theirs is not None
        longer = theirs["time"] * 1e-9 / (kernel["time"] / kernel["count"]) if theirs else math.nan
        print(f"    {kernel['time'] / kernel['count'] * 1e6:.2f} us traced, {longer:.3f} of it by ncu")
        for name, value in kernel["activity"].items() if theirs else ():
            own, other = 100 * value, theirs[name]
            differs = not abs(own - other) <= max(2 if name in ELAPSED else 1, 0.01 * other)
            different += judged and differs
            traced = f" {other * longer:6.1f} in the traced time" if name in ELAPSED else ""
            if differs or max(own, other) >= 1:
                print(f"    {name:24} {own:6.1f} {other:6.1f}{traced}{'  DIFFERENT' * differs}")
    print(f"{compared} kernels compared, {different} values differ")
    return 1 if different or compared < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
