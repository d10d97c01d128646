"""What hardware counters cost: roofsweep's worker beside the Nsight Compute command line, in one run.

Both count the same metrics of the paper's conv2d. Nsight Compute is at its best: one configuration a process, only the
convolution's kernel, one launch, no flush of its own, the clock left alone. It runs the same worker, which measures one
iteration and does not verify. roofsweep measures and verifies each row in full, and counts a batch.
Prints seconds for each configuration. Needs a GPU whose counters may be read; ncu may be missing.
Usage: counters_vs_ncu.py WORKER
"""

import json
import re
import shutil
import subprocess
import sys
import time

from asked_worker import AskedWorker

ROWS = 64
LIMIT = 60  # s, for one run of ncu
TIMES = 3
OPERATIONS = "fadd", "fmul", "ffma", "dadd", "dmul", "dfma", "hadd", "hmul", "hfma"
METRICS = [f"sm__sass_thread_inst_executed_op_{name}_pred_on.sum" for name in OPERATIONS] + [
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "l1tex__t_bytes.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
]


def configuration(batch):
    return f"conv2d precision=fp32 algorithm=implicit-precomp-gemm batch={batch}"


def asked(worker, batch, counters, later):
    return worker.ask(op="measure", configuration=configuration(batch), counters=counters, count_later=later)


def measured(worker, batches, counters):
    """Their records, and the seconds of one."""
    begin = time.monotonic()
    replies = [asked(worker, batch, counters, True) for batch in batches]
    waiting = sum(reply["reply"] == "timed" for reply in replies)
    records = [reply["record"] for reply in replies if reply["reply"] == "record"]
    records += [worker.ask(op="count")["record"] for _ in range(waiting)]
    return records, (time.monotonic() - begin) / len(batches)


def roofsweep(program):
    """Seconds of a row without counters, and with. What a process does once is done before."""
    worker = AskedWorker(program)
    batches = range(1, ROWS + 1)
    measured(worker, range(ROWS + 1, ROWS + 9), "auto")
    records, plain = measured(worker, batches, "off")
    records, counted = measured(worker, batches, "auto")
    worker.close()
    assert all(record["counters"] == "counted" for record in records), records[0]["counters"]
    print(
        f"roofsweep: {plain:.4f} s a row without counters, {counted:.4f} s with, {counted - plain:.4f} s for counters"
    )
    return counted, records[0]["kernels"]


def seconds_of(command, request):
    begin = time.monotonic()
    done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=LIMIT)
    return time.monotonic() - begin, done.stdout + done.stderr


def nsight(ncu, program, kernels):
    """Seconds of its fastest run."""
    request = {"op": "measure", "configuration": configuration(1), "counters": "off"}
    request |= {"warmup": 0, "iterations": 1, "verify": False}
    longest = max(kernels, key=lambda kernel: kernel["time"])["name"]
    name = re.match(r"(?:void )?(?:\w+::)*(\w+)", longest).group(1)
    command = [ncu, "--metrics", ",".join(METRICS), "--kernel-name", name, "--launch-count", "1", "--csv"]
    command += ["--cache-control", "none", "--clock-control", "none", "--kill", "yes", program]
    best = None
    for _ in range(TIMES):
        try:
            seconds, said = seconds_of(command, json.dumps(request) + "\n")
        except subprocess.TimeoutExpired:
            print(f"ncu: not over after {LIMIT} s")
            break
        assert "dram__bytes_read.sum" in said, said[-1000:]
        print(f"ncu: {seconds:.2f} s for one configuration, kernel {name}")
        best = min(seconds, best or seconds)
    return best


def main():
    program = sys.argv[1]
    counted, kernels = roofsweep(program)
    ncu = shutil.which("ncu")
    if not ncu:
        print("ncu is not installed: nothing to compare with")
        return 77
    best = nsight(ncu, program, kernels)
    if best:
        print(f"ncu takes {best / counted:.0f} times as long as a whole row of roofsweep")
    return 0


if __name__ == "__main__":
    sys.exit(main())
