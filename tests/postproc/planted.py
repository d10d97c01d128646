"""Plants components of variance in the file of a node. `spread` must find them within 15 %, and the interval +- must
contain 90 to 98 % of repeated measurements. Plants slow links between invented nodes: `compare` must name their slow
end, and no other.

Usage: planted.py NODE.nc. The planted times have an effect of each device, an effect of the process and one of the
predecessor in each round, and three placements with 33 samples each, as `spread` assumes."""

import pathlib
import sys

import numpy as np
import pandas
import xarray

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from coverage import inside
from roofsweep_post import baseline, check, compare, deviations, links, load, rows, spread, targets

PLANTED = {"sample": 0.004, "placement": 0.003, "process": 0.006, "predecessor": 0.005, "device": 0.01}
ROUNDS, PLACEMENTS, SAMPLES = 12, 3, 33


def planted(path, choose, deviations):
    data = load(path).drop_vars(["round_time", "round_start", "time_sample"])
    rows = data.sizes["config"]

    def normal(name, *shape):
        return deviations[name] * choose.standard_normal(shape)

    kinds = np.char.add(data["workload"].values.astype(str), data["pass"].values.astype(str))
    kinds = np.unique(kinds, return_inverse=True)[1]
    start, before = np.zeros((rows, ROUNDS)), np.zeros((rows, ROUNDS), int)
    for device in np.unique(data["config_device"].values):
        for number in range(ROUNDS):
            order = choose.permutation(np.flatnonzero(data["config_device"].values == device))
            start[order, number] = 1000 * number + np.arange(len(order))
            before[order, number] = [kinds.max() + 1, *kinds[order[:-1]]]
    time = np.log(1e-3) + normal("device", rows, 1) + normal("process", rows, ROUNDS)
    time = time + np.take_along_axis(normal("predecessor", rows, kinds.max() + 2), before, axis=1)
    parts = normal("placement", rows, ROUNDS, PLACEMENTS, 1) + normal("sample", rows, ROUNDS, PLACEMENTS, SAMPLES)
    data["round_time"] = ("config", "round"), np.exp(time + np.median(np.median(parts, axis=3), axis=2))
    data["round_start"] = ("config", "round"), start - start[:, :1]
    data["start_time"] = "config", (1e9 * start[:, 0]).astype("datetime64[ns]")
    data["time_sample"] = ("config", "sample"), np.exp(time[:, :1] + parts[:, 0].reshape(rows, -1))
    data["placements"] = "config", np.full(rows, float(PLACEMENTS))
    return data


def linked(choose, nodes, slow, by=0.75):
    """Returns a dataset of nodes with four GPUs: copies, all-reduce and pairs of nodes. slow: names of slow ends."""
    hosts, lines = [f"n{node}" for node in range(nodes)], []
    gpus = [f"{host}-{gpu}" for host in hosts for gpu in range(4)]

    def add(operation, node, other, start, end, rate, devices, count, ends):
        for size in (64.0, 2.0**20, 2.0**28):
            noise = np.exp((0.02 if count > 1 else 0.003) * choose.standard_normal())
            time = (5e-6 + size / rate) * noise / (by if {*ends} & {*slow} else 1)
            lines.append((operation, node, other, start, end, devices, count, size, time, size / time))

    for node, host in enumerate(hosts):
        own = gpus[4 * node : 4 * node + 4]
        for start, end in ((start, end) for start in own for end in own if start != end):
            add("copy", node, node, start, end, 390e9, 2, 1, (host, start, end))
        add("all-reduce", node, -1, "", "", 350e9, 4, 1, (host, *own))
        for other in range(node + 1, nodes):
            add("send-receive", node, other, "", "", 45e9, 8, 2, (f"{host}:", f"{hosts[other]}:"))
    names = ("operation", "node", "node_to", "from", "to", "devices", "nodes", "bytes", "time", "bandwidth")
    data = {f"link_{name}": ("link", np.array(own)) for name, own in zip(names, zip(*lines))}
    data |= {"device_hostname": ("device", np.repeat(hosts, 4)), "device_uuid": ("device", gpus)}
    data |= {"device_model": ("device", ["H200"] * len(gpus)), "device_kind": ("device", ["cuda"] * len(gpus))}
    data |= {"node_hostname": ("node", hosts), "device_key": ("device", [f"session/{gpu}" for gpu in gpus])}
    return xarray.Dataset(data | {"device_node": ("device", np.repeat(range(nodes), 4))})


def resumed(data):
    """Returns the dataset with a second session: without the first device, which had no row, and without links."""
    nodes, devices = data.sizes["node"], data[[name for name in data if data[name].dims == ("device",)]]
    later = devices.isel(device=slice(1, None)).assign(device_node=lambda own: own["device_node"] + nodes)
    later["device_key"] = "device", [f"later/{key}" for key in later["device_uuid"].values]
    hosts = xarray.concat([data["node_hostname"]] * 2, "node")
    both = xarray.concat([devices, later], "device").assign(node_hostname=hosts)
    return both.assign({name: data[name] for name in data if data[name].dims == ("link",)})


def faults_of(*files):
    """Returns {host: (verdict, reasons)} of the nodes that do not pass."""
    found = links.verdicts_of(files, compare.link_table(files), 0.04, False, 0 if len(files) > 1 else None)
    return {one.hostname: (one.word, " ".join(one.reasons)) for one in found if one.word != "PASS"}


