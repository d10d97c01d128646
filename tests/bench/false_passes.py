"""Counts false passes of 300 doctored files of a node of four GPUs, each with its right verdict.

Usage: false_passes.py [COUNT]. Each doctoring says beforehand which commands must not pass the file: `alone` (compare
with its neighbours), `before` (compare with the healthy file), `targets` (check). The healthy file must pass all. Then
gate.sh judges nodes whose files are doctored, beside healthy ones. The exit status is 1 after a wrong pass or a false
alarm."""

import contextlib
import io
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import warnings

import numpy as np
import xarray

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "postproc"))
from roofsweep_post import cli, dataset, merge  # noqa: E402

TRACEBACK = -1  # no exit status
EVERY, KNOWN, BEFORE = ("alone", "before", "targets"), ("before", "targets"), ("before",)
GROWING = ["ecc_uncorrected", "ecc_uncorrected_ever", "rows_remapped_uncorrected", "pages_retired_uncorrected", "xids"]
STATES = ["banks_without_spares", "remap_pending", "remap_failed", "retirement_pending"]
ROOFS = ["dram read", "dram triad", "l2 read", "fp32 vector", "fp16 tensor wgmma"]
VALUES = [f"device_roof_{name}" for name in ("bandwidth", "performance", "time")]
SHARES = ["device_roof_clock_fraction", "device_roof_nominal_fraction"]


def healthy():
    """Returns a node of four equal GPUs with twelve configurations each, made of a GPU of a committed file."""
    with xarray.open_dataset(ROOT / "tests/data/node_2xh100.nc", decode_cf=False) as data:
        kept = {*dataset.SHAPES, *merge.NEEDED} & set(data.variables)  # fewer variables are read in less time
        data = data[sorted(kept)].load()
    rows = np.flatnonzero((data.config_device.values == 0) & (data.status.values == 0))
    rows = rows[np.argsort(data.energy.values[rows] > 1e36, kind="stable")][:12]  # first those with an energy
    roofs = (data.device_roof_device.values == 0) & np.isin(data.device_roof_name.values, ROOFS)
    roofs = np.flatnonzero(roofs)
    data = data.isel(config=np.tile(rows, 4), device_roof=np.tile(roofs, 4), device=[0] * 4, kernel=[0])
    data["kernel_config"][:] = -1
    data["config_device"][:] = np.repeat(range(4), len(rows))
    data["device_roof_device"][:] = np.repeat(range(4), len(roofs))
    return named(data, "node0")


def named(data, host):
    data = data.copy(deep=True)
    data["device_hostname"] = texts(data, "device_hostname", lambda _: host)
    data["device_uuid"] = ("device", np.array([f"GPU-{host}-{i}" for i in range(data.sizes["device"])], object))
    data["device_key"] = ("device", np.array([f"{host}/{i}" for i in range(data.sizes["device"])], object))
    own = data.config_device.values
    data["uuid"] = ("config", np.where(own >= 0, data.device_uuid.values[np.clip(own, 0, None)], "").astype(object))
    data.attrs["history"] = data.attrs["history"].replace(" session ", f" session {host}-", 1)
    return data


def texts(data, name, how):
    return data[name].dims, np.array([how(text) for text in data[name].values], object), data[name].attrs


def written(data, path):
    for name in data.variables:
        data[name].encoding = {}
        if data[name].dtype.kind in "OU":
            data[name] = (data[name].dims, data[name].values.astype(object), data[name].attrs)
    data.to_netcdf(path, unlimited_dims=["config"])


def rows_of(data, device):
    return np.flatnonzero(data.config_device.values == device)


def roofs_of(data, device, name=None, condition=None):
    own = data.device_roof_device.values == device
    own &= True if name is None else data.device_roof_name.values == name
    return np.flatnonzero(own & (True if condition is None else data.device_roof_condition.values == condition))


def without(data, dim, places):
    return data.isel({dim: np.setdiff1d(range(data.sizes[dim]), places)})


def filled(data, name, places, value):
    """Sets values; None stands for the file's missing value; a function changes the values."""
    found = data[name].values.astype(object if isinstance(value, str) else data[name].dtype).copy()
    value = data[name].attrs.get("_FillValue", np.nan) if value is None else value
    found[places] = value(found[places]) if callable(value) else value
    return data.assign({name: (data[name].dims, found, data[name].attrs)})


def scaled(data, names, places, factor):
    for name in (name for name in names if name in data):
        own = 1 / factor if name.endswith("_time") else factor
        data = filled(data, name, places, lambda old, own=own: np.where(abs(old) < 1e36, old * own, old))
    return data


def slower(data, rows, factor):
    return scaled(data, ["time_median", "time_median_low", "time_median_high", "time_sample"], rows, factor)


def unit(data, name, value):
    attributes = {key: own for key, own in data[name].attrs.items() if key != "units"}
    return data.assign({name: (data[name].dims, data[name].values, attributes | ({"units": value} if value else {}))})


