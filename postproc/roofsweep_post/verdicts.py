"""PASS, FAIL or INCONCLUSIVE of each device, in lines, as JSON, and as JUnit's XML, which CI systems show."""

import json
import xml.etree.ElementTree as xml
from dataclasses import asdict, dataclass, field

import numpy as np

from .arguments import write
from .texts import listed, plain

WORDS = {"pass": "PASS", "fail": "FAIL", "inconclusive": "INCONCLUSIVE"}
INCONCLUSIVE = 6  # exit status; roofsweep has 0 to 5


@dataclass
class Check:
    """One value that was held against a reference. reason: of one that did not pass, what to tell."""

    name: str
    verdict: str  # a key of WORDS
    reason: str = ""
    value: float = np.nan
    reference: float = np.nan
    limit: float = np.nan  # how far the value may be from the reference, as a fraction of it
    unit: str = "1"
    excess: float = np.inf  # how far the value is off, over the limit: the largest comes first

    def as_dict(self):
        """For JSON, which has no NaN."""
        found = {name: plain(value) if isinstance(value, str) else value for name, value in asdict(self).items()}
        del found["excess"]
        return {name: None if isinstance(value, float) and np.isnan(value) else value for name, value in found.items()}


@dataclass
class Verdict:
    """One device: its checks, of which one is enough to fail."""

    device: str
    uuid: str
    model: str
    hostname: str
    checks: list = field(default_factory=list)

    def add(self, name, reason="", verdict=None, **values):
        """Without a reason it passes."""
        self.checks.append(Check(name, verdict or ("fail" if reason else "pass"), reason, **values))

    @property
    def word(self):
        found = {check.verdict for check in self.checks} or {"inconclusive"}
        return WORDS[next(word for word in ("fail", "inconclusive", "pass") if word in found)]

    @property
    def reasons(self):
        """Texts, what fails first and what is farthest off first; checks with the same text are told once."""
        found = sorted((check for check in self.checks if check.reason), key=lambda check: -check.excess)
        found.sort(key=lambda check: check.verdict != "fail")
        return list(dict.fromkeys(plain(check.reason) for check in found)) or ["nothing could be compared"] * (
            not self.checks
        )

    def line(self):
        why = listed(self.reasons, 3)
        return f"{self.word} {self.device} {self.uuid} ({len(self.checks)} checks)" + f": {why}" * bool(why)


def add_options(parser):
    parser.add_argument("--json", metavar="FILE", help="write the verdicts as JSON, too")
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML, too")
    parser.add_argument("-q", "--quiet", action="store_true", help="a line for each device, nothing else")


def as_json(verdicts, command):
    found = [
        {name: getattr(verdict, name) for name in ("device", "uuid", "model", "hostname", "reasons")}
        | {"verdict": verdict.word, "checks": [check.as_dict() for check in verdict.checks]}
        for verdict in verdicts
    ]
    return json.dumps({"command": command, "passed": status_of(verdicts) == 0, "devices": found}, indent=1) + "\n"


def as_junit(verdicts, command):
    """A suite for each device, a case for each check. What could not be judged is an error."""
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
            properties = xml.SubElement(case, "properties")
            for key in ("value", "reference", "limit", "unit"):
                told = "" if values[key] is None else str(values[key])
                xml.SubElement(properties, "property", name=key, value=told)
            if check.verdict != "pass":
                kind = "failure" if check.verdict == "fail" else "error"
                xml.SubElement(case, kind, message=values["reason"]).text = values["reason"]
    return xml.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def status_of(verdicts):
    words = {verdict.word for verdict in verdicts}
    return 1 if "FAIL" in words else INCONCLUSIVE if "INCONCLUSIVE" in words else 0


def publish(verdicts, command, options):
    """Prints the lines and writes the files. Returns the exit status."""
    for verdict in verdicts:
        print(verdict.line())
    for path, text in [(options.json, as_json), (options.junit, as_junit)]:
        if path:
            write(path, text(verdicts, command))
    return status_of(verdicts)
