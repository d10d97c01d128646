"""Activities of kernels (counters = causes) beside Nsight Compute's, in one run, and what they cost.

Of ten rows the kernel that takes longest is profiled by both, with the algorithm that the worker chose. Prints a table:
each activity in per cent, by the worker and by ncu. Exit status 1 if two differ by more than 1 % and by
more than 1 point; 77 without ncu. Needs a GPU whose counters may be read.
Usage: causes_vs_ncu.py WORKER
"""

import csv
import json
import re
import shutil
import subprocess
import sys
import time

from asked_worker import AskedWorker

ROWS = [
    "conv2d precision=fp32 pass=backward-data filters=512",
    "conv2d precision=fp32 pass=backward-filter",
    "conv2d precision=fp32 algorithm=fft-tiling kernel=7",
    "conv2d precision=fp32",
    "conv2d precision=fp16 pass=backward-data",
    "conv2d precision=fp16 pass=backward-filter",
    "conv2d precision=fp16 filters=256",
    "conv2d precision=fp16 layout=nchw",
    "lstm precision=fp16 hidden=512",
    "matmul precision=fp16",
]
BUSY = {
    "dram": "dram__bytes.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "data_pipe": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fma": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "threads": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "multiprocessors": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
}
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
CHOICE = ("algorithm", "algorithm_id", "algorithm_launches", "algorithm_origin", "layout_chosen")


def measured(worker, row, counters):
    """Its record, and the seconds that it took."""
    begin = time.monotonic()
    record = worker.ask(op="measure", configuration=row, counters=counters)["record"]
    return record, time.monotonic() - begin


def by_ncu(program, record, kernel):
    """{activity: per cent} of the kernel's first launch."""
    request = {"op": "measure", "configuration": record["configuration"], "counters": "off", "verify": False}
    request |= {"warmup": 0, "iterations": 1}
    if record.get("algorithm_origin"):
        request["choice"] = {name: record[name] for name in CHOICE if name in record}
    stalls = {name: STALL.format(name[6:]) for name in kernel["activity"] if name.startswith("stall_")}
    metrics = BUSY | stalls
    name = re.match(r"(?:void )?(?:\w+::)*(\w+)", kernel["name"])[1]
    command = ["ncu", "--metrics", ",".join(metrics.values()), "--kernel-name", name, "--launch-count", "1", "--csv"]
    command += ["--page", "raw", "--cache-control", "none", "--clock-control", "none", "--kill", "yes", program]
    done = subprocess.run(
        command, input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=170, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    assert len(lines) > 2, (done.stdout + done.stderr)[-2000:]
    values = dict(zip(*[next(csv.reader([lines[at]])) for at in (0, 2)]))
    found = {name: float(values[metric].replace(",", "")) for name, metric in metrics.items() if metric in values}
    whole = sum(found[name] for name in stalls)
    return {name: 100 * value / whole if name in stalls else value for name, value in found.items()}


def main():
    if not shutil.which("ncu"):
        print("ncu is not installed: nothing to compare with")
        return 77
    worker, different = AskedWorker(sys.argv[1]), 0
    measured(worker, ROWS[0], "causes")
    for row in ROWS:
        _, plain = measured(worker, row, "auto")
        record, seconds = measured(worker, row, "causes")
        assert record["status"] == "measured" and record["counters"] == "counted", record
        kernel = max(record["kernels"], key=lambda one: one["time"])
        print(f"{row}: {kernel['name'][:60]}; {plain:.3f} s, with causes {seconds:.3f} s")
        theirs = by_ncu(sys.argv[1], record, kernel)
        for name, value in kernel["activity"].items():
            own, other = 100 * value, theirs.get(name, float("nan"))
            differs = not abs(own - other) <= max(1, 0.01 * other)
            different += differs
            if max(own, other) >= 1 or differs:
                print(f"    {name:24} {own:6.1f} {other:6.1f}{'  DIFFERENT' * differs}")
    worker.close()
    print(f"{different} values differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
