"""The command `compare` compares the devices of result files with their neighbours and with earlier files."""

import argparse
import os
from statistics import NormalDist

import numpy as np
import pandas

from . import health, history, links, verdicts
from .arguments import whole
from .bits import Bits
from .columns import NOISY
from .dataset import load
from .deviations import THRESHOLD, WIDEST, at_equal_clock, judged, limited
from .frames import DISTURBED, ROOFS, ROWS, by_device, kind_order, roofs, rows
from .naming import names
from .presence import ENERGY, SUSTAINS, Presence, doubts, single
from .selection import moment
from .spread import median_variance
from .texts import Refused, listed, percent, plain, scaled, share, table

HELP = "which device is slower than its neighbours, or than last time"
DESCRIPTION = """Compares the devices of one or more result files: roofs, and times of the same configurations. Devices
of one file are compared with the median of their model, or with the faster one if there are two. If several files are
given, the first is the reference: each device of the other files is compared with itself in the first file, or else
with the median of its model there. Only a slower value fails. * marks values that are slower by more than the limit. ?
marks values beyond the threshold that cannot be judged. Spread is how much faster the fastest device is than the
slowest one.

The limit of a value is the largest of three: the limit of its kind (1.25 % for DRAM, L2 and vector units, 1.5 % for
kernels of tensor units and sustained roofs, 10 % for the bus, else the threshold); the spread between placements of the
buffers in the reference (10 % for one placement; for a row with rounds, their scatter instead); and three times the
scatter of the devices. --threshold scales the limits of kinds. The limit is at most 10 %; if it would be wider, the
check is inconclusive. Limits are set for 1 false FAIL in 200 devices, over all checks of a device. +- is half of the
95 % interval of the difference. Noise of the samples does not widen the limit. Noise has its own check: its median over
the roofs, and its median over the configurations, must be at most 5 %.

Roofs of tensor and vector units, sustained roofs, and L2 roofs of all devices at once are compared as work per clock
cycle. A configuration that the power cap slows both here and in the reference is slow only if it is slower in seconds
and in clock cycles. A roof's sustained clock that is more than 10 % lower makes the device inconclusive. Sustained
times of configurations are printed, not judged, because two processes on one device differ by 15 %. Energies are
compared only with the same device; the energy of a configuration may be 18 % larger.

Among 20 or more configurations a few are slow by chance. So their common pace (geometric mean) may be slower by 0.625
of the threshold, the mean of the slowest fifth by 0.8 of the threshold beyond that pace, and a single configuration by
10 %, or by the scatter of its rounds.

Some values are printed but not judged, because processes on one device differ by 10 %: gaps between launches, the
host's launch time, and copies to and from the host on all devices at once. The time that longer gaps add to a
configuration, up to 13 % of each gap, is subtracted. Gaps within a graph are compared only with the same device.

A roof is no reference if its samples differ by more than 20 %, or if another load ran on the device. An above-theory,
contradicted or unmeasured roof is not compared. A device fails if other devices of its model have a value for such a
roof, or for a configuration that failed or was skipped on this device. A device also fails if it lacks a roof or a
configuration that other devices of the file have. If only the reference has it, the device is inconclusive. A device of
the reference that is in no later file fails if its host now has fewer devices. A host that is in no later file is
inconclusive, unless --part is given.

Times are compared if several devices measured a configuration: `distribute = replicate`, or several files. Times
exclude the timer's own time, which differs between GPUs. A device whose roofs were measured by several runs in one file
has one line, with medians.

A device fails if its health is bad at the end, or worse than at the start or in the reference: uncorrected memory
errors, rows remapped for them, no spare rows, a narrower link, an XID error during the run. Without health at the end
of a run, as after a killed job, it is inconclusive. Corrected errors, replays, heat and XID errors of programs (13, 31,
43, 45, 68, 109) are only reported. Drift is also only reported: a driver, firmware, library, system, power cap, ECC
mode or link that differs from most devices of the model.

Links have a line for each node: bandwidth at the largest size, and latency, which is the time at the smallest size. The
value of a GPU or node is that of its best pair, so that a slow GPU or node is named, but not its partners. Two nodes
that are each other's only partner are inconclusive. Latencies between CPUs have a limit of 90 %. Links within a host of
CPUs do not fail. A node is inconclusive if the manifest has `links = yes` and the file lacks its links.

Results of one configuration, algorithm, kernels, grids and seed must have equal bits on all devices of a model with the
same library, in all files. A device fails if its bits differ from those of most devices. If two devices differ and no
third one decides, both are inconclusive. Rows whose iterations differ from each other (sums by atomic additions) are
left out and named. Rows without a hash, such as those of programs, are not checked.

Below the tables each device has a line: PASS, FAIL or INCONCLUSIVE with the reasons. 1#5 node7 is device 5 of the first
file, on host node7; the first lines name its GPU. If samples of DRAM, L2 and vector roofs take 1 % longer on average
than the best sample, another load is on the GPU: the device fails, and this is its first reason. Other processes that
computed on the device are named if it fails for any reason; otherwise they make it inconclusive. A device without a
reference, or without compared values, is also inconclusive.

Exit status: 0 all devices pass, 1 a device fails, 2 the comparison was not possible, 6 no device fails but one is
inconclusive."""

