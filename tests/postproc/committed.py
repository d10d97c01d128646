#!/usr/bin/env python3
"""Checks that the result files in tests/data are readable, and that their contents agree with each other and with the
modelled FLOPs and bytes. recompute.py checks their derived values."""

import collections
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS.parent / "postproc")]
os.chdir(TESTS / "data")
import roofsweep_post as post  # noqa: E402
import test_xarray  # noqa: E402

# {file whose rows were all measured and verified: number of rows}
ROWS = {
    "paper_h200": 378,
    "conv2d_batch_h200": 18,
    "guide_h200": 22,
    "training_h200": 64,
    "handwritten_h200": 60,
    "energy_h200": 49,
    "node_2xh100": 80,
    "node_4xh200": 160,
    "training_cpu": 26,
}
COMMIT = "c4b6590567"  # measured the files
# {file of other commits: what measuring it again needs}. A test fails if a file is missing here, or need not be here.
OTHERS = dict.fromkeys(["node_2xh100", "paper_h100", "roofs_2xh100"], "H100s, which are not lent") | {
    "node_4xh200": "four GPUs, which are not lent",
    "roofs_2xcpu": "two nodes of a Slurm cluster, without other work",
    "frameworks_cpu": "later programs of TensorFlow, which the commit lacks",
    "training_cpu": "a machine without other work",
}
FAILED = {"training_h200": 1}  # a kernel of cuDNN with wrong gradients of 5x5 weights


def load(name):
    """Returns a file. All its rows must be measured and verified, and counted if the device is a GPU."""
    data = post.load(f"{name}.nc")
    measured = data.status == "measured"
    assert data.sizes["config"] == ROWS[name] and (~measured).sum() == FAILED.get(name, 0), name
    assert (data.verify_error >= 0).all(), name
    counted, model = data.flops_counted[measured].notnull().all(), data.device_model.values[0]
    assert "cpu" in name or (counted and "NVIDIA H" in model), name
    return data


def ratio(data):
    return (data.flops_counted / data.flops_model).values


def words(data, name):
    return {word for text in data[name].values for word in text.split()}


def check_paper(data):
    assert set(data.precision.values) == {"fp16", "fp32"} and set(data.workload.values) == {"conv2d", "lstm"}
    assert {"conv2d-batch", "conv2d-stride", "lstm-batch", "lstm-hidden"} <= words(data, "label")
    assert (data.cause.values[data.limiter.values == "kernel"] != "").all() and (data.roof_fraction < 1).all()
    # An implicit GEMM in fp32 does hardly more FLOPs than modelled.
    gemm = (data.algorithm.values == "implicit-precomp-gemm") & (data.precision.values == "fp32")
    assert gemm.sum() >= 10 and (abs(ratio(data)[gemm] - 1) < 0.02).all(), ratio(data)[gemm]
    # As in the paper, an LSTM of the default size is bound by overhead.
    lstm = data.isel(config=data.workload.values == "lstm")
    default = (lstm.batch == 16) & (lstm.sequence == 16) & (lstm.features == 32) & (lstm.hidden == 16)
    assert default.any() and (lstm.paper_bound.values[default.values] == "overhead").all()


def check_guide(data):
    """Checks counted FLOPs of layers divided by modelled FLOPs. A linear layer of 4096 x 1024 does the modelled FLOPs.
    With one sample its kernel fills tiles of eight. The library's ReLU also scales and adds, its pool adds once for
    nine pixels, and its layer norm, by Welford's method, does twice the modelled FLOPs."""
    found = {word: own for text, own in zip(data.label.values, ratio(data)) for word in text.split()}
    assert abs(found["linear-512"] - 1) < 1e-3 and found["linear-1"] == found["thread"] == 8, found
    assert abs(found["pooling"] - 1 / 9) < 1e-3 and found["relu"] == 2 and 1.5 < found["norm"] < 2.5, found


def check_training(data, cpu):
    """A matrix product and the loops do exactly the modelled FLOPs. A hand-written training step does fewer, because it
    omits the padding."""
    known = np.isin(data.label.values, ["product", "registers", "shared"])
    assert known.sum() == 6 and np.allclose(ratio(data)[known], 1, rtol=1e-3), ratio(data)[known]
    plain = (data.implementation.values == "plain") & ~known
    assert plain.sum() == 22 and ((ratio(data)[plain] > 0.89) & (ratio(data)[plain] <= 1.001)).all(), ratio(data)[plain]
    assert (cpu.roof_fraction.values[cpu.label == "registers"] > 0.9).all()


