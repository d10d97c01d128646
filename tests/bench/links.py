#!/usr/bin/env python3
"""Compares times of NCCL's operations in roofsweep with those of NCCL's calls in graphs of PyTorch. With --slow, makes
a node with a slow link, which `compare` must find.

Usage: links.py BIN [GPUS [RUNS]]
       links.py --slow BIN [NODES [RATE]]

BIN is the folder of roofsweep. Both run RUNS times (default 3), alternating, with a process for each GPU, the same
libnccl.so.2 and CUDA graphs, so that the host does not matter. The exit status is 1 if median times differ by more than
3 %, or an operation lacks a time. Copies by roofsweep have no counterpart in PyTorch and no ratio.

--slow, as root, makes NODES (default 4) network namespaces on this host, whose Ethernet links meet in a bridge. `tc`
limits the link of the last namespace to RATE (default 1gbit). A sweep on a CPU of each namespace measures links by MPI
over TCP. The exit status is 1 unless `compare` fails the links of the last node alone."""

import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MANIFEST = "[peaks]\nmemory = l1\ncompute = fp64\nlaunch = no\ntransfer = no\nlinks = yes\n"
OPERATIONS = ("all-reduce", "all-gather", "send-receive")
ALLOWED = 0.03  # relative difference
NCCL = {"NCCL_NVLS_ENABLE": "0", "NCCL_GRAPH_REGISTER": "0"}  # roofsweep sets them, too


def measured(folder, ranks, binaries):
    """Returns {(operation, bytes, from, to): time in s}, measured by roofsweep. roofsweep warns if it cannot time an
    operation."""
    manifest, output = f"{folder}/links.ini", f"{folder}/links.nc"
    with open(manifest, "w", encoding="utf-8") as stream:
        stream.write(MANIFEST)
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    subprocess.run([*mpirun, f"{binaries}/roofsweep", manifest, "-o", output], check=True)
    with open(f"{output}.journal", encoding="utf-8") as lines:
        entries = [json.loads(line)["entry"] for line in lines]
    links = [link for entry in entries for link in entry.get("device", entry).get("links", [])]
    return {
        (link["operation"], int(link["bytes"]), link.get("from", ""), link.get("to", "")): link["time"]
        for link in links
    }


