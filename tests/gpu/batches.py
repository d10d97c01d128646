"""Compares rows that are counted together, in any order, with rows that are counted one by one: their counts must be
equal.

If a kernel is counted alone three times, its bytes differ each time: the contents of a cache depend on the addresses of
tensors and on the order of blocks. With hot caches a row moves few bytes from DRAM, a small share of its footprint. So
differences of bytes are taken relative to the footprint or the bytes, whichever is larger. A batch may differ from
single rows by the differences among single rows, plus the largest of MOVED, TOLERANCE (at L2: COALESCED) and FLOOR. The
median difference of the rows is at most MEDIAN. FLOPs must be equal.

Usage: batches.py WORKER, by batches.sh.
"""

import json
import random
import statistics
import subprocess
import sys

FLOOR = 524288  # byte; the device itself may write about as many
TOLERANCE = 0.005
MEDIAN = 0.01  # the median of 18 rows; of the paper's 118 rows it is within 0.005
MOVED = 0.15  # this share of the footprint may move between cache and memory, because tensors have other addresses
COALESCED = 0.1  # share of the bytes at L2: L2 may serve requests of two multiprocessors for the same line together
LEVELS = ("dram", "l2")
ALGORITHM = [
    "algorithm",
    "algorithm_id",
    "algorithm_launches",
    "refused_algorithms",
    "search_candidates",
    "search_time",
    "search_noise",
    "heuristic_algorithm",
    "heuristic_id",
    "heuristic_time",
    "runner_up_algorithm",
    "runner_up_id",
    "runner_up_time",
    "algorithm_origin",
]


def configurations():
    for direction in "forward", "backward-data", "backward-filter":
        for rest in "fp16", "fp16 cache=cold", "fp16 kernel=1 stride=1", "fp32":
            yield f"conv2d pass={direction} precision={rest}"
    yield "matmul precision=fp16"
    yield "matmul precision=fp32 cache=cold m=512"
    for precision in "fp16", "fp32":
        for direction in "forward", "backward":
            yield f"lstm precision={precision} pass={direction}"


def request(row, **members):
    return {
        "op": "measure",
        "configuration": row["configuration"],
        "warmup": 2,
        "iterations": 10,
        "verify": False,
        "algorithm": {name: row[name] for name in ALGORITHM if name in row},
        **members,
    }


def ask(worker, requests):
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    replies = subprocess.run([worker], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [reply["record"] for reply in map(json.loads, replies) if reply["reply"] == "record"]
    wrong = [row for row in found if row["status"] != "measured" or row["counters"] != "counted"]
    assert not wrong, [(row["configuration"], row.get("error"), row.get("counters")) for row in wrong]
    rows = {row["configuration"]: row for row in found}
    assert len(rows) == len(found)
    return rows


def together(worker, rows, size, kernels=False):
    requests = []
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        requests += [request(row, count_later=True, kernels=kernels) for row in part]
        requests += [{"op": "count"}] * len(part)
    found = ask(worker, requests)
    assert len(found) == len(rows)
    return found


def kernels_sum(row):
    flops = sum(kernel["flops_counted"] for kernel in row["kernels"])
    return abs(flops - row["flops_counted"]) <= 1e-3 * row["flops_counted"]


def compare(name, batch, singles):
    """Prints the differences between rows of the batch and single rows. Returns the differences that are too large."""
    faults, off, sums, times = [], {level: [] for level in LEVELS}, {level: [0.0, 0.0] for level in LEVELS}, []
    for text, row in batch.items():
        ones = [single[text] for single in singles]
        if any(one.get("algorithm_launches") != row.get("algorithm_launches") for one in ones):
            continue
        times.append(row["time_median"] / statistics.median(one["time_median"] for one in ones))
        flops = {one["flops_counted"] for one in ones}
        if row["flops_counted"] not in flops:
            faults.append((name, text, "FLOPs", sorted(flops), row["flops_counted"]))
        for level in LEVELS:
            values = [one["bytes_counted"][level] for one in ones]
            value, middle = row["bytes_counted"][level], statistics.median(values)
            share = COALESCED if level == "l2" else TOLERANCE
            room = max(values) - min(values) + max(share * middle, MOVED * row["footprint"], FLOOR)
            off[level].append(abs(value - middle) / max(middle, row["footprint"], FLOOR))
            sums[level][0] += middle
            sums[level][1] += value
            if not min(values) - room <= value <= max(values) + room:
                faults.append((name, text, level, sorted(values), value))
    medians = {level: statistics.median(off[level]) for level in LEVELS}
    summary = "; ".join(
        f"{level}: median row {100 * medians[level]:.3f} % off, all together "
        f"{100 * (sums[level][1] / sums[level][0] - 1):+.3f} %"
        for level in LEVELS
    )
    print(f"{name}: {len(times)} of {len(batch)} rows with the same launches; {summary}; times {min(times):.3f} to "
          f"{max(times):.3f} of those of single rows, median {statistics.median(times):.4f}", flush=True)  # fmt: skip
    faults += [(name, "the median row", level, medians[level]) for level in LEVELS if medians[level] > MEDIAN]
    for fault in faults:
        print("differs:", *fault, flush=True)
    return faults


def main():
    worker, chance = sys.argv[1], random.Random(1)
    search = {"op": "measure", "verify": False}
    first = list(ask(worker, [{**search, "configuration": text} for text in configurations()]).values())
    print(f"{len(first)} rows have their algorithms", flush=True)
    singles = [ask(worker, [request(row) for row in first]) for _ in range(3)]
    shuffled = chance.sample(first, len(first))
    faults = compare("one batch", together(worker, first, len(first)), singles)
    faults += compare("shuffled", together(worker, shuffled, len(first)), singles)
    faults += compare("batches of seven", together(worker, shuffled[::-1], 7), singles)
    kernels = together(worker, [row for row in first if "lstm" not in row["configuration"]], 8, kernels=True)
    faults += compare("with kernels", kernels, singles)
    unlike = [text for text, row in kernels.items() if not kernels_sum(row)]
    print(f"kernels: in {len(unlike)} rows their FLOPs are not the row's {unlike}", flush=True)
    faults += compare("one by one", ask(worker, [request(row) for row in shuffled]), singles)
    return 1 if faults or unlike else 0


if __name__ == "__main__":
    sys.exit(main())