def check_handwritten(data):
    """The hand-written convolution (`tiled`) has at least 40 % of the library's speed. The LSTM in one launch
    (`persistent`) is faster than the library unless its input is wide. Both do the modelled FLOPs."""
    implementation, others = data.implementation.values, collections.defaultdict(dict)
    by_hand = np.isin(implementation, ["tiled", "persistent"])
    assert by_hand.sum() == 26 and (abs(ratio(data)[by_hand] - 1) < 0.065).all(), ratio(data)[by_hand]
    for text, name, time in zip(data.configuration.values, implementation, data.time_median.values):
        key = " ".join(word for word in text.split() if not word.startswith("implementation="))
        others[key][name] = time
    speed = {key: times["cudnn"] / times[hand] for key, times in others.items()
             for hand in ("tiled", "persistent") if hand in times and "cudnn" in times}  # fmt: skip
    assert len(speed) == 25 and all(value > 0.4 for value in speed.values()), speed
    slower = sorted(key for key, value in speed.items() if key.startswith("lstm") and value < 1)
    assert len(slower) == 2 and "features=128 hidden=256" in slower[0] and "features=256" in slower[1], slower
    assert all(value > 1.4 for key, value in speed.items() if "lstm" in key and "features=32 hidden=16 " in key), speed


def check_energy(data):
    """The energy at the roofs differs from the energy by at most 40 %, in the median by 25 % (docs/measurements.md).
    Only the pool needs twice the energy at the roofs: its issue slots are 75 % busy with instructions that are neither
    FLOPs nor bytes. In a run of 0.7 s the power may exceed the cap by up to 11 %."""
    rows = post.rows(data)
    off, share = rows.energy_at_roofs / rows.energy - 1, rows.energy_constant_share
    far = rows[off.abs() >= 0.4]
    assert off.abs().median() < 0.25 and (off > -0.6).all() and (far.workload == "pool").all(), off.describe()
    assert (off[far.index] < 0).all() and far.cause.str.contains("issue").all(), far.cause
    assert ((share > 0) & (share < 1)).all(), share.describe()
    assert (rows.energy / rows.energy_time < 1.15 * float(data.device_power_limit[0])).all()


def check_roofs(data):
    """Counters prove the roofs of two H100s, and no roof is above theory."""
    name = data.device_roof_name.values
    uncounted = [str(kind).startswith(("launch", "host", "device")) for kind in name]
    wrong = set(name[data.device_roof_verdict.values != np.where(uncounted, "unproven", "proven")])
    assert not wrong and not (data.device_roof_clock_fraction > 1.01).any(), wrong
    assert data.sizes["device"] == 2 and data.sizes["device_roof"] == 2 * 2 * len(set(name))


def check_node(data):
    """Two GPUs start each joint roof within half a millisecond of each other, after all roofs that are measured alone.
    A busy neighbour changes roofs of on-chip units only through the power limit. An algorithm has equal counted FLOPs
    and about equal times on both GPUs."""
    name, condition = data.device_roof_name.values, data.device_roof_condition.values
    start = data.device_roof_start_time.values
    alone, together = condition == "alone", condition == "together"
    assert len(set(name)) == 40 and start[alone].max() < start[together].min()
    for kind in set(name):
        starts = start[together & (name == kind)]
        assert np.ptp(starts) < np.timedelta64(500, "us"), (kind, np.ptp(starts))
    value = data.device_roof_bandwidth.fillna(data.device_roof_performance).values
    for kind in ["dram read", "dram copy", "l2 read", "l1 read", "fp64 vector", "fp32 vector", "fp64 tensor mma"]:
        moved = np.median(value[together & (name == kind)]) / np.median(value[alone & (name == kind)])
        assert abs(moved - 1) < 0.005, (kind, moved)
    rows = collections.defaultdict(list)
    for row, configuration in enumerate(data.configuration.values):
        rows[configuration].append(row)
    assert len(rows) == 40 and all(sorted(data.config_device.values[found]) == [0, 1] for found in rows.values())
    flops, algorithm, times = data.flops_counted.values, data.algorithm_id.values, data.time_median.values
    alike = [found for found in rows.values() if len(set(algorithm[found])) == 1]
    assert len(alike) >= 34 and all(len(set(flops[found])) == 1 for found in alike), len(alike)
    far = [row for found in alike for row in found if abs(times[row] / np.median(times[found]) - 1) > 0.04]
    assert len(far) <= 2, data.configuration.values[far]


