#!/usr/bin/env python3
"""Files of format 3: format.py BIN. Committed files of older formats go back into a journal, and `roofsweep --gather`
writes them anew. Tables of rows, kernels and roofs are then the same, be a column in the file, computed, or a number
of the configuration. The header of sweeps/paper.ini's file has at most 130 variables and 600 lines."""

import ctypes
import ctypes.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "postproc"))
try:
    import netCDF4
    import numpy as np
    import roofsweep_post as post
    from roofsweep_post.dataset import parameters
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

HASH = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0").XXH3_64bits
HASH.argtypes, HASH.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_uint64


def line(kind, entry, first=False):
    version = '"format":1,' if first else ""
    text = f'"{kind}",{version}"entry":{json.dumps(entry, ensure_ascii=False, separators=(",", ":"))}'
    data = text.encode()
    return f'{{"xxh3":"{HASH(data, len(data)):016x}","kind":{text}}}\n'


class Column:
    """A variable as JSON has it; None where it is missing."""

    def __init__(self, data, variable):
        variable.set_auto_maskandscale(False)
        self.values, self.words, self.names = variable[:], None, None
        self.fill = getattr(variable, "_FillValue", None)
        if hasattr(variable, "flag_values"):
            self.words = variable.flag_meanings.split()
        if len(variable.dimensions) == 2:
            of = {"memory_level": "memory_level_name", "precision": "precision_name"}.get(variable.dimensions[1])
            self.names = data[of][:] if of else []

    def single(self, value):
        if isinstance(value, str):
            return value or None
        if value == self.fill or (isinstance(value, np.floating) and not math.isfinite(value)):
            return None
        if self.words:
            return None if self.words[value] == "unknown" else self.words[value]
        return value.item()

    def get(self, row):
        value = self.values[row]
        if self.names is None:
            return self.single(value)
        found = [self.single(one) for one in value]
        if len(self.names) == 0:
            return [one for one in found if one is not None]
        return {str(name): one for name, one in zip(self.names, found) if one is not None} or None


def table(data, dimension, prefix=""):
    """{member: Column} of one dimension."""
    return {
        name.removeprefix(prefix): Column(data, variable)
        for name, variable in data.variables.items()
        if variable.dimensions[0] == dimension and name.startswith(prefix)
    }


def entry(columns, row):
    return {name: value for name, column in columns.items() if (value := column.get(row)) is not None}


def lines(data):
    manifest, settings = data.manifest, data.settings
    for number, text in enumerate(data.history.split("\n")):
        yield line(
            "session",
            {
                "id": text.split(" session ")[1].split(":")[0],
                "version": data.source.removeprefix("roofsweep "),
                "title": data.title,
                "settings": settings,
                "manifest_path": data.manifest_path,
                "manifest_text": manifest,
                "command": data.command,
                "mpi": data.mpi,
                "hostname": text.split(" from ")[1].split(",")[0],
                "ranks": 1,
                "start_time": float(data["device_roof_start_time"][:].min()) - 60 + number,
            },
            first=number == 0,
        )
    devices, roofs = table(data, "device", "device_"), table(data, "device_roof", "device_roof_")
    keys = data["device_key"][:]
    for row in range(len(keys)):
        own = np.flatnonzero(data["device_roof_device"][:] == row)
        yield line("device", entry(devices, row) | {"roofs": [entry(roofs, roof) for roof in own]})
    records, kernels = table(data, "config"), table(data, "kernel", "kernel_")
    owner = data["kernel_config"][:]
    for row in range(len(data.dimensions["config"])):
        device = int(data["config_device"][row])
        own = np.flatnonzero(owner == row)
        found = entry(records, row)
        yield line(
            "record",
            found
            | {"kernels": [entry(kernels, kernel) for kernel in own], "sample": found.pop("time_sample", [])}
            | ({"device_key": str(keys[device])} if device >= 0 else {}),
        )


