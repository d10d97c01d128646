"""Reads targets of roofs from an INI file with a section for each model; `check --help` explains its syntax."""

import configparser
import re
from collections import Counter
from urllib.parse import quote, unquote

import numpy as np

from . import links
from .frames import DISTURBED, kind_order
from .texts import PREFIXES, Refused, percent, plain

# Words in the names of roofs (src/model/roof_kind.h). A target may name a roof that the file lacks because [peaks] left
# it out.
ROOF_WORDS = {
    *("dram", "l3", "l2", "l1", "shared", "read", "write", "copy", "triad", "atomic"),
    *("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "vector", "tensor"),
    *("mma", "wgmma", "tcgen05", "library", "launch", "latency", "host", "gap", "dependent", "graph", "device", "to"),
}
# A target: a number, then % or a prefix and a unit, then optionally +- and a tolerance in %.
FIGURE = re.compile(r"(\d+(?:\.\d+)?) *(?:(%)|([numkMGTP]?)(B/s|FLOP/s|OP/s|s))(?: *\+- *(\d+(?:\.\d+)?) *%)?")


def figure_of(text, place):
    """Returns (value in SI units, unit, tolerance as a fraction of the value); None if the text is no quantity.
    Messages of errors begin with `place`."""
    if not (parsed := FIGURE.fullmatch(text)):
        return None
    value, tolerance = float(parsed[1]) * (0.01 if parsed[2] else PREFIXES[parsed[3]]), 0.01 * float(parsed[5] or 0)
    if not 0 < value < np.inf:
        raise Refused(f"{place}: a target must be more than 0, and finite")
    if tolerance >= 1:
        raise Refused(f"{place}: a tolerance must be below 100 %, or every value passes")
    return value, parsed[2] or parsed[4], tolerance


def of_theory(roof):
    """Returns the value of a roof divided by theory at the measured clock, or at the nominal clock if the measured one
    is missing."""
    return roof["clock_fraction"] if np.isfinite(roof["clock_fraction"]) else roof["nominal_fraction"]


def middle(column):
    """Returns the median of the values that are not missing; NaN if all are."""
    known = column.dropna()
    return known.median() if len(known) else np.nan


def text_of(path):
    try:
        with open(path, "rb") as stream:
            found = stream.read()
        text = found.decode("utf-8-sig")  # Windows editors write a byte order mark first
        if (nul := found.find(b"\0")) >= 0:  # NUL is valid UTF-8, but in no text file
            raise UnicodeDecodeError("utf-8", found, nul, nul + 1, "NUL")
        return text
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise Refused(f"{path}:{line}: no text (UTF-8); targets are an INI file like sweeps/targets.ini") from error
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}") from error


def fault(path, text, error):
    """Returns a message for an error in an INI file: place, problem and remedy."""
    if isinstance(error, configparser.MissingSectionHeaderError):
        line = error.line.strip()[:60]
        return f"{path}:{error.lineno}: '{line}' is in no section; put a line [MODEL] above it, as [NVIDIA H200]"
    if isinstance(error, configparser.DuplicateSectionError):
        return f"{path}:{error.lineno}: a second section [{error.section}]; put its lines into the first"
    if isinstance(error, configparser.DuplicateOptionError):
        return f"{path}:{error.lineno}: [{error.section}] has '{error.option}' twice; keep one of them"
    number = error.errors[0][0]
    line = text.split("\n")[number - 1].strip()[:60]
    return f"{path}:{number}: '{line}' is no target; write NAME = VALUE"


class Ini(configparser.ConfigParser):
    """An INI file that knows the line numbers of its keys. Without a path, the object is empty."""

    def __init__(self, path):
        super().__init__(delimiters="=", interpolation=None, default_section="")  # [DEFAULT] has no special meaning
        self.path, self.text = path, text_of(path) if path else ""
        try:
            self.read_string(self.text, str(path))
        except configparser.Error as error:
            raise Refused(fault(path, self.text, error)) from error

    def place(self, section, key=None):
        """Returns "FILE:LINE: [SECTION]" for a key, or for the section's first line."""
        own = None
        for number, line in enumerate(self.text.split("\n"), 1):
            if head := self.SECTCRE.match(line.strip()):
                own = head["header"]
                found = key is None
            else:
                found = self.optionxform(line.partition("=")[0].strip()) == key
            if found and own == section:
                return f"{self.path}:{number}: [{section}]"
        return f"{self.path}: [{section}]"


def section_of(model):
    """Returns the name of a model's section. Bars, and blanks at the ends, become %7C and %20; unquote() reverses
    this."""
    return re.sub(r"^\s|\s$|[%|]", lambda found: quote(found[0]), model)


class Kinds:
    """The kinds of roofs that a file has or could have."""

    def __init__(self, data, rows):
        self.rows, self.models = rows, set(data["device_model"].values)
        self.words = ROOF_WORDS.union(links.WORDS, map(str, range(1, 1000)), *rows["name"].str.split())

    def possible(self, name):
        """Returns whether a name consists only of words that occur in names of roofs. This is true for a kind that was
        not measured, but false for a typo."""
        return set(name.split()) <= self.words

    def order(self, others=()):
        return kind_order(self.rows, others)


