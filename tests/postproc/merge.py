#!/usr/bin/env python3
"""Checks `roofsweep-post merge` on parts of a file in tests/data. The merged parts must equal the whole file in all
digits, with new indices of devices, kernels and roofs. Files that cannot be merged are refused with the reason."""

import contextlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np
import xarray

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "postproc"))
from roofsweep_post import cli, merge  # noqa: E402
from roofsweep_post.dataset import load  # noqa: E402

NODE = ROOT / "tests/data/node_4xh200.nc"  # four GPUs, 160 rows
INDEX = {"config_device": "device", "kernel_config": "config", "device_roof_device": "device"}


def read(path):
    with xarray.open_dataset(path, decode_times=False, mask_and_scale=False) as data:
        return data.load()


def write(data, path):
    texts = [variable for variable in data.variables.items() if variable[1].dtype.kind in "OU"]
    data = data.assign({name: (text.dims, text.values.astype(object), text.attrs) for name, text in texts})
    data.to_netcdf(path, unlimited_dims=["config"])


def part(source, path, rows, devices, change=None):
    """Writes a file with some rows and devices of another file, as if a job had measured only these. change(data) is
    called before the data are written, and may change them."""
    keep = {"config": rows, "device": devices}
    keep["kernel"] = np.concatenate([[], *(np.flatnonzero(source.kernel_config == row) for row in rows)]).astype(int)
    keep["device_roof"] = np.flatnonzero(np.isin(source.device_roof_device, devices))
    blank = [dim for dim, places in keep.items() if len(places) == 0 and dim != "config"]
    data = source.isel(keep | {dim: [0] for dim in blank})
    for name, dim in INDEX.items():
        values = data[name].values
        data[name].values[:] = [list(keep[dim]).index(value) if value in keep[dim] else -1 for value in values]
    for variable in data.variables.values():
        if variable.dims[0] in blank:
            words = variable.attrs.get("flag_meanings", "").split()
            none = len(words) - (words[-1] == "unknown") if words and "flag_values" in variable.attrs else -1
            variable.values[:] = "" if variable.dtype.kind in "OU" else variable.attrs.get("_FillValue", none)
    if change:
        change(data)
    write(data, path)


def post(*words, status=0, says=()):
    """Runs roofsweep-post, which must end with this status and print these texts to stderr."""
    output = io.StringIO()
    with contextlib.redirect_stderr(output):
        got = cli.run(cli.arguments(["merge", *map(str, words)]))
    text = output.getvalue()
    assert got == status and "Traceback" not in text, f"status {got}, {text}"
    for expected in says:
        assert expected in text, f"'{text}' does not say '{expected}'"


def same(one, other, but=()):
    one, other = read(one).drop_vars(but, errors="ignore"), read(other).drop_vars(but, errors="ignore")
    for name in sorted(set(one.variables) | set(other.variables)):
        assert name in one and name in other, f"{name} is in one file alone"
        assert one[name].identical(other[name]), f"{name}: {one[name]} {other[name]}"
    for name in one.attrs.keys() | other.attrs.keys():
        assert "date" in name or "coverage" in name or one.attrs[name] == other.attrs[name], name


def on(device, data):
    return np.flatnonzero(data.config_device == device)


def files_of_single_devices_give_the_file_of_all():
    whole = read(NODE)
    for device in range(4):
        part(whole, f"{device}.nc", on(device, whole), [device])
    post("2.nc", "0.nc", "1.nc", "3.nc", "-o", "merged.nc", says=["summary status=0 rows=160", "devices=4"])
    same(NODE, "merged.nc")
    merge.SLAB, slab = 50, merge.SLAB
    post("3.nc", "1.nc", "2.nc", "0.nc", "-o", "merged.nc", "--overwrite")
    merge.SLAB = slab
    same(NODE, "merged.nc")
    assert read("merged.nc").attrs == whole.attrs
    with netCDF4.Dataset("merged.nc") as data:
        assert data["time_median"].filters()["complevel"] == 1 and data.dimensions["config"].isunlimited()


def parts_of_a_list_give_the_whole():
    whole = read(NODE)
    rows = np.arange(160)
    part(whole, "a.nc", rows[rows < 98], range(4))
    part(whole, "b.nc", rows[rows >= 98], range(4))
    post("a.nc", "b.nc", "-o", "merged.nc")
    same(NODE, "merged.nc")