# Lines that explain the reference: for one file, and for several files.
REFERENCES = (
    "reference: the median of the devices of a model, or the faster one of two",
    "reference: file 1, each device itself there, or else the median of its model there",
)
# A row with one placement of its buffers has at least this limit, because placements change times by up to this share.
ONE_PLACEMENT = 0.10
# Limit of latencies between CPUs: healthy nodes differed by up to 68 % where processes shared cores.
SHARED_LATENCY = 0.9
# (part of a roof's key, limit against the same device, limit against other devices, standard deviation of the
# difference of two processes on one device). Values with an infinite limit are printed, not judged. CPUs have at least
# THRESHOLD. docs/measurements.md, "The gate", has the repeated measurements from which the deviations come; each limit
# is at least normal_limit() of its deviation.
LIMITS = (
    ("with a node", WIDEST, WIDEST, 0.02),  # the network is shared
    ("nodes bandwidth", WIDEST, WIDEST, 0.02),
    ("nodes latency", WIDEST, WIDEST, 0.02),
    ("link copy bandwidth", 0.015, 0.015, 0.003),
    ("link copy latency", WIDEST, WIDEST, 0.02),
    ("link", THRESHOLD, THRESHOLD, 0.01),
    ("launch gap graph", 0.04, np.inf, 0.002),  # chips differ in the parts that are switched off
    ("launch gap dependent graph", 0.04, np.inf, 0.003),
    ("launch", np.inf, np.inf, 0.11),  # host times differ, and gaps differ by process: 1.67 or 1.85 us on one H100
    ("host to device, together", np.inf, np.inf, 0.1),  # all devices share the host's memory
    ("device to host, together", np.inf, np.inf, 0.1),
    ("host to device", WIDEST, WIDEST, 0.02),  # memory and bus are shared
    ("device to host", WIDEST, WIDEST, 0.02),
    ("l2 read", 0.0125, THRESHOLD, 0.003),  # chips differ in the distance to their L2
    ("dram", 0.0125, 0.0125, 0.0014),
    ("l2", 0.0125, 0.0125, 0.0023),
    ("vector", 0.0125, 0.0125, 0.0017),
    ("tensor library", THRESHOLD, THRESHOLD, 0.0081),
    ("tensor", 0.015, 0.015, 0.0021),
    ("", THRESHOLD, THRESHOLD, 0.0052),  # shared, l1
)
# (limit, standard deviation) as in LIMITS
SUSTAINED = (0.015, 0.0017)  # sustained work in a clock cycle
CLOCK = (WIDEST, 0.0083)  # sustained clock, which only makes a device inconclusive
ENERGIES = (0.09, 0.02)  # energy at a roof
ROWS_DIFFER, ROW_ENERGY = 0.015, 0.18  # standard deviation of a row without rounds; limit of a row's energy
# Share of healthy devices that may fail, over all CHECKS of a device.
FALSE_ALARMS, CHECKS = 0.005, 130
TWO_SIDED = 1.96  # half of a 95 % interval over the standard deviation
LOAD = 0.01  # another load may take this share of a GPU's time, by the disturbance of steady roofs
# Launch gaps of two processes on one device may differ by this share.
GAP, GAPS_DIFFER = "launch gap, alone", 0.13
POWER_CAP = 4  # a bit of throttle_reasons
SAMPLES_LEAST = 10  # a row with fewer samples has no known noise
# If a device has MANY configurations, their mean and the mean of their slowest fifth have these limits, as shares of
# the threshold.
MANY, MEAN_DIFFERS, FIFTH_DIFFERS = 20, 0.625, 0.8
DEVICE = ["file", "place", "device_name", "model", "uuid", "hostname"]
COMPARED = ["key", "value", "reference", "limit", "unit", "fair", "deviation", "error", "slow", "unsure", "soft"]


