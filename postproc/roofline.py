#!/usr/bin/env python3
"""Draws the rooflines of a roofsweep result file, one figure per label and device model.

Left, the classic Roofline: each configuration at its arithmetic intensity, under the measured bandwidth of
every memory level and the measured peaks of its precisions. The bar above a point is its own roof:
min(peak, intensity x bandwidth, FLOPs / launch overhead).

Right, the time-based Roofline (Wang et al. 2020): closed symbols are the complexity, bytes and FLOPs, each
in the time that it takes at its roof; open symbols are the measured time, split the same way. Their distance
is what the configuration loses. On the diagonal compute and bandwidth take equally long (machine balance);
a closed symbol inside the box of its launch overhead is bound by overhead.
Devices of one model are drawn together: a configuration measured on several is their median."""

import argparse
import os
import re
import sys

from results import SERIES, fail, frame, load, np, parameters, plain, roofs, scaled

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
except ImportError as missing:
    fail(f"{sys.executable}: {missing} (Debian: /usr/bin/python3 with python3-matplotlib, pip: matplotlib)")

COLOURS = {
    "fp64": "#882255",
    "fp32": "#0072B2",
    "tf32": "#009E73",
    "fp16": "#D55E00",
    "bf16": "#AA7700",
    "fp8": "#CC6699",
    "int8": "#666666",
}
MARKERS = "osD^vPX*"
GREY, OVERHEAD = "#555555", "#E8C547"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="result file of roofsweep")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="FILE.pdf: a page per figure; FILE.png: FILE-LABEL.png, or FILE.png if there "
        "is one figure (default: the result file's name with .pdf)",
    )
    parser.add_argument("-l", "--label", action="append", help="only this label; may be repeated")
    parser.add_argument(
        "-b",
        "--by",
        metavar="PARAMETER",
        help="write this parameter beside the points and connect them in its order "
        "(default: the first that varies, if all others follow it)",
    )
    options = parser.parse_args()
    options.output = options.output or os.path.splitext(os.path.basename(options.file))[0] + ".pdf"
    if os.path.splitext(options.output)[1] not in (".png", ".pdf"):
        parser.error(f"--output {options.output}: neither .png nor .pdf")
    return options


def choose_by(table, data, wanted):
    """The parameter that orders a figure's points, or None."""
    names = parameters(data)
    if wanted:
        found = [name for name in (wanted, f"config_{wanted}", f"{wanted}_height") if name in names]
        if not found:
            fail(f"no parameter '{wanted}'; there are: {', '.join(sorted(names))}")
        return found[0]
    varying = [name for name in names if name not in SERIES + ["config_precision"] and table[name].nunique() > 1]
    follow = varying and len(table[varying].drop_duplicates()) == table[varying[0]].nunique()
    return varying[0] if follow else None


def median_rows(table):
    """One row per configuration: the median over devices."""
    how = {
        name: "median" if kind.kind in "iuf" else "first"
        for name, kind in table.dtypes.items()
        if name != "config_hash"
    }
    return table.groupby("config_hash", as_index=False, sort=False).agg(how)


def series(table):
    """(name, colour, marker, rows) for each precision and what else distinguishes curves."""
    keys = [name for name in SERIES if table[name].nunique() > 1]
    others = sorted({tuple(row) for row in table[keys].values}) if keys else [()]
    keys = ["config_precision"] + keys
    for key, rows in table.groupby(keys if keys[1:] else keys[0], sort=True):
        key = key if keys[1:] else (key,)
        marker = MARKERS[others.index(key[1:]) % len(MARKERS)]
        yield " ".join(key), COLOURS.get(key[0], "black"), marker, rows


def annotate(axes, rows, by, x, y, colour):
    """Writes the parameter beside its points, the ends first, where there is room."""
    if not by:
        return
    points = list(zip(rows[by], rows[x], rows[y]))
    for value, at_x, at_y in points[-1:] + points[:-1]:
        place = axes.transData.transform((at_x, at_y))
        taken = [axes.transData.transform(text.xy) for text in axes.texts if text.get_gid() == "value"]
        if all(abs(place[0] - other[0]) > 22 or abs(place[1] - other[1]) > 9 for other in taken):
            axes.annotate(
                f"{value:g}" if isinstance(value, float) else str(value),
                (at_x, at_y),
                xytext=(4, -9),
                textcoords="offset points",
                fontsize=7,
                color=colour,
                gid="value",
            )


