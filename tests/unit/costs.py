"""Compares FLOPs, bytes and memory of 700 random convolutions, pools and recurrent layers with a second computation,
which counts pixels and weights one by one.

Usage: costs.py FOLDER_OF_PROGRAMS"""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

KEYS = ("flops", "bytes", "memory")
PASSES = {"forward": ("xw", "y"), "backward-data": ("wy", "x"), "backward-filter": ("xy", "w")}
CELLS = {"lstm": (4, 4, 4), "gru": (3, 6, 4), "relu": (1, 0, 1), "tanh": (1, 0, 1)}  # gates, FLOPs, biases of a unit


def convolution(draw):
    """Returns a random convolution, and its FLOPs, bytes and memory in fp16. Without output, the FLOPs are 0."""
    groups, (name, (read, written)) = draw.choice([1, 1, 1, 2, 32]), draw.choice(list(PASSES.items()))
    batch, channels, filters = draw.choice([1, 8, 32]), draw.choice([1, 3, 64]), draw.choice([1, 8, 96])
    sizes = draw.choice([(224, 224), (700, 161), (7, 7), (1, 1), (1, 70000), (14, 13)])
    kernel = draw.choice([(1, 1), (3, 3), (1, 7), (5, 10), (4, 4), (11, 11), (1, 2)])
    stride, dilation = ([draw.choice(of) for _ in range(2)] for of in ((1, 1, 2, 3, 4, 5), (1, 1, 2, 3, 5, 512)))
    padding = [(side, side + draw.choice([0, 0, 1])) for side in (draw.randrange(width + 1) for width in kernel)]
    axes = [counted(*axis) for axis in zip(sizes, kernel, stride, dilation, padding, strict=True)]
    (high, rows, taps_high), (wide, columns, taps_wide) = axes
    images, weights, y = batch * groups * channels, groups * filters * channels, batch * groups * filters * high * wide
    used = {"x": images * rows * columns, "w": weights * taps_high * taps_wide, "y": y}
    whole = {"x": images * sizes[0] * sizes[1], "w": weights * kernel[0] * kernel[1], "y": y}
    row = {"batch": batch, "groups": groups, "channels": groups * channels, "filters": groups * filters}
    row |= {"height": sizes[0], "width": sizes[1], "pass": name, "padding": "x".join(f"{a}:{b}" for a, b in padding)}
    row |= {key: "{}x{}".format(*of) for key, of in (("kernel", kernel), ("stride", stride), ("dilation", dilation))}
    bytes_of = [2 * (sum(sizes[of] for of in read) + whole[written]) for sizes in (used, whole)]
    return row, (2 * y * channels * kernel[0] * kernel[1], *bytes_of)


def pool(draw):
    window, sizes = [[draw.choice(of) for _ in range(2)] for of in ((1, 2, 3, 5), (1, 7, 8, 19, 30))]
    stride, images = [draw.randrange(1, 7) for _ in range(2)], draw.choice([1, 6])
    padding = [(draw.randrange(width), draw.randrange(width)) for width in window]
    (high, rows, _), (wide, columns, _) = (
        counted(*axis) for axis in zip(sizes, window, stride, [1, 1], padding, strict=True)
    )
    row = {"batch": images, "channels": 1, "height": sizes[0], "width": sizes[1]}
    row |= {key: "{}x{}".format(*of) for key, of in (("window", window), ("stride", stride))}
    row |= {"padding": "x".join(f"{a}:{b}" for a, b in padding), "pass": draw.choice(["forward", "backward"])}
    row |= {"operation": draw.choice(["max", "average"])}
    x, y, backward = images * sizes[0] * sizes[1], images * high * wide, row["pass"] == "backward"
    reads, others = not backward or row["operation"] == "max", y + x * backward
    memory = [2 * (reads * read + others) for read in (images * rows * columns, x)]
    return row, (y * window[0] * window[1], *memory)


def counted(size, kernel, stride, dilation, padding):
    """Returns the numbers of outputs, of pixels that a tap reads, and of taps that read a pixel, on one axis."""
    outputs = max(0, (size + sum(padding) - dilation * (kernel - 1) - 1) // stride + 1)
    first = [tap * dilation - padding[0] for tap in range(kernel)]
    taps = [{at for at in range(begin, begin + outputs * stride, stride) if 0 <= at < size} for begin in first]
    return outputs, len(set().union(*taps)), sum(map(bool, taps))


def recurrent(draw):
    cell, hidden, layers, directions = draw.choice(list(CELLS)), draw.choice([256, 1536]), draw.choice([1, 1, 3]), 2
    row = {"cell": cell, "hidden": hidden, "layers": layers, "directions": draw.choice([1, directions])}
    row |= {"features": draw.choice([hidden, 39]), "sequence": draw.randrange(1, 1500), "batch": draw.choice([1, 128])}
    (gates, pointwise, biases), width, output = CELLS[cell], row["features"], row["directions"] * hidden
    steps, flops = row["sequence"] * row["batch"], 0
    elements = steps * (width + output)
    for _ in range(layers):
        flops += steps * output * (2 * gates * (width + hidden) + pointwise)
        elements += output * (gates * (width + hidden) + biases)
        width = output
    return row, (flops, 2 * elements, 2 * elements)


def main(programs):
    draw, expected = random.Random(1), []
    with tempfile.TemporaryDirectory() as folder:
        manifest = ""
        for workload, line, count in ("conv2d", convolution, 400), ("pool", pool, 200), ("lstm", recurrent, 100):
            lines, names = {}, ""
            while len(lines) < count:
                row, cost = line(draw)
                names = ",".join(row)
                lines |= {",".join(map(str, row.values())): cost} if cost[0] else {}
            Path(folder, f"{workload}.csv").write_text("\n".join([names, *lines]))
            manifest += f"[{workload} a]\nlist = {workload}.csv\nprecision = fp16\n"
            expected += lines.values()
        Path(folder, "m.ini").write_text(manifest)
        command = [os.path.abspath(f"{programs}/roofsweep"), "--dry-run", "--json", "m.ini"]
        plan = json.loads(subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout)
    pairs = zip(plan["configurations"], expected, strict=True)
    wrong = [(found, cost) for found, cost in pairs if tuple(found[key] for key in KEYS) != cost]
    for found, cost in wrong:
        print(f"{found['configuration']}: {[found[key] for key in KEYS]}, not {cost}")
    print(f"{len(expected)} lines, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
