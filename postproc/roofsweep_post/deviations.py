"""How far each device is from the others of its model, or from itself in an earlier file, and from when on that says
something.

The reference is the median of the model's devices; of two devices the faster one. A device is slow beyond a limit that
follows from the reference alone, never from the noise of the device that is judged. It is the largest of

- the threshold,
- what is stated for this kind of figure (`least`; `between`: where devices are held against each other),
- the spread between placements of the buffers (`placed`: median of the reference's devices),
- three times the scatter of the devices (median absolute deviation, as a standard deviation; not of two devices).

No limit is wider than 10 %, unless the threshold is. Where it would be, what is slower than the threshold is unsure,
and slow only beyond what such figures differ by. Only slower counts: faster is printed and not judged."""

import numpy as np

THRESHOLD = 0.04
WIDEST = 0.10
SCATTER = 3.0
LESS = ["s", "cycles", "J/B", "J/FLOP", "J/OP"]  # units of values of which less is better
TO_STDEV = 1.4826  # of a normal distribution's median absolute deviation


def speed(table):
    """Values of which more is better: a time or an energy is inverted."""
    return np.where(table["unit"].isin(LESS), 1 / table["value"], table["value"])


def at_equal_clock(found):
    """Tensor units draw all the power that there is: the clock of a burst is that of the moment, and says nothing of
    the device. So their work in a clock cycle is compared: all work of the samples, in all their cycles."""
    clocked = found["name"].str.contains(" tensor ") & found["performance"].notna() & (found["sm_clock"] > 0)
    work = found["value"] * found["mean"] / found["sm_clock"]
    unit = found["unit"].str.replace("/s", "/cycle")
    return found.assign(value=found["value"].mask(clocked, work), unit=found["unit"].mask(clocked, unit))


def centre_of(values):
    """The median; of two values the larger."""
    return float(np.max(values) if len(values) == 2 else np.median(values))


def scatter(values, centre):
    """Median absolute deviation, as a standard deviation. Of two values it would say that neither is far."""
    return TO_STDEV * float(np.median(np.abs(values - centre))) if len(values) > 2 else 0.0


def most_of(found, name, how=np.max):
    """The largest, or the median, of a column that a table may lack; 0 without any value."""
    known = found[name].dropna() if name in found else []
    return float(how(known)) if len(known) else 0.0


def spread_of(found, scattered):
    """What figures of one key differ by, as stated, measured between placements, and as devices scatter."""
    return max(most_of(found, "least"), most_of(found, "placed", np.median), SCATTER * scattered)


def judged(table, threshold=THRESHOLD, across=False, first=None):
    """Adds to a table with value, unit, key, file, model and uuid, and maybe least, between and placed:

    reference; deviation: speed over that of the reference; limit; slow, unsure, fast; against: what the reference is.
    Devices of one file are compared with each other. With several files those of the first are the reference: the
    same device there, failing that the median of its model there. first: that file's number; None: of each key the
    first that has it. What has nothing to compare with has no deviation; what is not judged has no limit."""
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
            if not matched.all():  # held against others: as far as those are from each other
                scattered = max(scattered, scatter(earlier["speed"].to_numpy() / middle, 1.0))
            spread = spread_of(earlier, scattered)
            added["reference"][own.index] = np.where(own["unit"].isin(LESS), 1 / reference, reference)
            added["deviation"][own.index] = deviation
            added["spread_of"][own.index] = np.where(matched, spread, max(spread, most_of(earlier, "between")))
            added["against"][own.index] = np.where(matched, "itself before", "its model")
    return limited(table.drop(columns="speed").assign(**added, fair=added["deviation"]), threshold)


def limited(table, threshold=THRESHOLD):
    """Sets limit, slow, unsure and fast from fair, the deviation that is judged, and spread_of, what such figures
    differ by."""
    spread = table["spread_of"].clip(lower=threshold)
    table["limit"] = spread.clip(upper=max(WIDEST, threshold)).where(np.isfinite(spread))
    known, slower = table["fair"].notna() & table["limit"].notna(), 1 - table["fair"]
    table["slow"] = known & (slower > spread)
    table["unsure"] = known & (slower > threshold) & (spread > table["limit"]) & ~table["slow"]
    table["fast"] = known & (-slower > spread)
    return table