def others_in(values, usual):
    """Returns the words "VALUE in NAMES; ..." for files whose value is not the usual one. values: {file: value}"""
    found = collections.defaultdict(list)
    for name, value in sorted(values.items()):
        found[value].append(f"`{name}`")
    kinds = sorted(set(found) - {usual}, key=lambda value: int(value.split()[-1]))
    return "; ".join(f"{value} in {', '.join(found[value])}" for value in kinds)


def check_page(training, frameworks, paper):
    """The sentences of docs/measurements.md that name files have their numbers."""
    every = {path.stem: post.load(path) for path in sorted(pathlib.Path().glob("*.nc"))}
    every = {name: data for name, data in every.items() if data.sizes["config"]}
    samples = {name: [data.samples.min(), data.samples.max()] for name, data in every.items()}
    samples = {name: " to ".join(dict.fromkeys(f"{end:.0f}" for end in ends)) for name, ends in samples.items()}
    warm = {name: re.search(r"warmup=(\d+)", data.attrs["settings"])[1] for name, data in every.items()}
    rounds = {name: str(data.attrs.get("rounds", 1)) for name, data in every.items()}
    noisy = ((training.time_median_high - training.time_median_low) / training.time_median > 2 * 0.05).sum()
    second = frameworks.config_device.values == 1
    jax = np.char.startswith(frameworks.label.values.astype(str), "jax")
    assert second[np.char.startswith(frameworks.label.values.astype(str), "cudnn")].all()
    roofs = [frameworks[f"device_roof_{name}"] for name in ("bandwidth", "performance", "time")]
    roofs = roofs[0].fillna(roofs[1]).fillna(roofs[2]).to_series().to_numpy().reshape(2, -1)
    apart = sorted(abs(roofs[1] / roofs[0] - 1))
    clock = paper.sm_clock / paper.device_sm_clock_free.values[0]
    facts = (
        f"In `paper_h200` {(clock > 0.98).sum():.0f} of {paper.sizes['config']} rows ran within 2 % of it",
        f"median of 20 samples ({others_in(samples, '20')}) of one process ({others_in(rounds, '1')}).",
        f"5 iterations ({others_in(warm, '5')})",
        f"In `training_cpu` {noisy:.0f} of {training.sizes['config']} rows are noisy.",
        f"{(second & jax).sum()} of {jax.sum()} rows of JAX",
        f"at most {apart[-3]:.1%}, but for the latency of device memory ({apart[-2]:.1%}) and launches by the host "
        f"({apart[-1]:.1%})".replace("%", " %"),
    )
    page = " ".join((TESTS.parent / "docs" / "measurements.md").read_text().split())
    for fact in facts:
        assert fact in page, f"docs/measurements.md lacks: {fact}"


def main():
    others = set()
    for path in sorted(pathlib.Path().glob("*.nc")):
        commits = set(re.findall(r"roofsweep [\d.]+\+([\w-]+)", post.load(path).attrs["history"]))
        assert commits and not any("dirty" in commit for commit in commits), f"{path}: {commits}"
        others |= {path.stem} if commits != {COMMIT} else set()
        texts = [post.load(path).attrs[name] for name in ("command", "history", "manifest_path")]
        assert not re.search(r"(^|\s)/\w", "\n".join(texts)), f"{path} has a path of the machine: {texts}"
        if "frameworks" not in path.name:  # its rows are programs, which have no parameters
            test_xarray.check(path)
    assert others == set(OTHERS), others ^ set(OTHERS)
    files = {name: load(name) for name in ROWS}
    check_paper(files["paper_h200"])
    # Rows of two sweeps with the same kernels have equal counts.
    subprocess.run([sys.executable, "../bench/old_new.py", "conv2d_batch_h200.nc", "paper_h200.nc"], check=True)
    assert (files["conv2d_batch_h200"].roof_fraction < 1).all()
    check_guide(files["guide_h200"])
    check_training(files["training_h200"], files["training_cpu"])
    check_handwritten(files["handwritten_h200"])
    check_energy(files["energy_h200"])
    check_roofs(files["node_2xh100"])
    check_node(files["node_2xh100"])
    check_roofs(post.load("roofs_2xh100.nc"))
    check_page(files["training_cpu"], post.load("paper_frameworks_h200.nc"), files["paper_h200"])


main()
