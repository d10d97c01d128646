"""The command `predict` computes times of configurations that were not measured from measured rows."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas

from . import selection
from .dataset import load
from .export import as_json
from .frames import DEVICES, ROWS, flat, of_all, places, rows
from .network import words_of
from .texts import Refused, column, listed, say, share, table

HELP = "times of a manifest's configurations, from measured rows and roofs"
DESCRIPTION = """Predicts the time of each configuration of a manifest, without measuring.

roof         time at the device's roofs: modelled FLOPs / compute roof + modelled bytes / DRAM roof + launch overhead
time         predicted time: roof x a factor. The factor is a mean of time / roof over rows of FILE, in which similar
             rows have more weight. Each doubling of a parameter, and each different word (pass, precision, cache),
             makes a row less similar, by an amount that is fitted to FILE (a Gaussian process of log(time / roof);
             Rasmussen and Williams, 2006)
from, to     interval that contains the time in 95 of 100 cases, if FILE has similar rows
nearest      the most similar row of FILE

--device FILE predicts for another device, whose roofs are in FILE; `roof` is the time at these roofs. The predicted
time is multiplied by a ratio. The ratio follows from the roof that takes most of the nearest row's time, from its share
of the time, and from the launch overhead. The interval is wider, by the scatter of such predictions from an H100 to an
H200. A configuration has no prediction if one of the devices lacks a roof that it needs.

--leave-one-out predicts each row from the rows of other configurations, and prints the errors. "by the roof" is the
error if the largest of the three parts of `roof` is taken as the time. The other rows include rows of the same shape
with other passes and precisions. The amounts of likeness stay those that are fitted to all rows. A workload needs three
configurations.

Exit status: 0; 1: some configurations have no prediction; 2: wrong options."""

SEED, MOST = 1, 800  # at most MOST rows of a workload, chosen at random: time grows with the cube of their number
SWEEPS = 12  # number of times that Likeness.search() goes through all parameters
FLOOR = 0.01  # scatter of a time between two runs, as a share of the time
START = 0.5  # standard deviation of log(time / roof) from which the search starts
NORMAL = 1.96  # half of a 95 % interval, over the standard deviation
FEWEST = 3  # number of configurations of a workload from which --leave-one-out predicts
ACROSS = 0.05  # standard deviation of log(time / predicted time), from an H100 to an H200
LEVELS = ("dram", "l2", "l1")
COLUMNS = ["name", "configuration", "time", "time_low", "time_high", "roof", "nearest", "skipped"]


def add_options(parser):
    parser.add_argument("files", nargs="+", help="result files of roofsweep")
    parser.add_argument("-m", "--manifest", metavar="SWEEP.ini", help="its configurations are predicted")
    parser.add_argument("-d", "--device", metavar="FILE", help="result file with the roofs of another device")
    parser.add_argument("--leave-one-out", action="store_true", help="how good are predictions of the files' own rows?")
    parser.add_argument("-w", "--where", nargs="+", metavar="TERM", help=selection.HELP)
    parser.add_argument("--json", action="store_const", const=True, dest="as_json", help="JSON in SI units")


def planned(path):
    """Returns the configurations of a manifest, as `roofsweep --dry-run --json` prints them."""
    built = Path(__file__).parents[2] / "build" / "bin" / "roofsweep"
    program = shutil.which("roofsweep") or str(built)
    if not os.access(program, os.X_OK):
        raise Refused(f"--manifest needs the program roofsweep, in PATH or as {built}")
    found = subprocess.run([program, "--dry-run", "--json", path], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Refused(found.stderr.strip() or f"{program} --dry-run {path}: status {found.returncode}")
    plan = pandas.DataFrame(json.loads(found.stdout)["configurations"])
    if plan.empty:
        raise Refused(f"{path} has no configuration to predict")
    plan["words"] = [words_of(text) for text in plan["configuration"]]
    return plan.assign(flops=plan["flops"].astype(float), bytes=plan["bytes"].astype(float))


def roofs_of_devices(data):
    """Returns a line for each device: bandwidths by level, launch overhead, and for each precision the larger of the
    roofs of vector and tensor units."""
    found = of_all(data, lambda own: flat(own, "device").assign(place=places(own)))
    peaks = [name for name in found if name.startswith(("device_peak_vector_", "device_peak_tensor_"))]
    larger = {}
    for name in peaks:
        precision = name.rpartition("_")[2]
        larger[precision] = np.fmax(larger.get(precision, np.nan), found[name])
    roofs = pandas.DataFrame(larger | {"place": found["place"]})
    roofs["file"] = found["file"]
    for level in LEVELS:
        roofs[level] = found.get(f"device_peak_bandwidth_{level}", np.nan)
    roofs["launch"] = found["device_launch_overhead"]
    return roofs.drop_duplicates(["file", "place"]).set_index(["file", "place"])


def parts_at_roofs(table, roofs):
    """Returns for each configuration three times in s: of its FLOPs, its bytes and its launch at the device's roofs;
    NaN without the roof. roofs: a line of roofs_of_devices() for each configuration."""
    precisions = pandas.Series([words.get("precision", "") for words in table["words"]], dtype=object)
    peak = np.full(len(table), np.nan)
    for precision in set(precisions) & set(roofs):
        own = (precisions == precision).to_numpy()
        peak[own] = roofs[precision].to_numpy(float)[own]
    flops, moved = table["flops"].to_numpy(float), table["bytes"].to_numpy(float)
    compute = np.divide(flops, peak, out=np.zeros(len(flops)), where=flops > 0)
    return np.array([compute, moved / roofs["dram"].to_numpy(float), roofs["launch"].to_numpy(float)])


def number_of(word):
    """Returns a parameter's value as a number, the mean of H and W for HxW; None for other words."""
    parts = word.split("x")
    return sum(map(int, parts)) / len(parts) if all(part.isdigit() for part in parts) else None


