"""What a result file may hold, by what it means here: one table, so that a variable that an older file lacks, or
that is computed from others there, is known in one place."""

import numpy as np

from . import counts


def half_width(table):
    """Half the 95 % confidence interval of the median over the median. Where the file has none: the notch of a box
    plot, 1.57 times the middle half of the samples over the root of their number (McGill et al., 1978)."""
    low, high = (table.get(f"time_median_{end}") for end in ("low", "high"))
    if low is None or high is None:
        return table["time_notch"] if "time_notch" in table else np.full(len(table), np.nan)
    return (high - low) / 2 / table["time_median"]


def limiter(table):
    """What limits a row; where the file has no limiter, the paper's bound."""
    return table["limiter"] if "limiter" in table else table["bound"]


def evidence(table):
    return table["limiter_evidence"] if "limiter_evidence" in table else [""] * len(table)


def gap(table):
    """Time of an iteration in which no kernel runs; an older file's busy_time is of the trace run alone."""
    if "gap_time" in table:
        return table["gap_time"]
    return (table["time_median"] - table["busy_time"]).clip(lower=0)


def busy(table):
    return table["time_median"] - gap(table)


def marks(table):
    """What is noteworthy about a row's samples, as words."""
    names = {"host_paced": "host-paced", "bimodal": "two modes", "throttled": "throttled"}
    found = [table[name].eq("yes").map({True: word, False: ""}) for name, word in names.items() if name in table]
    if "accuracy" in table:
        found.append(table["accuracy"].ne("").map({True: "inaccurate", False: ""}))
    return [", ".join(word for word in words if word) for words in zip(*found)]


# {meaning: how it follows from a table of rows, and of those before it}. frames.rows() adds all of them.
MEANINGS = {
    "noise": half_width,
    "limited_by": limiter,
    "evidence": evidence,
    "busy": busy,
    "gap": gap,
    "marks": marks,
    "flops_ratio": counts.flops_ratio,
    "bytes_ratio": counts.bytes_ratio,
    "count_note": counts.notes,
}
