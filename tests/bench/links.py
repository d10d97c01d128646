#!/usr/bin/env python3
"""Compares NCCL's operations timed by roofsweep and by nccl-tests.

Usage: links.py BIN NCCL_TESTS [GPUS]

BIN is the folder of roofsweep, NCCL_TESTS the folder of all_reduce_perf and the other nccl-tests. Both programs run
three times, alternating. Both load the same libnccl.so.2, run one process and replay CUDA graphs, so that the host does
not matter. The exit status is 1 if median times differ by more than 3 %, or an operation lacks a time. nccl-tests has
no copies; those of roofsweep are printed alone."""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = {"all-reduce": "all_reduce_perf", "all-gather": "all_gather_perf", "send-receive": "sendrecv_perf"}
RUNS = 3
LENGTH, ALLOWED = 0.3, 0.03  # longest run of nccl-tests in s; allowed relative difference
# Variables that roofsweep sets, too.
NCCL = {"NCCL_NVLS_ENABLE": "0", "NCCL_P2P_DIRECT_DISABLE": "1", "NCCL_GRAPH_REGISTER": "0"}


def measured(folder, ranks, binaries):
    """Returns {(operation, bytes, from, to): s} by roofsweep, which warns of operations that it cannot time."""
    manifest, output = f"{folder}/links.ini", f"{folder}/links.nc"
    with open(manifest, "w", encoding="utf-8") as stream:
        stream.write("[peaks]\nmemory = l1\ncompute = fp64\nlaunch = no\ntransfer = no\nlinks = yes\n")
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    subprocess.run([*mpirun, f"{binaries}/roofsweep", manifest, "-o", output], check=True)
    with open(f"{output}.journal", encoding="utf-8") as lines:
        entries = [json.loads(line)["entry"] for line in lines]
    links = [link for entry in entries for link in entry.get("device", entry).get("links", [])]
    return {
        (link["operation"], int(link["bytes"]), link.get("from", ""), link.get("to", "")): link["time"]
        for link in links
    }


def tested(program, size, gpus, about):
    """Returns the time (s) of an operation out of place, in graphs of 50. about: expected time (s), which decides the
    number of graphs."""
    graphs = max(int(LENGTH / about / 50), 2)
    command = [program, "-g", gpus, "-b", size, "-e", size, "-w", 5, "-n", 50, "-G", graphs, "-c", 0]
    command = [str(word) for word in command]
    text = subprocess.run(command, env=dict(os.environ, **NCCL), capture_output=True, text=True, check=True).stdout
    return 1e-6 * float(re.search(rf"^ *{size} +\d+ +\w+ +\w+ +-?\d+ +([\d.]+)", text, re.M).group(1))


if __name__ == "__main__":
    gpus = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    ours, theirs = {}, {}
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as work:
            found = measured(work, gpus, sys.argv[1])
        for link, time in found.items():
            ours.setdefault(link, []).append(time)
            if link[0] in PROGRAMS:
                other = tested(f"{sys.argv[2]}/{PROGRAMS[link[0]]}", link[1], gpus, time)
                theirs.setdefault(link, []).append(other)
    beyond = len({*PROGRAMS, "copy"} - {operation for operation, _, _, _ in ours})
    print(f"{'operation':13} {'bytes':>11} {'roofsweep us':>13} {'nccl-tests us':>13} {'ratio':>6}  all times, us")
    for link, times in ours.items():
        beyond += len(times) < RUNS
        row = f"{link[0]:13} {link[1]:11} {1e6 * statistics.median(times):13.2f} "
        if link in theirs:
            other = statistics.median(theirs[link])
            ratio = statistics.median(times) / other
            beyond += abs(ratio - 1) > ALLOWED
            row += f"{1e6 * other:13.2f} {ratio:6.3f} " + "beyond " * (abs(ratio - 1) > ALLOWED)
        print(row, " ".join(f"{1e6 * time:.2f}" for time in [*times, *theirs.get(link, [])]))
    sys.exit(beyond > 0)