def draw_roofs(axes, ceilings, precisions):
    """The measured roofs, in the axes' present limits."""
    left, right = axes.get_xlim()
    bandwidths = {what: value for (kind, what, _), value in ceilings.items() if kind == "bandwidth"}
    peaks = {key: value for key, value in ceilings.items() if key[0] in ("vector", "tensor") and key[1] in precisions}
    top, fastest = max(peaks.values(), default=np.nan), max(bandwidths.values(), default=np.nan)
    for level, value in bandwidths.items():
        ends = np.array([left, top / value if np.isfinite(top) else right])
        axes.plot(ends, ends * value, color=GREY, linewidth=1.2, zorder=1)
        place = max(left, axes.get_ylim()[0] / value) * 1.3
        run, rise = np.diff(axes.transData.transform([(1, value), (10, 10 * value)]), axis=0)[0]
        axes.annotate(
            f"{level} {scaled(value, 'B/s')}",
            (place, place * value),
            xytext=(-3, 3),
            textcoords="offset points",
            rotation=np.degrees(np.arctan2(rise, run)),
            rotation_mode="anchor",
            fontsize=8,
            color=GREY,
        )
    for (unit, precision, _), value in peaks.items():
        colour = COLOURS.get(precision, "black")
        axes.plot(
            [value / fastest if np.isfinite(fastest) else left, right],
            [value, value],
            color=colour,
            linewidth=1.2,
            zorder=1,
        )
        axes.annotate(
            f"{precision} {unit} {scaled(value, 'FLOP/s')}",
            (right, value),
            xytext=(-4, 2),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=colour,
        )


def draw_classic(axes, table, by, ceilings):
    axes.set(
        xscale="log",
        yscale="log",
        title="Roofline",
        xlabel="arithmetic intensity (FLOP/byte)",
        ylabel="performance (FLOP/s)",
    )
    peaks = [
        value
        for (kind, what, _), value in ceilings.items()
        if kind in ("vector", "tensor") and what in set(table["config_precision"])
    ]
    knees = [
        peak / value
        for (kind, _, _), value in ceilings.items()
        if kind == "bandwidth"
        for peak in (min(peaks, default=np.nan), max(peaks, default=np.nan))
        if peaks
    ]
    around = knees + [table["intensity"].min(), table["intensity"].max()]
    axes.set_xlim(min(around) / 6, max(around) * 8)
    axes.set_ylim(table["performance"].min() / 5, max(peaks + [table["performance"].max()]) * 3)
    draw_roofs(axes, ceilings, set(table["config_precision"]))
    for _, colour, marker, rows in series(table):
        rows = rows.sort_values(by) if by else rows
        axes.vlines(
            rows["intensity"], rows["performance"], rows["roof"], color=colour, linewidth=0.6, alpha=0.6, zorder=2
        )
        axes.plot(rows["intensity"], rows["roof"], linewidth=0, marker="_", color=colour, zorder=2)
        axes.plot(
            rows["intensity"],
            rows["performance"],
            marker=marker,
            color=colour,
            markersize=6,
            linewidth=0.8 if by else 0,
            zorder=3,
        )
        annotate(axes, rows, by, "intensity", "performance", colour)


def overhead_edges(table):
    """The launch overhead of the figure's rows: one value, or the least and the largest."""
    overhead = table["overhead_time"].dropna()
    if overhead.empty:
        return []
    edges = [overhead.min(), overhead.max()]
    return edges if edges[1] > 1.5 * edges[0] else edges[1:]


