"""How far each device is from the others of its model, or from itself in an earlier file, and what of that is noise.

Statistics that hold with two devices as with five hundred. The reference is the median of the model's devices; of two
devices the faster one. A device is slow beyond a limit that is the largest of

- the threshold,
- three times the scatter of the devices (median absolute deviation, as a standard deviation; not of two devices),
- three times the spread of the samples on one device (median of the devices),
- the spread of the device's own samples, at most 10 %: what one device does not repeat says nothing of another, but
  a device that is unsteady by itself is not excused by that,

and at most 50 %, unless the threshold is above that. Only slower counts: faster is told and harms nobody."""

import numpy as np

THRESHOLD = 0.04
SCATTER, SPREADS, OWN_SPREAD_MOST, MOST = 3.0, 3.0, 0.10, 0.5
TO_STDEV = 1.4826  # of a normal distribution's median absolute deviation


def speed(table):
    """Values of which more is better: a time is inverted."""
    return np.where(table["unit"] == "s", 1 / table["value"], table["value"])


def centre_of(values):
    """The median; of two values the larger."""
    return float(np.max(values) if len(values) == 2 else np.median(values))


def scatter(values, centre):
    """Median absolute deviation, as a standard deviation. Of two values it would say that neither is far."""
    return TO_STDEV * float(np.median(np.abs(values - centre))) if len(values) > 2 else 0.0


def finite(values, least=0.0):
    return np.nan_to_num(np.asarray(values, float), nan=least)


def limits(scattered, spreads, threshold):
    """The largest deviation of each device that says nothing. scattered: how far such devices are from each other."""
    spreads = finite(spreads)
    common = max(threshold, SCATTER * scattered, SPREADS * float(np.median(spreads)))
    return np.minimum(np.maximum(common, np.minimum(spreads, OWN_SPREAD_MOST)), max(MOST, threshold))


def judged(table, threshold=THRESHOLD, across=False):
    """Adds to a table with value, unit, spread, key, file, model and uuid:

    reference; deviation: speed over that of the reference; limit; slow, fast; against: what the reference is. Devices
    of one file are compared with each other. With several files those of the first are the reference: the same device
    there, failing that the median of its model there. What has nothing to compare with has no deviation."""
    table = table.reset_index(drop=True)
    table = table.assign(reference=np.nan, deviation=np.nan, limit=np.nan, against="", speed=speed(table))
    several = table["file"].nunique() > 1
    for _, found in table.groupby("key" if across else ["model", "key"], sort=False):
        first = found["file"].min()
        earlier = found[found["file"] == first]
        middle, same = centre_of(earlier["speed"].to_numpy()), earlier.groupby("uuid")["speed"].median()
        for number, own in found.groupby("file"):
            itself = number == first
            if itself and (len(own) < 2 or (several and number == table["file"].min())):
                continue
            matched = own["uuid"].isin(same.index).to_numpy() & (not itself)
            reference = np.where(matched, own["uuid"].map(same), middle)
            deviation = own["speed"].to_numpy() / reference
            scattered = scatter(deviation, centre_of(deviation))
            if not matched.all():  # held against others: as far as those are from each other
                scattered = max(scattered, scatter(earlier["speed"].to_numpy() / middle, 1.0))
            table.loc[own.index, "reference"] = np.where(own["unit"] == "s", 1 / reference, reference)
            table.loc[own.index, "deviation"] = deviation
            table.loc[own.index, "limit"] = limits(scattered, own["spread"], threshold)
            table.loc[own.index, "against"] = np.where(matched, "itself before", "its model")
    known = table["deviation"].notna()
    table["slow"] = known & (table["deviation"] < 1 - table["limit"])
    table["fast"] = known & (table["deviation"] > 1 + table["limit"])
    return table.drop(columns="speed")
