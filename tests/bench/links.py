#!/usr/bin/env python3
"""Links by roofsweep and by PyTorch's NCCL, one after the other, with their ratio. Needs two GPUs, PyTorch, mpirun.

Usage: links.py BIN [GPUS] [--allowed 0.03]

BIN is the folder of roofsweep. It gets PyTorch's NCCL, and both leave NVLink multicast off. PyTorch has a process for
each GPU and replays its operations from a CUDA graph, so that no host is in their way; copies are enqueued. Ratio: time
by roofsweep over time by PyTorch. Exit status 1 if one is beyond 1 by more than what is allowed."""

import argparse
import glob
import os
import subprocess
import sys
import tempfile

import netCDF4
import torch
import torch.distributed as dist

SAMPLES, LENGTH = 7, 2e-3  # s


def measured(folder, ranks, binaries):
    """{(operation, from, to, bytes): s} by roofsweep; of a copy from and to are UUIDs."""
    with open(f"{folder}/links.ini", "w", encoding="utf-8") as stream:
        stream.write("[peaks]\nmemory = l1\ncompute = fp64\nlaunch = no\ntransfer = no\nlinks = yes\n")
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    subprocess.run([*mpirun, f"{binaries}/roofsweep", f"{folder}/links.ini", "-o", f"{folder}/links.nc"], check=True)
    data = netCDF4.Dataset(f"{folder}/links.nc")
    words = data["link_operation"].flag_meanings.split()
    names = ("link_operation", "link_from", "link_to", "link_bytes", "link_time")
    rows = zip(*(data[name][:] for name in names), strict=True)
    return {(words[kind], start, end, int(size)): float(time) for kind, start, end, size, time in rows}


def timed(run, repeat):
    """s, one of so many in a run: the median."""
    found = []
    for _ in range(SAMPLES + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        found.append(1e-3 * begin.elapsed_time(end) / repeat)
    return sorted(found[1:])[SAMPLES // 2]


def operate(kind, sent, received, rank, ranks):
    if kind == "all-reduce":
        dist.all_reduce(received)
    elif kind == "all-gather":
        dist.all_gather_into_tensor(received, sent[: len(received) // ranks])
    else:
        ring = [(dist.isend, sent, (rank + 1) % ranks), (dist.irecv, received, (rank - 1) % ranks)]
        for work in dist.batch_isend_irecv([dist.P2POp(*one) for one in ring]):
            work.wait()


def process(rank, ranks, folder, wanted, times):
    """Of one GPU; rank 0's gets the slowest GPU's times."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    for kind, *_, size in wanted:
        sent, received = (torch.zeros(size // 4, device="cuda") for _ in range(2))
        repeat = max(min(int(LENGTH / wanted[kind, "", "", size]), 50), 2)
        for _ in range(3):
            operate(kind, sent, received, rank, ranks)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(repeat):
                operate(kind, sent, received, rank, ranks)
        slowest = torch.tensor(timed(graph.replay, repeat), device="cuda")
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        times[kind, "", "", size] = slowest.item()
        del graph
    dist.destroy_process_group()


def copied(start, end, size, time):
    """s, a copy by PyTorch from one GPU to another."""
    uuids = [f"GPU-{torch.cuda.get_device_properties(i).uuid}" for i in range(torch.cuda.device_count())]
    source, target = (torch.zeros(size // 4, device=f"cuda:{uuids.index(one)}") for one in (start, end))
    repeat = max(int(LENGTH / time), 2)
    with torch.cuda.device(source.device):
        return timed(lambda: [target.copy_(source, non_blocking=True) for _ in range(repeat)], repeat)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", metavar="BIN")
    parser.add_argument("ranks", metavar="GPUS", type=int, nargs="?", default=torch.cuda.device_count())
    parser.add_argument("--allowed", type=float, default=0.03)
    options = parser.parse_args()
    library = glob.glob(f"{os.path.dirname(torch.__path__[0])}/nvidia/nccl/lib/libnccl.so.2")
    os.environ.update({"ROOFSWEEP_NCCL": library[0]} if library else {}, NCCL_NVLS_ENABLE="0", NCCL_GRAPH_REGISTER="0")
    beyond = 0
    with tempfile.TemporaryDirectory() as folder:
        own = measured(folder, options.ranks, options.binaries)
        others = torch.multiprocessing.Manager().dict()
        wanted = {key: time for key, time in own.items() if key[0] != "copy"}
        torch.multiprocessing.spawn(process, (options.ranks, folder, wanted, others), options.ranks)
    print(f"{'operation':13} {'bytes':>11} {'roofsweep us':>13} {'PyTorch us':>11} {'ratio':>6}")
    for key, time in own.items():
        kind, start, end, size = key
        if kind == "copy" and size < 1 << 20:
            continue  # PyTorch waits for both GPUs with events
        other = others[key] if key in others else copied(start, end, size, time)
        far = abs(time / other - 1) > options.allowed
        beyond += far
        print(f"{kind:13} {size:11} {1e6 * time:13.2f} {1e6 * other:11.2f} {time / other:6.3f}{' beyond' * far}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
