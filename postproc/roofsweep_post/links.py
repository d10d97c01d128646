"""Links between devices of a node and between nodes: their table, and verdicts on nodes.

A slow end makes all its pairs slow. So the value of an end is that of its best pair, and ends are compared with each
other. A pair is slow by itself if it is slow and neither of its ends is. An operation of all devices has one end, its
node."""

from collections import Counter

import numpy as np
import pandas

from . import verdicts
from .deviations import LESS, judged
from .frames import flat, places, several
from .presence import wants
from .texts import listed, share

VALUES = {"bandwidth": "B/s", "latency": "s"}  # bandwidth of the largest size, time of the smallest size
WORDS = {"link", "copy", "all-reduce", "all-gather", "send-receive", "of", "on", "with", "a", "node", "nodes", *VALUES}
PAIR = ["file", "place", "place_to", "name", "one", "other"]
HOSTS = ("node_hostname", "device_hostname", "device_model")
BETWEEN = "with a node"  # end of the names of links between two nodes
SWAPPED = {"one": "other", "place": "place_to", "hostname": "hostname_to"}
SWAPPED |= {there: here for here, there in SWAPPED.items()}


def sizes_of(data):
    """Returns a line for each link and size, with the columns of PAIR except file. A name has the number of devices, as
    in "link all-reduce of 4", so that only equal numbers are compared. place: first node of this host."""
    found = flat(data, "link").rename(columns=lambda name: name.removeprefix("link_"))
    found = found[(found["node"] >= 0) & (found[["time", "bandwidth", "bytes"]] > 0).all(axis=1)]
    hosts = [*data["node_hostname"].values, ""]
    first = {host: place for place, host in reversed([*enumerate(hosts)])}
    host, to = (found[name].fillna(-1).astype(int).map(hosts.__getitem__) for name in ("node", "node_to"))
    copy, name = found["from"] != "", "link " + found["operation"]
    group = name + found["devices"].map(" of {:.0f}".format)
    group += found["nodes"].map(" on {:.0f} nodes".format).where(found["nodes"] > 1, "")
    return found.assign(
        place=host.map(first),
        place_to=to.map(first),
        name=name.where(copy, (name + " " + BETWEEN).where(to != "", group)),
        one=found["from"].where(copy, host),
        other=found["to"].where(copy, to),
    )


def pairs(files):
    """Returns a line for the bandwidth and one for the latency of each pair, and of each operation of all devices."""
    tables = []
    for number, data in enumerate(several(files)):
        found = sizes_of(data).assign(file=number).sort_values("bytes", kind="stable").groupby(PAIR, sort=False)
        found = found.agg(bandwidth=("bandwidth", "last"), latency=("time", "first")).reset_index()
        hosts = [*data["node_hostname"].values, ""]
        models = dict(zip(data["device_hostname"].values[::-1], data["device_model"].values[::-1]))
        found["hostname"], found["hostname_to"] = (found[name].map(hosts.__getitem__) for name in PAIR[1:3])
        found["model"] = found["hostname"].map(models)
        for what, unit in VALUES.items():
            tables.append(found.assign(value=found[what], unit=unit, key=found["name"] + " " + what))
    found = pandas.concat(tables, ignore_index=True)
    return found.assign(uuid=found["one"] + " > " + found["other"]).drop(columns=[*VALUES])


def fitted(found):
    """Returns (latency in s, bandwidth in B/s) of time = latency + bytes / bandwidth, with least relative errors; NaN
    if larger sizes take no longer. found: sizes of one pair."""
    size, time = found["bytes"].to_numpy(float), found["time"].to_numpy(float)
    latency, inverse = np.linalg.lstsq(np.stack([1 / time, size / time], axis=1), np.ones(len(time)), rcond=None)[0]
    return latency, 1 / inverse if inverse > 0 else np.nan


def ends(found):
    """Returns for each end (GPU or node) the line of its best pair. role: "from" or "to" of a copy, else "of";
    partners: number of other ends that this end exchanges with. found: pairs()"""
    copy, between = found["name"] == "link copy", found["name"].str.endswith(BETWEEN)
    lines = [found.assign(role=np.where(copy, "from", "of")), found[copy].assign(role="to"), found[between]]
    lines[1] = lines[1].rename(columns={"one": "other", "other": "one"})
    lines[2] = lines[2].rename(columns=SWAPPED).assign(role="of")
    lines = pandas.concat(lines, ignore_index=True)
    lines["speed"] = np.where(lines["unit"].isin(LESS), 1 / lines["value"], lines["value"])
    lines["uuid"] = lines["role"] + " " + lines["one"]
    groups = lines.groupby(["file", "key", "uuid"], sort=False)
    lines["partners"] = groups["other"].transform("nunique").where(lines["other"] != "", 0)
    return lines.loc[groups["speed"].idxmax()]


