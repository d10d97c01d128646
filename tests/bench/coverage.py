"""Counts how often the interval +- of a sweep with R rounds contains the median of R more rounds.

Usage: coverage.py FILE.nc [R].

The rounds of the file are divided into groups of R successive rounds (default 3); there must be at least two groups.
Each group has a median and an interval, as a sweep with R rounds has them. Prints the share of all pairs of groups,
over all rows, in which the interval of the first group contains the median of the second. The exit status is 1 unless
the share is 90 to 98 %."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "postproc"))
from roofsweep_post import load, spread


def inside(times, rounds):
    """Returns for each row (first axis of `times`) the share of pairs of groups in which the median of the second group
    lies in the interval of the first."""
    groups = times.shape[1] // rounds
    parts = times[:, : groups * rounds].reshape(len(times), groups, rounds)
    median, half = np.median(parts, axis=2), spread.half_width(parts)
    hits = np.abs(median[:, :, None] - median[:, None, :]) <= half[:, :, None]
    return (hits.sum(axis=(1, 2)) - groups) / (groups * (groups - 1))


def main(path, rounds="3"):
    data = load(path, ["round_time"])
    times = data["round_time"].values
    whole = np.isfinite(times).all(axis=1)
    found = inside(times[whole], int(rounds))
    width = np.median(spread.half_width(times[whole][:, : int(rounds)]) / np.median(times[whole], axis=1))
    names = [data["name"].values[whole][i] for i in np.argsort(found)[:3]]
    print(f"{path}: {whole.sum()} rows, {times.shape[1] // int(rounds)} groups of {rounds} rounds")
    print(f"inside +- are {100 * found.mean():.1f} % (90 to 98 %); lowest: {', '.join(map(str, names))}")
    print(f"+- of the first group, median of the rows: {100 * width:.2f} %")
    return 0 if 0.90 <= found.mean() <= 0.98 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
