"""Measures 100 rows of random shapes in all passes and precisions; prints rows that fail or are inaccurate.

Usage: random_rows.py FOLDER_OF_PROGRAMS [SEED [DEVICE]]

Prints the number of skipped rows by reason: the device or its library does not offer them. The exit status is 1 if a
row fails."""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HEAD = "[sweep]\noutput = random.nc\n[measure]\ncounters = off\n[peaks]\nmemory = dram\ncompute = fp32\n"
ANY = {"precision": ["fp64", "fp32", "tf32", "fp16", "bf16"], "pass": ["forward", "backward"]}
IMAGE = {"batch": (1, 32), "height": (8, 120), "width": (8, 120), "channels": (1, 64)}
IMAGE |= {"layout": ["nhwc", "nchw"], "stride": [1, 2, 3, "2x1", "1x3"], "padding": ["same", "same", "1x0", "0:1"]}
CONV2D = {"filters": (1, 64), "groups": [1, 1, 2, 3, 8], "kernel": ["1x1", "3x3", "1x7", "5x2", "4x6", "7x7"]}
CONV2D |= {"dilation": [1, 1, 2, "1x2"], "pass": ["forward", "backward-data", "backward-filter", "training"]}
LSTM = {"batch": (1, 64), "sequence": (1, 40), "features": (1, 200), "hidden": (1, 300), "layers": [1, 2, 3]}
LSTM |= {"directions": [1, 2], "cell": ["lstm", "lstm", "gru", "relu", "tanh"]}
LINEAR = {"batch": (1, 600), "inputs": (1, 1500), "outputs": (1, 1500), "pass": ["forward", "backward-weights"]}
MATRIX = {"rows": (2, 3000), "columns": (2, 3000)}
WORKLOADS = [("conv2d", IMAGE | CONV2D)] * 5 + [("lstm", LSTM)] * 2
WORKLOADS += [("linear", LINEAR), ("softmax", MATRIX), ("norm", MATRIX | {"operation": ["batch", "layer"]})]
WORKLOADS += [("pool", IMAGE | {"window": [2, 3, 5, "3x2"], "operation": ["max", "average"]})]


def section(draw, number):
    """Returns a section of a manifest with one row. Its sizes are arbitrary, or multiples that tensor units need."""
    multiple = draw.choice([1, 1, 2, 4, 8])
    workload, keys = draw.choice(WORKLOADS)
    row = {key: draw.choice(of) for key, of in (ANY | keys).items() if isinstance(of, list)}
    for key, of in keys.items():
        if isinstance(of, tuple):
            times = multiple * row.get("groups", 1) if key in ("channels", "filters") else multiple
            row[key] = times * -(-draw.randint(*of) // times)
    return f"[{workload} row-{number}]\n" + "".join(f"{key} = {value}\n" for key, value in row.items())


def main(programs, seed="1", device="auto"):
    draw, found = random.Random(int(seed)), Counter()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "random.ini").write_text(HEAD + "".join(section(draw, number) for number in range(100)))
        command = ["mpirun", "-n", "1", os.path.abspath(f"{programs}/roofsweep"), "-q", "-d", device, "random.ini"]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        subprocess.run(command, cwd=folder, env=os.environ | root, stdout=subprocess.DEVNULL, check=False)
        lines = [json.loads(line) for line in Path(folder, "random.nc.journal").read_text().splitlines()]
    for record in (line["entry"] for line in lines if line["kind"] == "record"):
        skipped = record["status"] == "skipped"
        found[f"skipped: {record['error'][:100]}" if skipped else record["status"]] += 1
        if record["status"] == "failed" or record.get("accuracy"):
            print(f"{record['status']}: {record['configuration']}: {record.get('error') or record['accuracy']}")
    print(*(f"{count} {what}" for what, count in found.most_common()), f"seed {seed}", sep="\n")
    return 1 if found["failed"] or not found["measured"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
