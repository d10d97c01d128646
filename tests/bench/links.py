#!/usr/bin/env python3
"""Compares NCCL's operations timed by roofsweep and by another program.

Usage: links.py BIN OTHER [GPUS] [RUNS]

BIN is the folder of roofsweep. OTHER is the folder of all_reduce_perf and the other nccl-tests, or `torch` for
torch.distributed, with a process for each GPU. All programs run RUNS times (default 3), alternating, and replay CUDA
graphs, so that the host does not matter. All load the same libnccl.so.2. The exit status is 1 if median times differ by
more than 3 %, or an operation lacks a time. Copies of roofsweep are printed alone."""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = {"all-reduce": "all_reduce_perf", "all-gather": "all_gather_perf", "send-receive": "sendrecv_perf"}
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


def tested(folder, link, gpus, about):
    """Returns the time (s) of an operation of nccl-tests out of place, in graphs of 50. about: expected time (s), which
    decides the number of graphs."""
    graphs = max(int(LENGTH / about / 50), 2)
    size = link[1]
    command = [f"{folder}/{PROGRAMS[link[0]]}", "-g", gpus, "-b", size, "-e", size, "-w", 5, "-n", 50, "-G", graphs]
    command = [str(word) for word in [*command, "-c", 0]]
    text = subprocess.run(command, env=dict(os.environ, **NCCL), capture_output=True, text=True, check=True).stdout
    return 1e-6 * float(re.search(rf"^ *{size} +\d+ +\w+ +\w+ +-?\d+ +([\d.]+)", text, re.M).group(1))


def by_torch(links, gpus):
    """Returns {link: s} by torch.distributed. links: {link: expected time (s)}"""
    env = dict(os.environ, **NCCL, WORLD_SIZE=str(gpus), MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    asked = json.dumps([[*link[:2], time] for link, time in links.items()])
    command = [sys.executable, __file__, "--rank", asked]
    ranks = [
        subprocess.Popen(command, env=dict(env, RANK=str(rank)), stdout=subprocess.PIPE, text=True)
        for rank in range(gpus)
    ]
    texts = [rank.communicate(timeout=120)[0] for rank in ranks]
    times = [json.loads(text.splitlines()[-1]) for text in texts]
    return dict(zip(links, map(max, *times), strict=True))


def run_rank(links):
    """Prints the times of one rank of by_torch(), as JSON."""
    import torch
    import torch.distributed as dist

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    times = []
    for operation, size, about in links:
        sent = torch.ones(size // 4 // (ranks if operation == "all-gather" else 1), device=device)
        received = torch.ones(size // 4, device=device)

        def enqueue(operation=operation, sent=sent, received=received):
            if operation == "all-reduce":
                dist.all_reduce(received)
            elif operation == "all-gather":
                dist.all_gather_into_tensor(received, sent)
            else:
                to = dist.P2POp(dist.isend, sent, (rank + 1) % ranks)
                dist.batch_isend_irecv([to, dist.P2POp(dist.irecv, received, (rank - 1) % ranks)])

        for _ in range(3):
            enqueue()
        torch.cuda.synchronize()
        repeat, graph = max(1, min(50, int(0.02 / about))), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(repeat):
                enqueue()
        own = []
        for _ in range(5):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            dist.barrier()
            graph.replay()  # the ranks start at different times
            begin.record()
            graph.replay()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            own.append(1e-3 * begin.elapsed_time(end) / repeat / 2)
        times.append(statistics.median(own))
        del graph, sent, received
        torch.cuda.empty_cache()
    print(json.dumps(times), flush=True)
    os._exit(0)  # destroying graphs and communicators may hang


def main(binaries, other, gpus=2, runs=3):
    gpus, runs = int(gpus), int(runs)
    ours, theirs = {}, {}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as work:
            found = measured(work, gpus, binaries)
        for link, time in found.items():
            ours.setdefault(link, []).append(time)
        alike = {link: time for link, time in found.items() if link[0] in PROGRAMS}
        if other == "torch":
            times = by_torch(alike, gpus)
        else:
            times = {link: tested(other, link, gpus, time) for link, time in alike.items()}
        for link, time in times.items():
            theirs.setdefault(link, []).append(time)
    beyond = len({*PROGRAMS, "copy"} - {operation for operation, _, _, _ in ours})
    print(f"{'operation':13} {'bytes':>11} {'roofsweep us':>13} {'other us':>13} {'ratio':>6}  all times, us")
    for link, times in ours.items():
        beyond += len(times) < runs
        row = f"{link[0]:13} {link[1]:11} {1e6 * statistics.median(times):13.2f} "
        if link in theirs:
            time = statistics.median(theirs[link])
            ratio = statistics.median(times) / time
            beyond += abs(ratio - 1) > ALLOWED
            row += f"{1e6 * time:13.2f} {ratio:6.3f} " + "beyond " * (abs(ratio - 1) > ALLOWED)
        print(row, " ".join(f"{1e6 * time:.2f}" for time in [*times, *theirs.get(link, [])]))
    return int(beyond > 0)


if __name__ == "__main__":
    sys.exit(run_rank(json.loads(sys.argv[2])) if sys.argv[1] == "--rank" else main(*sys.argv[1:]))
