"""Writes verdicts on devices (PASS, FAIL, INCONCLUSIVE) as lines, JSON, JUnit XML for CI systems, text for Prometheus,
and Slurm commands that drain nodes."""

import json
import re
import shlex
import xml.etree.ElementTree as xml
from collections import Counter
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas

from .arguments import write
from .texts import coloured, listed, plain, say

# The verdict on a device is the first of these that one of its checks has.
WORDS = {"fail": "FAIL", "inconclusive": "INCONCLUSIVE", "pass": "PASS"}
INCONCLUSIVE = 6  # exit status, different from those of roofsweep (0 to 5)
NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # a host name that Slurm reads as one node


@dataclass
class Check:
    """One comparison of a value with a reference. `reason` is a text for users, which a check that passes may also
    have."""

    name: str
    verdict: str  # a key of WORDS
    reason: str = ""
    value: float = np.nan
    reference: float = np.nan
    limit: float = np.nan  # allowed deviation, as a fraction of the reference
    unit: str = "1"
    excess: float = np.inf  # deviation over limit, by which reasons are ordered

    def as_dict(self):
        """Returns the check as a dict for JSON, with None instead of NaN."""
        found = {name: plain(value) if isinstance(value, str) else value for name, value in asdict(self).items()}
        del found["excess"]
        return {name: None if isinstance(value, float) and np.isnan(value) else value for name, value in found.items()}


@dataclass
class Verdict:
    """The checks of one device. The device fails if one check fails."""

    device: str
    uuid: str
    model: str
    hostname: str
    checks: list = field(default_factory=list)

    def add(self, name, reason="", verdict=None, **values):
        """Adds a check, which passes if it has neither reason nor verdict."""
        self.checks.append(Check(name, verdict or ("fail" if reason else "pass"), reason, **values))

    @property
    def word(self):
        found = {check.verdict for check in self.checks} or {"inconclusive"}
        return next(shown for word, shown in WORDS.items() if word in found)

    @property
    def reasons(self):
        """Returns the distinct reasons: those of failed checks first, then by excess."""
        found = sorted((check for check in self.checks if check.reason), key=lambda check: -check.excess)
        found.sort(key=lambda check: list(WORDS).index(check.verdict))
        return list(dict.fromkeys(plain(check.reason) for check in found)) or ["nothing could be compared"] * (
            not self.checks
        )

    def line(self):
        why = listed(self.reasons, 3)
        name = f"{self.word} {self.device} {self.uuid}".rstrip()
        return f"{name} ({len(self.checks)} checks)" + f": {why}" * bool(why)


def of_no_device(data, name):
    """Returns a list with one failing verdict if rows failed without a device, otherwise an empty list."""
    lost = (data["status"].values == "failed") & ~(data["config_device"].values >= 0)
    if not lost.any():
        return []
    verdict = Verdict(f"{name} no device", "", "", "")
    first = data["error"].values[lost][0]
    verdict.add(
        "rows", f"{lost.sum()} rows failed on no device, the first: {first}", value=float(lost.sum()), limit=0.0
    )
    return [verdict]


def add_options(parser):
    parser.add_argument("--json", metavar="FILE", help="write the verdicts as JSON, too")
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML, too")
    parser.add_argument("--prometheus", metavar="FILE", help="write verdicts and checks for Prometheus, too")
    lines = parser.add_mutually_exclusive_group()
    lines.add_argument("-q", "--quiet", action="store_true", help="a line for each device, nothing else")
    drain = "print only Slurm commands that drain nodes with a failing device; nvidia-smi -L lists UUIDs"
    lines.add_argument("--drain", dest="quiet", action="store_const", const="drain", help=drain)


def as_json(verdicts, command):
    found = [
        {name: getattr(verdict, name) for name in ("device", "uuid", "model", "hostname", "reasons")}
        | {"verdict": verdict.word, "checks": [check.as_dict() for check in verdict.checks]}
        for verdict in verdicts
    ]
    return json.dumps({"command": command, "passed": status_of(verdicts) == 0, "devices": found}, indent=1) + "\n"


def as_junit(verdicts, command):
    """Returns JUnit XML according to Jenkins' schema junit-10.xsd: a suite for each device, a case for each check.
    Inconclusive checks are errors."""
    top = xml.Element("testsuites", name=f"roofsweep-post {command}")
    for verdict in verdicts:
        checks = verdict.checks or [Check("device", "inconclusive", verdict.reasons[0])]
        found = [check.verdict for check in checks]
        counts = {"tests": len(found), "failures": found.count("fail"), "errors": found.count("inconclusive")}
        name = plain(f"{verdict.device} {verdict.uuid}")
        suite = xml.SubElement(top, "testsuite", name=name, **{key: str(count) for key, count in counts.items()})
        for check in checks:
            values = check.as_dict()
            case = xml.SubElement(suite, "testcase", classname=plain(verdict.model), name=values["name"])
            if check.verdict != "pass":
                kind = "failure" if check.verdict == "fail" else "error"
                xml.SubElement(case, kind, message=values["reason"]).text = values["reason"]
            numbers = ((key, values[key]) for key in ("value", "reference", "limit", "unit"))
            told = "".join(f"{key}: {'' if value is None else value}\n" for key, value in numbers)
            xml.SubElement(case, "system-out").text = told
    return xml.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


# {gauge: help}
GAUGES = {
    "device_ok": "1: the device passes; 0: it fails or is inconclusive",
    "device_inconclusive": "1: no check fails, and one cannot be judged",
    "check_value": "value of a check, in its unit",
    "check_reference": "reference of a check, in its unit",
    "check_limit": "allowed deviation from the reference, as a share of it",
    "check_deviation": "value over reference, minus 1",
    "measured_timestamp_seconds": "when the newest of the judged files was measured",
}


