#!/usr/bin/env python3
"""The CPU's own routines beside oneDNN's, on the same cores and by turns.

Prints the best rate of each over all rounds, their ratio, and what part of its roof oneDNN reaches. Fails where that is
more than 102 %. Usage: tests/bench/onednn.py [BUILD] [ROUNDS]
"""

import sys
from pathlib import Path

from asked_worker import AskedWorker

CONV2D = "conv2d batch=4 height=56 width=56 channels=64 filters=64 kernel=3 stride=1"
STEM = "conv2d batch=4 height=112 width=112 channels=3 filters=64 kernel=7 stride=2"
POINTS = "conv2d batch=4 height=28 width=28 channels=256 filters=128 kernel=1 stride=1"
LSTM = "lstm batch=16 sequence=16 features=32 hidden=16"
WIDE = "lstm batch=64 sequence=32 features=256 hidden=256"
LINEAR = "linear batch=512 inputs=1024 outputs=4096 bias=yes activation=relu"
ATTENTION = "attention batch=2 heads=8 sequence=512 keys=512"
CASES = [
    *(
        (f"{CONV2D} layout={layout} pass={which}", "im2col")
        for which in ("forward", "backward-data", "backward-filter")
        for layout in ("nhwc", "nchw")
    ),
    (STEM, "im2col"),
    (POINTS, "im2col"),
    ("matmul m=1024 n=1024 k=1024", "cblas"),
    ("matmul m=256 n=256 k=256", "cblas"),
    (LINEAR, "cblas"),
    *((f"{ATTENTION} causal={causal}", "cblas") for causal in ("no", "yes")),
    *((f"pool batch=16 layout={layout}", "plain") for layout in ("nhwc", "nchw")),
    *((f"softmax columns=1024 pass={which}", "plain") for which in ("forward", "backward")),
    *((f"{shape} pass={which}", "cblas") for shape in (LSTM, WIDE) for which in ("forward", "backward")),
    (f"{CONV2D} precision=bf16", None),
    ("matmul m=1024 n=1024 k=1024 precision=bf16", None),
    (f"{WIDE} precision=bf16", None),
]


class Worker(AskedWorker):
    def ask(self, **request):
        reply = super().ask(**request)
        if reply["reply"] == "error":
            sys.exit(reply["text"])
        return reply

    def measure(self, configuration):
        return self.ask(
            op="measure", configuration=configuration, warmup=3, iterations=30, counters="off", verify=False
        )["record"]


def best_rates(worker, rounds):
    """By configuration and implementation: FLOP/s of the fastest iteration, and what ran or why nothing did."""
    best = {}
    for _ in range(rounds):
        for shape, own in CASES:
            for implementation in filter(None, ("onednn", own)):
                record = worker.measure(f"{shape} implementation={implementation}")
                measured = record.get("time_min") is not None
                rate = record["flops_model"] / record["time_min"] if measured else 0.0
                known = best.setdefault((shape, implementation), [0.0, ""])
                if rate >= known[0]:
                    best[shape, implementation] = [rate, record["algorithm"] if measured else record["error"]]
    return best


def precision_of(shape):
    return "bf16" if "bf16" in shape else "fp32"


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    program = build / "bin" / "roofsweep-worker-cpu"
    if not program.is_file():
        print("the CPU worker is not built")
        sys.exit(77)
    worker = Worker(program)
    device = worker.ask(op="describe")["device"]
    roofs = {}
    for _ in range(rounds):
        answer = worker.ask(op="roofs", memory=[], compute=["fp32", "bf16"], launch=False, transfer=False)
        for roof in answer["device"]["roofs"]:
            precision = roof["name"].split()[0]
            roofs[precision] = max(roofs.get(precision, 0.0), roof["performance"])
    best = best_rates(worker, rounds)
    print(f"{device['model']}, {device['multiprocessors']} cores, {device['library_version']}")
    print("roofs: " + ", ".join(f"{name} {value / 1e9:.0f} GFLOP/s" for name, value in roofs.items()))
    print(f"{'configuration':104} {'own':>8} {'oneDNN':>8} {'ratio':>6} {'% roof':>6}  algorithm")
    above = 0
    for shape, own in CASES:
        rate, name = best[shape, "onednn"]
        other = best[shape, own][0] if own else 0.0
        part = rate / roofs.get(precision_of(shape), float("nan"))
        above += part > 1.02
        ratio = f"{rate / other:6.2f}" if other else " " * 6
        print(f"{shape:104} {other / 1e9:8.1f} {rate / 1e9:8.1f} {ratio} {100 * part:6.1f}  {name}")
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
