"""Computes intensity, bytes and times of rows at one memory level, by the formulas of docs/method.md."""

import numpy as np

from .texts import Refused


def at_levels(table, level):
    """Adds the columns level, intensity_at, bytes_at and bandwidth_at. If a row has no values at the level, because
    modelled bytes exist at one level only, these columns are for the row's roof_memory_level. level: name of a level;
    `row` or `all`: the roof_memory_level of each row."""
    own, wanted = level in ("row", "all"), f"arithmetic_intensity_{level}"
    if not own and wanted not in table:
        prefix = "arithmetic_intensity_"
        there = [name.removeprefix(prefix) for name in table if name.startswith(prefix)]
        raise Refused(f"no memory level '{level}'; there are: {', '.join([*there, 'row', 'all'])}")
    table = table.assign(
        level=table["roof_memory_level"], intensity_at=table["intensity"], bandwidth_at=table["bandwidth"]
    )
    if not own:
        known = table[wanted].notna() & table[f"device_bandwidth_{level}"].notna()
        table.loc[known, "level"] = level
        table.loc[known, "intensity_at"] = table.loc[known, wanted]
        table.loc[known, "bandwidth_at"] = table.loc[known, f"device_bandwidth_{level}"]
    return with_times(table)


def with_times(table):
    """Adds the floors, axes and ceiling that figures draw, at the level of the row (docs/method.md)."""
    balance = table["peak"] / table["bandwidth_at"]
    over = table["intensity_at"] >= balance
    ratio = table["intensity_at"] / balance
    time = table["own_time"]
    return table.assign(
        bytes_at=table["flops"] / table["intensity_at"],
        balance_at=balance,
        compute_floor=table["flops"] / table["peak"],
        bandwidth_floor=table["flops"] / table["intensity_at"] / table["bandwidth_at"],
        compute_plane=np.where(over, time, time * ratio),
        bandwidth_plane=np.where(over, time / ratio, time),
        overhead_ceiling=table["flops"] / table["overhead_time"],
    )


def with_bandwidths(table, files):
    """Adds the columns device_bandwidth_LEVEL, the bandwidth roofs of the row's device."""
    for level in files[0].indexes["memory_level"]:
        if f"level_time_{level}" in table:  # gives the bandwidth for the row's mix of reads and writes
            # The intensity counts bytes left in L2, so the bytes follow from it.
            moved = table["flops"] / table[f"arithmetic_intensity_{level}"]
            moved = moved.where(table["flops"] > 0, table[f"bytes_counted_{level}"])
            table[f"device_bandwidth_{level}"] = moved / table[f"level_time_{level}"]
            continue
        table[f"device_bandwidth_{level}"] = [
            files[file]["device_peak_bandwidth"].sel(memory_level=level).values[int(device)] if device >= 0 else np.nan
            for file, device in zip(table["file"], table["config_device"])
        ]
    return table