def health(data, device, name, start, end):
    place = list(data["health"].values).index(name)
    data = filled(data, "device_health_start", (device, place), start)
    return filled(data, "device_health_end", (device, place), end)


def moved(data, device):
    data = without(data, "config", rows_of(data, device))
    data = without(without(data, "device_roof", roofs_of(data, device)), "device", [device])
    for name in ("config_device", "device_roof_device"):
        data = filled(data, name, slice(None), lambda old: np.where(old > device, old - 1, old))
    return data


def doctorings(names):
    """Yields (name, function that doctors the healthy file, commands that must not pass it). names: health values."""
    for d in range(4):
        for count in (1, 2, 5, 6, 10, 11, 12):
            yield f"{count} rows lost", lambda x, d=d, n=count: without(x, "config", rows_of(x, d)[:n]), EVERY
        for name in ROOFS:
            yield f"{name} lost", lambda x, d=d, n=name: without(x, "device_roof", roofs_of(x, d, n)), EVERY
            own = lambda x, d=d, n=name: roofs_of(x, d, n)  # noqa: E731
            for far in (0.5, 0.8):
                yield f"{name} {far}", lambda x, own=own, f=far: scaled(x, VALUES + SHARES, own(x), f), EVERY
            if name != "l2 read":  # has no theory
                yield f"{name} and its share", lambda x, own=own: scaled(x, VALUES, own(x), 1.1), EVERY
            yield (
                f"{name} contradicted",
                lambda x, own=own: filled(x, "device_roof_verdict", own(x), verdict_at(x, "contradicted")),
                EVERY,
            )
        for how, value in (("missing", None), ("0", 0.0), ("negative", -1.0)):
            yield (
                f"a roof is {how}",
                lambda x, d=d, v=value: filled(x, VALUES[0], roofs_of(x, d, "dram read"), v),
                EVERY,
            )
        yield "all roofs lost", lambda x, d=d: without(x, "device_roof", roofs_of(x, d)), EVERY
        for condition in (0, 1):
            yield (
                f"condition {condition} lost",
                lambda x, d=d, c=condition: without(x, "device_roof", roofs_of(x, d, None, c)),
                EVERY,
            )
        for count, far in itertools.product((1, 6, 12), (1.3, 3)):
            yield f"{count} rows {far} slower", lambda x, d=d, n=count, f=far: slower(x, rows_of(x, d)[:n], f), EVERY
        for count, status in itertools.product((1, 12), (1, 2, 77)):
            yield (
                f"{count} rows of status {status}",
                lambda x, d=d, n=count, s=status: filled(x, "status", rows_of(x, d)[:n], s),
                EVERY,
            )
        for value in (None, 0.0, -1.0, np.inf):
            yield f"a time of {value}", lambda x, d=d, v=value: filled(x, "time_median", rows_of(x, d)[3], v), EVERY
        yield "the device lost", lambda x, d=d: moved(x, d), BEFORE
        for name in sorted(names & set(GROWING)):
            yield f"{name} grows", lambda x, d=d, n=name: health(x, d, n, 0, 3), EVERY
        for name in sorted(names & set(STATES)):
            yield f"{name} is", lambda x, d=d, n=name: health(x, d, n, 1, 1), EVERY
        yield "width shrinks", lambda x, d=d: health(x, d, "pcie_width", 16, 8), EVERY
        yield "health lost", lambda x, d=d: lost_health(x, d), EVERY
        yield "rows of no device", lambda x, d=d: filled(x, "config_device", rows_of(x, d)[:2], -1), EVERY
        yield "rows of a device 99", lambda x, d=d: filled(x, "config_device", rows_of(x, d)[:2], 99), EVERY
        yield "roofs of no device", lambda x, d=d: filled(x, "device_roof_device", roofs_of(x, d)[:2], -1), EVERY
        for name in ("device_roof_sustained", "energy", "energy_time"):
            yield f"{name} lost", lambda x, d=d, n=name: filled(x, n, places(x, n, d), None), EVERY
        yield (
            "sustained slower",
            lambda x, d=d: scaled(x, ["device_roof_sustained"], places(x, "device_roof_sustained", d), 0.7),
            ("alone", "before"),
        )
        yield "energy", lambda x, d=d: scaled(x, ["energy"], rows_of(x, d), 1.5), BEFORE
        yield "hashes", lambda x, d=d: filled(x, "config_hash", rows_of(x, d), lambda old: old + "x"), EVERY
        yield "names", lambda x, d=d: filled(x, "device_roof_name", roofs_of(x, d), lambda old: old + " x"), EVERY
        yield "another model", lambda x, d=d: filled(x, "device_model", d, "Another"), EVERY
        yield "a new GPU", lambda x, d=d: replaced(x, d), ()
    for name in (*VALUES, "time_median", "energy", "device_roof_sustained"):
        for other in ("ms", "", "GB s-1"):
            yield f"{name} in {other}", lambda x, n=name, u=other: unit(x, n, u), EVERY
    for far in (1.15, 1.3, 2):
        yield f"all rows {far}", lambda x, f=far: slower(x, slice(None), f), KNOWN
        yield f"all roofs {far}", lambda x, f=far: scaled(x, VALUES + SHARES, slice(None), 1 / f), KNOWN
    for name in ("time_median", "status", "config_device", "config_hash", "device_roof_name", "device_roof_device"):
        yield f"without {name}", lambda x, n=name: x.drop_vars(n), EVERY
    for name in VALUES[:2]:
        yield f"without {name}", lambda x, n=name: x.drop_vars(n), KNOWN
    for name in ("device_health_end", "device_health_start"):
        yield f"{name} is a text", lambda x, n=name: as_text(x, n), EVERY
    yield "names of health alike", lambda x: filled(x, "health", slice(None), "xids"), EVERY
    yield "no health", lambda x: x.drop_dims("health"), BEFORE
    yield "no rows", lambda x: x.isel(config=slice(0)), KNOWN
    yield "no roofs", lambda x: filled(x, "device_roof_device", slice(None), -1), EVERY
    yield "another host", lambda x: named(x, "other"), BEFORE
    yield "all hashes", lambda x: filled(x, "config_hash", slice(None), lambda old: old + "x"), KNOWN
    yield "all names", lambda x: filled(x, "device_roof_name", slice(None), lambda old: old + " x"), KNOWN
    yield "unchanged", lambda x: x, ()


