#!/usr/bin/env python3
"""NCCL's operations by roofsweep and by PyTorch, one after the other: links.py BIN [GPUS]

BIN is the folder of roofsweep, which gets PyTorch's NCCL. PyTorch has a process for each GPU, and replays a CUDA graph
of operations, so that no host is in their way. Exit status 1 if the times of one differ by more than 3 %."""

import glob
import json
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist

OPERATIONS = ["copy", "all-reduce", "all-gather", "send-receive"]
SAMPLES, LENGTH, ALLOWED = 7, 2e-3, 0.03  # length: s


def measured(folder, ranks, binaries):
    """{(operation, bytes): s} by roofsweep."""
    manifest, output = f"{folder}/links.ini", f"{folder}/links.nc"
    with open(manifest, "w", encoding="utf-8") as stream:
        stream.write("[peaks]\nmemory = l1\ncompute = fp64\nlaunch = no\ntransfer = no\nlinks = yes\n")
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    subprocess.run([*mpirun, f"{binaries}/roofsweep", manifest, "-o", output], check=True)
    with open(f"{output}.journal", encoding="utf-8") as lines:
        entries = [json.loads(line)["entry"] for line in lines]
    links = [link for entry in entries for link in entry.get("device", entry).get("links", [])]
    return {(link["operation"], int(link["bytes"])): link["time"] for link in links if link["operation"] != "copy"}


def operate(kind, sent, received, rank, ranks):
    if kind == "all-reduce":
        dist.all_reduce(received)
    elif kind == "all-gather":
        dist.all_gather_into_tensor(received, sent[: len(received) // ranks])
    else:
        ring = [(dist.isend, sent, (rank + 1) % ranks), (dist.irecv, received, (rank - 1) % ranks)]
        for work in dist.batch_isend_irecv([dist.P2POp(*one) for one in ring]):
            work.wait()


def timed(graph, repeat):
    """s, of one of so many in the graph: the median, of the slowest GPU."""
    found = []
    for _ in range(SAMPLES):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        found.append(1e-3 * begin.elapsed_time(end) / repeat)
    slowest = torch.tensor(sorted(found)[SAMPLES // 2], device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def process(rank, ranks, folder, own, beyond):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    for (kind, size), time in own.items():
        sent, received = (torch.zeros(size // 4, device="cuda") for _ in range(2))
        repeat = max(min(int(LENGTH / time), 50), 2)
        for _ in range(3):
            operate(kind, sent, received, rank, ranks)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(repeat):
                operate(kind, sent, received, rank, ranks)
        timed(graph, repeat)  # warm-up
        other = timed(graph, repeat)
        far = abs(time / other - 1) > ALLOWED
        del graph  # before its communicator
        if rank == 0:
            beyond.value += far
            print(
                f"{kind:13} {size:11} {1e6 * time:13.2f} {1e6 * other:11.2f} {time / other:6.3f}{' beyond' * far}",
                flush=True,
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    gpus = int(sys.argv[2]) if len(sys.argv) > 2 else torch.cuda.device_count()
    library = glob.glob(f"{os.path.dirname(torch.__path__[0])}/nvidia/nccl/lib/libnccl.so.2")
    os.environ.update({"ROOFSWEEP_NCCL": library[0]} if library else {}, NCCL_NVLS_ENABLE="0", NCCL_GRAPH_REGISTER="0")
    with tempfile.TemporaryDirectory() as work:
        found = measured(work, gpus, sys.argv[1])
        print(f"{'operation':13} {'bytes':>11} {'roofsweep us':>13} {'PyTorch us':>11} {'ratio':>6}", flush=True)
        apart = torch.multiprocessing.get_context("spawn").Value("i", 0)
        torch.multiprocessing.spawn(process, (gpus, work, found, apart), gpus)
    sys.exit(apart.value > 0)
