#!/usr/bin/env python3
"""Compares points, lines, boxes and labels of figures with the result file.

Usage: check_figures.py PAPER.nc FOUR.nc KERNELS.nc LATER.nc... PAPER.nc has the paper's sweeps, FOUR.nc roofs of
four GPUs, KERNELS.nc was measured with `kernels = yes`, and LATER.nc are more files of the GPU of PAPER.nc."""

import io
import re
import sys

import numpy as np
import pandas
import readable
import roofsweep_post as post
from matplotlib.colors import to_rgb
from roofsweep_post import figures, selection
from roofsweep_post.figures import style
from roofsweep_post.figures.kernel_rows import short_kernels
from roofsweep_post.levels import with_bandwidths
from roofsweep_post.texts import Refused


def lines(axes, gid):
    """Returns {gid: Line2D} for lines whose gid ends with `gid`."""
    return {line.get_gid(): line for line in axes.get_lines() if (line.get_gid() or "").endswith(gid)}


def same(line, x, y):
    order = np.lexsort([line.get_xdata(), line.get_ydata()])
    found = np.column_stack([line.get_xdata(), line.get_ydata()])[order]
    wanted = np.column_stack([np.asarray(x, float), np.asarray(y, float)])
    wanted = wanted[np.lexsort([wanted[:, 0], wanted[:, 1]])]
    assert found.shape == wanted.shape and np.allclose(found, wanted), (found, wanted)


def plain_caption(axes):
    (caption,) = [text for text in axes.figure.texts if text.get_gid() == "caption"]
    return " ".join(caption.get_text().split())


def draw(data, kind, *where, **how):
    """Draws a figure with one plot and checks that it is readable."""
    (axes,) = figures.draw(data, kind, *where, **how)
    readable.check(axes.figure)
    return axes


CHOSEN = ["layout=nhwc", "cache=hot"]  # rows of one layout and cache mode


def rows_of(data, label, **values):
    table = selection.choose(post.rows(data), CHOSEN)
    table = table[table["label"].map(lambda text: label in text.split())]
    for name, value in values.items():
        table = table[table[name] == value]
    return table


def check_planes(data):
    level = "dram"
    where = [*CHOSEN, "pass=forward"]
    table = rows_of(data, "conv2d-filters", **{"pass": "forward"})
    for precision in ("fp16", "fp32"):
        own = table[table["precision"] == precision].sort_values("filters")
        flops, intensity = own["flops_counted"].fillna(own["flops_model"]), own[f"arithmetic_intensity_{level}"]
        for width in ("column", "page"):
            axes = draw(data, "classic", where, labels=["conv2d-filters"], width=width)
            series = next(line for gid, line in lines(axes, "|closed").items() if gid.startswith(precision))
            same(series, intensity, own["performance"])
            overhead = next(line for gid, line in lines(axes, "|overhead").items() if gid.startswith(precision))
            same(overhead, intensity, flops / own["overhead_time"])
            labelled = [text.get_text() for text in axes.texts if text.get_gid() == "label"]
            assert sorted(labelled) == sorted(2 * ["64", "128", "256", "512"]), labelled
            bandwidth = np.median(data["device_peak_bandwidth"].sel(memory_level=level).values)
            (roof,) = [line for gid, line in lines(axes, "").items() if (gid or "").startswith(f"roof|{level} ")]
            assert np.allclose(roof.get_ydata() / roof.get_xdata(), bandwidth), "a roof is elsewhere"
        axes = draw(data, "complexity", where, labels=["conv2d-filters"], level="dram")
        series = next(line for gid, line in lines(axes, "|closed").items() if gid.startswith(precision))
        same(series, flops / intensity, flops)
        box = next((line for gid, line in lines(axes, "|box").items() if gid.startswith(precision)), None)
        assert box is not None and np.isclose(max(box.get_ydata()), (own["overhead_time"] * own["peak"]).max())
        peak = np.median(data["device_peak_tensor"].sel(number_format="fp16").values)
        for kind, height, scales in [("losses", flops / own["peak"], (1, 1)), ("four", flops, (bandwidth, peak))]:
            axes = draw(data, kind, where, labels=["conv2d-filters"])
            closed, opened = (
                [line for gid, line in lines(axes, end).items() if gid.startswith(precision)]
                for end in ("|closed", "|open")
            )
            assert np.allclose(sorted(np.hstack([line.get_ydata() for line in closed])), sorted(height)), kind
            # The longer of the two times is the run time.
            ends = [np.divide([line.get_xdata(), line.get_ydata()], np.array([scales]).T) for line in opened]
            assert np.allclose(sorted(np.hstack(ends).max(axis=0)), sorted(own["own_time"])), kind
            assert all(to_rgb(line.get_markerfacecolor()) == (1, 1, 1) for line in opened), "measured time is not open"
        across, up = axes.child_axes
        assert np.allclose(np.divide(axes.get_xlim(), across.get_xlim()), bandwidth), "axis of bandwidth time"
        assert np.allclose(np.divide(axes.get_ylim(), up.get_ylim()), peak), "axis of compute time"
    # Rows of different memory levels are one series, and the caption names the levels.
    axes = draw(data, "classic", where[1:], labels=["conv2d-filters", "lstm-batch"], level="row")
    assert "limits a row: dram, l2" in plain_caption(axes), plain_caption(axes)
    found = figures.scene(data, where[1:], labels=["conv2d-filters", "lstm-batch"], level="row").series
    assert max(one.rows["level"].nunique() for one in found) > 1
    # With `--level all` each row is drawn at all memory levels, and a line joins its points.
    axes = draw(data, "classic", where, labels=["conv2d-filters"], level="all")
    joined = np.hstack([line.get_ydata() for line in axes.get_lines() if line.get_gid() == "row"])
    drawn = [set(part[np.isfinite(part)]) for part in np.split(joined, np.flatnonzero(np.isnan(joined)))[:-1]]
    assert sorted(drawn, key=min) == [{speed} for speed in sorted(table["performance"])], drawn


