"""The command `spread` splits the variance of times into components, and computes how many rounds a precision takes."""

import numpy as np
import pandas

from .dataset import load
from .frames import rows
from .naming import names
from .texts import Refused, listed, table

HELP = "what times vary with: samples, placements, processes, predecessors, devices, nodes; rounds for a precision"
DESCRIPTION = """Splits the relative variance of the rows' times into components. Several files may hold the same rows.

sample         samples of a process at one placement of the buffers
placement      placements of a process
process        rounds, each of which has new processes; without the variance of samples, placements and predecessors
predecessor    workload and pass of the row that ran before on the same device, which differ between rounds
run            files of one device
device         devices of a node
node           nodes

The components of rounds, runs, devices and nodes come from a nested analysis of variance by moments over all rows
(Searle, Casella, McCulloch, Variance Components, 1992, chapter 3). Their standard deviations are root mean squares over
the rows. If each node has only one device, for example, devices and nodes cannot be told apart: the finer component is
missing, and the coarser one contains it.

A row has carry-over if its time depends on the predecessor: by a permutation test, at an error rate of 5 % for all rows
together. Files with the same seed have the same order of rows. In such files an effect of the first process, which also
searches for algorithms, looks like carry-over. The last lines have the number of rounds after which half of the 95 %
interval of time_median (docs/method.md) is at most the precision, and the rows whose rounds have the largest standard
deviations."""

LEVELS = ["node", "device", "run", "round"]
# 0.975 quantiles of Student's t for 1, 2, 3, ... degrees of freedom, as in src/base/stats.c.
T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120]
T += [2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045]
TO_STDEV = 1.349  # interquartile range over standard deviation, for a normal distribution
PERMUTATIONS, ERROR_RATE, SHOWN = 9999, 0.05, 10


def add_options(parser):
    parser.add_argument("files", metavar="FILE", nargs="+", help="result files with rounds, or of the same rows")
    parser.add_argument("--precision", type=float, default=1.0, metavar="PERCENT", help="wanted precision (default: 1)")


def median_variance(count):
    """Returns the variance of the median of `count` normal values, divided by the variance of the values."""
    return np.pi / (2 * count + np.pi - 2)


def half_width(rounds):
    """Returns half of the 95 % interval of time_median, as stats_rounds() in src/base/stats.c. The last axis of
    `rounds` has the rounds."""
    count = rounds.shape[-1]
    return T[count - 2] * np.std(rounds, axis=-1, ddof=1) * np.sqrt(2 * median_variance(count))


def observations(files):
    """Returns a line for each round of each row: logarithm of the time, the groups (node, device, run, round), and
    workload and pass of the row that ran before."""
    found = []
    for number, data in enumerate(files):
        own = rows(data)
        times, starts = (data[name].values[own["config"]] for name in ("round_time", "round_start"))
        if not times.shape[1]:
            times, starts = own[["time_median"]].to_numpy(), np.zeros((len(own), 1))
        begin = own["start_time"].to_numpy("datetime64[ns]").astype(float) / 1e9
        for round_number in range(times.shape[1]):
            one = own[["config_hash", "configuration", "name", "label", "listed"]].assign(
                log=np.log(times[:, round_number]),
                start=begin + starts[:, round_number],
                node=own["hostname"],
                device=own["hostname"] + " " + own["uuid"],
                run=number,
                round=f"{number} {round_number}",
                kind=(own["workload"] + " " + own.get("pass", "")).str.strip(),
            )
            one = one[one["log"].notna()].sort_values("start")
            found.append(one.assign(before=one.groupby("device")["kind"].shift().fillna("no row")))
    return pandas.concat(found, ignore_index=True)


def nested(found):
    """Returns {level: variance} by the method of moments, which equates sums of squares with their expected values. The
    coefficients of these values follow from the sizes of the groups. A level is left out if each group of the next
    coarser level contains only one of its groups."""
    keys = [["config_hash", *LEVELS[:i]] for i in range(len(LEVELS) + 1)]
    counts = [len(found.groupby(key)) for key in keys]
    kept = [i for i in range(1, len(keys)) if counts[i] > counts[i - 1]]
    groups = [found.groupby(keys[i])["log"] for i in [0, *kept]]
    squares = [float((group.sum() ** 2 / group.size()).sum()) for group in groups]
    sizes = [group.transform("size") for group in groups]
    # Coefficients: an observation in a group of n lines, within a coarser group of m lines, adds n / m.
    weights = np.array([[float((np.minimum(fine, own) / own).sum()) for fine in sizes[1:]] for own in sizes])
    return dict(zip([LEVELS[i - 1] for i in kept], np.linalg.solve(np.diff(weights, axis=0), np.diff(squares))))


def samples(files):
    """Returns three variances: of samples, of placements, and the part of the variance of a round's time that both
    explain."""
    within, between, given = [], [], []
    for data in files:
        own = rows(data)
        for line, count in zip(own["config"], own["placements"].fillna(1)):
            values = data["time_sample"].values[line]
            values = np.log(values[np.isfinite(values)])
            if len(values) % count or len(values) < 4 * count:
                continue
            parts = values.reshape(int(count), -1)
            low, high = np.percentile(parts, [25, 75], axis=1)
            within.append(np.mean(((high - low) / TO_STDEV) ** 2))
            of_median = within[-1] * median_variance(parts.shape[1])
            between.append(np.median(parts, axis=1).var(ddof=1) - of_median if count > 1 else np.nan)
            given.append((of_median + np.nan_to_num(max(between[-1], 0))) * median_variance(count))
    means = [np.nanmean(values) if np.isfinite(values).any() else np.nan for values in (within, between, given)]
    return (*means[:2], np.nan_to_num(means[2]))


