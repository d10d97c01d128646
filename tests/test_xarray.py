#!/usr/bin/env python3
"""Opens a result file as any user would, with xarray and no options, and checks its contents.

Usage: test_xarray.py FILE. Exit status 0, 1 if a check fails."""

import sys

import numpy as np
import xarray

DIMENSIONS = {"config", "kernel", "device", "device_roof", "number_format", "memory_level", "sample"}
# Dimensions that files of CPUs, or of earlier commits, may lack. Activities need `counters = causes`.
LATER_DIMENSIONS = {"wall_part", "health", "activity", "part", "node", "link", "round"}
ATTRIBUTES = {
    "Conventions",
    "title",
    "summary",
    "keywords",
    "source",
    "history",
    "date_created",
    "manifest",
    "settings",
    "mpi",
}
INDICES = {"config_device", "kernel_config", "device_roof_device", "device_node", "link_node", "link_node_to"}


def words(data, name):
    meanings = np.array(data[name].attrs["flag_meanings"].split())
    return meanings[data[name].values]


def check_description(data):
    assert set(data.sizes) - LATER_DIMENSIONS == DIMENSIONS, set(data.sizes)
    assert data.encoding["unlimited_dims"] == {"config"}, data.encoding["unlimited_dims"]
    assert set(data.attrs) >= ATTRIBUTES, ATTRIBUTES - set(data.attrs)
    for name, variable in data.variables.items():
        attributes = {**variable.encoding, **variable.attrs}
        quantity = variable.dtype.kind not in "OU" and "flag_meanings" not in attributes and name not in INDICES
        assert quantity or "units" not in attributes, f"{name}: units {attributes.get('units')}"
        assert attributes.get("long_name"), f"{name} has no long_name"
        if "flag_values" in attributes:
            assert np.issubdtype(variable.dtype, np.integer), f"{name} is {variable.dtype}"
            assert np.isin(variable.values, attributes["flag_values"]).all(), name
        elif variable.dtype.kind not in "OU":  # texts: objects, or in newer versions strings of one length
            assert not (np.abs(variable.values.astype(float)) == 9.969209968386869e36).any(), name
    assert np.issubdtype(data["start_time"].dtype, np.datetime64)


def check_identity(data):
    assert all(len(text) == 32 for text in data["config_hash"].values)
    rows = set(zip(data["config_hash"].values, data["uuid"].values))
    assert len(rows) == data.sizes["config"], "a configuration stands twice for one device"
    for workload, text in zip(data["workload"].values, data["configuration"].values):
        assert text.split()[0] == workload
    # Variables of parameters agree with the canonical text. A variable is missing if no row sets the parameter.
    for text, batch in zip(data["configuration"].values, data["batch"].values if "batch" in data else []):
        assert (f" batch={batch:.0f} " in text) if batch > 0 else (" batch=" not in text), text


def check_indices(data):
    device = data["config_device"]
    assert np.issubdtype(device.dtype, np.integer)
    assert (device >= -1).all() and (device < data.sizes["device"]).all()
    reached = device.values >= 0
    assert (data["uuid"].values[reached] == data["device_uuid"].values[device.values[reached]]).all()
    assert (data["kernel_config"] >= -1).all()
    assert (data["kernel_config"] < data.sizes["config"]).all()
    assert (data["kernel_config"].diff("kernel") >= 0).all()


def check_roofs(data):
    """Checks that each roof stands once, with one value or a reason. recompute.py checks the ceilings."""
    if "device_roof" not in data.sizes:
        return
    device = data["device_roof_device"].values
    names, conditions = data["device_roof_name"].values, words(data, "device_roof_condition")
    assert ((device >= -1) & (device < data.sizes["device"])).all()
    rows = list(zip(device, names, conditions))
    assert len(set(rows)) == len(rows), "a roof stands twice"
    values = np.array([data[f"device_roof_{name}"].values for name in ("bandwidth", "performance", "time")])
    known = np.isfinite(values).sum(axis=0)
    reasons = data["device_roof_setting"].str.startswith("not measured: ").values
    assert (known <= 1).all() and ((known == 1) | reasons | (names == "")).all()


def check_measured(data):
    if not data.sizes["config"]:  # a file of roofs alone
        return
    status = words(data, "status")
    measured = data.isel(config=status == "measured")
    others = data.isel(config=status != "measured")
    assert others["time_median"].isnull().all(), "a row without measurement has a time"
    assert (others["error"] != "").all(), "a row without measurement has no reason"
    for name in ["time_median", "flops_model", "bytes_model", "performance", "samples"]:
        assert measured[name].notnull().all(), name
    assert (measured["time_sample"].min("sample") > 0).all()
    least = measured["round_time"].min("round") if "round" in data.sizes else measured["time_sample"].min("sample")
    assert (least <= measured["time_median"]).all()
    assert (measured["time_sample"].count("sample") <= measured["samples"]).all()


def check(path):
    # .load(), because the netCDF4 module reads strings from disk only in steps of one.
    data = xarray.open_dataset(path).load()
    for part in [check_description, check_identity, check_indices, check_roofs, check_measured]:
        part(data)
    return data


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(check(sys.argv[1]))
