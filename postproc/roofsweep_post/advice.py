"""One sentence for each row: what limits it, and what to try. The rules are data: a cause for each limiter, and tries
with the limiters that they help against and a condition on the row."""

from dataclasses import dataclass

import numpy as np

from .texts import scaled, share

# Of a multiply-add on tensor units the channels come in groups of so many bytes.
TENSOR_BYTES = 16
BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
FAR = 1.3  # counted over modelled, beyond which it is worth a word


@dataclass(frozen=True)
class Try:
    """Something to try. limiters: against which it helps; when: whether it fits the row; text: with its figures."""

    name: str
    limiters: tuple
    when: object
    text: object


class Row:
    """A row by name; NaN or "" where the file lacks the variable, so that a rule that needs it does not hold."""

    def __init__(self, values):
        self.values = values

    def __getattr__(self, name):
        value = self.values.get(name)
        return np.nan if value is None else value

    def text(self, name):
        value = self.values.get(name)
        return value if isinstance(value, str) else ""


def compute_share(row):
    """Share of the time that the FLOPs would take at their roof; of an older file computed here."""
    found = row.compute_share
    return share(found if np.isfinite(found) else row.flops / row.peak / row.time_median)


def bandwidth_share(row):
    """The same of the bytes."""
    found = row.bandwidth_share
    return share(found if np.isfinite(found) else row.flops / row.intensity / row.bandwidth / row.time_median)


def bytes_ratio(row):
    level = row.text("roof_memory_level")
    return getattr(row, f"bytes_counted_{level}") / row.bytes_model if level else np.nan


def padding(row):
    """{parameter: multiple} of channels and filters that do not fill the tensor units' groups."""
    multiple = TENSOR_BYTES // BYTES.get(row.text("config_precision"), TENSOR_BYTES)
    return {name: multiple for name in ("channels", "filters") if getattr(row, name) % multiple > 0}


def other_layout(row):
    return {"nhwc": "nchw", "nchw": "nhwc"}.get(row.text("layout_chosen") or row.text("layout"))


CAUSES = {
    "compute": lambda row: (
        f"The roof of the {row.text('unit')} units limits it "
        f"({compute_share(row)} of the time at {scaled(row.peak, 'FLOP/s')})"
    ),
    "bandwidth": lambda row: (
        f"Moving bytes at {row.text('roof_memory_level')} limits it "
        f"({bandwidth_share(row)} of the time at {scaled(row.bandwidth, 'B/s')})"
    ),
    "latency": lambda row: (
        f"Its kernels have too few blocks to fill the device ({share(row.few_blocks_share)} of their time)"
    ),
    "kernel": lambda row: (
        "Its kernels have enough blocks, and yet reach no roof "
        f"(compute {compute_share(row)}, bandwidth {bandwidth_share(row)} of the time)"
    ),
    "overhead": lambda row: (
        f"The device waits between {row.launches:.0f} launches "
        f"(idle for {share(row.gap_share if np.isfinite(row.gap_share) else row.gap / row.time_median)} of the time)"
    ),
    "host": lambda row: (
        f"The host is slower than the device: it enqueues an iteration in "
        f"{scaled(row.host_time, 's')}, the device needs {scaled(row.time_median, 's')}"
    ),
    "unknown": lambda row: "What limits it is not known: a share of its time is missing",
}

LAUNCHED = ("overhead", "host")
IDLE = ("overhead", "host", "latency")
RULES = [
    Try("graph", LAUNCHED, lambda row: row.launches > 1, lambda row: "replaying it from a CUDA graph"),
    Try("fuse", LAUNCHED, lambda row: row.launches >= 4, lambda row: f"fusing its {row.launches:.0f} kernels"),
    Try(
        "batch",
        IDLE,
        lambda row: np.isfinite(row.batch),
        lambda row: f"a larger batch than {row.batch:.0f}, which costs little more time",
    ),
    Try("sequence", IDLE, lambda row: row.sequence > 1, lambda row: "an implementation that fuses the time steps"),
    Try(
        "unit",
        ("compute", "kernel"),
        lambda row: (
            bool(row.text("unit_note")) or (row.text("unit"), row.text("config_precision")) == ("vector", "fp32")
        ),
        lambda row: "tf32, fp16 or bf16, which have tensor units",
    ),
    Try(
        "padding",
        ("compute", "bandwidth", "kernel", "latency"),
        lambda row: row.text("unit") == "tensor" and bool(padding(row)),
        lambda row: "padding " + " and ".join(f"{name} to a multiple of {to}" for name, to in padding(row).items()),
    ),
    Try(
        "flops",
        ("compute", "kernel"),
        lambda row: row.flops_counted / row.flops_model > FAR,
        lambda row: f"another algorithm: this one does {row.flops_counted / row.flops_model:.2g} times the FLOPs",
    ),
    Try(
        "layout",
        ("bandwidth", "kernel"),
        lambda row: bool(other_layout(row)) and (bytes_ratio(row) > FAR or row.launches > 1),
        lambda row: (
            f"layout {other_layout(row)}"
            + (f": this one moves {bytes_ratio(row):.2g} times the bytes" if bytes_ratio(row) > FAR else "")
        ),
    ),
    Try(
        "precision",
        ("bandwidth",),
        lambda row: row.text("config_precision") in ("fp64", "fp32", "tf32"),
        lambda row: "a narrower precision, which moves fewer bytes",
    ),
    Try(
        "cache",
        ("bandwidth",),
        lambda row: row.text("cache") == "cold",
        lambda row: "running it next to what makes its input, so that it is found in the cache",
    ),
    Try(
        "neighbours",
        ("bandwidth",),
        lambda row: row.text("roof_memory_level") == "dram",
        lambda row: "fusing it with its neighbours, so that fewer tensors go through memory",
    ),
    Try(
        "algorithm",
        ("kernel", "latency"),
        lambda row: row.text("config_algorithm") in ("auto", ""),
        lambda row: "the library's other algorithms (algorithm = ... in the manifest)",
    ),
    Try(
        "counters",
        ("unknown",),
        lambda row: row.text("counters") not in ("counted", ""),
        lambda row: "hardware counters, if the site allows them",
    ),
]
MOST = 3  # tries of one sentence


def tries(row):
    """The rules that hold for a row (a dict or a line of rows()), in their order."""
    row = Row(row)
    return [rule for rule in RULES if row.text("limited_by") in rule.limiters and bool(rule.when(row))]


def sentence(row):
    """What limits a row, and what to try."""
    cause = CAUSES.get(Row(row).text("limited_by"), CAUSES["unknown"])(Row(row))
    words = [rule.text(Row(row)) for rule in tries(row)[:MOST]]
    return cause + (f"; try {', or '.join(words)}." if words else ".")


def advise(table):
    """A sentence for each row of a table of rows()."""
    return [sentence(row) for row in table.to_dict("records")]
