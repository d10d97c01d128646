"""Computes the deviation of each device from the other devices of its model, or from itself in an earlier file, and
judges it.

The reference is the median of the model's devices; with two devices the faster one. A device is slow beyond a limit.
The limit follows from the reference alone, never from the noise of the judged device. It is the largest of

- the threshold,
- the limit stated for this kind of value (`least`; `between` if devices are compared with each other),
- the spread between placements of the buffers (`placed`: median over the reference's devices),
- three times the scatter of the devices (median absolute deviation scaled to a standard deviation; 0 for two devices).

The limit is at most 10 %, or the threshold if that is wider. If one of these four exceeds 10 %, a device beyond the
threshold is unsure, and is slow only beyond the largest of the four. Faster devices are printed and not judged."""

import numpy as np

THRESHOLD = 0.04
WIDEST = 0.10
SCATTER = 3.0
LESS = ["s", "cycles", "J/B", "J/FLOP", "J/OP"]  # units of values that are better when smaller
TO_STDEV = 1.4826  # standard deviation over median absolute deviation, for a normal distribution


def speed(table):
    """Returns values that are better when larger: times and energies are inverted."""
    return np.where(table["unit"].isin(LESS), 1 / table["value"], table["value"])


def at_equal_clock(found):
    """Replaces roofs of tensor units by their work in a clock cycle, over all samples. Tensor units reach the power
    cap, so the clock of a short burst is arbitrary and says nothing about the device. A kind stays as it is if a device
    lacks its clock, because work per second cannot be compared with work per cycle."""
    tensor = found["name"].str.contains(" tensor ") & found["performance"].notna()
    clocked = tensor & ~found["name"].isin(found["name"][tensor & ~(found["sm_clock"] > 0)])
    work = found["value"] * found["mean"] / found["sm_clock"]
    unit = found["unit"].str.replace("/s", "/cycle")
    return found.assign(value=found["value"].mask(clocked, work), unit=found["unit"].mask(clocked, unit))


def centre_of(values):
    """Returns the median; of two values the larger."""
    return float(np.max(values) if len(values) == 2 else np.median(values))


def scatter(values, centre):
    """Returns the median absolute deviation, scaled to a standard deviation. 0 for two values, which are always equally
    far from their centre."""
    return TO_STDEV * float(np.median(np.abs(values - centre))) if len(values) > 2 else 0.0


def most_of(found, name, how=np.max):
    """Returns the largest value of a column, or another statistic `how`; 0 if the table lacks the column or its values
    are missing."""
    known = found[name].dropna() if name in found else []
    return float(how(known)) if len(known) else 0.0


def spread_of(found, scattered):
    """Returns the expected spread of one key: the largest of the stated, placement and scatter terms."""
    return max(most_of(found, "least"), most_of(found, "placed", np.median), SCATTER * scattered)


def judged(table, threshold=THRESHOLD, across=False, first=None):
    """Judges a table with the columns value, unit, key, file, model and uuid; optional: least, between and placed.

    Adds reference; deviation: speed over the reference's speed; limit; slow, unsure, fast; against: the kind of
    reference. Devices of one file are compared with each other. With several files the first is the reference: the
    same device there, else the median of its model. first: number of that file; None: for each key the first file that
    has it. Lines without a reference have deviation NaN, lines that are not judged have limit NaN."""
    table = table.reset_index(drop=True)
    table = table.assign(speed=speed(table))
    added = {name: np.full(len(table), np.nan) for name in ("reference", "deviation", "spread_of")}
    added["against"] = np.full(len(table), "", object)
    several = table["file"].nunique() > 1 or first is not None
    for _, found in table.groupby("key" if across else ["model", "key"], sort=False):
        earlier = found[found["file"] == (found["file"].min() if first is None else first)]
        if earlier.empty:
            continue
        middle, same = centre_of(earlier["speed"].to_numpy()), earlier.groupby("uuid")["speed"].median()
        for number, own in found.groupby("file"):
            itself = number == earlier["file"].iloc[0]
            if itself and (len(own) < 2 or (several and number == table["file"].min())):
                continue
            matched = own["uuid"].isin(same.index).to_numpy() & (not itself)
            reference = np.where(matched, own["uuid"].map(same), middle)
            deviation = own["speed"].to_numpy() / reference
            scattered = scatter(deviation, centre_of(deviation))
            if not matched.all():  # some are compared with other devices, whose own scatter counts
                scattered = max(scattered, scatter(earlier["speed"].to_numpy() / middle, 1.0))
            spread = spread_of(earlier, scattered)
            added["reference"][own.index] = np.where(own["unit"].isin(LESS), 1 / reference, reference)
            added["deviation"][own.index] = deviation
            added["spread_of"][own.index] = np.where(matched, spread, max(spread, most_of(earlier, "between")))
            added["against"][own.index] = np.where(matched, "itself before", "its model")
    return limited(table.drop(columns="speed").assign(**added, fair=added["deviation"]), threshold)


def limited(table, threshold=THRESHOLD):
    """Sets limit, slow, unsure and fast from fair (the judged deviation) and spread_of (the expected spread)."""
    spread = table["spread_of"].clip(lower=threshold)
    table["limit"] = spread.clip(upper=max(WIDEST, threshold)).where(np.isfinite(spread))
    known, slower = table["fair"].notna() & table["limit"].notna(), 1 - table["fair"]
    table["slow"] = known & (slower > spread)
    table["unsure"] = known & (slower > threshold) & (spread > table["limit"]) & ~table["slow"]
    table["fast"] = known & (-slower > spread)
    return table
