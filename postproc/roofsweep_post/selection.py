"""Chooses the rows of a table that fulfil terms such as precision=fp16 pass=forward,backward-data batch>=32."""

import difflib
import re

import numpy as np

from .dataset import SHAPES
from .texts import PREFIXES, Refused, listed

TERM = re.compile(r"\s*(\w+)\s*(>=|<=|!=|==?|>|<)\s*(.*?)\s*", re.S)
FIGURE = re.compile(r"([-+.\deE]+) *(?:(%)|([pnumkMGTP]?)(?:s|J|W|Hz|(?:B|FLOP|OP)(?:/s)?))?")
NUMBERS = {">=": np.greater_equal, "<=": np.less_equal, ">": np.greater, "<": np.less}
HELP = (
    "only rows that fulfil all terms NAME=VALUE,VALUE... or with != >= <= > <; NAME is a variable of the file; quote > "
    "and <, as in 'time_median>1ms' 'roof_fraction<50%%'"
)


def column(table, name):
    """Returns the name of the column that `name` means. `name` may also be a parameter of the manifest: kernel means
    filter_height."""
    name = {"kernel": "filter_height"}.get(name, name)
    for found in (name, f"requested_{name}", f"{name}_height"):
        if found in table and (name, found) != ("filter", "filter_height"):
            return found
    raise Refused(f"no variable '{name}'; {hint(name, sorted(map(str, table.columns)))}")


def hint(name, names):
    """Returns a hint for an unknown name: names that are similar or that contain it, or else the first names."""
    short = [other.removeprefix("requested_").removesuffix("_height") for other in names]
    longer = [other for other in names if other.startswith(f"{name}_")]
    longer.sort(key=lambda other: (other not in SHAPES, len(other)))  # parameters before other columns
    near = list(dict.fromkeys(longer[:2] + difflib.get_close_matches(name, dict.fromkeys([*names, *short]))))
    return (
        f"did you mean {' or '.join(near)}?"
        if near
        else f"there are: {listed(names)}; `roofsweep-post describe FILE` explains them"
    )


def number(word):
    """Returns a word such as 1ms, 5 % or 3 TB/s as a number in SI units; None if it is no number."""
    figure = FIGURE.fullmatch(word)
    try:
        return float(figure[1]) * (0.01 if figure[2] else PREFIXES[figure[3] or ""]) if figure else None
    except ValueError:
        return None


def moment(word):
    """Returns a word such as 2025-01-31T12:00 as a time (UTC); None if it is no time."""
    try:
        return np.datetime64(word.removesuffix("Z"))
    except ValueError:
        return None


def equal(values, words):
    """Returns for each value whether it is one of the words, as text or as number."""
    found = values.astype(str).isin(words).to_numpy(bool)
    if values.dtype.kind in "fiu":
        numbers = [number(word) for word in words if re.fullmatch(r"[-+.\deE]+", word)]
        found = found | values.isin([value for value in numbers if value is not None]).to_numpy(bool)
    return found


def matches(table, term):
    """Returns for each row of the table whether it fulfils the term."""
    parsed = TERM.fullmatch(term)
    if not parsed:
        raise Refused(f"'{term}' is no condition; one is NAME=VALUE, or with != >= <= > <")
    name, operator, text = parsed.groups()
    if name == "label" and name in table:  # a row may have several labels
        words = table["label"].map(str.split)
        found = words.map(lambda labels: bool(set(labels) & set(text.split(",")))).to_numpy(bool)
        return ~found if operator == "!=" else found
    values = table[column(table, name)]
    if operator in NUMBERS and values.dtype.kind == "M":
        if moment(text) is None:
            raise Refused(f"'{term}': '{text}' is no time, as 2025-01-31 or 2025-01-31T12:00")
        return NUMBERS[operator](values.to_numpy(), moment(text))
    if operator in NUMBERS:
        if number(text) is None:
            raise Refused(f"'{term}': '{text}' is no number")
        try:
            return NUMBERS[operator](values.astype(float).to_numpy(), number(text))
        except (TypeError, ValueError) as error:
            raise Refused(f"'{term}': {name} is no number; = and != choose words") from error
    found = equal(values, text.split(","))
    return ~found if operator == "!=" else found


def labels(table):
    return list(dict.fromkeys(" ".join(table["label"]).split()))


def values_of(table, name):
    """Returns the distinct values of a variable as texts; if there are more than 8 numbers, their range."""
    if name == "label":
        return labels(table)
    values = table[column(table, name)].dropna().drop_duplicates()
    if values.dtype.kind in "fiu":
        values = [f"{value:g}" for value in values]
        return values if len(values) <= 8 else [f"{min(values, key=float)} to {max(values, key=float)}"]
    return [str(value) or "(none)" for value in values]


def choose(table, terms):
    """Returns the rows that fulfil all terms. Raises Refused if there is no such row."""
    for term in terms or ():
        chosen = table[matches(table, term)]
        if chosen.empty and not table.empty:
            name = TERM.fullmatch(term)[1]
            raise Refused(f"no row has {term}; there are: {listed(values_of(table, name), 40)}")
        table = chosen
    return table.reset_index(drop=True)