def check_series(data):
    """Each series has another marker, and each precision another colour and dash."""
    found = figures.scene(data, CHOSEN, labels=["conv2d-filters", "conv2d-kernel"]).series
    assert len({series.marker for series in found}) == len(found)
    assert len(set(style.PRECISIONS.values())) == len(style.PRECISIONS)
    looks = {}
    for series in found:
        looks.setdefault(series.name.split()[0], set()).add((series.colour, str(series.dash)))
    assert all(len(look) == 1 for look in looks.values()), looks
    assert len({next(iter(look)) for look in looks.values()}) == len(looks), looks


def check_devices(files, before):
    """Two devices, and two files of one device: equal symbols are equal work, and the second is lighter."""
    where = ["label=product,registers,shared,step", "cache=hot"]
    axes = draw(files, "classic", where, series=["workload", "implementation"], width="page")
    scene = figures.scene(files, where, series=["workload", "implementation"])
    found = scene.series
    pairs = {(series.what, series.marker) for series in found}
    assert len(pairs) == len({name for name, _ in pairs}) == len({look for _, look in pairs}), pairs
    colours = [{series.colour for series in found if series.source == source} for source in scene.sources]
    assert (
        scene.sources[0].startswith("NVIDIA") and {style.lighter(one, 1) for one in colours[0]} >= colours[1] != set()
    )
    shown = {text.get_text() for text in axes.figure.legends[0].get_texts()}
    assert {series.what for series in found} | {*scene.sources} <= shown, shown
    # Rows of a CPU have no counted bytes of DRAM, so the caption must not claim that all rows have them.
    levels = {series.rows["level"].iloc[0] for series in found}
    assert levels == {"dram", "l3"} and "rows that lack them have those at l3" in plain_caption(axes)
    axes = draw(before, "bars", ["label=conv2d-filters", *CHOSEN, "pass=forward", "precision=fp16"])
    bars = sorted((bar.get_x(), bar.get_facecolor()) for bar in axes.patches if bar.get_gid().endswith("|busy"))
    shades = [style.lighter(style.COLOURS[0], place) for place in (0, 1)]
    assert [to_rgb(colour) for _, colour in bars] == [to_rgb(one) for one in shades] * (len(bars) // 2), bars
    assert {"paper_h100", "later"} <= {text.get_text() for text in axes.figure.legends[0].get_texts()}


def check_bars(data):
    axes = draw(data, "bars", [*CHOSEN, "pass=forward", "precision=fp16"], labels=["conv2d-filters"])
    own = rows_of(data, "conv2d-filters", **{"pass": "forward", "precision": "fp16"}).sort_values("filters")
    heights = {}
    for bar in axes.patches:
        heights.setdefault(round(bar.get_x(), 3), []).append(bar.get_height())
    assert np.allclose([sum(parts) for _, parts in sorted(heights.items())], own["own_time"]), heights
    host = [line.get_ydata()[0] for line in axes.get_lines() if line.get_gid().endswith("|host")]
    assert np.allclose(host, own["caller_time"])


def check_counted(data):
    axes = figures.draw(data, "counted", [*CHOSEN, "pass=forward", "precision=fp16"], labels=["conv2d-filters"])
    own = rows_of(data, "conv2d-filters", **{"pass": "forward", "precision": "fp16"})
    for place, (x, y) in zip(axes, [("flops_model", "flops_counted"), ("bytes_model", "bytes_counted_dram")]):
        readable.check(place.figure)
        (line,) = lines(place, "|closed").values()
        same(line, own[x], own[y])


def refusal(data, kind, where=()):
    try:
        figures.draw(data, kind, where)
    except Refused as refused:
        return str(refused)
    raise AssertionError(f"{kind} is drawn")


def check_energy(data):
    """Draws made-up rows with 1.1 times the energy of their energy roofs, because the file has no energies."""
    where, power, flop, byte = [*CHOSEN, "pass=forward", "precision=fp16"], 150.0, 6e-13, 6e-11
    assert "energy = yes" in refusal(data, "energy", where), "energies that were not measured"
    name = data["device_roof_name"].astype(str)
    flops = data["performance"] * data["time_median"]
    least = flops * flop + flops / data["arithmetic_intensity"].sel(memory_level="dram") * byte
    least = least + power * data["time_median"]
    data = data.assign(
        energy=1.1 * least.drop_vars("memory_level"),
        energy_at_roofs=least.drop_vars("memory_level"),
        device_roof_energy=name.str.startswith("dram") * byte + name.str.startswith("fp16 tensor") * flop,
        device_roof_constant_power=0 * data["device_roof_device"] + power,
    )
    axes = draw(data, "energy", where, labels=["conv2d-filters"])
    own = rows_of(data, "conv2d-filters", **{"pass": "forward", "precision": "fp16"})
    each, intensity = own["energy_at_roofs"] / own["flops"], own["arithmetic_intensity_dram"]
    same(*lines(axes, "|closed").values(), intensity, 1.1 * each)
    same(*lines(axes, "|open").values(), intensity, each)
    (line,) = (line for gid, line in lines(axes, "").items() if (gid or "").startswith("roof|fp16 tensor 0.6 pJ/FLOP"))
    peak = np.median(data["device_peak_tensor"].sel(number_format="fp16").values)
    wide = np.median(data["device_peak_bandwidth"].sel(memory_level="dram").values)
    x = line.get_xdata()
    assert np.allclose(line.get_ydata(), flop + byte / x + power * np.maximum(1 / peak, 1 / (x * wide)))


def check_parts(data):
    """Draws made-up rows with three parts of the time. The second part is missing, the third is the rest of the
    time."""
    where, own = [*CHOSEN, "precision=fp16"], rows_of(data, "conv2d-filters", precision="fp16")
    time = data["time_median"].values
    parts = np.stack([0.3 * time, 0 * time, 0.7 * time], axis=1)
    data = data.drop_dims("part").assign(time_part=(("config", "part"), parts))
    data = data.assign_coords(part=["gaps", "idle_multiprocessors", "issuing"])
    axes = draw(data, "parts", where, labels=["conv2d-filters"])
    drawn = {name: [bar for bar in axes.patches if bar.get_gid() == f"part|{name}"] for name in ("gaps", "issuing")}
    counts = [*map(len, drawn.values()), len(axes.patches)]
    assert counts == [len(own), len(own), 2 * len(own)], counts
    assert np.allclose([bar.get_width() for bar in drawn["gaps"]], 0.3)
    assert np.allclose([bar.get_x() for bar in drawn["issuing"]], 0.3)
    assert "without a trace" in refusal(data.drop_dims("part"), "parts", [*where, "label=conv2d-filters"])
    assert "no room" in refusal(data, "parts")


def check_network(data):
    """A bar ends at the total of a series, and its line at the time at the roofs. In the plane the area of each row's
    symbol is in proportion to its total."""
    where = [*CHOSEN, "pass=forward", "label=conv2d-filters"]
    chosen = selection.choose(post.rows(data), where)
    places = pandas.factorize(chosen["filters"])[0] + 1
    listed = dict(zip(chosen["config_hash"], [f"net:{place} {'layer' * 30}{place} x{place}" for place in places]))
    texts = [listed.get(name, "") for name in data.config_hash.values]
    plane, bars = figures.draw(data.assign(listed=("config", np.array(texts, object))), "network", where, width="page")
    readable.check(plane.figure)
    own = chosen.assign(total=chosen["own_time"] * places)
    sums = own.groupby("precision")["total"].sum()
    ends = {}
    for bar in (found for found in bars.patches if "precision" in found.get_gid()):
        ends[bar.get_gid()[-4:]] = bar.get_x() + bar.get_width()
    assert np.allclose([ends[name] for name in sums.index], sums), (ends, sums)
    (line,) = lines(bars, "at roof|precision=fp32").values()
    own["at_roof"] = own["total"] * own["roof_fraction"].clip(upper=1)
    assert np.isclose(line.get_xdata()[0], own.groupby("precision")["at_roof"].sum()["fp32"])
    areas = np.concatenate([found.get_sizes() for found in plane.collections if "layers|" in (found.get_gid() or "")])
    wanted = np.sort(own["total"])
    assert np.allclose(np.sort(areas) / areas.sum(), wanted / wanted.sum()), areas
    failed = data["status"].copy()
    failed[list(data.config_hash.values).index(own["config_hash"].iloc[0])] = "failed"
    lacking = data.assign(listed=("config", np.array(texts, object)), status=failed)
    plane, _ = figures.draw(lacking, "network", where, width="page")
    text = f"{places[0]} layers are missing: they failed or have no FLOPs."
    assert text in plain_caption(plane), plain_caption(plane)
    assert "no row comes from a list" in refusal(data, "network", where)


def check_waves(data):
    """A bar is as long as the number of waves of its kernel. A tick names the kernel, its row, and its share of the
    row's time."""
    axes = draw(data, "waves", [*CHOSEN, "pass=forward", "precision=fp32"], labels=["conv2d-filters"])
    own = rows_of(data, "conv2d-filters", **{"pass": "forward", "precision": "fp32"})
    table = post.kernels(data)
    table = table[table["config_hash"].isin(own["config_hash"])].sort_values("kernel_time", ascending=False)
    waves = (table["kernel_blocks"] / table["kernel_resident"]).head(14)
    drawn = np.sort([bar.get_x() + bar.get_width() for bar in axes.patches if bar.get_gid() == "last"])
    assert np.allclose(drawn, np.sort(waves[waves > 0])), (drawn, waves)
    ticks = [text.get_text().split("\n") for text in axes.get_yticklabels()]
    assert all(re.fullmatch(r"filters \d+ \(\d+ %\)", row) for _, row in ticks), ticks
    shorts = short_kernels(list(dict.fromkeys(table["kernel_name"])))
    assert [name for name, _ in ticks] == [shorts[name] for name in table["kernel_name"].head(len(ticks))]
    blockless = data.assign(kernel_blocks=data["kernel_blocks"] * np.nan)
    assert "only those of GPUs" in refusal(blockless, "waves", CHOSEN)


def check_waves_of_devices(data):
    """If several devices have a row, the kernels of one device are drawn."""
    table = post.kernels(data)
    (row,) = table["config_hash"][table.groupby("kernel_config")["kernel_config"].transform("size") == 2].unique()[:1]
    axes = draw(data, "waves", [f"config_hash={row}"])
    shares = [float(re.search(r"(\d+) %\)", text.get_text())[1]) for text in axes.get_yticklabels()]
    assert len(shares) == 2 and abs(sum(shares) - 100) <= 1, shares
    style.plt.close(axes.figure)


def check_cold_bandwidths(data):
    """device_bandwidth_dram of a cold row equals its bandwidth_roof."""
    table = with_bandwidths(post.rows(data), [data])
    own = (table["roof_memory_level"] == "dram") & (table["cache"] == "cold") & table["bandwidth_roof"].notna()
    assert own.sum() > 50 and np.allclose(table["device_bandwidth_dram"][own], table["bandwidth_roof"][own], rtol=1e-2)


def check_intervals(data):
    """Each symbol has the interval of its row's median time. The caption has the number of wide intervals."""
    where = ["requested_implementation=auto", "pass=forward", "cache=cold"]
    (axes,) = figures.draw(data, "classic", where, labels=["parts"])
    (lines,) = [one for one in axes.collections if (one.get_gid() or "").endswith("|interval")]
    (row,) = (
        post.rows(data)
        .query("requested_implementation == 'auto' and `pass` == 'forward' and cache == 'cold' and label == 'parts'")[
            ["performance", "time_median", "time_median_low", "time_median_high"]
        ]
        .to_numpy()[:1]
    )
    drawn = np.concatenate(lines.get_segments())[:, 1]
    assert np.allclose(np.sort(drawn), np.sort(row[0] * row[1] / row[2:])), (drawn, row)
    assert "1 of 1 rows are known to no better than 5 %" in plain_caption(axes)
    style.plt.close(axes.figure)


def check_words(data, programs):
    """Checks title, renamed words, order of series and fonts. If rows of programs are beside those of a library, series
    have the labels of the programs."""
    how = {"title": "Of mine", "rename": {"fp16": "half", "filters": "width"}, "order": ["fp32"]}
    (axes,) = figures.draw(data, "classic", CHOSEN, labels=["conv2d-filters"], **how)
    texts = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert texts[0].startswith("fp32") and any(text.startswith("half ") for text in texts), texts
    assert not any(re.search("fp16|filters", text) for text in texts), texts
    assert "Of mine" in [text.get_text() for text in axes.figure.texts]
    long = "a label of 150 letters " * 6 + "that ends"
    axes = draw(data.assign(label=data["label"].copy(data=np.full(data.sizes["config"], long, object))), "classic",
        ["pass=forward"], series=["label"])  # fmt: skip
    assert axes.figure.legends[0].get_texts()[0].get_text().replace("\n", " ") == long
    axes.figure.savefig(stream := io.BytesIO(), format="pdf")
    assert b"/Type3" not in stream.getvalue(), "no font is TrueType"
    names = {series.name for series in figures.scene(programs, ["label=torch-conv2d,cudnn-conv2d"]).series}
    assert {"torch-conv2d forward", "conv2d forward"} <= names, names
    style.plt.close(axes.figure)


def check_wave_rows(data):
    """If rows of a series have the same swept value, they are numbered, and the caption explains the numbers."""
    (axes,) = figures.draw(data, "waves")
    names = {text.get_text().split("\n")[1].rpartition(" (")[0] for text in axes.get_yticklabels()}
    table = post.kernels(data)
    table = table[table["kernel_blocks"] > 0].sort_values("kernel_time", ascending=False)
    style.plt.close(axes.figure)
    assert len(names) == table["config_hash"].head(14).nunique() and "row 1: conv2d-" in plain_caption(axes), names


def check_short_names(data):
    """Labels distinguish kernels whose names differ in one word, or only in their templates."""
    for names in (
        ["void a<float>(int)", "void a<__half>(int)", "b(int)"],
        [f"sm90_xmma_fprop_implicit_gemm_f16_nhwc_tilesize{size}_execute" for size in ("64x64", "128x64")],
        ["x<1, 2>()", "x<1, 3>()", "x<1, 4>()", "x<2, 1>()"],
        list(post.kernels(data)["kernel_name"].unique()),
    ):
        shorts = short_kernels(names)
        assert len(set(shorts.values())) == len(names) and set(shorts) == set(names), shorts


def check_kernels(data, paper):
    where = [*CHOSEN, "pass=forward", "precision=fp32"]
    axes = draw(paper, "kernels", where, labels=["conv2d-filters"])
    shown = {row for text in axes.texts if text.get_gid() == "label" for row in text.get_text().split(", ")}
    assert {row for row in shown if row[0] != "("} == {f"filters {count}" for count in (64, 128, 256, 512)}, shown
    chosen = rows_of(paper, "conv2d-filters", **{"pass": "forward", "precision": "fp32"})["config_hash"]
    table = post.kernels(paper)
    names = short_kernels(list(table[table["config_hash"].isin(chosen)]["kernel_name"].unique())).values()
    legend = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert set(names) == set(legend[: len(names)]) and len(names) == 3, legend
    drawn = axes.collections
    without = paper.assign(kernel_flops_counted=paper["kernel_flops_counted"] * np.nan)
    assert "kernels = yes" in refusal(without, "kernels"), "kernels that were not counted"
    moved = paper["kernel_bytes_counted"].copy()
    moved[::2] = np.nan
    (axes,) = figures.draw(paper.assign(kernel_bytes_counted=moved), "kernels", where, labels=["conv2d-filters"])
    assert "kernels whose bytes or times are not known are left out" in plain_caption(axes), plain_caption(axes)
    assert "has counted bytes of dram" in refusal(paper.assign(kernel_bytes_counted=moved * np.nan), "kernels")
    roofless = paper.assign({name: paper[name] * np.nan for name in paper if name.startswith("device_peak_")})
    (axes,) = figures.draw(roofless, "kernels", where, labels=["conv2d-filters"])
    assert len(axes.collections) == len(drawn), "a file without roofs: not all kernels are drawn"
    axes = draw(data, "kernels")
    table = post.kernels(data)
    table = table[(table["kernel_flops_counted"] > 0) & (table["kernel_bytes_counted_dram"] > 0)]
    drawn = np.array([found.get_offsets()[0] for found in axes.collections if found.get_gid() == "kernel"])
    wanted = table["kernel_flops_counted"] / table["kernel_bytes_counted_dram"]
    assert np.allclose(np.sort(drawn[:, 0]), np.sort(wanted)), (drawn, wanted)


def check_nodes(four):
    axes = draw(four, "map", ["condition=alone"], width="page")
    assert "are work in a clock cycle" in plain_caption(axes), plain_caption(axes)
    (image,) = axes.get_images()
    matrix = np.asarray(image.get_array())
    assert matrix.shape == (44, 4), matrix.shape
    assert not [patch for patch in axes.patches if patch.get_gid() == "slow"], "a healthy GPU is marked"
    table = post.roofs(four)
    own = table[(table["name"] == "dram triad") & (table["condition"] == "alone")]["value"].to_numpy()
    row = [label.get_text() for label in axes.get_yticklabels()].index("dram triad, alone")
    assert np.allclose(matrix[row], 100 * (own / np.median(own) - 1))
    refusal(four.isel(config=slice(0), kernel=slice(0)), "strip")
    # The number in a cell has a sign, because black-and-white print loses the colour.
    shown = {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in axes.texts}
    assert shown == {(row, column): f"{matrix[row, column]:+.0f}" for row, column in np.argwhere(np.abs(matrix) >= 2)}
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == [f"#{number} {four.device_hostname.values[number]}" for number in range(4)], names


def sessions_of(files):
    """Returns [(start, median of dram triad)] of each session of each file, in order of time."""
    found = []
    for data in files:
        table = post.roofs(data)
        for _, own in table.groupby("device"):
            triad = own[(own["name"] == "dram triad") & (own["condition"] == "alone") & own["usable"]]
            found.append((own["start_time"].min(), triad["value"].median()))
    return sorted(found)


def check_history(files, four):
    """Each roof is a line of speeds relative to the first session. A file without the device is left out. A resumed or
    merged file of two sessions has two points, each at the start of its session."""
    sessions = sessions_of(files)
    assert len(sessions) > len(files), "no file has two sessions"
    axes = draw([four, *files], "history")
    dates = [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()]
    assert dates == [f"{start:%Y-%m-%d %H:%M:%S}" for start, _ in sessions], dates
    assert f"Left out, without a roof of it: {four.attrs['path']}." in plain_caption(axes), plain_caption(axes)
    assert "are work in a clock cycle" in plain_caption(axes), plain_caption(axes)
    (line,) = [line for line in axes.get_lines() if line.get_gid() == "dram triad, alone"]
    assert np.allclose(line.get_xdata(), range(len(sessions)))
    assert np.allclose(line.get_ydata(), 100 * np.array([value for _, value in sessions]) / sessions[0][1])
    # The caption names a roof that became slower, with the date.
    slow = files[-1].assign(device_roof_bandwidth=files[-1]["device_roof_bandwidth"] * 0.7)
    slow["device_driver_version"] = ("device", np.full(slow.sizes["device"], "999.1", object))
    (slower,) = figures.draw([*files[:-1], slow], "history")
    assert "Driver 999.1 from 20" in plain_caption(slower), plain_caption(slower)
    found = re.search(r"Slower than the limit: [\w ]+, alone.* -\d+\.\d % \(20", plain_caption(slower))
    assert found, plain_caption(slower)
    # One file with two sessions is enough.
    (axes,) = figures.draw(files[:1], "history")
    assert len(axes.get_xticks()) == 2
    # Files without starts of sessions use the date of the file, and the caption says so.
    old = [data.drop_vars("device_roof_start_time") for data in files]
    for several in ([files[0], old[1]], old[1:]):
        (axes,) = figures.draw(several, "history")
        assert f"dated by the file: {old[1].attrs['path']}" in plain_caption(axes), plain_caption(axes)
        assert old[1].attrs["time_coverage_end"][11:19] in [label.get_text()[-8:] for label in axes.get_xticklabels()]


def without_timer(data):
    """Returns the rows. time_median excludes the timer's time."""
    found = post.rows(data)
    return found.assign(time_median=found.time_median - found.timer_overhead / found.sample_iterations)


def check_strip(paper, other):
    """Each configuration that both files have is a point: its time in the first file / its time in the second."""
    axes = draw([paper, other], "strip")
    first, second = (without_timer(data).groupby("config_hash")["time_median"].median() for data in (paper, other))
    both = first.index.intersection(second.index)
    drawn = np.concatenate([line.get_xdata() for line in axes.get_lines()])
    assert len(both) and np.allclose(np.sort(drawn), np.sort(100 * first[both] / second[both])), drawn
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches if bar.get_gid() == "limit"]
    assert len(ends) == len(both) and all(low <= 96 and high == 100 for low, high in ends), ends