def as_prometheus(verdicts, command, measured):
    """Returns text for node_exporter's textfile collector. If several files have a device, its lines have a label
    `device`, such as 2#0 node7. If several checks have the same name, a label `line` numbers them. measured: s since
    1970; NaN: unknown."""
    lines, seen = {name: [] for name in GAUGES}, Counter()
    devices = Counter((verdict.hostname, verdict.uuid, verdict.model) for verdict in verdicts)

    def add(name, device, value, **labels):
        if not np.isfinite(value):
            return
        several = devices[device.hostname, device.uuid, device.model] > 1
        labels = ({"device": device.device} if several else {}) | labels
        labels = {"host": device.hostname, "uuid": device.uuid, "model": device.model, "command": command} | labels
        seen[name, (*labels.items(),)] += 1
        if (line := seen[name, (*labels.items(),)]) > 1:
            labels["line"] = line
        quoted = {key: plain(text).replace("\\", "\\\\").replace('"', '\\"') for key, text in labels.items()}
        pairs = ",".join(f'{key}="{text}"' for key, text in quoted.items())
        lines[name].append(f"roofsweep_{name}{{{pairs}}} {value:.12g}")

    for verdict in verdicts:
        add("device_ok", verdict, verdict.word == WORDS["pass"])
        add("device_inconclusive", verdict, verdict.word == WORDS["inconclusive"])
        add("measured_timestamp_seconds", verdict, measured)
        for check in verdict.checks:
            labels = {"check": check.name, "unit": check.unit}
            for name in ("value", "reference", "limit"):
                add(f"check_{name}", verdict, getattr(check, name), **labels)
            add("check_deviation", verdict, check.value / check.reference - 1 if check.reference else np.nan, **labels)
    heads = {name: f"# HELP roofsweep_{name} {text}\n# TYPE roofsweep_{name} gauge\n" for name, text in GAUGES.items()}
    return "".join(heads[name] + "\n".join(own) + "\n" for name, own in lines.items() if own)


def time_of(files):
    """Returns the time at which the newest file was measured, in s since 1970; NaN: unknown."""
    texts = [data.attrs.get("time_coverage_end", data.attrs.get("date_created", "")) for data in files]
    found = pandas.to_datetime(pandas.Series(texts, dtype=object), errors="coerce", utc=True).max()
    return np.nan if pandas.isna(found) else found.timestamp()


def slurm_names(names):
    """Returns gpu003, gpu004, gpu017 as gpu[003-004,017], Slurm's form of a list of nodes."""
    found = {}
    for name in sorted(set(names)):
        stem, digits = re.fullmatch(r"(.*?)(\d*)", name, re.S).groups()
        found.setdefault((stem, len(digits)), []).append(digits)
    texts = []
    for (stem, width), digits in found.items():
        runs = []
        for number in sorted(map(int, filter(None, digits))):
            if runs and runs[-1][-1] + 1 == number:
                runs[-1] = (runs[-1][0], number)
            else:
                runs.append((number, number))
        parts = [f"{low:0{width}}" + f"-{high:0{width}}" * (high > low) for low, high in runs]
        several = len(digits) > 1
        texts.append(stem + "[" * several + ",".join(parts) + "]" * several)
    return ",".join(texts)


def node_of(hostname):
    """Returns Slurm's name of a host; None if the text does not name a single node (a list, ALL, an address)."""
    name = hostname.split(".")[0]
    return name if NODE.fullmatch(hostname) and name.upper() != "ALL" and not name.isdigit() else None


def as_drain(verdicts):
    """Returns a scontrol command for each node with a failing device, and an option of srun that excludes these nodes.
    Prints a message for host names that are no node."""
    nodes = {}
    for verdict in verdicts:
        if verdict.word == "FAIL":
            name = node_of(plain(verdict.hostname))
            if name is None:
                say(f"not drained: {verdict.line()}: its host '{plain(verdict.hostname)}' is no name of a node")
                continue
            nodes.setdefault(name, []).append(verdict)
    lines = []
    for name, own in sorted(nodes.items()):
        more = f", and {len(own) - 1} more" * (len(own) > 1)
        on = " on " * bool(own[0].uuid) + "-".join(plain(own[0].uuid).split("-")[:2])
        why = f"roofsweep: {own[0].reasons[0]}{on}{more}"
        lines.append(f"scontrol update NodeName={shlex.quote(name)} State=DRAIN Reason={shlex.quote(why)}")
    return "".join(f"{line}\n" for line in [*lines, f"# srun --exclude={shlex.quote(slurm_names(nodes))}"] if nodes)


def status_of(verdicts):
    words = {verdict.word for verdict in verdicts}
    return 1 if "FAIL" in words else INCONCLUSIVE if "INCONCLUSIVE" in words else 0


def publish(verdicts, command, options, files):
    """Prints the lines of the verdicts and writes the requested files. Returns the exit status."""
    if options.quiet == "drain":
        print(as_drain(verdicts), end="")
    else:
        print(coloured("".join(f"{verdict.line()}\n" for verdict in verdicts)), end="")
    for path, text in [(options.json, as_json), (options.junit, as_junit)]:
        if path:
            write(path, text(verdicts, command))
    if options.prometheus:
        write(options.prometheus, as_prometheus(verdicts, command, time_of(files)))
    return status_of(verdicts)