def day(text):
    found = moment(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no day like 2026-01-31")
    return found


def add_options(parser):
    parser.add_argument("files", nargs="+", metavar="file", help="result file; the first is the reference")
    parser.add_argument(
        "-t",
        "--threshold",
        type=float,
        default=100 * THRESHOLD,
        metavar="PERCENT",
        help="largest difference that is not marked (default: %(default)g)",
    )
    parser.add_argument(
        "-m", "--across-models", action="store_true", help="compare devices of different models as well"
    )
    parser.add_argument(
        "-c",
        "--configurations",
        type=whole(0),
        default=20,
        metavar="N",
        help="list the N configurations that differ most (default: %(default)d)",
    )
    parser.add_argument(
        "--part", action="store_true", help="hosts of the reference that no later file has are left out"
    )
    since = "print instead which roofs changed since that day, and what new drivers changed; FILE may be a folder"
    parser.add_argument("--since", type=day, metavar="YYYY-MM-DD", help=since)
    verdicts.add_options(parser)


def medians(found, key):
    """Returns one line for each device and key, with medians over the runs of the device."""
    limits = ("least", "between", "unfit", "soft", "error")
    names = ("value", "timer", "spread", "placed", "cycles", "gaps", "rounds", *limits)
    numbers = [name for name in names if name in found]
    return (
        found.groupby([*DEVICE, key, "unit"], sort=False, as_index=False)[numbers].median().rename(columns={key: "key"})
    )


def sustained(found):
    """Returns further lines for roofs with a settled sustained value: work per cycle of the sustained clock, and this
    clock, which only makes a device inconclusive. If a clock is missing, the kind has lines of sustained rates only."""
    if "sustained" not in found:
        return found[:0]
    own = found[found["sustained"].notna() & (found["settled"] == "yes")]
    own = own.assign(value=own["sustained"], key=own["key"] + SUSTAINS, spread=np.nan, load=np.nan)
    own = own.assign(unit=own["unit"].str.replace("/cycle", "/s"))
    clock = own["sustained_clock"] if "sustained_clock" in own else own["sustained"] * np.nan
    soft = own["key"].isin(own["key"][clock.isna()])  # rates and work per cycle are not comparable
    rates = own.assign(soft=True, least=CLOCK[0], between=CLOCK[0], error=TWO_SIDED * CLOCK[1])
    work = own.assign(value=own["value"] / clock, unit=own["unit"].str.replace("/s", "/cycle"))
    work = work.assign(least=SUSTAINED[0], between=SUSTAINED[0], error=TWO_SIDED * SUSTAINED[1])
    clocks = rates.assign(key=own["key"].str.removesuffix(SUSTAINS) + ", clock" + SUSTAINS, value=clock, unit="Hz")
    return pandas.concat([rates[soft], work[~soft], clocks[~soft]])


def energies(found):
    """Returns further lines: energy of a byte or a FLOP without the constant power. Chips of a model differ in this
    energy, so devices are not compared with each other."""
    own = found[found["usable"] & found["energy"].notna()]
    unit = "J/" + own["unit"].str.replace("/(s|cycle)$", "", regex=True)
    further = {"value": own["energy"], "unit": unit, "spread": np.nan, "load": np.nan}
    further |= {"least": ENERGIES[0], "between": np.inf, "error": TWO_SIDED * ENERGIES[1]}
    return own.assign(key=own["key"] + ENERGY, **further)


def with_limits(found):
    limits = [next(limits for part, *limits in LIMITS if part in key) for key in found["key"]]
    least, between, error = np.transpose(limits) if limits else (0.0, 0.0, 0.0)
    return found.assign(least=least, between=between, error=TWO_SIDED * error)


def link_table(files):
    """Returns links.pairs() with their limits. Links within a host of CPUs cannot fail: all processes share them. Other
    work on the host delays short messages between CPUs."""
    found = with_limits(links.pairs(files))
    cpus = {str(host) for data in files for host in data["device_hostname"].values[data["device_kind"].values == "cpu"]}
    shared = found["hostname"].isin(cpus)
    found.loc[shared, ["least", "between"]] = WIDEST
    found.loc[shared & found["key"].str.endswith("latency"), ["least", "between"]] = SHARED_LATENCY
    return found.assign(soft=shared & ~found["name"].str.contains("node"))


def roof_table(files):
    """Returns the roofs with their limits, in the order of kinds, with lines for sustained values and energies.
    Columns: error: half of the 95 % interval of a difference; unfit: too disturbed to be a reference; load:
    disturbance, for steady roofs (DRAM, L2, vector units)."""
    found = at_equal_clock(roofs(files))
    found["key"] = found["name"] + ", " + found["condition"]
    found = with_limits(found)
    gpu = found["device_kind"] != "cpu"
    coarse = ~gpu | (found["name"].str.contains(" tensor ") & ~found["unit"].str.endswith("/cycle"))
    found.loc[coarse, ["least", "between"]] = found.loc[coarse, ["least", "between"]].clip(lower=THRESHOLD)
    found["unfit"] = (found["spread"] > DISTURBED) & np.isfinite(found["least"]) & gpu
    found["load"] = found["disturbance"].where(
        found["name"].str.contains("dram|l2|vector") & found["time"].isna() & gpu
    )
    found["unfit"] |= found.groupby(["file", "place"])["load"].transform("mean") > LOAD
    found["soft"] = False
    found = pandas.concat([found, sustained(found), energies(found)], ignore_index=True)
    return found.iloc[np.lexsort([found["key"], found["condition"], found["name"].map(kind_order(found))])]


def sample_noise(data, table):
    """Returns for each row the 95th percentile of its samples divided by their median, minus 1. If the row has several
    placements, the value is the median over the placements."""
    samples, found = data["time_sample"].values, []
    for line, count in zip(table["config"], table.get("placements", pandas.Series(1, table.index))):
        own = samples[line][np.isfinite(samples[line])]
        parts = own.reshape(int(count), -1) if count > 1 and len(own) and len(own) % count == 0 else own[None, :]
        enough = parts.shape[1] >= SAMPLES_LEAST
        found.append(np.median(np.percentile(parts, 95, axis=1) / np.median(parts, axis=1)) - 1 if enough else np.nan)
    return np.array(found, float)


def normal_limit(deviation):
    """Returns the limit of one check. A healthy device exceeds any of its CHECKS limits with a probability of at most
    FALSE_ALARMS (Bonferroni's correction). deviation: standard deviation of the checked difference."""
    return NormalDist().inv_cdf(1 - FALSE_ALARMS / CHECKS) * deviation


def between_rounds(files, table):
    """Returns normal_limit() of each row by the scatter of its rounds; NaN without rounds. The variance of a row is at
    least the mean variance of its file, because the variance of few rounds may be small by chance."""
    found = []
    for number, data in enumerate(files):
        own = table[table["file"] == number]
        times = data["round_time"].values[own["config"]]
        if times.shape[1] < 2 or own.empty:
            found.append(np.full(len(own), np.nan))
            continue
        logs = np.log(np.where(np.isfinite(times).all(axis=1, keepdims=True), times, np.nan))
        variance = logs.var(axis=1, ddof=1)
        mean = np.nanmean(variance) if np.isfinite(variance).any() else np.nan
        found.append(normal_limit(np.sqrt(2 * median_variance(times.shape[1]) * np.maximum(variance, mean))))
    return np.concatenate(found)


def time_table(files):
    """Returns the times of configurations (column value, in s), then lines for the sustained times of rows at the power
    cap, and for the energy of a FLOP. Further columns: timer: the part of value that is the timer's; placed: spread
    between placements or rounds; held: the row is at the power cap; cycles: held rows' clock cycles, without the
    timer's; gaps: launches that are not part of a graph; spread: noise of the samples; error: half of the 95 % interval
    of a difference."""
    found = [rows(one).assign(file=number) for number, one in enumerate(files)]
    found = [own.assign(spread=sample_noise(one, own)) for one, own in zip(files, found)]
    found = pandas.concat(found, ignore_index=True)
    found["name"] = names(found["name"], found["label"], found["configuration"], len(files) > 1, found["listed"])
    several = found["placements"] > 1 if "placements" in found else np.zeros(len(found), bool)
    placed = np.where(several, 2 * found["noise"], ONE_PLACEMENT)
    rounds = between_rounds(files, found)
    held = np.zeros(len(found), bool)
    if {"throttled", "throttle_reasons"} <= set(found):
        held = (found["throttled"] == "yes") & (found["throttle_reasons"].fillna(0).astype(int) & POWER_CAP > 0)
    cycles = (found["own_time"] * found["sm_clock"]).where(held) if any(held) else np.nan
    found = found.assign(
        value=found["time_median"],
        timer=found["time_median"] - found["own_time"],
        unit="s",
        key=found["config_hash"],
        placed=np.where(np.isfinite(rounds), rounds, placed),
        rounds=rounds,
        held=held,
        cycles=cycles,
        gaps=found["launches"].where(found["launch"] != "graph") if "launch" in found else found["launches"],
        least=THRESHOLD,
        soft=False,
        error=np.where(np.isfinite(rounds), found["noise"], TWO_SIDED * ROWS_DIFFER),
    )
    more = found.assign(timer=0.0, placed=0.0, cycles=np.nan, spread=np.nan, rounds=np.nan)
    long = more[held & more["energy_time"].notna()]
    long = long.assign(value=long["energy_time"], key=long["key"] + SUSTAINS, least=np.inf)
    long["error"] = TWO_SIDED * CLOCK[1]
    drawn = more[(more["energy"] / more["flops"]).notna()]
    drawn = drawn.assign(value=drawn["energy"] / drawn["flops"], unit="J/FLOP", gaps=np.nan, between=np.inf)
    drawn = drawn.assign(key=drawn["key"] + ENERGY, least=ROW_ENERGY, error=TWO_SIDED * ENERGIES[1])
    return pandas.concat([found, long, drawn], ignore_index=True)


def judged_times(found, roofs_found, *how):
    """Returns of_many() of judged(found) with three corrections. The timer's time is subtracted, and so is the time
    that longer gaps between launches add in this process. Rows at the power cap have the better of two speeds, by time
    and by clock cycles, because compute follows the clock and memory does not. roofs_found: judged roofs."""
    found = found.assign(value=found["value"] - found["timer"])
    times = judged(found, *how)
    gaps = roofs_found[roofs_found["key"] == GAP].set_index(["file", "place"])
    longer = (gaps["value"] / gaps["reference"] - 1).clip(0, GAPS_DIFFER) * gaps["reference"]
    waits = times.set_index(["file", "place"]).index.map(longer.to_dict()).to_numpy(float)
    waits = np.minimum(np.nan_to_num(waits * times["gaps"].to_numpy(float)), times["value"] / 2)
    paced = times["deviation"] * times["value"] / (times["value"] - waits)
    cycles = judged(found.assign(value=found["cycles"], unit="cycles").dropna(subset="value"), *how)
    known = cycles.set_index(["file", "place", "key"])["deviation"].dropna()
    own = times.set_index(["file", "place", "key"]).index.map(known.to_dict())
    return of_many(times.assign(paced=np.fmax(paced, np.asarray(own, float))), how[0])


def of_many(times, threshold):
    """Returns limited(times), except for devices with MANY configurations. Their speeds are divided by their common
    pace, which differs between processes and has its own check. The mean of the slowest fifth has a limit of its own. A
    single configuration has the limit of its rounds, or else WIDEST (docs/measurements.md, "The gate")."""
    times["fair"] = times["paced"]
    # The reference's few rounds may agree by chance, so the scatter of the judged file's rounds counts, too.
    times["spread_of"] = np.fmax(times["spread_of"], times["rounds"])
    times["least"] = np.fmax(times["least"], times["rounds"].clip(upper=WIDEST))
    plain = single(times)
    devices = [own for _, own in plain[plain["fair"].notna()].groupby(["file", "place"]) if len(own) >= MANY]
    for own in devices:
        pace = own["fair"].median().clip(1 - MEAN_DIFFERS * threshold, 1 + MEAN_DIFFERS * threshold)
        times.loc[own.index, "fair"] = own["fair"] / pace
    times = limited(times, threshold)
    for own in (times.loc[own.index] for own in devices):
        slower = 1 - own["fair"]
        beyond = slower.nlargest(len(own) // 5).mean() > FIFTH_DIFFERS * threshold
        limit = FIFTH_DIFFERS * threshold if beyond else max(WIDEST, threshold)
        limits = own["limit"].where(own["rounds"].notna() & (not beyond), limit)
        slow = slower > (limit if beyond else own["spread_of"].clip(lower=limits))
        times.loc[own.index, "limit"], times.loc[own.index, "slow"] = limits, slow
        times.loc[own.index, "unsure"] = (slower > limits) & ~slow
    return times


def named(line):
    """Returns the name of a line's device: "1#0 node1" for file 1, row 0 of dimension `device`, host node1."""
    return f"{line['file'] + 1}{line['device_name']}"


def ends(found):
    """Returns the cells of the table for the slowest and the fastest device of one key."""
    cells = []
    for line in (found.loc[found["deviation"].idxmin()], found.loc[found["deviation"].idxmax()]):
        cells += [percent(line["deviation"]) + ("*" if line["slow"] else "?" if line["unsure"] else " "), named(line)]
    return cells


def print_roofs(found, troubled):
    """Prints a line for each model and roof. troubled: keys of roofs that could not be compared on some device."""
    if found.empty:
        return
    print("Roofs against the reference, as speeds: - is slower, * by more than the limit, ? cannot be judged")
    for model, own in found.groupby("model", sort=False):
        lines = []
        for key, same in own.groupby("key", sort=False):
            count = f"{len(same)}" + ("!" if key in troubled else " ")
            spread = same["deviation"].max() / same["deviation"].min() - 1
            reference = scaled(same["reference"].median(), same["unit"].iloc[0])
            lines.append([key, count, reference, share(spread), share(same["limit"].max()), *ends(same)])
        print(model)
        head = ["roof", "devices ", "reference", "spread", "limit", "slowest ", "on", "fastest ", "on"]
        print(table(head, lines, left=["on"]))


def print_doubts(reasons, names):
    """Prints the roofs that were not compared, the reasons and the devices."""
    found = {}
    for device, own in reasons.items():
        for key, why in own.items():
            found.setdefault((key, why), []).append(names[device])
    if found:
        print("Not compared")
        for (key, why), devices in found.items():
            print(f"  {key}: {why}: {listed(devices)}")
        print()


def mean_of(deviations):
    return float(np.exp(np.log(deviations).mean()))


def print_times(found):
    """Prints a line for each device: statistics over its configurations."""
    lines = []
    for _, own in found.groupby(["file", "place"], sort=False):
        speeds = own["deviation"]
        cells = [percent(speed) for speed in (mean_of(speeds), speeds.min(), speeds.max())]
        lines.append([named(own.iloc[0]), str(len(own)), *cells, str(int(own["slow"].sum()))])
    print("Speed of configurations against the reference: - is slower")
    print(table(["device", "configurations", "geometric mean", "least", "most", "slow"], lines))


def time_texts(table):
    texts = zip(table["key"], table["name"])
    return {key: text + "".join(end for end in (SUSTAINS, ENERGY) if key.endswith(end)) for key, text in texts}


def print_configurations(found, all_times, count):
    """Prints the `count` configurations that are slowest against their reference."""
    texts = time_texts(all_times)
    algorithms = all_times.groupby("key")["algorithm"].nunique()
    groups = found.groupby("key", sort=False)
    worst = groups["deviation"].min().sort_values(kind="stable").index[:count]
    lines = []
    for key in worst:
        own = groups.get_group(key)
        same = "same" if algorithms[key] == 1 else "differs"
        lines.append([texts[key], str(len(own)), share(own["limit"].max()), *ends(own), same])
    print(f"Configurations, the {len(lines)} of {groups.ngroups} that are slowest")
    print(table(["configuration", "devices", "limit", "slowest ", "on", "fastest ", "on", "algorithm"], lines, ["on"]))


def add_compared(verdict, lines, reason, names):
    """Adds a check to the verdict for each line that has a limit. reason(line) returns the text for a slow or unsure
    line; several lines may have the same text, which is then shown once."""
    for line in lines.loc[lines["limit"].notna(), COMPARED].to_dict("records"):
        slow, values = line["slow"], {name: line[name] for name in ("value", "reference", "limit", "unit")}
        values["excess"] = (1 - line["fair"]) / line["limit"]
        word = "fail" if slow else "inconclusive" if line["unsure"] else "pass"
        verdict.add(names.get(line["key"], line["key"]), reason(line) if word != "pass" else "", word, **values)


def add_noise(verdict, lines, what):
    """Adds a check of the median of the lines' noise (column spread). A device with too much noise fails; noise is no
    excuse for a slow value. what: "roofs" or "configurations"."""
    spread = lines["spread"].dropna()
    if len(spread):
        noise = float(spread.median())
        why = f"noisy: samples of {what} differ by {share(noise)} (limit {share(NOISY)})" if noise > NOISY else ""
        verdict.add(f"noise of {what}", why, value=noise, limit=NOISY, excess=noise / NOISY)


def add_load(verdict, roofs_found, times):
    """Inserts a check for other work on the device, as the first reason. The device fails if the other work takes more
    than LOAD of the time of steady roofs. If other processes computed on the device without such an effect, they are a
    reason of a device that fails anyway, and make any other device inconclusive."""
    taken = roofs_found["load"].mean() if "load" in roofs_found else np.nan
    told = times["other_processes"][times["other_processes"] != ""] if "other_processes" in times else times[:0]
    beside = told[told != "none"] if len(told) else told
    if not np.isfinite(taken) and not len(told):
        return
    why = [f"another load takes {share(taken)} of the GPU's time (limit {share(LOAD)})"] * bool(taken > LOAD)
    why += [f"other processes beside {len(beside)} configurations: {beside.iloc[0]}"] if len(beside) else []
    fails = taken > LOAD or (why and verdict.word == "FAIL")
    word = "fail" if fails else "inconclusive" if why else "pass"
    verdict.add("load of others", "; ".join(why), word, value=float(taken), limit=LOAD)
    verdict.checks.insert(0, verdict.checks.pop())


def slower(line):
    """Returns "slower by 3.1 % +- 0.4"; the second number is half of the 95 % interval."""
    return f"slower by {share(1 - line['deviation'])} +- {100 * line['error']:.1f}"


def verdict_of(device, roofs_found, times, threshold, names):
    """Returns the verdict of one device. names: {key: text} of rows."""
    verdict = verdicts.Verdict(named(device), device["uuid"], device["model"], device["hostname"])
    own = single(times)
    slow = {word: own[own[word]] for word in ("slow", "unsure")}

    def of_roof(line):
        unsure = ", such figures differ by more" * (line["unsure"] and not line["soft"])
        return f"{line['key']} {slower(line)} (limit {share(line['limit'])}{unsure})"

    def of_row(line):
        if line["key"].endswith((SUSTAINS, ENERGY)):
            return f"{names[line['key']]} {slower(line)} (limit {share(line['limit'])})"
        word = "slow" if line["slow"] else "unsure"
        worst = f"are slower, the slowest {slower(slow[word].loc[slow[word]['deviation'].idxmin()])[7:]}"
        unsure = ", but where their buffers lie decides more than 10 %" * line["unsure"]
        return f"{len(slow[word])} of {len(own)} configurations {worst}{unsure}"

    add_compared(verdict, roofs_found, of_roof, {})
    add_compared(verdict, times, of_row, names)
    if len(own):
        mean = mean_of(own["paced"])
        limit = MEAN_DIFFERS * threshold if len(own) >= MANY else threshold
        why = f"times of {len(own)} configurations: geometric mean {percent(mean)}" if mean < 1 - limit else ""
        verdict.add("geometric mean of speeds", why, value=mean, reference=1.0, limit=limit, excess=(1 - mean) / limit)
    return verdict


def absent(devices, part):
    """Returns verdicts on devices of the reference that are in no later file. If the host still has as many devices of
    the kind as before, the device was replaced and passes. The verdict is inconclusive if the host has none of the
    kind, but as many devices as before; else the device fails. A host that is in no later file has one inconclusive
    verdict, or none if `part` is true."""
    old, new = devices[devices["file"] == 0], devices[devices["file"] > 0]
    present = {*zip(new["hostname"], new["uuid"])}
    counts, had = new.groupby("hostname")["uuid"].nunique(), old["hostname"].value_counts()
    alike, had_alike = (own.groupby(["hostname", "kind"])["uuid"].nunique() for own in (new, old))
    found = []
    for _, line in old.iterrows():
        host, own = line["hostname"], (line["hostname"], line["kind"])
        if host in counts and (host, line["uuid"]) not in present:
            fewer = alike.get(own, 0) < had_alike[own]
            lost = fewer and (own in alike or counts[host] < had[host])
            verdict = verdicts.Verdict(named(line), line["uuid"], line["model"], host)
            why = "the device is in no later file, and its host has fewer devices of its kind" if fewer else ""
            verdict.add("device", why or "replaced since then", "fail" if lost else "inconclusive" if fewer else "pass")
            found.append(verdict)
    for host, own in old[~old["hostname"].isin(counts.index)].groupby("hostname", sort=False):
        verdict = verdicts.Verdict(f"1# {host}", "", own["model"].iloc[0], host)
        why = f"the host with {len(own)} devices is in no later file; --part leaves such hosts out"
        verdict.add("host", why, "inconclusive")
        found += [] if part else [verdict]
    return found


def verdicts_of(files, devices, all_roofs, all_times, threshold, across, part=False, bits=None):
    """Returns (verdicts, judged roofs, judged times). All devices have a verdict, except those of the reference file.
    bits: Bits of the files, or None."""
    several = devices["file"].nunique() > 1
    first = 0 if several else None
    usable = all_roofs[all_roofs["usable"]]
    roofs_found = judged(medians(usable, "key"), threshold, across, first)
    without = roofs_found[roofs_found["deviation"].isna()]  # roofs that the reference lacks, or that are unfit there
    unfit = set(all_roofs.loc[all_roofs["unfit"].astype(bool) & (all_roofs["file"] == 0), "key"])
    roofs_found = roofs_found.dropna(subset="deviation")
    times = judged_times(medians(all_times, "key"), roofs_found, threshold, across, first).dropna(subset="deviation")
    names, found = time_texts(all_times), []
    references = devices[devices["file"] == 0] if several else devices[:0]
    models = {*references["model"]}
    before = {(line["hostname"], line["uuid"]): line["place"] for line in references[::-1].to_dict("records")}
    judged_roofs, judged_rows, roofs_of, rows_of, differs, lacked = (
        by_device(lines) for lines in (roofs_found, times, all_roofs, all_times, health.drift(files, devices), without)
    )
    presence = Presence(files, devices, all_roofs, all_times, names)
    for _, device in (devices[devices["file"] > 0] if several else devices).iterrows():
        key = (device["file"], device["place"])
        own, own_rows = roofs_of(key), rows_of(key)
        verdict = verdict_of(device, judged_roofs(key), judged_rows(key), threshold, names)
        if several and not across and device["model"] not in models:
            verdict.add("reference", f"the reference has no {device['model']}", "inconclusive")
        elif verdict.checks:
            add_noise(verdict, own[own["usable"]], "roofs")
            add_noise(verdict, own_rows, "configurations")
        presence.add(verdict, device, across)
        compared = len(judged_roofs(key)) + len(judged_rows(key))
        if not compared and "reference" not in [check.name for check in verdict.checks]:
            verdict.add("compared", "nothing could be compared", "inconclusive")
        same = before.get((device["hostname"], device["uuid"]))
        earlier = None if same is None else health.health_of(files[0], same)
        health.judge(verdict, files[device["file"]], device["place"], earlier)
        for fact, value, most in differs(key)[["fact", "value", "most"]].to_numpy():
            verdict.add("drift", f"{fact} {value}, of most {most}", "pass", excess=0.0)
        for roof in sorted(set(lacked(key)["key"]) & unfit):
            verdict.add(roof, f"{roof}: other work disturbed the reference; measure it again", "inconclusive")
        add_load(verdict, own, single(own_rows))
        if bits and (check := bits.checks.get(key)):
            verdict.checks.insert(0, check)
        found.append(verdict)
    for number, data in enumerate(files):
        if number >= several:
            found += verdicts.of_no_device(data, f"{number + 1}#")
    found += links.verdicts_of(files, link_table(files), threshold, across, first)
    return found + (absent(devices, part) if several else []), roofs_found, times


def all_devices(files):
    """Returns one line for each device of each file, even if several runs of a file opened the device."""
    found = []
    for number, data in enumerate(files):
        for place in range(data.sizes["device"]):
            texts = {name: data[f"device_{name}"].values[place] for name in ("model", "uuid", "hostname", "kind")}
            name = f"#{place} {texts['hostname']}"
            found.append({"file": number, "place": place, "device_name": name} | texts)
    return pandas.DataFrame(found, columns=[*DEVICE, "kind"]).drop_duplicates(["file", "hostname", "uuid", "model"])


def run(options):
    if not 0 < options.threshold < np.inf:
        raise Refused("--threshold must be more than 0, and finite")
    if len({os.path.realpath(path) for path in options.files}) < len(options.files):
        raise Refused("a file is named twice")
    threshold, across = options.threshold / 100, options.across_models
    if options.since is not None:
        if options.quiet or options.json or options.junit or options.prometheus:
            raise Refused("--since gives no verdicts: without --quiet, --drain, --json, --junit and --prometheus")
        return history.show(options.files, options.since, threshold)
    files = [load(path, ROWS + ROOFS, judged=True) for path in options.files]
    devices, all_roofs, all_times = all_devices(files), roof_table(files), time_table(files)
    if len(files) == 1 and len(devices) < 2:
        raise Refused("only one device: name a second file, or a file of several devices")
    bits = Bits(files, all_times, named)
    how = (threshold, across, options.part, bits)
    found, roofs_found, times = verdicts_of(files, devices, all_roofs, all_times, *how)
    if len(files) == 1 and roofs_found.empty and times.empty:
        raise Refused("no two devices are of the same model; --across-models compares them")
    usable, reasons = all_roofs[all_roofs["usable"]], doubts(all_roofs)
    if not options.quiet:
        names = {(line["file"], line["place"]): named(line) for _, line in devices.iterrows()}
        for number, data in enumerate(files, 1):
            print(f"file {number}: {data.attrs['path']}, {data.attrs.get('date_created', 'no date')}")
        measured = set(zip(usable["file"], usable["place"]))
        for _, line in devices.iterrows():
            without = (line["file"], line["place"]) not in measured
            bus = plain(files[line["file"]]["device_pci_id"].values[line["place"]])
            where = f"{line['model']}, {plain(line['uuid'])}" + f", PCI {bus}" * bool(bus)
            print(f"device {named(line)}: {where}" + ", no roofs" * without)
        print(REFERENCES[len(files) > 1])
        print()
        print_roofs(roofs_found, {key for own in reasons.values() for key in own})
        print_doubts(reasons, names)
        health.print_drift(health.drift(files, devices), names)
        if len(times):
            print_times(times[~times["key"].str.endswith(ENERGY)])
            print_configurations(times, all_times, options.configurations)
        else:
            print("No configuration was measured on two devices: use distribute = replicate, or one manifest twice.\n")
        if line := bits.line():
            print(f"{line}\n")
    return verdicts.publish(found, "compare", options, files)
