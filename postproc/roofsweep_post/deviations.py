"""Computes and judges the deviation of each device from the other devices of its model, or from itself in an earlier
file.

The reference is the median of the model's devices; if there are two, it is the faster one. A device is slow if it is
slower than the reference by more than the expected spread. Noise of the judged device does not widen this spread. The
spread is the largest of

- the limit of this kind of value (column `least`, or `between` if devices are compared with each other; default: the
  threshold),
- the spread between placements of the buffers (column `placed`, median over the devices of the reference),
- three times the scatter of the devices (median absolute deviation scaled to a standard deviation; 0 for two devices).
  Beyond 10 % it is a scatter of logarithms, which a device of low speed exceeds however wide the scatter is.

Tables show this spread as the limit, but at most 10 %, or the threshold or the limit of this kind, if these are wider.
If the spread exceeds this limit, a device is unsure between `least` and the spread. Faster devices are printed and not
judged."""

import numpy as np

THRESHOLD = 0.04
WIDEST = 0.10
SCATTER = 3.0
LESS = ["s", "cycles", "J/B", "J/FLOP", "J/OP"]  # units of values for which smaller is better
TO_STDEV = 1.4826  # standard deviation over median absolute deviation, for a normal distribution


def speed(table):
    """Returns values for which larger is better: times and energies are inverted."""
    return np.where(table["unit"].isin(LESS), 1 / table["value"], table["value"])


def at_equal_clock(found):
    """Replaces roofs of tensor and vector units, and L2 roofs of all devices at once, by their work in a clock cycle,
    over all samples. These roofs reach the power cap, so the clock of a short burst is arbitrary and says nothing about
    the device. A kind stays as it is if a device lacks its clock or its mean, because work per second cannot be
    compared with work per cycle."""
    units = found["name"].str.contains(" tensor | vector") & found["performance"].notna()
    capped = units | (found["name"].str.startswith("l2 ") & (found["condition"] == "together") & found["time"].isna())
    clocked = capped & ~found["name"].isin(found["name"][capped & ~(found["sm_clock"] * found["mean"] > 0)])
    work = found["value"] * found["mean"] / found["sm_clock"]
    unit = found["unit"].str.replace("/s", "/cycle")
    return found.assign(value=found["value"].mask(clocked, work), unit=found["unit"].mask(clocked, unit))


def centre_of(values):
    """Returns the median of the values; the larger one if there are two."""
    return float(np.max(values) if len(values) == 2 else np.median(values))


def scatter(values, centre):
    """Returns the median absolute deviation from `centre`, scaled to a standard deviation. 0 for two values, which
    cannot show a scatter."""
    return TO_STDEV * float(np.median(np.abs(values - centre))) if len(values) > 2 else 0.0


def widest_of(scattered):
    """Returns the expected loss of speed of a healthy device. scattered: scatter() over the reference"""
    return np.fmax(np.minimum(SCATTER * scattered, WIDEST), -np.expm1(-SCATTER * scattered))


def most_of(found, name, how=np.max):
    """Returns the largest value of a column, or another statistic `how`; 0 if the table lacks the column or its values
    are missing."""
    known = found[name].dropna() if name in found else []
    return float(how(known)) if len(known) else 0.0


def spread_of(found, scattered):
    """Returns the expected spread of one key: the largest of `least`, the spread of placements, and SCATTER times
    `scattered`."""
    return max(most_of(found, "least"), most_of(found, "placed", np.median), widest_of(scattered))


def by_group(table, keys, name):
    """Returns for each line the centre_of(), the scatter() and the size of its group, for one column."""
    groups = table.groupby(keys)[name]
    size = groups.transform("size")
    centre = groups.transform("median").mask(size == 2, groups.transform("max"))
    far = (table[name] - centre).abs().groupby([table[key] for key in keys]).transform("median")
    return centre, (TO_STDEV * far).where(size > 2, 0.0), size


def judged(table, threshold=THRESHOLD, across=False, first=None):
    """Judges a table with the columns value, unit, key, file, model and uuid. Optional columns: least, between (limits
    at a threshold of 4 %), placed, unfit (the line cannot be a reference), soft (a line beyond its limit is unsure, not
    slow). Adds the columns reference, deviation (speed over the reference's speed; NaN without a reference), limit (NaN
    if the line is not judged), slow, unsure, fast, and against (the kind of reference). Devices of one file are
    compared with each other. With several files the reference is the first file: the same device there, else the median
    of its model. first: number of the first file; None: for each key the first file that has the key."""
    table, keys = table.reset_index(drop=True), ["key"] if across else ["model", "key"]
    defaults = {"least": THRESHOLD, "between": 0.0, "placed": np.nan, "unfit": False, "soft": False}
    table = table.assign(speed=speed(table), **{name: own for name, own in defaults.items() if name not in table})
    table[["least", "between"]] *= threshold / THRESHOLD
    several = table["file"].nunique() > 1 or first is not None
    start = table.groupby(keys)["file"].transform("min") if first is None else first
    itself = table["file"] == start
    earlier = table[itself & ~table["unfit"].astype(bool)]
    middle, scattered, _ = by_group(earlier, keys, "speed")
    earlier = earlier.assign(middle=middle, scattered=scattered / middle).groupby(keys)
    known = earlier[["middle", "scattered", "least", "between"]].max()
    known = known.assign(placed=earlier["placed"].median(), fit=earlier.size())
    own = table[keys].merge(known.reset_index(), how="left", on=keys)
    same = earlier.obj.groupby([*keys, "uuid"])["speed"].median().rename("before").reset_index()
    before = table[[*keys, "uuid"]].merge(same, how="left", on=[*keys, "uuid"])["before"]
    matched = before.notna() & ~itself
    reference = before.where(matched, own["middle"])
    table["deviation"] = table["speed"] / reference
    _, scattered, size = by_group(table, [*keys, "file"], "deviation")
    alone = itself & ((size < 2) | (several & (table["file"] == table["file"].min())))
    new = (~matched).groupby([table[key] for key in [*keys, "file"]]).transform("any")
    scattered = np.fmax(scattered, own["scattered"].where(new))  # new devices: also the scatter of the reference
    spread = np.fmax(np.fmax(own["least"], own["placed"]), widest_of(scattered))
    table["reference"] = (1 / reference).where(table["unit"].isin(LESS), reference)
    table["spread_of"] = spread.where(matched, np.fmax(spread, own["between"]))
    table["against"] = np.where(matched, "itself before", "its model")
    only = itself & ~table["unfit"].astype(bool) & (own["fit"] < 2)  # the line is its own reference
    missing = alone | only | reference.isna()
    table.loc[missing, ["reference", "deviation", "spread_of"]] = np.nan
    table.loc[missing, "against"] = ""
    table["least"] = own["least"].fillna(table["least"])
    return limited(table.drop(columns="speed").assign(fair=table["deviation"]), threshold)


def limited(table, threshold=THRESHOLD):
    """Sets the columns limit, slow, unsure and fast from fair (the judged deviation) and spread_of (the expected
    spread)."""
    spread, widest = table["spread_of"], max(WIDEST, threshold)
    table["limit"] = spread.clip(upper=table["least"].clip(lower=widest)).where(np.isfinite(spread))
    known, slower = table["fair"].notna() & table["limit"].notna(), 1 - table["fair"]
    slow, soft = known & (slower > spread), table["soft"].astype(bool)
    table["slow"] = slow & ~soft
    table["unsure"] = (slow & soft) | (known & (slower > table["least"]) & (spread > table["limit"]) & ~slow)
    table["fast"] = known & (-slower > spread)
    return table