def draw_times(axes, table, by):
    flops = table["performance"] * table["time_median"]
    table = table.assign(
        compute_floor=flops / table["peak"], bandwidth_floor=flops / table["intensity"] / table["bandwidth"]
    )
    table = table.dropna(subset=["compute_floor", "bandwidth_floor"])
    if table.empty:
        axes.text(0.5, 0.5, "no roofs for these rows", ha="center", transform=axes.transAxes)
        return
    low = table[["compute_floor", "bandwidth_floor", "overhead_time"]].min().min() / 4
    high = table["time_median"].max() * 4
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(low, high),
        ylim=(low, high),
        aspect="equal",
        title="Time-based Roofline",
        xlabel="bandwidth time (s); closed: bytes / bandwidth roof",
        ylabel="compute time (s); closed: FLOPs / compute roof",
    )
    axes.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle="--", zorder=1)
    for edge in overhead_edges(table):
        axes.fill_between([low, edge], low, edge, color=OVERHEAD, alpha=0.25, linewidth=0, zorder=0)
    for _, colour, marker, rows in series(table):
        rows = rows.sort_values(by) if by else rows
        style = {"marker": marker, "color": colour, "markersize": 6, "zorder": 3}
        axes.plot(
            [rows["bandwidth_floor"], rows["bandwidth_time"]],
            [rows["compute_floor"], rows["compute_time"]],
            color=colour,
            linewidth=0.6,
            linestyle=":",
            zorder=2,
        )
        axes.plot(rows["bandwidth_floor"], rows["compute_floor"], linewidth=0, **style)
        axes.plot(
            rows["bandwidth_time"], rows["compute_time"], linewidth=0.8 if by else 0, markerfacecolor="white", **style
        )
        annotate(axes, rows, by, "bandwidth_floor", "compute_floor", colour)
        annotate(axes, rows, by, "bandwidth_time", "compute_time", colour)


def legend(table):
    handles = [
        Line2D([], [], color=colour, marker=marker, label=name, linewidth=0.8)
        for name, colour, marker, _ in series(table)
    ]
    for name, fill in [("closed: complexity at its roof", GREY), ("open: measured", "white")]:
        handles.append(Line2D([], [], color=GREY, marker="o", markerfacecolor=fill, linewidth=0, label=name))
    handles.append(Line2D([], [], color=GREY, linestyle="--", linewidth=1, label="machine balance"))
    edges = " to ".join(scaled(edge, "s") for edge in overhead_edges(table))
    return handles + ([Patch(color=OVERHEAD, alpha=0.4, label=f"launch overhead {edges}")] if edges else [])


def draw(data, table, label, by):
    """The figure of one label on one device model."""
    model = table["model"].iloc[0]
    same = np.isin(np.arange(data.sizes["device"]), table["config_device"])
    ceilings = {
        key: np.nanmedian(values[same]) for key, values in roofs(data).items() if np.isfinite(values[same]).any()
    }
    table = median_rows(table)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 6.9), gridspec_kw={"left": 0.06, "right": 0.985, "bottom": 0.14, "top": 0.89, "wspace": 0.12}
    )
    draw_classic(left, table, by, ceilings)
    draw_times(right, table, by)
    for axes in (left, right):
        axes.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
    figure.legend(handles=legend(table), loc="lower center", ncols=5, fontsize=9, frameon=False)
    count = len({data["device_uuid"].values[i] for i in np.flatnonzero(same)})
    devices = model if count == 1 else f"{count} x {model}, roofs: median"
    beside = f", by {by.replace('config_', '').replace('kernel_height', 'kernel')}" if by else ""
    figure.suptitle(f"{label}{beside}: {devices}")
    return figure


def figures(data, options):
    """Yields (name, figure), one at a time."""
    table = frame(data)
    labels = list(dict.fromkeys(" ".join(table["label"]).split()))
    for label in options.label or labels:
        if label not in labels:
            fail(f"no measured row has the label '{label}'; there are: {', '.join(labels)}")
    for label in options.label or labels:
        chosen = table[[label in text.split() for text in table["label"]]]
        for model, rows in chosen.groupby("model"):
            name = label if chosen["model"].nunique() == 1 else f"{label}-{model}"
            if rows["performance"].notna().any() and rows["intensity"].notna().any():
                yield name, draw(data, rows, label, choose_by(rows, data, options.by))


def main():
    options = arguments()
    drawn = list(figures(load(options.file), options))
    if not drawn:
        fail(f"{options.file}: no row has both an arithmetic intensity and a performance")
    base, kind = os.path.splitext(options.output)
    try:
        if kind == ".pdf":
            with PdfPages(options.output) as pages:
                for _, figure in drawn:
                    pages.savefig(figure)
            print(plain(options.output))
        for name, figure in drawn if kind == ".png" else []:
            safe = re.sub("[^A-Za-z0-9_.-]+", "_", name)
            path = options.output if len(drawn) == 1 else f"{base}-{safe}.png"
            figure.savefig(path, dpi=130)
            print(plain(path))
    except OSError as error:
        fail(f"cannot write: {error}")


if __name__ == "__main__":
    main()
