#!/usr/bin/env python3
"""Compares the forward time of three networks in PyTorch (fp16, cudnn.benchmark, in a CUDA graph) with the sum of the
rows that sweeps/programs/layers.py writes for them. The exit status is 1 if a sum differs by more than --allowed. Needs
a GPU and PyTorch.

Usage: layers_vs_pytorch.py WORKER [--allowed 0.1]

WORKER is the program roofsweep-worker-cuda. Its rows are replayed from graphs, too, with PyTorch's cuDNN.
layers.py names the operations that have no row."""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from asked_worker import AskedWorker
from conv2d_vs_pytorch import cudnn_folder, in_graph, pytorch_time

LAYERS = Path(__file__).parents[2] / "sweeps/programs/layers.py"


class Images(torch.nn.Module):
    """A stem, a block with a shortcut, a smaller scale, and a transposed convolution back."""

    def __init__(self):
        super().__init__()
        convolution = {"padding": 1, "bias": False}
        self.stem = torch.nn.Sequential(*self.layer(torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False)))
        self.pool = torch.nn.MaxPool2d(3, 2, 1)
        self.block = torch.nn.Sequential(*self.layer(torch.nn.Conv2d(64, 64, 3, **convolution)))
        self.down = torch.nn.Sequential(*self.layer(torch.nn.Conv2d(64, 128, 3, 2, **convolution)))
        self.up = torch.nn.Sequential(*self.layer(torch.nn.ConvTranspose2d(128, 64, 4, 2, **convolution)))
        self.classes = torch.nn.Conv2d(64, 32, 1, bias=False)

    @staticmethod
    def layer(convolution):
        return convolution, torch.nn.BatchNorm2d(convolution.out_channels), torch.nn.ReLU()

    def forward(self, x):
        x = self.pool(self.stem(x))
        x = x + self.block(x)
        return self.classes(x + self.up(self.down(x)))


class Classifier(torch.nn.Module):
    """An LSTM of two layers over tokens, and a linear layer after the last step."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(10000, 512)
        self.lstm = torch.nn.LSTM(512, 512, 2)
        self.classes = torch.nn.Linear(512, 1024)

    def forward(self, tokens):
        return self.classes(self.lstm(self.words(tokens))[0][-1])


class Transformer(torch.nn.Module):
    """A block with attention over 16 heads of 64."""

    def __init__(self, width=1024):
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])
        self.query, self.key, self.value, self.project = (torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        def heads(layer):
            return layer(y).unflatten(-1, (16, 64)).transpose(1, 2)

        y = self.norms[0](x)
        y = torch.nn.functional.scaled_dot_product_attention(heads(self.query), heads(self.key), heads(self.value))
        x = x + self.project(y.transpose(1, 2).flatten(2))
        return x + self.down(torch.relu(self.up(self.norms[1](x))))


NETWORKS = {Images: "64x3x224x224", Classifier: "64x64:tokens", Transformer: "16x512x1024"}
# PyTorch takes cuDNN's standard algorithm for an LSTM of several layers, and kernels of its own for elementwise work.
WAYS = {"lstm": ["algorithm=standard"]}
WAYS |= {name: ["", "implementation=plain"] for name in ("elementwise", "norm", "pool", "softmax")}


def network_time(network, shape):
    """Returns the time of a forward pass in s, from a graph of several."""
    sizes, _, tokens = shape.partition(":")
    sizes = [int(size) for size in sizes.split("x")]
    made = network().eval().to("cuda", torch.float16)
    x = torch.randint(10000, sizes, device="cuda") if tokens else torch.rand(sizes, device="cuda").half()
    if len(sizes) == 4:
        made, x = (of.to(memory_format=torch.channels_last) for of in (made, x))
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            made(x)
        stream.synchronize()
        run = in_graph(lambda: made(x), 5)
    return pytorch_time(run, 5)


def rows_of(network, shape, folder):
    """Returns the list's rows, with what is left out."""
    path = Path(folder, f"{network.__name__}.csv")
    subprocess.run([sys.executable, LAYERS, f"{__file__}:{network.__name__}", shape, "-o", path], check=True)
    lines = path.read_text(encoding="utf-8").splitlines()
    left = [line[2:] for line in lines if line.startswith("# left out")]
    return list(csv.DictReader(line for line in lines if not line.startswith("#"))), left


def row_time(worker, row):
    """Returns the time of a row in s and its algorithm, of the fastest implementation."""
    keys = [f"{key}={value}" for key, value in row.items() if value and key not in ("name", "count", "workload")]
    found = []
    for more in WAYS.get(row["workload"], [""]):
        text = " ".join([row["workload"], *keys, "precision=fp16 launch=graph", more]).strip()
        reply = worker.ask(op="measure", configuration=text, counters="off", iterations=20, verify=False)
        record = reply.get("record", {})
        if not record.get("graph_time"):
            raise SystemExit(f"{text}: {record.get('error') or reply}")
        found.append((record["graph_time"], f"{record['implementation']} {record.get('algorithm', '')}"))
    return min(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("worker")
    parser.add_argument("--allowed", type=float, default=0.1, help="largest difference, in parts of the network's time")
    arguments = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    libraries = cudnn_folder() + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    worker = AskedWorker(os.path.abspath(arguments.worker), os.environ | {"LD_LIBRARY_PATH": libraries})
    beyond = 0
    with tempfile.TemporaryDirectory() as folder:
        for network, shape in NETWORKS.items():
            rows, left = rows_of(network, shape, folder)
            times = [row_time(worker, row) for row in rows]
            total = sum(int(row["count"]) * time for row, (time, _) in zip(rows, times, strict=True))
            own = statistics.median(network_time(network, shape) for _ in range(3))
            for row, (time, algorithm) in zip(rows, times, strict=True):
                print(f"  {row['count']:>3} x {1e6 * time:8.2f} us  {row['name']:24} {row['workload']:12} {algorithm}")
            print(*(f"  {line}" for line in left), sep="\n", end="\n" * bool(left))
            print(f"{network.__name__}: rows {1e6 * total:.1f} us, PyTorch {1e6 * own:.1f} us: {total / own:.3f}")
            beyond += not abs(total / own - 1) <= arguments.allowed
            sys.stdout.flush()
    worker.close()
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