def check_replicate(data):
    """With four devices the reference of a configuration is their median. The slowest configurations come first."""
    axes = draw(data, "strip")
    names = ["time_median", "energy_time", "energy"]  # rows at the power cap have sustained times and energies
    speeds = [1 / without_timer(data).pivot_table(values=name, index="config_hash", columns="place") for name in names]
    speed = pandas.concat(speeds)
    drawn = np.column_stack([line.get_xdata()[np.argsort(line.get_ydata())] for line in axes.get_lines()])
    wanted = (100 * speed.div(speed.median(axis=1), axis=0)).to_numpy()
    assert drawn.shape == wanted.shape and wanted.shape >= (40, 4), (drawn.shape, wanted.shape)
    assert np.allclose(drawn, wanted[np.argsort(wanted.min(axis=1), kind="stable")]), drawn
    assert len({line.get_marker() for line in axes.get_lines()}) == 4
    # A figure as wide as a column shows numbers, and prints the names. A figure as wide as a page shows names. If the
    # caption is not drawn, it is printed.
    assert [note.split(": ")[0] for note in axes.figure.notes] == [str(number) for number in range(1, len(speed) + 1)]
    named = draw(data, "strip", width="page", caption=False, sheet="ggplot")
    ticks = [text.get_text() for text in named.get_yticklabels()]
    assert [note.split(": ")[1].rpartition(", ")[0] for note in axes.figure.notes] == ticks, ticks
    assert not plain_caption(named) and named.figure.caption.startswith("4 x NVIDIA H200"), named.figure.caption
    other = data.assign(device_hostname=data["device_hostname"] + "b", device_uuid=data["device_uuid"] + "b")
    both = draw([data, other], "map", ["condition=alone"])  # two files of one day
    assert plain_caption(both).startswith("8 x NVIDIA H200 on 2 hosts, measured"), plain_caption(both)


