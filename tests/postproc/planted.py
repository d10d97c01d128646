"""Plants components of variance in the file of a node. `spread` must recover them within 15 %, and the interval +- must
contain 90 to 98 % of equal measurements.

Usage: planted.py NODE.nc. Times are those of the model of `spread`: a device, a process and a predecessor for each
round, three placements of 33 samples each."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from coverage import inside
from roofsweep_post import compare, load, rows, spread

PLANTED = {"sample": 0.004, "placement": 0.003, "process": 0.006, "predecessor": 0.005, "device": 0.01}
ROUNDS, PLACEMENTS, SAMPLES = 12, 3, 33


def planted(path, choose, deviations):
    data = load(path).drop_vars(["round_time", "round_start", "time_sample"])
    rows = data.sizes["config"]

    def normal(name, *shape):
        return deviations[name] * choose.standard_normal(shape)

    kinds = np.char.add(data["workload"].values.astype(str), data["pass"].values.astype(str))
    kinds = np.unique(kinds, return_inverse=True)[1]
    start, before = np.zeros((rows, ROUNDS)), np.zeros((rows, ROUNDS), int)
    for device in np.unique(data["config_device"].values):
        for number in range(ROUNDS):
            order = choose.permutation(np.flatnonzero(data["config_device"].values == device))
            start[order, number] = 1000 * number + np.arange(len(order))
            before[order, number] = [kinds.max() + 1, *kinds[order[:-1]]]
    time = np.log(1e-3) + normal("device", rows, 1) + normal("process", rows, ROUNDS)
    time = time + np.take_along_axis(normal("predecessor", rows, kinds.max() + 2), before, axis=1)
    parts = normal("placement", rows, ROUNDS, PLACEMENTS, 1) + normal("sample", rows, ROUNDS, PLACEMENTS, SAMPLES)
    data["round_time"] = ("config", "round"), np.exp(time + np.median(np.median(parts, axis=3), axis=2))
    data["round_start"] = ("config", "round"), start - start[:, :1]
    data["start_time"] = "config", (1e9 * start[:, 0]).astype("datetime64[ns]")
    data["time_sample"] = ("config", "sample"), np.exp(time[:, :1] + parts[:, 0].reshape(rows, -1))
    data["placements"] = "config", np.full(rows, float(PLACEMENTS))
    return data


def main(path):
    choose = np.random.default_rng(1)
    found, _, tested = spread.components([planted(path, choose, PLANTED)])
    for name, value in PLANTED.items():
        assert abs(found[name] / value - 1) < 0.15, (name, found[name], value)
    assert np.isnan(found["run"]) and np.isnan(found["node"]), found
    assert min(tested)[0] < 1e-3, min(tested)
    without = planted(path, choose, PLANTED | {"predecessor": 0.0})
    assert min(spread.components([without])[2])[0] > 1e-3
    # The limits of rows in `compare` follow from their rounds: 3.95 deviations of the difference of two medians.
    limits = compare.between_rounds([without], rows(without).assign(file=0))
    deviation = np.log(without["round_time"].values).std(axis=1, ddof=1)
    mean = np.sqrt(np.mean(deviation**2)) * np.sqrt(2 * spread.median_variance(ROUNDS))
    assert abs(limits.min() / (3.954 * mean) - 1) < 1e-3 and limits.argmax() == deviation.argmax(), limits
    share = inside(without["round_time"].values, 3).mean()
    assert 0.90 <= share <= 0.98, share


if __name__ == "__main__":
    main(sys.argv[1])