def by_torch(links, gpus):
    """Returns {link: time in s}, measured by run_rank(). links: {link: expected time in s}."""
    with tempfile.TemporaryDirectory() as work:
        asked = json.dumps([[*link[:2], seconds] for link, seconds in links.items()])
        command = [sys.executable, __file__, "--rank", asked, f"{work}/id", str(gpus)]
        ranks = [
            subprocess.Popen([*command, str(rank)], env=dict(os.environ, **NCCL), stdout=subprocess.PIPE, text=True)
            for rank in range(gpus)
        ]
        texts = [rank.communicate(timeout=120)[0] for rank in ranks]
    times = [json.loads(text.splitlines()[-1]) for text in texts]
    return dict(zip(links, map(max, *times), strict=True))


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def run_rank(links, path, ranks, rank):
    """Prints the times of one rank of by_torch(), as JSON. torch.distributed would add 11 us to each operation."""
    import torch

    nccl, id_, comm = ctypes.CDLL(os.environ.get("ROOFSWEEP_NCCL", "libnccl.so.2")), Id(), ctypes.c_void_p()
    torch.cuda.set_device(rank)
    if rank == 0:
        nccl.ncclGetUniqueId(ctypes.byref(id_))
        pathlib.Path(f"{path}.new").write_bytes(bytes(id_))
        os.rename(f"{path}.new", path)
    while not os.path.exists(path):
        time.sleep(0.01)
    id_ = Id.from_buffer_copy(pathlib.Path(path).read_bytes())
    assert nccl.ncclCommInitRank(ctypes.byref(comm), ranks, id_, rank) == 0
    times = []
    for operation, size, about in links:
        count = size // 4
        sent, received = (torch.ones(count, device="cuda") for _ in range(2))

        def enqueue(operation=operation, count=count, sent=sent, received=received):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            one, other = (ctypes.c_void_p(buffer.data_ptr()) for buffer in (sent, received))
            size = ctypes.c_size_t(count // ranks if operation == "all-gather" else count)
            if operation == "all-reduce":
                nccl.ncclAllReduce(one, other, size, 7, 0, comm, stream)
            elif operation == "all-gather":
                nccl.ncclAllGather(one, other, size, 7, comm, stream)
            else:
                nccl.ncclGroupStart()
                nccl.ncclSend(one, size, 7, (rank + 1) % ranks, comm, stream)
                nccl.ncclRecv(other, size, 7, (rank - 1) % ranks, comm, stream)
                nccl.ncclGroupEnd()

        for _ in range(3):
            enqueue()
        torch.cuda.synchronize()
        repeat, graph = max(1, min(400, int(0.02 / about))), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(repeat):
                enqueue()
        own = []
        for _ in range(5):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            graph.replay()  # not timed, because the ranks start at different times
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            own.append(1e-3 * begin.elapsed_time(end) / repeat)
        times.append(statistics.median(own))
        del graph, sent, received
        torch.cuda.empty_cache()
    print(json.dumps(times), flush=True)
    os._exit(0)  # because destroying graphs and communicators may hang


AGENT = """#!/bin/sh
# Called like ssh: HOST COMMAND...
node=$((${1##*.} - 1))
shift
exec ip netns exec roofsweep$node unshare --uts sh -c "hostname n$node; $*"
"""


def slow(binaries, nodes=4, rate="1gbit"):
    def call(command):
        subprocess.run(command.split(), check=True)

    nodes, net, post = int(nodes), "10.177.0", f"{pathlib.Path(__file__).parents[2]}/postproc/roofsweep-post"
    with tempfile.TemporaryDirectory() as work:
        manifest, output, agent = (f"{work}/{name}" for name in ("links.ini", "links.nc", "agent"))
        pathlib.Path(manifest).write_text(f"[sweep]\ndevice = cpu\n{MANIFEST}", encoding="utf-8")
        pathlib.Path(agent).write_text(AGENT, encoding="utf-8")
        os.chmod(agent, 0o700)
        call("ip link add roofsweep type bridge")
        try:
            call(f"ip addr add {net}.254/24 dev roofsweep")
            call("ip link set roofsweep up")
            for node in range(nodes):
                space = f"roofsweep{node}"
                call(f"ip netns add {space}")
                call(f"ip link add veth{node} type veth peer name e0 netns {space}")
                call(f"ip link set veth{node} master roofsweep up")
                call(f"ip -n {space} addr add {net}.{node + 1}/24 dev e0")
                call(f"ip -n {space} link set e0 up")
                call(f"ip -n {space} link set lo up")
            shape = f"root tbf rate {rate} burst 256kb latency 50ms"
            call(f"tc qdisc add dev veth{nodes - 1} {shape}")
            call(f"ip netns exec roofsweep{nodes - 1} tc qdisc add dev e0 {shape}")
            hosts = ",".join(f"{net}.{node + 1}" for node in range(nodes))
            mca = f"plm_rsh_agent {agent} btl tcp,self mpi_yield_when_idle 1".split()
            mca += f"btl_tcp_if_include {net}.0/24 oob_tcp_if_include {net}.0/24".split()
            options = [word for pair in zip(mca[::2], mca[1::2]) for word in ("--mca", *pair)]
            mpirun = ["mpirun", "--allow-run-as-root", "-n", str(nodes), "--host", hosts, "--bind-to", "none", *options]
            subprocess.run([*mpirun, f"{binaries}/roofsweep", manifest, "-q", "-o", output], check=True)
        finally:
            for node in range(nodes):
                subprocess.run(["ip", "netns", "del", f"roofsweep{node}"], check=False)
            call("ip link del roofsweep")
        text = subprocess.run([post, "compare", output, "-q"], stdout=subprocess.PIPE, text=True, check=False).stdout
    lines = [line for line in text.splitlines() if ", links" in line]
    print("\n".join(lines))
    return int([line.split()[2] for line in lines if line.startswith("FAIL")] != [f"n{nodes - 1},"])


def main(binaries, gpus=2, runs=3):
    ours, theirs = {}, {}
    for _ in range(int(runs)):
        with tempfile.TemporaryDirectory() as work:
            found = measured(work, gpus, binaries)
        others = by_torch({link: seconds for link, seconds in found.items() if link[0] in OPERATIONS}, int(gpus))
        for times, own in ((ours, found), (theirs, others)):
            for link, seconds in own.items():
                times.setdefault(link, []).append(seconds)
    beyond = len({*OPERATIONS, "copy"} - {operation for operation, _, _, _ in ours})
    print(f"{'operation':13} {'bytes':>11} {'roofsweep us':>13} {'PyTorch us':>13} {'ratio':>6}  all times, us")
    for link, times in ours.items():
        beyond += len(times) < int(runs)
        row = f"{link[0]:13} {link[1]:11} {1e6 * statistics.median(times):13.2f} "
        if link in theirs:
            middle = statistics.median(theirs[link])
            ratio = statistics.median(times) / middle
            beyond += abs(ratio - 1) > ALLOWED
            row += f"{1e6 * middle:13.2f} {ratio:6.3f} " + "beyond " * (abs(ratio - 1) > ALLOWED)
        print(row, " ".join(f"{1e6 * one:.2f}" for one in [*times, *theirs.get(link, [])]))
    return int(beyond > 0)


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        run_rank(json.loads(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:]))
    sys.exit(slow(*sys.argv[2:]) if sys.argv[1] == "--slow" else main(*sys.argv[1:]))