class Likeness:
    """A Gaussian process over the configurations of one workload."""

    def __init__(self, words, values, others=()):
        """words: {parameter: text} of each row; values: log(time / roof) of each; others: words of configurations that
        at() gets."""
        keys = sorted({key for own in words for key in own} - {"algorithm"})
        every = [*words, *others]
        numeric = {key for key in keys if all(number_of(own.get(key, "0")) is not None for own in every)}
        self.numbers, self.texts = sorted(numeric), sorted(set(keys) - numeric)
        self.rows = self.placed(words)
        self.centre = np.median(values)
        self.values = values - self.centre
        # Logarithms of the fitted parameters: for each number the doublings after which the likeness is lost, for each
        # text the loss of likeness by another word, and three standard deviations.
        start = np.array([1.0] * len(self.numbers) + [0.0] * len(self.texts) + [np.log(START)] * 2 + [np.log(0.02)])
        self.fitted = self.search(start)
        self.inverse = np.linalg.inv(self.covariance(self.fitted))
        self.weights = self.inverse @ self.values

    def placed(self, words):
        numbers = [[np.log2(1 + number_of(own.get(key, "0"))) for key in self.numbers] for own in words]
        texts = [[own.get(key, "") for key in self.texts] for own in words]
        shape = len(words), -1
        return np.array(numbers, float).reshape(shape), np.array(texts, object).reshape(shape)

    def likeness(self, logs, rows):
        """Returns the covariance of values at `rows` with those of the fitted rows."""
        scales = np.exp(logs)
        far = np.zeros((len(rows[0]), len(self.rows[0])))  # squared distance of each of `rows` to each fitted row
        for one, own, scale in zip(rows[0].T, self.rows[0].T, scales):
            far += ((one[:, None] - own) / scale) ** 2
        other = np.zeros_like(far)
        for one, own, scale in zip(rows[1].T, self.rows[1].T, scales[len(self.numbers) :]):
            other += (one[:, None] != own) * scale
        return scales[-3] ** 2 * np.exp(-np.sqrt(far + other)) + scales[-2] ** 2 * np.exp(-other) + 1

    def covariance(self, logs):
        scatter = np.exp(2 * logs[-1]) + FLOOR**2
        return self.likeness(logs, self.rows) + scatter * np.eye(len(self.values))

    def search(self, start):
        """Returns the parameters with the largest posterior probability. Changes one parameter after the other, up or
        down, as long as this helps. The prior is wide and centred at `start`, so that a parameter without influence
        stays there."""

        def cost(logs):
            factor = np.linalg.cholesky(self.covariance(logs))
            solved = np.linalg.solve(factor, self.values)
            return solved @ solved / 2 + np.log(np.diag(factor)).sum() + 0.02 * ((logs - start) ** 2).sum()

        logs, steps = start.copy(), np.full(len(start), 0.7)
        best = cost(logs)
        for _ in range(SWEEPS):
            for place in range(len(logs)):
                for sign in (1, -1):
                    tried = logs.copy()
                    tried[place] += sign * steps[place]
                    if (found := cost(tried)) < best:
                        logs, best = tried, found
                        steps[place] *= 1.3
                        break
                else:
                    steps[place] /= 2
        return logs

    def at(self, words):
        """Returns for each configuration the mean and the standard deviation of its value, and the most similar row."""
        alike = self.likeness(self.fitted, self.placed(words))
        own = np.exp(2 * self.fitted[-3]) + np.exp(2 * self.fitted[-2]) + 1 + np.exp(2 * self.fitted[-1]) + FLOOR**2
        variance = own - np.einsum("ij,jk,ik->i", alike, self.inverse, alike)
        return self.centre + alike @ self.weights, np.sqrt(variance.clip(FLOOR**2)), alike.argmax(axis=1)

    def left_out(self, groups):
        """Returns for each row the mean and the standard deviation of its value, as predicted from the rows of other
        groups (Rasmussen and Williams, 5.4.2)."""
        mean, deviation, values = self.values.copy(), self.values.copy(), self.values + self.centre
        for group in set(groups):
            own = np.flatnonzero(groups == group)
            covariance = np.linalg.inv(self.inverse[np.ix_(own, own)])
            moved = self.centre - np.median(np.delete(values, own))
            mean[own] = values[own] - covariance @ (self.weights[own] + moved * self.inverse[own].sum(axis=1))
            deviation[own] = np.sqrt(np.diag(covariance))
        return mean, deviation