def what_one_file_lacks_is_missing():
    """Merges files of a GPU and a CPU, with variables that one file lacks, a failed row, and a row without a device."""
    subprocess.run(["ncgen", "-4", "-o", "golden.nc", ROOT / "tests/data/golden.cdl"], check=True)
    whole = read("golden.nc")
    failed = int((whole.status == 2).sum())

    def lacks(data):  # as written by a version with fewer precisions and fewer meanings of a flag
        del data["device_power_limit"], data["batch"]  # merge takes the batch from the text `configuration`

    rest = np.flatnonzero(whole.config_device != 0)

    def later(data):  # as written by a version in which a flag has no value for "missing"
        values = np.array([0, 1], np.int8)
        flags = {"flag_values": values, "flag_meanings": "counted modelled"}
        data["flags_source"] = ("config", np.ones(data.sizes["config"], np.int8), flags)

    part(whole, "later.nc", on(0, whole), [0], later)
    part(whole, "gpu.nc", on(0, whole), [0])
    part(whole, "rest.nc", rest, [1], lacks)
    part(whole, "wanted.nc", [*rest, *on(0, whole)], [0, 1])  # the order of rows is that of the files
    post("rest.nc", "gpu.nc", "-o", "merged.nc", status=3 if failed else 0, says=[f"failed={failed}"])
    post("rest.nc", "later.nc", "-o", "later_merged.nc", status=3 if failed else 0)
    words = list(load("later_merged.nc")["flags_source"].values)
    assert words == ["unknown"] * len(rest) + ["modelled"] * len(on(0, whole)), words
    same("wanted.nc", "merged.nc", but=["device_power_limit"])
    assert read("merged.nc").device_power_limit[1] == whole.device_power_limit.attrs["_FillValue"]
    known = np.flatnonzero(whole.number_format != "tf32")
    write(read("rest.nc").isel(number_format=known), "few.nc")
    post("few.nc", "gpu.nc", "-o", "merged.nc", "--overwrite", status=3 if failed else 0)
    merged = read("merged.nc")
    for index, name in enumerate(merged.number_format.values):
        at = list(whole.number_format.values).index(name)
        assert (merged.device_peak_vector.values[0, index] == whole.device_peak_vector.values[0, at]).all(), name


def roofs_alone_are_merged():
    whole = read(NODE)
    for device in range(2):
        part(whole, f"{device}.nc", [], [device])
    part(whole, "both.nc", [], [0, 1])
    post("0.nc", "1.nc", "-o", "merged.nc", says=["rows=0"])
    same("both.nc", "merged.nc")


def another_job(data):
    data.attrs["history"] = data.attrs["history"].replace(" session ", " session another-")
    data["device_key"].values[:] = [f"another-{key}" for key in data.device_key.values]
    data["start_time"].values[:] += 3600


def a_device_is_one_unless_roofs_or_health_differ():
    def another_jobs_roofs(data):
        another_job(data)
        data["device_roof_bandwidth"].values[0] *= 1.01

    def another_jobs_health(data):
        another_job(data)
        data["device_health_end"].values[0, list(data.health.values).index("xids")] += 1

    whole, rows = read(NODE), np.arange(10)
    part(whole, "a.nc", on(1, whole)[rows], [1])
    part(whole, "b.nc", on(1, whole)[rows + 10], [1], another_job)
    post("a.nc", "b.nc", "-o", "merged.nc", says=["devices=1"])
    merged = read("merged.nc")
    assert (merged.config_device == 0).all() and len(merged.attrs["history"].split("\n")) == 2
    part(whole, "b.nc", on(1, whole)[rows + 10], [1], another_jobs_health)
    post("a.nc", "b.nc", "-o", "merged.nc", "--overwrite", says=["devices=2"])
    part(whole, "b.nc", on(1, whole)[rows + 10], [1], another_jobs_roofs)
    post(
        "a.nc",
        "b.nc",
        "-o",
        "merged.nc",
        "--overwrite",
        says=["devices=2", "has other roofs or health in b.nc than in a.nc"],
    )
    merged = read("merged.nc")
    of_job = {hash_: key.startswith("another-") for hash_, key in
              zip(merged.config_hash.values, merged.device_key.values[merged.config_device.values])}  # fmt: skip
    assert of_job == {whole.config_hash.values[row]: row in on(1, whole)[10:] for row in on(1, whole)[:20]}


def a_clash_is_named_and_newest_decides():
    def later(data):
        data["start_time"].values[:] += 60
        data["time_median"].values[:] *= 2

    whole = read(NODE)
    part(whole, "a.nc", range(12), range(4), later)
    part(whole, "b.nc", range(12), range(4))
    uuid, host = whole.uuid.values[0], whole.device_hostname.values[whole.config_device.values[0]]
    name = whole["name"].values[0]
    named = f"12 rows are in several files, of the same device; {name} on {uuid} of {host}"
    post("a.nc", "b.nc", "-o", "m.nc", status=2, says=[named, " in a.nc and b.nc; ", "; ...; --newest keeps"])
    assert not os.path.exists("m.nc")
    for pair in ("a.nc", "b.nc"), ("b.nc", "a.nc"):
        said = ["12 rows are in several", "the last one is kept, a skipped one only if all are"]
        post(*pair, "-o", "m.nc", "--newest", "--overwrite", says=said)
        same("a.nc", "m.nc")

    def later_skipped(data):
        data["start_time"].values[:] += 120
        data["status"].values[:] = list(data["status"].attrs["flag_meanings"].split()).index("skipped")

    part(whole, "c.nc", range(12), range(4), later_skipped)
    for pair in ("a.nc", "c.nc"), ("c.nc", "a.nc"):
        post(*pair, "-o", "m.nc", "--newest", "--overwrite", says=["measured=12"])
        same("a.nc", "m.nc")


