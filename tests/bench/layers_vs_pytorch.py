#!/usr/bin/env python3
"""Compares the forward time of three networks in PyTorch (fp16, cudnn.benchmark, in a CUDA graph) with the sum of the
times of their layers. sweeps/programs/layers.py lists the layers, and a worker measures them. Needs a GPU and PyTorch.

Usage: layers_vs_pytorch.py WORKER

WORKER is the program roofsweep-worker-cuda. The worker replays rows from graphs, too, and uses PyTorch's cuDNN.
layers.py prints operations of the network that are missing in the list. For each kind of layer the time of its rows
stands beside the time of PyTorch's kernels in the network. In the gap no kernel runs.

PyTorch has own kernels for pools, norms, softmax and elementwise layers, and libraries for other layers. The exit
status is 1 if the sum, with PyTorch's kernels for the former, differs from the network's time by more than 10 %."""

import collections
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from conv2d_vs_pytorch import cudnn_folder, in_graph, pytorch_time

from worker import WorkerProcess

LAYERS = Path(__file__).parents[2] / "sweeps/programs/layers.py"
OWN = ["elementwise", "norm", "pool", "softmax"]
# PyTorch takes cuDNN's standard algorithm for an LSTM of several layers.
WAYS = {"lstm": "algorithm=standard"} | dict.fromkeys(("elementwise", "norm", "softmax"), "implementation=plain")
# Parts of names of PyTorch's operations; the first match decides.
KINDS = {"conv": "conv2d", "norm": "norm", "mm": "linear", "rnn": "lstm", "pool": "pool", "attention": "attention"}
KINDS |= dict.fromkeys(("relu", "clamp", "add"), "elementwise")


def convolution(*sizes, kind=torch.nn.Conv2d):
    return torch.nn.Sequential(kind(*sizes, bias=False), torch.nn.BatchNorm2d(sizes[1]), torch.nn.ReLU())


class Images(torch.nn.Module):
    """A stem, a block with a shortcut, a smaller scale, and a transposed convolution back."""

    def __init__(self):
        super().__init__()
        self.stem, self.pool = convolution(3, 64, 7, 2, 3), torch.nn.MaxPool2d(3, 2, 1)
        self.block, self.down = convolution(64, 64, 3, 1, 1), convolution(64, 128, 3, 2, 1)
        self.up = convolution(128, 64, 4, 2, 1, kind=torch.nn.ConvTranspose2d)
        self.classes = torch.nn.Conv2d(64, 32, 1, bias=False)

    def forward(self, x):
        x = self.pool(self.stem(x))
        x = x + self.block(x)
        return self.classes(x + self.up(self.down(x)))


class Classifier(torch.nn.Module):
    """A network: an LSTM of two layers over tokens, and a linear layer after the last step."""

    def __init__(self):
        super().__init__()
        self.words, self.lstm = torch.nn.Embedding(10000, 512), torch.nn.LSTM(512, 512, 2)
        self.classes = torch.nn.Linear(512, 1024)

    def forward(self, tokens):
        return self.classes(self.lstm(self.words(tokens))[0][-1])


class Transformer(torch.nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])
        self.query, self.key, self.value, self.project = (torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norms[0](x)
        heads = [layer(y).unflatten(-1, (16, 64)).transpose(1, 2) for layer in (self.query, self.key, self.value)]
        x = x + self.project(torch.nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))
        return x + self.down(torch.relu(self.up(self.norms[1](x))))


def network_times(network, sizes, tokens, passes=5):
    """Returns the time of a forward pass in s, in a graph of several passes, and the times of its kernels by kind."""
    made = network().eval().to("cuda", torch.float16)
    x = torch.randint(10000, sizes, device="cuda") if tokens else torch.rand(sizes, device="cuda").half()
    if len(sizes) == 4:
        made, x = (of.to(memory_format=torch.channels_last) for of in (made, x))
    stream, kernels = torch.cuda.Stream(), collections.Counter()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            made(x)
        stream.synchronize()
        with torch.profiler.profile() as profile:
            for _ in range(passes):
                made(x)
            stream.synchronize()
        for event in profile.events():
            kind = next((kind for part, kind in KINDS.items() if part in event.name), event.name)
            kernels[kind] += sum(1e-6 * kernel.duration for kernel in event.kernels) / passes
        return pytorch_time(in_graph(lambda: made(x), passes), passes), +kernels


def row_time(worker, row):
    """Returns (time of a row in s, name of its implementation)."""
    known = {key: value for key, value in row.items() if value and key not in ("name", "count", "workload")}
    keys = " ".join(f"{key}={value}" for key, value in known.items())
    text = f"{row['workload']} {keys} precision=fp16 launch=graph {WAYS.get(row['workload'], '')}".strip()
    reply = worker.ask(op="measure", configuration=text, counters="off", iterations=20, verify=False)
    record = reply.get("record", {})
    if not record.get("graph_time"):
        raise SystemExit(f"{text}: {record.get('error') or reply}")
    return record["graph_time"], f"{record['implementation']} {record.get('algorithm', '')}"


def main(program):
    torch.backends.cudnn.benchmark = True
    libraries = cudnn_folder() + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    worker, beyond = WorkerProcess(os.path.abspath(program), os.environ | {"LD_LIBRARY_PATH": libraries}), 0
    for network, shape in (Images, "64x3x224x224"), (Classifier, "64x64:tokens"), (Transformer, "16x512x1024"):
        with tempfile.NamedTemporaryFile("r+") as file:
            command = [sys.executable, LAYERS, f"{__file__}:{network.__name__}", shape, "-o", file.name]
            subprocess.run(command, check=True)  # prints the operations that the list lacks
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        sums = collections.Counter()
        for row in rows:
            time, how = row_time(worker, row)
            sums[row["workload"]] += int(row["count"]) * time
            print(f"  {row['count']:>3} x {1e6 * time:8.2f} us  {row['name']:24} {row['workload']:12} {how}")
        sizes, _, tokens = shape.partition(":")
        own, kernels = network_times(network, [int(size) for size in sizes.split("x")], tokens)
        for kind in sums | kernels:
            print(f"  {kind:24} rows {1e6 * sums[kind]:8.2f} us, PyTorch's kernels {1e6 * kernels[kind]:8.2f} us")
        total = sum(sums.values())
        alike = (total + sum(kernels[kind] - sums[kind] for kind in OWN)) / own
        print(f"  gap {1e6 * (own - sum(kernels.values())):.2f} us")
        print(f"{network.__name__}: rows {1e6 * total:.1f} us, PyTorch {1e6 * own:.1f} us: {total / own:.3f},")
        print(f"  with PyTorch's own kernels {alike:.3f}", flush=True)
        beyond += not abs(alike - 1) <= 0.1
    worker.close()
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