class Target:
    """One target of a roof: the value `least`, or if `least` is None, the roof that `text` names."""

    def __init__(self, text, kinds, place):
        self.text, self.least, self.unit, self.place, self.tolerance = text, None, None, place, 0.0
        if figure := figure_of(text, f"{place} '{text}'"):
            self.least, self.unit, self.tolerance = figure
        elif text[:1].isdigit() or not kinds.possible(text):
            raise Refused(f"{place} '{text}' is neither a quantity, as in 4.28 TB/s or 97 %, nor a roof")

    def held(self, roof, others):
        """Returns (value, value of the target, unit) for a usable roof. others: all roofs of its device."""
        if self.unit == "%":
            return of_theory(roof), self.least, "1"
        least, unit = self.least, self.unit
        if unit is None:
            same = others[(others["name"] == self.text) & (others["condition"] == roof["condition"]) & others["usable"]]
            least, unit = middle(same["value"]), same["unit"].max() if len(same) else roof["unit"]
        if unit != roof["unit"]:
            raise Refused(f"{self.place} {roof['name']} is in {roof['unit']}, its target '{self.text}' is not")
        return roof["value"], least, unit

    def reached(self, roof, others):
        """Returns value over target (for times target over value); NaN if the roof is not usable. The target is reached
        from 1 - tolerance on."""
        if not roof["usable"] or roof["disturbance"] > DISTURBED:
            return np.nan
        value, wanted, unit = self.held(roof, others)
        return wanted / value if unit == "s" else value / wanted

    def values(self, found, rows):
        """Returns value, reference, limit and unit for the Check of the first usable roof in `found`."""
        for _, roof in found[found["usable"]].iterrows():
            value, wanted, unit = self.held(roof, rows[rows["place"] == roof["place"]])
            return {"value": float(value), "reference": float(wanted), "limit": self.tolerance, "unit": unit}
        return {}

    def verdict(self, found, rows):
        """Returns (text, outcome, {place: ratio} for the devices that miss the target). found: roofs of one kind and
        condition; rows: all roofs."""
        reached = np.array([self.reached(roof, rows[rows["place"] == roof["place"]]) for _, roof in found.iterrows()])
        known, enough = reached[np.isfinite(reached)], 1 - self.tolerance
        short = {place: far for place, far in zip(found["place"], reached) if not far >= enough}
        missed, unknown = int((known < enough).sum()), len(reached) - len(known)
        if missed:
            some = f" by {missed} of {len(reached)}" * (len(reached) > 1)
            return f"{self.text} MISSED{some}: {percent(known.min())}", "missed", short
        if not len(reached):
            return f"{self.text} NOT MEASURED", "not known", short
        if unknown:
            some = f" for {unknown} of {len(reached)}" * (len(reached) > 1)
            some += ", disturbed" * bool((found["disturbance"] > DISTURBED).any())
            return f"{self.text} NOT KNOWN{some}", "not known", short
        return f"{self.text} reached: {percent(known.min())}", "reached", short


class Targets:
    """The targets of each model. The method text() also counts outcomes, and stores the devices that miss a target."""

    def __init__(self, path, kinds):
        self.path, self.counts, self.short, self.by_model = path, Counter(), [], {}
        ini = Ini(path)
        for section in [name for name in ini.sections() if "|" not in name]:
            model = unquote(section.strip())
            if model in self.by_model:
                raise Refused(f"{ini.place(section)} is a second section of this model; put its lines into the first")
            self.by_model[model] = {}
            for kind, value in ini[section].items() if model in kinds.models else ():
                place = ini.place(section, kind)
                if not kinds.possible(kind):
                    raise Refused(f"{place} '{kind}' is no roof; there are: {', '.join(kinds.order())}")
                self.by_model[model][kind] = [Target(text.strip(), kinds, place) for text in value.split(",")]

    def kinds(self, model):
        return [name for name in self.by_model.get(model, {}) if not name.startswith("link ")]

    def head(self, model):
        return ["target"] * (model in self.by_model)

    def text(self, model, kind, found, rows):
        texts = []
        for target in self.by_model.get(model, {}).get(kind, []):
            text, count, short = target.verdict(found, rows)
            texts.append(text)
            self.counts[count] += 1
            self.short += [(f"{kind}, {target.text}: {count}", short)] if short else []
        return "; ".join(texts)

    def print_missing(self, model):
        """Reports a model without a section: an unexpected device, or a typo in the targets."""
        if self.path and model not in self.by_model:
            self.counts["not known"] += 1
            print(f"No targets for {model}; {plain(self.path)} has: {', '.join(self.by_model) or 'none'}\n")

    def print_counts(self, devices):
        if self.path:
            print("Targets: " + ", ".join(f"{self.counts[name]} {name}" for name in ["reached", "missed", "not known"]))
            for what, short in self.short:
                print(f"  {what} on {devices.names(short)}")
            print()

    def all_reached(self):
        return set(self.counts) <= {"reached"}
