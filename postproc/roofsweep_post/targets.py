"""What the roofs of each model shall reach: an INI file with a section for each model, see the help of `check`."""

import configparser
import re
from collections import Counter

import numpy as np

from .frames import kind_order
from .texts import PREFIXES, Refused, percent, plain

FIGURE = re.compile(r"(\d+(?:\.\d+)?) *(?:(%)|([numkMGTP]?)(B/s|FLOP/s|OP/s|s))")


def of_theory(roof):
    """Value over theory at the measured clock; failing that, at the nominal one."""
    return roof["clock_fraction"] if np.isfinite(roof["clock_fraction"]) else roof["nominal_fraction"]


def middle(column):
    """The median of what there is."""
    known = column.dropna()
    return known.median() if len(known) else np.nan


def read(path):
    """The INI file, read; empty without a path."""
    parser = configparser.ConfigParser(delimiters="=", interpolation=None)
    try:
        if path:
            with open(path, encoding="utf-8") as stream:
                parser.read_file(stream, path)
    except (OSError, ValueError, configparser.Error) as error:
        raise Refused(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return parser


class Kinds:
    """The kinds of roofs that a file has, and which others there may be."""

    def __init__(self, data, rows):
        self.rows = rows
        self.models = set(rows["model"])
        names = [*rows["name"], *data.indexes["memory_level"], *data.indexes["precision"]]
        if "unit" in data:
            names += data["unit"].attrs["words"]
        self.words = {word for name in names for word in name.split()}

    def possible(self, name):
        """A kind that was not measured has words that the file knows; a slip of the pen has not."""
        return set(name.split()) <= self.words

    def order(self, others=()):
        return kind_order(self.rows, others)


class Target:
    """One thing that a roof shall reach."""

    def __init__(self, text, kinds):
        self.text, self.least, self.unit = text, None, None
        if number := FIGURE.fullmatch(text):
            self.least = float(number[1]) * (0.01 if number[2] else PREFIXES[number[3]])
            self.unit = number[2] or number[4]
        elif not kinds.possible(text):
            raise ValueError(f"'{text}' is neither a figure, as in 4.48 TB/s or 97 %, nor a roof")

    def reached(self, roof, others):
        """How far `roof` gets: 1 or more is enough; NaN if that is not known. others: of its device."""
        if not roof["usable"]:
            return np.nan
        if self.unit == "%":
            return of_theory(roof) / self.least
        least, unit = self.least, self.unit
        if unit is None:
            same = others[(others["name"] == self.text) & (others["condition"] == roof["condition"]) & others["usable"]]
            least, unit = middle(same["value"]), same["unit"].max() if len(same) else roof["unit"]
        if unit != roof["unit"]:
            raise Refused(f"{roof['name']} is in {roof['unit']}, its target '{self.text}' is not")
        return least / roof["value"] if roof["unit"] == "s" else roof["value"] / least

    def verdict(self, found, rows):
        """(text, what it counts as, {place: how far} of those that do not reach it), of the rows of one kind and
        condition among all rows."""
        reached = np.array([self.reached(roof, rows[rows["place"] == roof["place"]]) for _, roof in found.iterrows()])
        known = reached[np.isfinite(reached)]
        short = {place: far for place, far in zip(found["place"], reached) if not far >= 1}
        missed, unknown = int((known < 1).sum()), len(reached) - len(known)
        if missed:
            some = f" by {missed} of {len(reached)}" * (len(reached) > 1)
            return f"{self.text} MISSED{some}: {percent(known.min())}", "missed", short
        if unknown or not len(reached):
            some = f" for {unknown} of {len(reached)}" * (len(reached) > 1)
            return f"{self.text} NOT KNOWN{some}", "not known", short
        return f"{self.text} reached: {percent(known.min())}", "reached", short


class Targets:
    """What the roofs of each model shall reach, how many of them do so far, and which devices do not."""

    def __init__(self, path, kinds):
        self.path, self.counts, self.short, self.by_model = path, Counter(), [], {}
        parser = read(path)
        try:
            for model in [name for name in parser.sections() if "|" not in name]:
                self.by_model[model] = {}
                for kind, value in parser[model].items() if model in kinds.models else ():
                    if not kinds.possible(kind):
                        raise ValueError(f"'{kind}' is no roof; there are: {', '.join(kinds.order())}")
                    self.by_model[model][kind] = [Target(text.strip(), kinds) for text in value.split(",")]
        except ValueError as error:
            raise Refused(f"{path}: {error}") from error

    def kinds(self, model):
        return list(self.by_model.get(model, {}))

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
        """A model without a section: another device than was expected, or a slip of the pen."""
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
