#!/usr/bin/env python3
"""Own kernels of the workloads that stream beside cuDNN, PyTorch and the device's copy roof, in one run, as ratios.
Needs a GPU; without PyTorch its columns are empty.

Usage: streams.py WORKER [--precision fp16] [--only WORD...] [--allowed 0.95] [--verify]

WORKER is the program roofsweep-worker-cuda. A case's roof is the time that a copy takes for the same bytes: those of
the model, and where a pass must read its input twice (the sums of a batch norm come before their use) those as well.
"roof" is the part of it that own kernels reach, "cuDNN" and "PyTorch" their time over that of own kernels: above 1 own
kernels are the faster ones. Exit status 1 if own kernels reach less than --allowed of the roof in any case that
streams. Attention does not stream: it has no roof here."""

import argparse
import math
import statistics
import sys

from asked_worker import AskedWorker

try:
    import torch
except ImportError:
    torch = None

BYTES = {"fp16": 2, "bf16": 2, "fp32": 4}
ELEMENTS = 1 << 26
ROWS, COLUMNS = 1 << 16, 1024
IMAGES, CHANNELS, SIDE = 256, 64, 56
POOL_IMAGES, POOL_SIDE = 64, 112
POOL = f"pool batch={POOL_IMAGES} channels={CHANNELS} height={POOL_SIDE} width={POOL_SIDE} window=3 layout=nhwc"
ATTENTION = "attention batch=4 heads=16 sequence=2048 keys=2048 head_size=64"


# ---- PyTorch: each function takes the type, and gives back what runs one iteration ----


def filled(kind, *shape, last=False):
    tensor = 2 * torch.rand(*shape, device="cuda", dtype=kind) - 1
    return tensor.contiguous(memory_format=torch.channels_last) if last else tensor


def torch_elementwise(operation):
    def make(kind):
        x, w = filled(kind, ELEMENTS), filled(kind, ELEMENTS)
        calls = {
            "relu": lambda: torch.relu(x),
            "sigmoid": lambda: torch.sigmoid(x),
            "tanh": lambda: torch.tanh(x),
            "add": lambda: torch.add(x, w),
            "scale": lambda: torch.mul(x, -0.75),
        }
        return calls[operation]

    return make


def torch_pool(operation, stride, backward):
    def make(kind):
        x = filled(kind, POOL_IMAGES, CHANNELS, POOL_SIDE, POOL_SIDE, last=True)
        if operation == "max":
            y, indices = torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [stride] * 2, [1, 1])
        else:
            y = torch.nn.functional.avg_pool2d(x, 3, stride, 1)
        dy = filled(kind, *y.shape, last=True)
        window = [3, 3], [stride] * 2, [1, 1]
        calls = {
            ("max", False): lambda: torch.nn.functional.max_pool2d(x, 3, stride, 1),
            ("average", False): lambda: torch.nn.functional.avg_pool2d(x, 3, stride, 1),
            ("max", True): lambda: torch.ops.aten.max_pool2d_with_indices_backward(
                dy, x, *window, [1, 1], False, indices
            ),
            ("average", True): lambda: torch.ops.aten.avg_pool2d_backward(dy, x, *window, False, True, None),
        }
        return calls[operation, backward]

    return make


def torch_softmax(backward):
    def make(kind):
        x, dy = filled(kind, ROWS, COLUMNS), filled(kind, ROWS, COLUMNS)
        y = torch.softmax(x, -1)
        if backward:
            return lambda: torch.ops.aten._softmax_backward_data(dy, y, -1, kind)
        return lambda: torch.softmax(x, -1)

    return make


def torch_layer(which):
    def make(kind):
        x, dy = filled(kind, ROWS, COLUMNS), filled(kind, ROWS, COLUMNS)
        gamma, beta = filled(kind, COLUMNS), filled(kind, COLUMNS)
        _, mean, inverse = torch.ops.aten.native_layer_norm(x, [COLUMNS], gamma, beta, 1e-5)
        if which == "backward":
            return lambda: torch.ops.aten.native_layer_norm_backward(
                dy, x, [COLUMNS], mean, inverse, gamma, beta, [True] * 3
            )
        return lambda: torch.ops.aten.native_layer_norm(x, [COLUMNS], gamma, beta, 1e-5)

    return make


def torch_batch(which):
    def make(kind):
        x, dy = (filled(kind, IMAGES, CHANNELS, SIDE, SIDE, last=True) for _ in range(2))
        gamma, beta = filled(torch.float32, CHANNELS), filled(torch.float32, CHANNELS)
        mean, variance = torch.zeros(CHANNELS, device="cuda"), torch.ones(CHANNELS, device="cuda")
        if which != "backward":
            training = which == "training"
            return lambda: torch.nn.functional.batch_norm(x, mean, variance, gamma, beta, training)
        x.requires_grad_()
        for parameter in (gamma, beta):
            parameter.requires_grad_()
        y = torch.nn.functional.batch_norm(x, None, None, gamma, beta, True)
        return lambda: torch.autograd.grad(y, (x, gamma, beta), dy, retain_graph=True)

    return make


def torch_attention(kind):
    q, k, v = (filled(kind, 4, 16, 2048, 64) for _ in range(3))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


