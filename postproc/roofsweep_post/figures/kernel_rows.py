"""The kernels of a figure's rows."""

from ..frames import kernels
from ..texts import Refused
from .marks import value_text
from .scene import short_name

MOST = 14  # kernels of one figure: those that take longest; the caption says how many are left out


def kernel_rows(scene):
    """Kernels of the scene's rows, longest first, with share (of the time of the row's kernels), blocks and waves."""
    table = kernels(scene.files).merge(
        scene.rows[["config_hash", "file"]].drop_duplicates(), on=["config_hash", "file"]
    )
    if table.empty:
        raise Refused("the rows that were chosen have no kernels")
    whole = table.groupby(["config_hash", "file"])["kernel_time"].transform("sum")
    grid = table["kernel_grid_x"] * table["kernel_grid_y"] * table["kernel_grid_z"]
    return table.assign(share=table["kernel_time"] / whole, blocks=grid).sort_values("kernel_time", ascending=False)


def short_kernel(name, most=46):
    """A kernel's name without its arguments and templates."""
    name = name.replace("(anonymous namespace)::", "").split("(")[0].split("<")[0].removeprefix("void ")
    return name if len(name) <= most else name[: most - 12] + "..." + name[-9:]


def left_out(table):
    return f"{len(table) - MOST} shorter kernels are not shown" if len(table) > MOST else ""


def row_name(scene, table):
    """What tells the rows of kernels apart, for labels: the swept value and the series."""
    names = {}
    for series in scene.series:
        for _, row in series.rows.iterrows():
            value = f"{short_name(series.by)} {value_text(row[series.by])} " if series.by else ""
            own = "" if series.name == "rows" and value else series.name
            names[row["config_hash"], row["file"]] = (value + own).strip()
    return [names[key] for key in zip(table["config_hash"], table["file"])]
