"""Computes the columns that the commands use but that a result file may lack: from its other variables, or, for older
files, from what they had instead."""

import re

import numpy as np
import pandas

from . import counts
from .texts import scaled


def half_width(table):
    """Returns half the 95 % confidence interval of the median over the median. Without an interval in the file: the
    notch of a box plot, 1.57 IQR / sqrt(samples) (McGill et al., 1978)."""
    low, high = (table.get(f"time_median_{end}") for end in ("low", "high"))
    if low is None or high is None:
        return table["time_notch"] if "time_notch" in table else np.full(len(table), np.nan)
    return (high - low) / 2 / table["time_median"]


def limiter(table):
    """Returns the limiter, "unknown" if the file has none. The paper's bound is no substitute."""
    return table["limiter"] if "limiter" in table else np.full(len(table), "unknown", object)


def limiter_cause(table):
    """Returns the limiter; instead of `kernel` the words of the cause."""
    words = table["cause"].str.split(":").str[0].replace("", "cause not collected")
    return table["limited_by"].where(table["limited_by"] != "kernel", words)


def evidence(table):
    found = table["limiter_evidence"] if "limiter_evidence" in table else pandas.Series("", table.index)
    return found + (" (" + table["cause"] + ")").where(table["cause"] != "", "")


def own_time(table):
    """Returns the time of an iteration minus the timer's overhead."""
    if not {"timer_overhead", "sample_iterations"} <= set(table):
        return table["time_median"]
    return table["time_median"] - (table["timer_overhead"] / table["sample_iterations"]).fillna(0)


def gap(table):
    """Returns the time of an iteration in which no kernel runs. busy_time of older files is of the trace run alone."""
    return table["gap_time"].fillna((table["time_median"] - table["busy_time"]).clip(lower=0))


def busy(table):
    return table["time_median"] - gap(table)


def caller(table):
    """Returns the time of an iteration for a caller who enqueues iterations in a loop. Older files have only host_time,
    the host's part."""
    return table["caller_time"].fillna(table["host_time"])


def caller_slower(table):
    """Returns "yes" where a caller who enqueues iterations in a loop waits for the host."""
    least = table["caller_time"] * (1 - table["caller_uncertainty"])
    return (least > 1.05 * table["time_median"]).map({True: "yes", False: ""})


def compute_share(table):
    """Returns the time of the FLOPs at their roof, as a share of the iteration."""
    return (table["flops"] / table["compute_roof"]).where(table["flops"] != 0, 0) / own_time(table)


def source(table, counted, modelled):
    """Returns where FLOPs or bytes come from: counted, modelled or none."""
    known = [table[counted].notna(), table[modelled].notna()]
    return np.select(known, ["counted", "modelled"], "none").astype(object)


def unit_note(table):
    """Returns a note where vector units did work that faster tensor units exist for."""
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
    """Returns "yes" where the clock was more than 2 % below the highest clock of the session."""
    share = table["sm_clock"] / table["device_sm_clock_free"]
    return np.select([share < 0.98, share >= 0.98], ["yes", "no"], "unknown").astype(object)


# {variable: function of a table of rows and of the variables above}. Used where a file lacks the variable.
COMPUTED = {
    "compute_share": compute_share,
    "bandwidth_share": lambda table: table["roof_level_time"] / own_time(table),
    "gap_share": lambda table: table["gap_time"] / (table["gap_time"] + table["busy_time"]),
    "flops_source": lambda table: source(table, "flops_counted", "flops_model"),
    "bytes_source": lambda table: source(table, "bytes_counted_dram", "bytes_model"),
    "unit_note": unit_note,
    "throttled": throttled,
}


def marks(table):
    """Returns the notes on a row's samples, as words."""
    names = {"host_paced": "host-paced", "bimodal": "two modes", "throttled": "throttled"}
    found = [table[name].eq("yes").map({True: word, False: ""}) for name, word in names.items() if name in table]
    if "accuracy" in table:
        found.append(table["accuracy"].ne("").map({True: "inaccurate", False: ""}))
    times = zip(table["caller_slower"], table["caller_time"])
    found.append([f"a caller needs {scaled(time, 's')}" if slower else "" for slower, time in times])
    return [", ".join(word for word in words if word) for words in zip(*found)]


# {column: function of a table of rows and of the columns above}. frames.rows() adds all of them.
MEANINGS = {
    "noise": half_width,
    "limited_by": limiter,
    "limiter_cause": limiter_cause,
    "evidence": evidence,
    "busy": busy,
    "gap": gap,
    "caller": caller,
    "caller_slower": caller_slower,
    "marks": marks,
    "flops_ratio": counts.flops_ratio,
    "bytes_ratio": counts.bytes_ratio,
    "count_note": counts.notes,
}