def check_links(choose):
    for run in range(100):
        nodes = 3 + run % 6
        slow = f"n{choose.integers(nodes)}"
        found = faults_of(linked(choose, nodes, [f"{slow}:"]))
        assert {*found} == {slow} and found[slow][0] == "FAIL", (run, nodes, slow, found)
        assert "with a node bandwidth slower by" in found[slow][1], found
    gpu = faults_of(linked(choose, 2, ["n1-2"]))
    assert {*gpu} == {"n1"} and "n1-2" in gpu["n1"][1] and "n1-1" not in gpu["n1"][1], gpu
    assert not faults_of(linked(choose, 5, [])) and not faults_of(linked(choose, 2, []), linked(choose, 2, []))
    # With two nodes nobody can say which one is slow.
    both = faults_of(linked(choose, 2, []), linked(choose, 2, ["n0:"]))
    assert {host: word for host, (word, _) in both.items()} == dict.fromkeys(["n0", "n1"], "INCONCLUSIVE"), both
    lost = linked(choose, 3, [])
    lost = lost.isel(link=~((lost["link_node"] == 1) & (lost["link_operation"] == "all-reduce")).values)
    assert {*faults_of(lost)} == {"n1"} and "other nodes of the file have" in faults_of(lost)["n1"][1]
    values = baseline.link_centres([linked(choose, 4, [])]).set_index("key")
    assert abs(values.loc["link copy bandwidth", "value"] / 388e9 - 1) < 0.01, values
    of_cpus = linked(choose, 4, [])
    of_cpus["device_kind"][:] = "cpu"
    assert baseline.link_centres([of_cpus]).empty
    pathlib.Path("links.ini").write_text("[H200]\nlink copy bandwidth = 388 GB/s +- 4 %\n", encoding="utf-8")
    wanted = targets.Targets("links.ini", targets.Kinds(lost, pandas.DataFrame({"name": []}, dtype=object)))
    found = check.judge_links(linked(choose, 3, ["n1-2"]), wanted)
    failing = {(one.hostname, line.name) for one in found for line in one.checks if line.verdict != "pass"}
    assert failing == {("n1", f"link copy bandwidth {end} n1-2: 388 GB/s +- 4 %") for end in ("from", "to")}, failing
    whole = linked(choose, 1, [])
    assert "which the reference has" in faults_of(whole, whole.isel(link=slice(0)))["n0"][1]
    none = faults_of(linked(choose, 2, []).isel(link=slice(0)).assign_attrs(manifest="[peaks]\nlinks = yes ; all\n"))
    why = " ".join(f"links = yes, but there are none {kind}" for kind in ("between its devices", "with other nodes"))
    assert none == dict.fromkeys(["n0", "n1"], ("INCONCLUSIVE", why)), none
    wants = {"manifest": "[peaks]\nlinks = yes\n"}
    assert not faults_of(resumed(linked(choose, 2, [])).assign_attrs(wants))
    # Operations of all nodes are no links within the first node.
    far = linked(choose, 2, [])
    far = far.isel(link=(far["link_operation"] == "send-receive").values)
    far["link_node_to"][:1], far["link_operation"][:1] = -1, "all-gather"
    assert {host: why for host, (_, why) in faults_of(far.assign_attrs(wants)).items()} == dict.fromkeys(
        ["n0", "n1"], "links = yes, but there are none between its devices"
    )
    # Devices of different kinds have no links.
    mixed = linked(choose, 2, []).isel(link=slice(0)).assign_attrs(wants)
    mixed["device_kind"][4:] = "cpu"
    mixed = faults_of(mixed)
    assert all("with other nodes" not in why for _, why in mixed.values()) and len(mixed) == 2, mixed
    # Bandwidths (MB/s) of three healthy nodes on a busy host, and of a slow node.
    wide = {"value": [599.0, 924.0, 924.0, 68.0], "unit": "B/s", "key": "link", "file": 0, "model": "CPU"}
    assert deviations.judged(pandas.DataFrame(wide | {"uuid": [*"abcd"]}))["slow"].tolist() == [False] * 3 + [True]


def main(path):
    check_links(np.random.default_rng(2))
    choose = np.random.default_rng(1)
    found, _, tested = spread.components([planted(path, choose, PLANTED)])
    for name, value in PLANTED.items():
        assert abs(found[name] / value - 1) < 0.15, (name, found[name], value)
    assert np.isnan(found["run"]) and np.isnan(found["node"]), found
    assert min(tested)[0] < 1e-3, min(tested)
    without = planted(path, choose, PLANTED | {"predecessor": 0.0})
    assert min(spread.components([without])[2])[0] > 1e-3
    # The limit of a row in `compare` follows from its rounds: 3.95 standard deviations of the difference of two
    # medians.
    limits = compare.between_rounds([without], rows(without).assign(file=0))
    deviation = np.log(without["round_time"].values).std(axis=1, ddof=1)
    mean = np.sqrt(np.mean(deviation**2)) * np.sqrt(2 * spread.median_variance(ROUNDS))
    assert abs(limits.min() / (3.954 * mean) - 1) < 1e-3 and limits.argmax() == deviation.argmax(), limits
    share = inside(without["round_time"].values, 3).mean()
    assert 0.90 <= share <= 0.98, share


if __name__ == "__main__":
    main(sys.argv[1])