def verdict_at(data, word):
    return data["device_roof_verdict"].attrs["flag_meanings"].split().index(word)


def places(data, name, device):
    return rows_of(data, device) if data[name].dims[0] == "config" else roofs_of(data, device)


def lost_health(data, device):
    data = filled(data, "device_health_start", device, None)
    return filled(data, "device_health_end", device, None)


def replaced(data, device):
    data = filled(data, "device_uuid", device, "GPU-new")
    return filled(data, "uuid", rows_of(data, device), "GPU-new")


def as_text(data, name):
    return data.assign({name: (data[name].dims, data[name].values.astype(str).astype(object))})


def status_of(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            return cli.run(cli.arguments([*words, "--quiet"])), out.getvalue()
        except Exception:  # pylint: disable=broad-except
            return TRACEBACK, traceback.format_exc()


def judged(path):
    return {
        "alone": status_of("compare", path),
        "before": status_of("compare", "healthy.nc", path),
        "targets": status_of("check", path, "--targets", "targets.ini"),
    }


def gate(cases, base):
    """Returns the names of doctored nodes that gate.sh passes. Each gate has ten doctored and eleven healthy nodes."""
    post, wrong = [sys.executable, str(ROOT / "postproc/roofsweep-post")], []
    for start in range(0, len(cases), 10):
        folder = pathlib.Path(f"gate{start}")
        folder.mkdir()
        nodes = {f"good{number}": (base, "unchanged") for number in range(11)}
        nodes |= {f"bad{number}": case for number, case in enumerate(cases[start : start + 10])}
        for node, (data, _) in nodes.items():
            written(named(data, node), folder / f"{node}.nc")
        (folder / "nodes").write_text("".join(f"{node}\n" for node in nodes))
        words = ["bash", str(ROOT / "jobscripts/gate.sh"), "verdict", str(folder)]
        subprocess.run(
            words, env=os.environ | {"ROOFSWEEP_POST": " ".join(post)}, check=False, stderr=subprocess.DEVNULL
        )
        lines = (folder / "verdicts").read_text().splitlines() if (folder / "verdicts").exists() else []
        for node, (_, name) in nodes.items():
            own = [line for line in lines if f"{node} " in line or f"{node}:" in line]
            if node.startswith("bad") and own and all(line.startswith("PASS") for line in own):
                wrong.append(f"gate passes: {name}")
    return wrong


def main(count=300):
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        base, wrong, strict, gates = healthy(), [], [], []
        written(base, "healthy.nc")
        written(named(base, "node1"), "other.nc")
        cli.run(cli.arguments(["baseline", "healthy.nc", "other.nc", "--output", "targets.ini"]))
        every = list(doctorings(set(base.health.values)))
        chosen = [every[place] for place in np.unique(np.linspace(0, len(every) - 1, int(count)).astype(int))]
        for number, (name, how, bad) in enumerate(chosen):
            data = how(base.copy(deep=True))
            written(data, f"{number}.nc")
            for command, (status, text) in judged(f"{number}.nc").items():
                if status == TRACEBACK:
                    wrong.append(f"{command} ends with a traceback: {name}: {text[-300:]}")
                elif status == 0 and command in bad:
                    wrong.append(f"{command} passes: {name}")
                elif status != 0 and not bad:
                    strict.append(f"{command} does not pass: {name}: {text[:300]}")
            gates += [(data, name)] if "alone" in bad and number % 10 == 0 else []
        wrong += gate(gates, base)
        print("\n".join([*wrong, *strict]))
        judgements = f"{len(wrong)} wrong passes, {len(strict)} alarms"
        print(f"{len(chosen)} files of {len(every)}, {len(gates)} in gates: {judgements}")
        return 1 if wrong or strict else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