def measured(options):
    """Returns the measured rows, at most MOST of each workload, with the columns words, flops, bytes, roof and guess
    (the largest of the three parts of `roof`)."""
    data = [load(path, ROWS) for path in options.files]
    found = selection.choose(rows(data), options.where)
    found = found[~found["workload"].isin(["program", ""]) & found["flops_model"].notna()].reset_index(drop=True)
    found = found.assign(flops=found["flops_model"], bytes=found["bytes_model"])
    found["words"] = [words_of(text) for text in found["configuration"]]
    roofs = roofs_of_devices(data)
    found[["roof", "guess"]] = at_roofs(found, roofs.loc[list(zip(found["file"], found["place"]))])
    by_workload = found[found["roof"] > 0].groupby("workload")
    chosen = [own.sample(min(len(own), MOST), random_state=SEED) for _, own in by_workload]
    if not chosen:
        raise Refused("no measured row with a roof: programs, and rows of a run without [peaks], predict nothing")
    return pandas.concat(chosen).sort_index(), roofs


def at_roofs(table, roofs):
    parts = parts_at_roofs(table, roofs)
    return np.array([parts.sum(axis=0), parts.max(axis=0)]).T


def fitted(found, others=()):
    made = {}
    for workload, own in found.groupby("workload"):
        made[workload] = Likeness(list(own["words"]), np.log(own["time_median"] / own["roof"]).to_numpy(), others), own
    return made


def scales(own, here, there):
    """Returns for each measured row the expected ratio of its time on the device with the roofs `there` to its time on
    the device with the roofs `here`; NaN without the needed roofs."""
    shares, ratios = [own["compute_share"]], [(here / there).reindex(own["precision"])]
    for level in {f"level_time_{level}" for level in LEVELS} & set(own):
        shares.append(own[level] / own["time_median"])
        ratios.append(np.full(len(own), (here / there)[level.removeprefix("level_time_")]))
    shares = np.nan_to_num(np.array(shares, float)).clip(0, 1)
    largest = shares.argmax(axis=0), range(len(own))
    share_of = shares[largest]
    ratio = np.where(share_of > 0, np.array(ratios, float)[largest], 1)
    queued = own["launches"].fillna(0) * (here["launch"] - there["launch"]) / own["time_median"]
    return 1 - share_of**2 * (1 - ratio) - queued.to_numpy()


