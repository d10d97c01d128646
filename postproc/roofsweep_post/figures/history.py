"""One device over files: its roofs, in per cent of the first file that has the device."""

from ..compare import medians, roof_table
from ..deviations import judged
from ..frames import several
from ..selection import choose
from ..texts import Refused, listed, percent
from . import frame, marks, nodes, style

HELP = "roofs of one device over several files, in per cent of the first (--where uuid=... chooses the device)"
PANELS, HEIGHT = 1, {"column": 2.2, "page": 2.8}
MOST_NAMED = 12


def build(data, where=(), **_):
    files = sorted(several(data), key=lambda one: one.attrs.get("date_created", ""))
    table = choose(roof_table(files), where)
    table = medians(table[table["usable"]], "key")
    counts = table.groupby("uuid")["file"].nunique()
    if not counts.max() >= 2:  # no device at all: NaN
        names = ", ".join(data.attrs["path"] for data in files)
        raise Refused(f"{names}: history needs two files or more of one device")
    device = counts.idxmax()
    if (counts == counts.max()).sum() > 1:
        names = ", ".join(counts[counts == counts.max()].index)
        raise Refused(f"several devices are in the files; choose one with --where uuid=: {names}")
    found = judged(table[table["uuid"] == device])
    own = sorted(found["file"].unique())  # files without the device are left out
    found["file"] = found["file"].map({file: place for place, file in enumerate(own)})
    return nodes.Nodes([files[file] for file in own], nodes.named_devices(found, own))


def moments(files):
    """A tick for each file: its date, and where two have the same the time of the day."""
    texts = [data.attrs.get("date_created", "?") for data in files]
    days = [text[:10] for text in texts]
    return [f"{day}\n{text[11:16]}" if days.count(day) > 1 else day for day, text in zip(days, texts)]


def dips(slow, ticks):
    """What was slower than the noise, and when."""
    if slow.empty:
        return "No roof is slower than the noise."
    return "Slower than the noise: " + listed(
        f"{line['key']} {percent(line['deviation'])} ({' '.join(ticks[line['file']].split())})"
        for _, line in slow.iterrows()
    )


def draw(figure, axes, scene, annotate, height):
    (axes,) = axes
    found = scene.found
    slow = found[found["slow"]].sort_values("deviation")
    shown = list(dict.fromkeys(slow["key"]))[:MOST_NAMED]
    ticks = moments(scene.files)
    lowest = 99.0
    for key, own in found.groupby("key", sort=False):
        speed = 100 * own["deviation"].fillna(1)
        lowest = min(lowest, speed.min())
        look = {"color": style.GREY, "linewidth": 0.4, "alpha": 0.6, "marker": ".", "markersize": 2}
        if key in shown:
            number = shown.index(key)
            look = {
                "color": style.COLOURS[number % 7],
                "marker": style.MARKERS[number],
                "linestyle": style.DASHES[number % len(style.DASHES)],
                "linewidth": 0.9,
                "markersize": 4,
            }
        axes.plot(own["file"], speed, gid=key, zorder=3 if key in shown else 2, **look)
    axes.set_xticks(range(len(ticks)), ticks, rotation=30 if len(ticks) > 4 else 0)
    axes.set(xlim=(-0.35, len(ticks) - 0.65), ylim=(lowest - 2, None), ylabel="speed (% of the first file)")
    handles = [
        marks.Line2D(
            [],
            [],
            color=style.COLOURS[number % 7],
            marker=style.MARKERS[number],
            linewidth=0.9,
            linestyle=style.DASHES[number % len(style.DASHES)],
            label=key,
        )
        for number, key in enumerate(shown)
    ]
    rest = found["key"].nunique() - len(shown)
    handles.append(
        marks.Line2D([], [], color=style.GREY, marker=".", linewidth=0.4, label=f"{rest} {'other ' * bool(shown)}roofs")
    )
    device = f"{found['model'].iloc[0]} {found['uuid'].iloc[0]}. {dips(slow, ticks)}"
    frame.settle(figure, [axes], height, handles, nodes.caption(scene, device))
    return [axes]