def judge(found, best, *how):
    """Returns judged() of ends, compared by role, and the pairs that are slow although neither end is. Topology makes
    some pairs slower than others, so such a pair fails only if it was faster before."""
    of_ends = judged(best.assign(key=best["key"] + ", " + best["role"]), *how)
    of_ends["key"] = of_ends["key"].str.rpartition(", ")[0]
    bad = of_ends[of_ends["slow"] | of_ends["unsure"]]
    bad = {(*line,) for line in bad[["file", "key", "one"]].to_numpy()}
    of_pairs = judged(found[found["other"] != ""], *how)
    before = of_pairs["against"] == "itself before"
    own = of_pairs["slow"] & (before | ~of_pairs["name"].str.endswith(BETWEEN))
    for end in ("one", "other"):
        own &= ~pandas.Series([(*line,) in bad for line in of_pairs[["file", "key", end]].to_numpy()], dtype=bool)
    return of_ends, of_pairs.assign(slow=before, unsure=~before)[own]


def add_line(verdict, line):
    """Adds the check of a judged line. If a node has only one partner, either node may be slow, so it does not fail."""
    pattern = {"from": " from {one}", "to": " to {one}", "of": ""}.get(line.get("role"), " from {one} to {other}")
    text = line["key"] + pattern.format(**line)
    either, bad = line.get("partners") == 1, line["slow"] or line["unsure"]
    why = f"{text} slower by {share(1 - line['deviation'])} +- {100 * line['error']:.1f} (limit {share(line['limit'])})"
    why += f", or {line['other']}" * either + f", in all {line.get('partners')} pairs" * (line.get("partners", 0) > 1)
    fails = line["slow"] and not (either and line["name"].endswith(BETWEEN))
    values = {name: line[name] for name in ("value", "reference", "limit", "unit")}
    values["excess"] = (1 - line["deviation"]) / line["limit"]
    verdict.add(text, why if bad else "", "fail" if fails else "inconclusive" if bad else "pass", **values)


def unmeasured(data):
    """Returns {host: kinds of links that the host lacks, although the manifest has `links = yes`}. A resumed sweep may
    keep the links of a host in one of its sessions only. Devices of different kinds have no links."""
    hosts = np.array([*data["node_hostname"].values, ""], object)
    node, to = (data[f"link_{name}"].fillna(-1).values.astype(int) for name in ("node", "node_to"))
    between, within = (to >= 0) & (to != node), (to == node) | ((to < 0) & ~(data["link_nodes"].values > 1))
    own, kind = data["device_node"].values.astype(int), data["device_kind"].values
    sessions = np.array([key.rpartition("/")[0] for key in data["device_key"].values], object)
    lacks = {}
    for place in np.unique(own) if wants(data, "links=yes") else ():
        mine, job = own == place, np.isin(sessions, sessions[own == place])
        here = (hosts[node] == hosts[place]) | (hosts[to] == hosts[place])
        kinds = lacks.setdefault(hosts[place], {})
        if mine.sum() > 1 and len({*kind[mine]}) == 1 and not (here & within).any():
            kinds["between its devices"] = True
        if len({*own[job]}) > 1 and len({*kind[job]}) == 1 and not (here & between).any():
            kinds["with other nodes"] = True
    return lacks


def verdicts_of(files, found, *how):
    """Returns a verdict for each node with links to compare, or without links that the manifest wants. If there are
    several files, nodes of the first file have no verdict. found: pairs() with limits; how: see judged()."""
    made, best = [], found if found.empty else ends(found)
    best = best.assign(kind=best["key"].str.replace(r" of \d+", "", regex=True))
    tables = [] if found.empty else [own[own["limit"].notna()] for own in judge(found, best, *how)]
    lines = {}
    for line in [line for table in tables for line in table.to_dict("records")]:
        lines.setdefault((line["file"], line["hostname"]), []).append(line)
    within = best[~best["name"].str.contains("node")]
    has = {key: set(own) for key, own in within.groupby(["file", "hostname"])["kind"]}
    alike = {key: [*dict.fromkeys(own)] for key, own in within.groupby(["file", "model"])["kind"]}
    for number in range(len(files) > 1, len(files)):
        names, hosts, models = (files[number][name].values for name in HOSTS)
        node_of = {host: place for place, host in reversed([*enumerate(names)])}
        counts, lost = Counter(hosts[list(set(places(files[number])))]), unmeasured(files[number])
        for host, model in reversed(dict(zip(hosts[::-1], models[::-1])).items()):
            verdict = verdicts.Verdict(f"{number + 1}#{node_of.get(host, '')} {host}, links", "", model, host)
            for line in lines.get((number, host), []):
                add_line(verdict, line)
            there = has.get((number, host), set())
            for word, wanted, by in (
                ("fail", alike.get((number, model), ()), "other nodes of the file have"),
                ("inconclusive", sorted(has.get((0, host), ())) if number else (), "the reference has"),
            ):
                lacks = [kind for kind in wanted if kind not in there]
                there = there | {*lacks}
                if lacks and counts[host] > 1:
                    why = f"{len(lacks)} links not measured, which {by}: {listed(lacks, 2)}"
                    verdict.add("missing links", why, word, value=float(len(lacks)), limit=0.0)
            for kind in lost.get(host, ()):
                verdict.add("links", f"links = yes, but there are none {kind}", "inconclusive")
            made += [verdict] if verdict.checks else []
    return made