def print_left_out(found):
    """Prints the errors of predictions of measured rows from the rows of other configurations."""
    lines, few = [], []
    for workload, own in found.groupby("workload"):
        if own["config_hash"].nunique() < FEWEST:
            few.append([workload, f"{len(own)}", *"----"])
            continue
        ((model, _),) = fitted(own).values()
        mean, deviation = model.left_out(own["config_hash"].to_numpy())
        value = np.log(own["time_median"] / own["roof"]).to_numpy()
        off, guess = np.abs(np.expm1(mean - value)), np.abs(own["guess"] / own["time_median"] - 1)
        inside = np.abs(mean - value) < NORMAL * deviation
        lines.append((workload, off, inside, guess.to_numpy()))
    if len(lines) > 1:
        lines.append(("all", *(np.concatenate(parts) for parts in list(zip(*lines))[1:])))
    texts = [
        [name, f"{len(off)}", share(np.median(off)), share(np.quantile(off, 0.9)), share(inside.mean())]
        + [share(np.median(guess))]
        for name, off, inside, guess in lines
    ]
    print(table(["workload", "rows", "median error", "9 of 10 below", "inside", "by the roof"], few + texts), end="")


def reasons(lacking, models, devices):
    """Returns a text that says why configurations have no prediction. devices: {file: line of roofs_of_devices()}."""
    found = []
    for path, device in devices.items():
        missing = np.isnan(parts_at_roofs(lacking, pandas.DataFrame([device] * len(lacking)))).T
        needed = [(words.get("precision", ""), "dram", "launch overhead") for words in lacking["words"]]
        if names := sorted(set(np.array(needed)[missing])):
            found.append(f"no roof in {path} of {listed(names)}")
    if workloads := sorted(set(lacking["workload"]) - set(models)):
        found.append(f"no measured row of {listed(workloads)} with a roof")
    return "; ".join(found) or "no roof of the most similar row on the other device"


def run(options):
    if bool(options.manifest) == options.leave_one_out:
        raise Refused("one of --manifest SWEEP.ini and --leave-one-out is needed")
    if options.leave_one_out and (options.device or options.as_json):
        raise Refused("--leave-one-out takes neither --device nor --json")
    found, roofs = measured(options)
    if options.leave_one_out:
        print_left_out(found)
        return 0
    here = roofs.iloc[0]
    there = roofs_of_devices([load(options.device, DEVICES)]).iloc[0] if options.device else here
    plan = planned(options.manifest)
    for name, device in (("roof_here", here), ("roof", there)):
        plan[[name, "guess"]] = at_roofs(plan, pandas.DataFrame([device] * len(plan)))
    plan[["time", "time_low", "time_high", "nearest"]] = [np.nan, np.nan, np.nan, ""]
    models = fitted(found, plan["words"])
    plan["workload"] = plan["configuration"].str.partition(" ")[0]
    for workload, (model, own) in models.items():
        mine = (plan["workload"] == workload) & plan["skipped"].isna() & (plan[["roof_here", "roof"]] > 0).all(axis=1)
        if mine.any():
            mean, deviation, nearest = model.at(list(plan.loc[mine, "words"]))
            if options.device:
                mean, deviation = mean + np.log(scales(own, here, there)[nearest]), np.hypot(deviation, ACROSS)
            for name, shift in [("time", 0), ("time_low", -NORMAL), ("time_high", NORMAL)]:
                plan.loc[mine, name] = plan.loc[mine, "roof_here"] * np.exp(mean + shift * deviation)
            plan.loc[mine, "nearest"] = own["name"].to_numpy()[nearest]
    if options.as_json:
        print(as_json(plan[COLUMNS]), end="")
    else:
        times = [[line[key] for key in ("roof", "time", "time_low", "time_high")] for line in plan.to_dict("records")]
        texts = [
            [name, *(column(value, "s") for value in values), near]
            for name, values, near in zip(plan["name"], times, plan["nearest"])
        ]
        print(table(["configuration", "roof", "time", "from", "to", "nearest"], texts, left=["nearest"]), end="")
    lacking = plan[plan["time"].isna() & plan["skipped"].isna()]
    if len(lacking):
        devices = {options.files[roofs.index[0][0]]: here} | ({options.device: there} if options.device else {})
        say(f"no prediction of {len(lacking)} configurations: {reasons(lacking, models, devices)}")
    return int(len(lacking) > 0)
