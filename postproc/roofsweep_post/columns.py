"""Computes columns of rows() from variables of the result file."""

import re

import numpy as np

from . import counts
from .texts import scaled

# A row is noisy if half the 95 % interval exceeds this share of its median, and preempted if its threads were off the
# processor for more than this share of the time, as in src/results/derive.c. `compare` allows this much median noise.
NOISY = 0.05


def half_width(table):
    """Returns half the 95 % confidence interval of the median, divided by the median. If the file has no interval, the
    notch of a box plot takes its place: 1.57 IQR / sqrt(samples) (McGill et al., 1978)."""
    low, high = (table.get(f"time_median_{end}") for end in ("low", "high"))
    if low is None or high is None:
        return table["time_notch"] if "time_notch" in table else np.full(len(table), np.nan)
    return (high - low) / 2 / table["time_median"]


def interval(table):
    """Returns both ends of the median's 95 % confidence interval, divided by the median. Without ends in the file they
    are 1 - noise and 1 + noise. table may be a row."""
    found = [table.get("time_median_low"), table.get("time_median_high")]
    if any(end is None for end in found):
        return [1 - table["noise"], 1 + table["noise"]]
    return [end / table["time_median"] for end in found]


def limiter_cause(table):
    """Returns `limit` if the parts of the time inside kernels are known, else the limiter. If a GPU's limiter is
    `kernel`, the words of `cause` replace it."""
    words, cpu = (
        table["cause"].str.split(":").str[0].replace("", "cause not collected"),
        table["host_load"].notna(),
    )
    split = (table["limit"] != "") & (cpu | (table["cause"] != "")) & ~table["limit"].str.contains("inside_kernels")
    return table["limit"].where(split, table["limiter"].mask((table["limiter"] == "kernel") & ~cpu, words))


def own_time(table):
    """Returns the time of an iteration minus the timer's overhead."""
    return table["time_median"] - (table["timer_overhead"] / table["sample_iterations"]).fillna(0)


def caller_slower(table):
    """Returns "yes" for rows in which a caller who enqueues iterations in a loop waits for the host."""
    least = table["caller_time"] * (1 - table["caller_uncertainty"])
    return (least > 1.05 * table["time_median"]).map({True: "yes", False: ""})


def compute_share(table):
    """Returns the time of the FLOPs at their roof, as a share of the iteration."""
    return (table["flops"] / table["compute_roof"]).where(table["flops"] != 0, 0) / table["own_time"]


def waits_for_memory(table):
    """Returns whether the largest part of the time is memory_latency."""
    return table["limit"].str.contains("memory_latency")


def source(table, counted, modelled):
    """Returns the source of a row's FLOPs or bytes: "counted", "modelled" or "none"."""
    known = [table[counted].notna(), table[modelled].notna()]
    return np.select(known, ["counted", "modelled"], "none").astype(object)


def unit_note(table):
    """Returns a note for rows whose FLOPs ran on vector units although the device has faster tensor units."""
    by_vector = table[[name for name in table if re.fullmatch("flops_vector_(?!int8).*", name)]]
    share = (by_vector.sum(axis=1) / table["flops"]).where(by_vector.notna().any(axis=1))
    share = share.fillna(table["unit"].map({"vector": 1.0, "tensor": 0.0}).astype(float))
    faster = table["peak_tensor"] / table["peak_vector"]
    return [
        f"vector units did {100 * own:.1f} % of the FLOPs; the roof of the tensor units is {times:.1f} times as high"
        if own > 0.5 and times > 1
        else ""
        for own, times in zip(share, faster)
    ]


def throttled(table):
    """Returns "yes" for rows whose clock was more than 2 % below the highest clock of the session."""
    share = table["sm_clock"] / table["device_sm_clock_free"]
    return np.select([share < 0.98, share >= 0.98], ["yes", "no"], "unknown").astype(object)


def marks(table):
    """Returns the notes on a row's samples, as words."""
    names = {"noisy": "noisy", "preempted": "preempted", "host_paced": "host-paced", "bimodal": "two modes"}
    names["throttled"] = "throttled"
    found = [table[name].eq("yes").map({True: word, False: ""}) for name, word in names.items()]
    found.append(table["accuracy"].ne("").map({True: "inaccurate", False: ""}))
    modelled = table["flops_source"].eq("modelled") & table["bytes_source"].eq("counted")
    found.append(modelled.map({True: "modelled FLOPs", False: ""}))
    times = zip(table["caller_slower"], table["caller_time"])
    found.append([f"a caller needs {scaled(time, 's')}" if slower else "" for slower, time in times])
    return [", ".join(word for word in words if word) for words in zip(*found)]


# {column: function of a table of rows and of the columns above}. frames.rows() adds all of them.
COMPUTED = {
    "own_time": own_time,
    "compute_share": compute_share,
    "bandwidth_share": lambda table: table["roof_level_time"] / table["own_time"],
    # By Little's law the bytes in flight are bytes / time x latency.
    "bytes_needed": lambda table: (table["bandwidth"] * table["latency"]).where(waits_for_memory(table)),
    "bytes_in_flight": lambda table: table["bandwidth_share"] * table["bytes_needed"],
    "gap_share": lambda table: table["gap_time"] / (table["gap_time"] + table["busy_time"]),
    "flops_source": lambda table: source(table, "flops_counted", "flops_model"),
    "bytes_source": lambda table: source(table, "bytes_counted_dram", "bytes_model"),
    "unit_note": unit_note,
    "throttled": throttled,
    "noise": half_width,
    "noisy": lambda table: (table["noise"] > NOISY).map({True: "yes", False: "no"}),
    "preempted": lambda table: (table["threads_waiting"] > NOISY).map({True: "yes", False: "no"}),
    "limited_by": lambda table: table["limiter"],
    "limiter_cause": limiter_cause,
    "evidence": lambda table: table["limiter_evidence"] + (" (" + table["cause"] + ")").where(table["cause"] != "", ""),
    "busy": lambda table: table["own_time"] - table["gap_time"],
    "caller_slower": caller_slower,
    "marks": marks,
    "flops_ratio": lambda table: table["flops_counted"] / table["flops_model"],
    "bytes_ratio": lambda table: table["bytes_counted_dram"] / table["bytes_model"],
    "count_note": counts.notes,
}