def attribute(path, name, value):
    with netCDF4.Dataset(path, "a") as data:
        data.delncattr(name) if value is None else data.setncattr(name, value)


def what_cannot_be_merged_is_refused():
    whole = read(NODE)
    part(whole, "a.nc", on(0, whole), [0])
    part(whole, "good.nc", on(1, whole), [1])
    pathlib.Path("cut.nc").write_bytes(pathlib.Path("a.nc").read_bytes()[:50000])
    pathlib.Path("text.nc").write_text("text")
    netCDF4.Dataset("other.nc", "w").close()
    changes = {  # file: (attribute, its value, reason of the refusal)
        "newer.nc": ("format_version", 99, "format version 99"),
        "older.nc": ("format_version", None, "an earlier roofsweep wrote it; write it again from its journal"),
        "nobody.nc": ("history", None, "names no session of roofsweep"),
        "settings.nc": ("settings", "warmup=1", "their rows cannot be compared"),
        "joined.nc": None,
        "unitless.nc": None,
    }
    for path, change in changes.items():
        pathlib.Path(path).write_bytes(pathlib.Path("good.nc").read_bytes())
        if change:
            attribute(path, *change[:2])
    with netCDF4.Dataset("joined.nc", "a") as data:  # as written by ncrcat
        data["uuid"][0] = "GPU-of-another-file"
    with netCDF4.Dataset("unitless.nc", "a") as data:
        data["device_roof_bandwidth"].delncattr("units")
    reasons = {path: change[2] for path, change in changes.items() if change} | {
        "missing.nc": "No such file",
        "./a.nc": "are the same file",
        "cut.nc": "no NetCDF file, or it is not whole",
        "text.nc": "no NetCDF file, or it is not whole",
        "other.nc": "no result file of roofsweep",
        "joined.nc": "ncrcat",
        "unitless.nc": "damaged: device_roof_bandwidth has another type or unit than in other files",
    }
    for path, reason in reasons.items():
        post("a.nc", path, "-o", "bad.nc", status=2, says=[path, reason])
    post("a.nc", "-o", "bad.nc", status=2, says=["two files or more"])
    assert not [name for name in os.listdir() if "bad" in name], os.listdir()
    # The output.
    os.symlink("a.nc", "link.nc")
    pathlib.Path("x.journal").write_text('{"xxh3":"')
    before = pathlib.Path("a.nc").read_bytes()
    post("a.nc", "good.nc", "-o", "link.nc", "--overwrite", status=2, says=["it is an input file"])
    post("a.nc", "good.nc", "-o", "cut.nc", status=2, says=["cut.nc exists; --overwrite replaces it"])
    post("a.nc", "good.nc", "-o", "x.journal", "--overwrite", status=2, says=["it exists and is a journal"])
    post("a.nc", "good.nc", "-o", "nowhere/x.nc", status=2, says=["cannot write nowhere/x.nc: No such folder"])
    assert pathlib.Path("a.nc").read_bytes() == before


def drafts_of_killed_merges_are_removed():
    whole = read(NODE)
    for device in range(2):
        part(whole, f"{device}.nc", [], [device])
    for turn, last in enumerate((signal.SIGKILL, signal.SIGTERM)):
        child = os.fork()
        if child == 0:
            merge.define = lambda *_, last=last: signal.raise_signal(last)
            try:
                post("0.nc", "1.nc", "-o", "m.nc")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert len([name for name in os.listdir() if "m.nc" in name]) == 1 - turn, os.listdir()
    pathlib.Path(".roofsweep-post.m.nc.of_a_user").write_text("")
    post("0.nc", "1.nc", "-o", "m.nc")
    assert sorted(os.listdir()) == [".roofsweep-post.m.nc.of_a_user", "0.nc", "1.nc", "m.nc"], os.listdir()


def all_committed_files_are_merged():
    files = sorted(map(str, (ROOT / "tests/data").glob("*.nc")))
    post(*files, "-o", "m.nc", status=2, says=["--any-settings merges them anyway"])
    post(*files, "-o", "m.nc", "--any-settings", "--newest", status=3, says=["and 5 more than in", "rows=1900"])
    assert " | " in read("m.nc").settings


TESTS = [
    files_of_single_devices_give_the_file_of_all,
    parts_of_a_list_give_the_whole,
    what_one_file_lacks_is_missing,
    roofs_alone_are_merged,
    a_device_is_one_unless_roofs_or_health_differ,
    a_clash_is_named_and_newest_decides,
    what_cannot_be_merged_is_refused,
    drafts_of_killed_merges_are_removed,
    all_committed_files_are_merged,
]
if __name__ == "__main__":
    for test in TESTS:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            test()
            print(test.__name__)