def check_roofs(four):
    """Draws each roof of a device, alone and together, in per cent of theory."""
    axes = draw(four, "roofs", ["place=3"])
    own = post.roofs(four)
    own = own[(own["place"] == 3) & own["nominal_fraction"].notna()]
    for condition, found in own.groupby("condition"):
        (line,) = lines(axes, condition).values()
        assert np.allclose(np.sort(line.get_xdata()), np.sort(100 * found["nominal_fraction"])), condition
    assert "l2 read" in plain_caption(axes) and "l2 read" not in [text.get_text() for text in axes.get_yticklabels()]


def check_programs(data):
    """A program without an axis `precision` gets the roof of its counted FLOPs. Its point is labelled with its name."""
    data = data.assign(precision=data["precision"].where(data["workload"] != "program", ""))
    axes = draw(data, "classic", ["workload=program", "label=torch-lstm,jax-conv2d"], width="page")
    roofs = [gid for gid in lines(axes, "") if (gid or "").startswith("roof|")]
    assert {"fp16 tensor", "fp32 vector"} <= {" ".join(gid.split("|")[1].split()[:2]) for gid in roofs}, roofs
    named = " ".join(text.get_text() for text in axes.texts) + plain_caption(axes)
    assert "torch-lstm" in named and "jax-conv2d" in named, named
    bare = data.assign(arithmetic_intensity=data["arithmetic_intensity"].where(data["label"] != "torch-lstm"))
    caption = plain_caption(draw(bare, "classic", ["label=torch-lstm,jax-conv2d"]))
    assert f"or roofs: {(data['label'] == 'torch-lstm').sum().item()} rows" in caption and "those at ," not in caption