def by_class(values, codes):
    """Returns the sum of squares between classes for each line of `values`, whose means must be 0. codes: class of each
    column."""
    member = codes[:, None] == np.arange(codes.max() + 1)
    return ((values @ member) ** 2 / member.sum(axis=0)).sum(axis=1)


def predecessors(found):
    """Returns the variance by predecessors, the variance of rounds with the same predecessor (both NaN if no row has
    two rounds with the same predecessor), and (p, name, effect, predecessor) for each tested row."""
    choose, total, tested = np.random.default_rng(1), np.zeros(5), []
    for _, own in found.groupby("config_hash", sort=False):
        sums, permuted = np.zeros(5), np.zeros(PERMUTATIONS)
        rest = own["log"] - own.groupby(["run", "device"])["log"].transform("mean")
        for _, unit in rest.groupby([own["run"], own["device"]]):
            codes, count = pandas.factorize(own["before"][unit.index])[0], len(unit)
            sizes = np.bincount(codes)
            if not 1 < len(sizes) < count:
                continue
            between = by_class(unit.to_numpy()[None, :], codes)[0]
            weight = count - (sizes**2).sum() / count
            sums += [between, len(sizes) - 1, (unit**2).sum() - between, count - len(sizes), weight]
            permuted += by_class(choose.permuted(np.tile(unit, (PERMUTATIONS, 1)), axis=1), codes)
        if sums.any():
            effects = rest.groupby(own["before"]).mean()
            far = effects.abs().idxmax()
            p = (1 + (permuted > sums[0] * (1 - 1e-9)).sum()) / (1 + PERMUTATIONS)
            tested.append((p, own["name"].iloc[0], effects[far], far))
            total += sums
    rounds = total[2] / total[3] if tested else np.nan
    return (total[0] - total[1] * rounds) / total[4] if tested else np.nan, rounds, tested


def deviations(found):
    """Returns the standard deviations of the rounds of rows, by name, the largest first. Rows with one round are left
    out."""
    deviation = {}
    for _, own in found.groupby("config_hash", sort=False):
        units = own.groupby(["run", "device"])["log"]
        if free := (units.size() - 1).sum():
            deviation[own["name"].iloc[0]] = np.sqrt((units.var(ddof=0) * units.size()).sum() / free)
    return pandas.Series(deviation, dtype=float).sort_values(ascending=False)


def components(files):
    """Returns {component: standard deviation} (NaN if it is missing), the observations, and the tested rows of
    predecessors()."""
    found = observations(files)
    found["name"] = names(found["name"], found["label"], found["configuration"], len(files) > 1, found["listed"])
    sample, placement, given = samples(files)
    before, rounds, tested = predecessors(found)
    levels = nested(found)
    process = (rounds if tested else levels.get("round", np.nan)) - given
    variances = {"sample": sample, "placement": placement, "process": process, "predecessor": before}
    variances |= {level: levels.get(level, np.nan) for level in ("run", "device", "node")}
    return {name: np.sqrt(max(value, 0)) for name, value in variances.items()}, found, tested


def run(options):
    files = [load(path, ["time_median"]) for path in options.files]
    found, observed, tested = components(files)
    if observed.empty:
        raise Refused(f"{listed(options.files)}: no measured row")
    counts = {name: observed.groupby("config_hash")[name].nunique().max() for name in LEVELS}
    shown = [[name, f"{100 * value:.2f} %" if np.isfinite(value) else "-"] for name, value in found.items()]
    print(f"{observed['config_hash'].nunique()} rows, {', '.join(f'{n} {name}s' for name, n in counts.items())}")
    print(table(["component", "standard deviation"], shown), end="")
    carried = [one for one in sorted(tested) if one[0] * len(tested) <= ERROR_RATE]
    for p, name, effect, before in carried[:SHOWN]:
        print(f"carry-over: {name}: {100 * effect:+.1f} % after {before} (p = {p:.2g})")
    if not tested:
        print("carry-over: unknown, no row follows rows of the same kind twice; more rounds tell")
    elif not carried:
        print(f"carry-over: none found in {len(tested)} rows")
    found = deviations(observed)
    if found.empty:
        print("rounds for a precision: unknown, the rows have one round")
        return 0
    counts = np.arange(2, len(T) + 2)
    widths = np.array(T) * np.sqrt(2 * median_variance(counts))
    for part, which in [(0.5, "half of the rows"), (0.9, "90 % of the rows"), (1, "all rows")]:
        enough = counts[widths * found.quantile(part) <= options.precision / 100]
        text = enough[0] if len(enough) else f"more than {counts[-1]}"
        print(f"rounds for +- {options.precision:g} % of {which}: {text}")
    print("widest:", listed(f"{name} {100 * value:.1f} %" for name, value in found[:3].items()))
    return 0
