"""PASS or FAIL of each device, in lines, as JSON, and as JUnit's XML, which CI systems show."""

import json
import xml.etree.ElementTree as xml
from dataclasses import asdict, dataclass, field

from .arguments import write
from .texts import listed, plain


@dataclass
class Verdict:
    """One device: what was compared, and why it fails; without a reason it passes."""

    device: str
    uuid: str
    model: str
    hostname: str
    checks: int = 0
    reasons: list = field(default_factory=list)

    @property
    def word(self):
        return "FAIL" if self.reasons or not self.checks else "PASS"

    def line(self):
        why = listed(self.reasons, 3) if self.reasons else "" if self.checks else "nothing could be compared"
        return f"{self.word} {self.device} {self.uuid} ({self.checks} checks)" + f": {why}" * bool(why)


def add_options(parser):
    parser.add_argument("--json", metavar="FILE", help="write the verdicts as JSON, too")
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML, too")
    parser.add_argument("-q", "--quiet", action="store_true", help="a line for each device, nothing else")


def as_json(verdicts, command):
    found = [{"verdict": verdict.word} | asdict(verdict) for verdict in verdicts]
    return json.dumps({"command": command, "passed": passed(verdicts), "devices": found}, indent=1) + "\n"


def as_junit(verdicts, command):
    failures = str(sum(verdict.word == "FAIL" for verdict in verdicts))
    suite = xml.Element("testsuite", name=f"roofsweep-post {command}", tests=str(len(verdicts)), failures=failures)
    for verdict in verdicts:
        case = xml.SubElement(
            suite, "testcase", classname=plain(verdict.model), name=f"{verdict.device} {verdict.uuid}"
        )
        if verdict.word == "FAIL":
            failure = xml.SubElement(case, "failure", message=verdict.line())
            failure.text = "\n".join(verdict.reasons)
    return xml.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def passed(verdicts):
    return all(verdict.word == "PASS" for verdict in verdicts)


def publish(verdicts, command, options):
    """Prints the lines and writes the files. Returns the exit status: 0, or 1 if a device fails."""
    for verdict in verdicts:
        verdict.reasons = [plain(reason) for reason in verdict.reasons]  # some hold words of the targets
        print(verdict.line())
    for path, text in [(options.json, as_json), (options.junit, as_junit)]:
        if path:
            write(path, text(verdicts, command))
    return 0 if passed(verdicts) else 1
