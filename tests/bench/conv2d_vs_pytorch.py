#!/usr/bin/env python3
"""Times conv2d by PyTorch (cudnn.benchmark) and by roofsweep (`algorithm = auto`), alternating, and prints both times
and their ratio. The exit status is 1 if a ratio exceeds --allowed. Needs a GPU and PyTorch.

Usage: conv2d_vs_pytorch.py WORKER... [--shapes N] [--every N] [--cache hot] [--allowed 1.03]

WORKER is the program roofsweep-worker-cuda. Several workers can be compared, such as before and after a change. The
last one is judged. Cases are all combinations of shape, pass, layout and precision; --every takes each Nth case. A
ratio above 1 means that roofsweep is slower. A case beyond the limit is measured again, because a disturbance may have
caused it.

PyTorch contains a cuDNN. The workers use this cuDNN, too, so that algorithms are compared and not versions; with
--installed they use the installed one. Gaps between kernels are smaller in a graph than in a stream. So both programs
are timed twice: in a stream (iterations queued after a delay), and in a CUDA graph of several iterations. roofsweep has
a row for each, with `launch = stream` and `launch = graph`, and searches an algorithm for each."""

import argparse
import itertools
import os
import statistics
import sys

import torch

from worker import WorkerProcess

# batch, channels, height and width, filters, kernel, stride: the paper's default, then layers of ResNet-50.
SHAPES = [
    (16, 64, 112, 64, 3, 2),
    (32, 64, 56, 64, 3, 1),
    (32, 3, 224, 64, 7, 2),
    (32, 256, 56, 64, 1, 1),
    (32, 256, 14, 256, 3, 1),
    (16, 64, 112, 64, 9, 2),
    (32, 512, 28, 1024, 1, 2),
]
PASSES = ["forward", "backward-data", "backward-filter"]
LAYOUTS = {"nhwc": torch.channels_last, "nchw": torch.contiguous_format}
# {`launch` of a row: field of the record that is compared}. In a graph of one iteration an iteration takes longer than
# in a graph of several.
LAUNCHES = {"stream": "time_median", "graph": "graph_time"}
PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16}


def pytorch_call(case):
    (batch, channels, size, filters, kernel, stride), direction, layout, precision = case
    options = {"device": "cuda", "dtype": PRECISIONS[precision]}
    padding = kernel // 2

    def tensor(*shape):
        return (2 * torch.rand(*shape, **options) - 1).contiguous(memory_format=LAYOUTS[layout])

    x = tensor(batch, channels, size, size)
    w = tensor(filters, channels, kernel, kernel)
    if direction == "forward":
        return lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)
    out = (size + 2 * padding - kernel) // stride + 1
    dy = tensor(batch, filters, out, out)
    wanted = [direction == "backward-data", direction == "backward-filter", False]
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, wanted
    )


def in_graph(call, iterations):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(iterations):
            call()
    return graph.replay


def in_stream(call, iterations):

    def run():
        for _ in range(iterations):
            call()

    return run


def pytorch_time(run, iterations, repetitions=9):
    """Returns the time of an iteration in s: the median of runs that are enqueued while the device waits."""
    times = []
    for _ in range(repetitions + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(4_000_000)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(1e-3 * begin.elapsed_time(end) / iterations)
    return statistics.median(times[2:])


def pytorch_times(case, iterations=20):
    call = pytorch_call(case)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    return [pytorch_time(way(call, iterations), iterations) for way in (in_graph, in_stream)]


def cudnn_folder():
    torch.backends.cudnn.version()
    torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3, device="cuda"), torch.ones(1, 1, 3, 3, device="cuda"))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(os.path.dirname(line.split()[-1]) for line in maps if "/libcudnn.so" in line)


