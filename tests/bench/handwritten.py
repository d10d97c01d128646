#!/usr/bin/env python3
"""Kernels written by hand beside the library's, by turns in one worker on one GPU.

Prints for each case the library's median time of an iteration and, for each implementation by hand, its time and the
ratio: how much of the library's speed it has. Where a case asks for a part of that speed, and it is not reached, the
exit status is 1. Usage: tests/bench/handwritten.py [BUILD] [ROUNDS]; 77 without a GPU.
"""

import statistics
import sys
from pathlib import Path

from asked_worker import AskedWorker

HALF = "conv2d precision=fp16"
STAGE = f"{HALF} batch=32 stride=1"
LSTM = "lstm precision=fp16"
# A configuration, its library, and by hand: the implementation and what part of the library's speed is asked of it.
CASES = [
    (HALF, "cudnn", {"tiled": 0.6, "plain": None}),
    ("conv2d precision=bf16", "cudnn", {"tiled": 0.6}),
    (f"{HALF} batch=64", "cudnn", {"tiled": 0.6}),
    (f"{HALF} filters=512", "cudnn", {"tiled": 0.6}),
    (f"{STAGE} channels=64 filters=64 height=56 width=56", "cudnn", {"tiled": 0.6, "plain": None}),
    (f"{STAGE} channels=128 filters=128 height=28 width=28", "cudnn", {"tiled": 0.6}),
    (f"{STAGE} channels=256 filters=256 height=14 width=14", "cudnn", {"tiled": 0.6}),
    (f"{STAGE} channels=512 filters=512 height=7 width=7", "cudnn", {"tiled": 0.6}),
    (f"{STAGE} channels=64 filters=256 height=56 width=56 kernel=1", "cudnn", {"tiled": 0.6}),
    (f"{STAGE} channels=256 filters=64 height=56 width=56 kernel=1", "cudnn", {"tiled": 0.6}),
    (f"{HALF} batch=32 channels=512 filters=1024 height=28 width=28 kernel=1", "cudnn", {"tiled": 0.6}),
    (f"{STAGE} channels=64 filters=64 height=56 width=56 bias=yes activation=relu", "cudnn", {"tiled": None}),
    *(
        (f"{LSTM} launch={launch}{shape}", "cudnn", {"persistent": asked})
        for shape, asked in (
            ("", 1.0),
            (" batch=128", 1.0),
            (" features=256", None),
            (" hidden=32", 1.0),
            (" hidden=64", 1.0),
            (" hidden=128", None),
            (" hidden=256", None),
            (" sequence=128", 1.0),
            (" sequence=128 features=128 hidden=64", None),
            (" sequence=128 features=128 hidden=128", None),
            (" sequence=128 features=128 hidden=256", None),
            (" batch=1024 sequence=64 features=256 hidden=256", None),
        )
        for launch in ("stream", "graph")
    ),
]


class Worker(AskedWorker):
    def time(self, configuration):
        """s, of an iteration, and what ran or why nothing did. It is verified."""
        reply = self.ask(op="measure", configuration=configuration, iterations=20, counters="off", verify=True)
        if reply["reply"] != "record":
            return None, reply.get("text", str(reply))
        record = reply["record"]
        return record.get("time_median"), record["algorithm"] or record["error"]


def case_measure(worker, configuration, implementations, rounds):
    """By implementation: the median over the rounds, which take turns, and what ran."""
    times, notes = {name: [] for name in implementations}, {}
    for _ in range(rounds):
        for name in implementations:
            seconds, notes[name] = worker.time(f"{configuration} implementation={name}")
            if seconds is None:
                return None, f"{name}: {notes[name]}"
            times[name].append(seconds)
    return {name: statistics.median(values) for name, values in times.items()}, notes


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    program = build / "bin" / "roofsweep-worker-cuda"
    if not program.is_file():
        print("the CUDA worker is not built")
        sys.exit(77)
    worker = Worker(program)
    described = worker.ask(op="describe")
    if described["reply"] == "error":
        print(described["text"])
        sys.exit(77)
    print(f"{described['device']['model']}, {described['device']['library_version']}")
    print(f"{'configuration':80} {'library':>9} {'by hand':>9} {'ratio':>6}")
    missed = 0
    for configuration, library, by_hand in CASES:
        times, notes = case_measure(worker, configuration, [library, *by_hand], rounds)
        if times is None:
            print(f"{configuration:80} FAILED {notes}")
            missed += 1
            continue
        for name, asked in by_hand.items():
            ratio = times[library] / times[name]
            below = asked is not None and ratio < asked
            missed += below
            print(
                f"{configuration:80} {1e6 * times[library]:6.1f} us {1e6 * times[name]:6.1f} us {ratio:6.2f}"
                f"{' BELOW' if below else ''}  {name}: {notes[name]}",
                flush=True,
            )
    print(f"{missed} below what is asked")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
