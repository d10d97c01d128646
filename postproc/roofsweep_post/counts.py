"""Explains why counted FLOPs or bytes of device memory differ from modelled ones. PATTERNS match workloads and names of
kernels, and the first pattern that matches gives the reason. The reason is likely, not proven."""

import re
from typing import NamedTuple

import numpy as np

FAR = 0.1  # a ratio of counted to modelled that differs more from 1 needs a reason
# Columns of rows() that patterns read.
COLUMNS = ["workload", "configuration", "algorithm", "kernel_names", "kernel_count", "flops_ratio", "bytes_ratio"]
COLUMNS += ["workspace", "footprint", "l2_capacity", "bytes_model", "bytes_counted_dram", "bytes_read_dram"]
COLUMNS += ["bytes_written_dram", "bytes_written_l2"]


class Pattern(NamedTuple):
    ratio: str  # "flops" or "bytes"
    more: bool | None  # True: more counted than modelled, False: less, None: both
    workload: str  # regular expression that matches the whole name; "": any workload
    name: str  # regular expression searched in the names of algorithm and kernels; "": any
    reason: str
    when: object = None  # function of a row (dict of COLUMNS) that must return true


def cold(row):
    return "cache=cold" in row["configuration"]


def masked(row):
    return "mask=causal" in row["configuration"]


def beyond(row):
    """Returns the counted bytes less the modelled ones."""
    return row["bytes_counted_dram"] - row["bytes_model"]


def handed_over(row):
    """Returns whether an exchange of results between kernels, in a workspace, explains the excess. Most kernels write
    and read the workspace once, or less of it if L2 keeps a part. Transforms may move more, because they use the
    workspace for each tile."""
    moved = beyond(row) / row["workspace"] if row["workspace"] > 0 else np.nan
    transforms = "fft" in f"{row['algorithm']} {row['kernel_names']}"
    return row["kernel_count"] > 1 and (moved >= 0 if transforms else 0.1 <= moved <= 2.3)


def read_again(row):
    """Returns whether repeated reads of data that L2 cannot hold explain the excess. A single kernel must move more
    than its tensors. Several kernels may move all tensors once each."""
    moved = row["bytes_read_dram"] + row["bytes_written_l2"]
    again = row["kernel_count"] * row["footprint"]
    many = moved > 1.1 * row["footprint"] if row["kernel_count"] == 1 else row["bytes_counted_dram"] <= again
    return many and row["footprint"] > row["l2_capacity"]


def of_steps(row):
    """Returns whether the row is a program with several kernels, which may exchange results in buffers of their own."""
    return row["kernel_count"] > 1


def single(row):
    return "elements=1 " in row["configuration"] + " "


def own_writes(row):
    """Returns whether the device's own writes explain the excess. Whatever runs, a device occasionally writes up to
    262144 bytes (docs/measurements.md, "Unattributed writes")."""
    written = row["bytes_written_dram"]
    small = row["footprint"] < row["l2_capacity"] / 4
    return small and 64e3 <= written <= 300e3 and written >= 0.5 * beyond(row)


def code(row):
    return cold(row) and beyond(row) <= 64e3 * max(row["kernel_count"], 1)


CELLS = "lstm|gru|rnn|program"
PRODUCTS = "conv2d|matmul|linear|attention|program"
TILES = r"\d+x\d+|_engine|gemm"
CONVERTS = "nchwToNhwc|nhwcToNchw|FoldedNhwc|convertTensor|AddPadding|cvt|transpose"
PATTERNS = [
    Pattern("flops", True, CELLS, "persist|lstm_tile", "a recurrence of whole tiles, and of functions"),
    Pattern("flops", True, CELLS, "elementwise|elemwise", "functions such as sigmoids are no FLOPs in the model"),
    Pattern("flops", True, CELLS, TILES, "products of whole tiles, and functions such as sigmoids"),
    Pattern("flops", False, "", "winograd", "Winograd's algorithm multiplies less"),
    Pattern("flops", None, "", "fft", "Fourier transforms stand for multiply-adds"),
    Pattern("flops", False, "conv2d", "", "products with padding zeros are left out"),
    Pattern("flops", True, "attention", "", "pairs are computed that the mask hides", masked),
    Pattern("flops", True, PRODUCTS, TILES, "whole tiles are computed"),
    Pattern("flops", True, "compute-loop", "", "each thread computes several values, but one is needed", single),
    Pattern("flops", False, "pool|elementwise", "", "a maximum is one FLOP in the model and none to counters"),
    Pattern("flops", None, "norm|softmax|attention|elementwise|pool", "", "sums across threads, quotients, roots"),
    Pattern("bytes", True, "", CONVERTS, "kernels that convert the layout ran"),
    Pattern("bytes", True, "", "splitKreduce|ReduceSplit", "kernels that add partial sums ran"),
    Pattern("bytes", True, "attention", "three-steps", "the scores are written and read between its steps"),
    Pattern("bytes", True, "", "-separate", "the kernel after the product reads it and writes it again"),
    Pattern("bytes", True, "", "scalePackedTensor", "a kernel sets the result to zero, and another adds to it"),
    Pattern("bytes", True, "", "", "its kernels hand over results in a workspace", handed_over),
    Pattern("bytes", True, "", "", "its kernels read again what l2 does not hold", read_again),
    Pattern("bytes", True, "program", "", "its kernels hand over results in buffers of the program", of_steps),
    Pattern("bytes", True, "", "", "the device's own occasional writes are a part of it", own_writes),
    Pattern("bytes", True, "", "", "a cold cache reads the code of its kernels, too", code),
    Pattern("bytes", False, "", "", "written data is still in l2", cold),
    Pattern("bytes", False, "", "", "hot cache: l2 holds all tensors or a part"),
]


def reason(ratio, row):
    """Returns the reason why row[f"{ratio}_ratio"] is far from 1; "" if it is near 1."""
    more, names = row[f"{ratio}_ratio"] > 1, f"{row['algorithm']} {row['kernel_names']}"
    for pattern in PATTERNS:
        if (
            pattern.ratio == ratio
            and pattern.more in (None, more)
            and re.fullmatch(pattern.workload or ".*", row["workload"])
            and re.search(pattern.name, names, re.IGNORECASE)
            and (pattern.when is None or pattern.when(row))
        ):
            return pattern.reason
    return "not explained"


def notes(table):
    """Returns a note for each row of a table with COLUMNS; "" if counted FLOPs and bytes are near the modelled ones."""
    far = np.zeros(len(table), bool)
    for name in ("flops_ratio", "bytes_ratio"):
        far |= (np.isfinite(table[name]) & ((table[name] - 1).abs() > FAR)).to_numpy()
    found = np.full(len(table), "", dtype=object)
    for place, row in zip(np.flatnonzero(far), table.loc[far, COLUMNS].to_dict("records")):
        found[place] = "; ".join(
            f"{what}: counted is {row[f'{of}_ratio']:.3g} times the model: {reason(of, row)}"
            for of, what in [("flops", "FLOPs"), ("bytes", "dram bytes")]
            if np.isfinite(row[f"{of}_ratio"]) and abs(row[f"{of}_ratio"] - 1) > FAR
        )
    return found