class Worker(WorkerProcess):
    def __init__(self, program, libraries):
        environment = dict(os.environ)
        if libraries:
            environment["LD_LIBRARY_PATH"] = libraries + ":" + environment.get("LD_LIBRARY_PATH", "")
        super().__init__(program, environment)

    def measure(self, case, cache, launch):
        (batch, channels, size, filters, kernel, stride), direction, layout, precision = case
        text = (
            f"conv2d batch={batch} channels={channels} height={size} width={size} filters={filters} kernel={kernel} "
            f"stride={stride} pass={direction} layout={layout} precision={precision} cache={cache} "
            f"launch={launch}"
        )
        reply = self.ask(op="measure", configuration=text, counters="off", iterations=20)
        if reply["reply"] != "record":
            raise SystemExit(f"{text}: {reply}")
        return reply["record"]


def case_name(case):
    """Returns the shape as one word of the table, and the other properties."""
    (batch, channels, size, filters, kernel, stride), direction, layout, precision = case
    return f"{batch}x{channels}x{size}x{size} f{filters} k{kernel} s{stride}", direction, layout, precision


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("worker", nargs="+")
    parser.add_argument("--shapes", type=int, default=5, help="number of shapes; 5 shapes are 60 cases")
    parser.add_argument("--every", type=int, default=1, help="take each Nth case")
    parser.add_argument("--cache", default="hot", help="cache of roofsweep's rows")
    parser.add_argument("--allowed", type=float, default=1.03, help="largest ratio")
    parser.add_argument("--installed", action="store_true", help="roofsweep with its own cuDNN")
    arguments = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    libraries = None if arguments.installed else cudnn_folder()
    workers = [Worker(os.path.abspath(worker), libraries) for worker in arguments.worker]
    device = workers[-1].ask(op="describe", counters="off")["device"]
    print(f"{device['model']}; roofsweep {device['library_version']}; PyTorch {torch.__version__}", end=" ")
    print(f"cuDNN {torch.backends.cudnn.version()}; times in us")
    columns = "".join(f"{'stream':>9} {'ratio':>5} {'graph':>9} {'ratio':>5}" for _ in workers)
    print(f"{'':54} PyTorch {'':14} roofsweep")
    print(f"{'shape':26} {'pass':15} {'order':5} {'in':4} {'stream':>9} {'graph':>9} {columns}  algorithm")
    cases = list(itertools.product(SHAPES[: arguments.shapes], PASSES, LAYOUTS, PRECISIONS))[:: arguments.every]
    beyond, ratios = [], []
    for case in cases:
        for _ in range(2):
            graph, stream = pytorch_times(case)
            pairs = [[worker.measure(case, arguments.cache, launch) for launch in LAUNCHES] for worker in workers]
            times = [
                [record.get(name) or float("nan") for record, name in zip(pair, LAUNCHES.values(), strict=True)]
                for pair in pairs
            ]
            ratio = max(times[-1][0] / stream, times[-1][1] / graph)
            if ratio <= arguments.allowed:
                break
        shape, *names = case_name(case)
        print(f"{shape:26} {names[0]:15} {names[1]:5} {names[2]:4} {1e6 * stream:9.2f} {1e6 * graph:9.2f}", end=" ")
        for ours, own in times:
            print(f"{1e6 * ours:9.2f} {ours / stream:5.3f} {1e6 * own:9.2f} {own / graph:5.3f}", end=" ")
        rows = itertools.chain(*pairs)
        texts = [f"{r.get('algorithm')} {r.get('wall_time', 0):.2f} s {r.get('error', '')}" for r in rows]
        print("", "; ".join(texts), flush=True)
        ratios.append((times[-1][0] / stream, times[-1][1] / graph))
        if not max(ratios[-1]) <= arguments.allowed:
            beyond.append(case)
    for way, found in zip(("stream", "graph"), zip(*ratios, strict=True), strict=True):
        print(f"{way}: {len(cases)} cases, ratio median {statistics.median(found):.3f}, largest {max(found):.3f}")
    print(f"{len(beyond)} beyond {arguments.allowed}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