# ---- cases: name, configuration, elements that a perfect pass moves (NaN: it does not stream), PyTorch's way ----


def pool_elements(stride, backward, operation):
    x = POOL_IMAGES * CHANNELS * POOL_SIDE**2
    y = x // stride**2
    return x + y if not backward or operation == "average" else 2 * x + y


def cases():
    for operation in ("relu", "sigmoid", "tanh", "add", "scale"):
        text = f"elementwise operation={operation} elements={ELEMENTS}"
        yield operation, text, (3 if operation == "add" else 2) * ELEMENTS, torch_elementwise(operation)
    for which in ("forward", "backward"):
        for operation in ("max", "average"):
            for stride in (1, 2):
                text = f"{POOL} stride={stride} operation={operation}"
                elements = pool_elements(stride, which == "backward", operation)
                call = torch_pool(operation, stride, which == "backward")
                later = " pass=backward" if which == "backward" else ""
                yield f"pool-{operation}-{stride}-{which}", text + later, elements, call
    for which, tensors in (("forward", 2), ("backward", 3)):
        text = f"softmax rows={ROWS} columns={COLUMNS} pass={which}"
        yield f"softmax-{which}", text, tensors * ROWS * COLUMNS, torch_softmax(which == "backward")
    for which, tensors in (("forward", 2), ("training", 2), ("backward", 3)):
        text = f"norm operation=layer rows={ROWS} columns={COLUMNS} pass={which}"
        yield f"layer-norm-{which}", text, tensors * ROWS * COLUMNS, torch_layer(which)
    for which, tensors in (("forward", 2), ("training", 3), ("backward", 5)):
        rows = IMAGES * SIDE**2
        text = f"norm operation=batch rows={rows} columns={CHANNELS} pass={which}"
        yield f"batch-norm-{which}", text, tensors * rows * CHANNELS, torch_batch(which)
    yield "attention", ATTENTION, math.nan, torch_attention


# ---- measuring ----


def torch_time(make, precision, iterations=20, repetitions=7):
    """s, one iteration: the median of some runs, each enqueued while the device waits. NaN: PyTorch lacks it."""
    if not torch:
        return math.nan
    kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
    times = []
    try:
        call = make(kinds[precision])
        for _ in range(repetitions + 2):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(4_000_000)
            begin.record()
            for _ in range(iterations):
                call()
            end.record()
            end.synchronize()
            times.append(1e-3 * begin.elapsed_time(end) / iterations)
    except RuntimeError as reason:
        print(f"PyTorch: {str(reason).splitlines()[0]}", file=sys.stderr)
        return math.nan
    finally:
        torch.cuda.empty_cache()
    return statistics.median(times[2:])


class Worker(AskedWorker):
    def copy_bandwidth(self):
        """byte/s of the device's copy roof."""
        request = {"memory": ["dram"], "compute": [], "launch": False, "transfer": False}
        reply = self.ask(op="roofs", **request)
        if reply["reply"] == "error":
            sys.exit(reply["text"])
        roofs = reply["device"]["roofs"]
        return next(roof["bandwidth"] for roof in roofs if roof["name"] == "dram copy")

    def time(self, configuration, verify):
        """s of the median iteration, and what is wrong with it."""
        request = {"counters": "off", "warmup": 3, "iterations": 30, "verify": verify}
        reply = self.ask(op="measure", configuration=configuration, **request)
        record = reply.get("record", {"error": reply.get("text", "")})
        return record.get("time_median") or math.nan, record.get("error", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("worker")
    parser.add_argument("--precision", default="fp16", choices=BYTES)
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose names contain one of these words")
    parser.add_argument("--allowed", type=float, default=0.95, help="smallest part of the roof")
    parser.add_argument("--verify", action="store_true", help="compare each result with the reference")
    arguments = parser.parse_args()
    worker = Worker(arguments.worker)
    bandwidth = worker.copy_bandwidth()
    print(f"copy roof {1e-12 * bandwidth:.3f} TB/s; {arguments.precision}; times in us, then ratios")
    print(f"{'case':26} {'own':>8} {'cuDNN':>8} {'PyTorch':>8} {'copy':>8} | {'roof':>5} {'cuDNN':>6} {'PyTorch':>7}")
    below = []
    worker.time(next(cases())[1], False)  # the clock of an idle GPU is low at first
    for name, text, elements, call in cases():
        if not any(word in name for word in arguments.only):
            continue
        notes, times = [], []
        for implementation in ("plain", "cudnn"):
            configuration = f"{text} precision={arguments.precision} implementation={implementation}"
            time, note = worker.time(configuration, arguments.verify)
            times.append(time)
            notes += [note] if note else []
        own, library = times
        other = torch_time(call, arguments.precision)
        copy = elements * BYTES[arguments.precision] / bandwidth
        columns = " ".join(f"{1e6 * time:8.2f}" for time in (own, library, other, copy))
        print(f"{name:26} {columns} | {copy / own:5.3f} {library / own:6.2f} {other / own:7.2f}", *notes, flush=True)
        if copy / own < arguments.allowed:
            below.append(name)
    print(f"below {arguments.allowed} of the copy roof: {', '.join(below) or 'none'}")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