def check_crowded(paper, others):
    """If there are many series, the figure has facets, which together show all rows and have equal limits. Too many
    facets are an error that suggests a selection."""
    found = figures.draw(paper, "four")
    limits = {(*axes.get_xlim(), *axes.get_ylim()) for axes in found}
    table = post.rows(paper)
    titles = set(table["workload"] + " " + table["pass"] + ", " + table["precision"])
    assert len(limits) == 1 and {axes.get_title() for axes in found} == titles, (limits, titles)
    looks = {}
    drawn = [line for axes in found for line in axes.get_lines() if (line.get_gid() or "").endswith("|open")]
    for line in drawn:
        looks.setdefault((line.get_color(), line.get_marker()), set()).add(line.get_gid().split(" (by")[0])
    assert sum(len(line.get_xdata()) for line in drawn) == len(table), "a row is in no facet"
    assert all(len(names) == 1 for names in looks.values()) and len(found[0].figure.legends) == 1, looks
    assert plain_caption(found[0]).startswith("NVIDIA H100 80GB HBM3, measured on 2026-11-26"), plain_caption(found[0])
    assert len(figures.draw(paper, "regions")) == len(found)
    for data, kind in [(paper, "bars"), (paper, "counted")]:
        chosen = re.search(r"(?:--labels (\S+))? ?(?:--where (.+))?$", refusal(data, kind).split("as with ")[1])
        (axes, *_) = figures.draw(data, kind, (chosen[2] or "").split(), labels=[chosen[1]] if chosen[1] else [])
        style.plt.close(axes.figure)
    series = ["workload", "pass", "precision", "height", "batch"]
    roofless = others[0].assign(  # without the roof of tf32
        compute_roof=others[0]["compute_roof"].where(others[0]["precision"] != "tf32"),
        device_peak_tensor=others[0]["device_peak_tensor"].where(others[0]["number_format"] != "tf32"),
    )
    found = figures.draw(roofless, "losses", series=series, width="page")
    assert len(found) == 9 and "matmul, tf32" not in {axes.get_title() for axes in found}, "rows without a roof"
    assert "that several devices measured is their median" in plain_caption(found[0]), plain_caption(found[0])
    (axes,) = figures.draw([paper, *others], "bars", ["pass=forward"], labels=["conv2d-filters"], width="page")
    assert f"Nothing here is from {others[0].attrs['path']}." in plain_caption(axes), plain_caption(axes)


def main():
    paper, four, counted, two, *later = (post.load(path) for path in sys.argv[1:])
    check_planes(paper)
    check_series(paper)
    style.plt.close("all")
    check_bars(paper)
    check_counted(paper)
    check_energy(paper)
    check_parts(paper)
    check_network(paper)
    style.plt.close("all")
    check_waves(paper)
    check_waves_of_devices(four)
    check_cold_bandwidths(paper)
    check_short_names(paper)
    check_wave_rows(paper)
    check_words(paper, post.load(sys.argv[1].replace("paper_h100", "frameworks_h200")))
    check_intervals(post.load(sys.argv[1].replace("paper_h100", "training_cpu")))
    check_kernels(counted, paper)
    check_nodes(four)
    check_history([two, later[1], later[0]], four)
    check_strip(later[1], later[0])
    check_replicate(four)
    check_roofs(four)
    check_programs(post.load(sys.argv[1].replace("paper_h100", "frameworks_h200")))
    style.plt.close("all")
    check_crowded(paper, [four, later[0]])
    before = [paper, paper.assign_attrs(path="later.nc")]
    check_devices(
        [post.load(sys.argv[1].replace("paper_h100", f"training_{name}")) for name in ("h200", "cpu")], before
    )


main()