def same(old, new, keys, needed):
    """Each column that both tables have is the same in each row."""
    old, new = (table.sort_values(keys, kind="stable").reset_index(drop=True) for table in (old, new))
    assert len(old) == len(new) and needed <= set(new), needed - set(new)
    for name in (set(old) & set(new)) - JOURNAL_ONLY:
        one, other = old[name], new[name]
        if one.dtype == other.dtype == object and (other == "").all() and one.nunique() == 1:
            continue  # a parameter that all rows leave at its default
        if one.dtype.kind in "fiu" and other.dtype.kind in "fiu":
            equal = np.isclose(one, other, rtol=1e-9, atol=0, equal_nan=True)
        else:
            equal = (one.astype(str) == other.astype(str)).to_numpy()
        assert equal.all(), f"{name}: {one[~equal].iloc[0]} is {other[~equal].iloc[0]}"


# What an older file has in all rows and today's where it says more than another variable.
JOURNAL_ONLY = {"layout_chosen", "algorithm_origin"}
# What has another rule than in the older file.
JOURNAL_ONLY |= {"limiter", "limiter_evidence", "limited_by", "limiter_cause", "evidence", "arithmetic_intensity_l1"}
JOURNAL_ONLY |= {"marks", "intensity"}
JOURNAL_ONLY |= {"level_time_dram", "level_time_l2", "level_time_l1", "roof_level_time", "bandwidth_share"}
JOURNAL_ONLY |= {"roof_memory_level", "bandwidth_roof", "bandwidth", "roof_fraction", "throttled", "paper_bound"}
# What is in the journal alone, and what came later.
JOURNAL_ONLY |= {"host_time", "caller", "device_sm_clock_free"}
COMPUTED = {"compute_share", "bandwidth_share", "gap_share", "few_blocks_share", "data_movement_launches"}
COMPUTED |= {"flops_source", "bytes_source", "bytes_read_dram", "flops_ratio", "bytes_ratio", "hostname", "unit_note"}


def anew(path, roofsweep):
    name = path.stem + ".nc"
    with netCDF4.Dataset(path) as source, open(f"{name}.journal", "w", encoding="utf-8") as output:
        output.writelines(lines(source))
    found = subprocess.run([roofsweep, "--gather", f"{name}.journal"], capture_output=True, text=True, check=False)
    assert found.returncode in (0, 3), found.stderr
    return name


def check(path, roofsweep):
    name = anew(path, roofsweep)
    old, new = post.load(path), post.load(name)
    numbers = {name for name in parameters(old) if old[name].dtype.kind in "iuf" and (old[name] > 0).any()}
    same(post.rows(old), post.rows(new), ["config_hash"], COMPUTED | numbers)
    by_kernel = ["config_hash", "kernel_name", "kernel_time", "kernel_blocks"]
    same(post.kernels(old), post.kernels(new), by_kernel, {"kernel_waves", "kernel_occupancy", "kernel_tail_loss"})
    same(post.roofs(old), post.roofs(new), ["device", "name", "condition"], {"node_spread"})
    ends = new["start_time"] + (new["wall_time"].fillna(0) * 1e9).astype("timedelta64[ns]")
    assert not len(ends) or new.attrs["time_coverage_end"] == str(ends.max().values.astype("datetime64[s]")) + "Z"
    assert new.attrs["history"].count("\n") == old.attrs["history"].count("\n")
    assert new.attrs["manifest"] == old.attrs["manifest"] and "\n[sweep]\n" in f"\n{new.attrs['manifest']}"


def main(folder):
    roofsweep = os.path.abspath(os.path.join(folder, "roofsweep"))
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        for path in sorted((ROOT / "tests/data/earlier").glob("*.nc")):
            check(path, roofsweep)
        os.chdir(ROOT)
    paper = ROOT / "tests/data/paper_h100.nc"
    header = subprocess.run(["ncdump", "-h", paper], capture_output=True, text=True, check=True).stdout
    variables, length = len(re.findall(r"^\t(?:double|string|int64|byte) ", header, re.M)), header.count("\n")
    print(f"{paper.stem}: {variables} variables, {length} lines of ncdump -h")
    assert variables <= 130 and length <= 600


if __name__ == "__main__":
    main(sys.argv[1])
