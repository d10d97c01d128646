"""Writes one sentence of advice for each row: what limits the row and what to try. The rules are in advice.ini; its
first lines describe their syntax."""

import configparser
import functools
import math
import pathlib
import re

from .texts import scaled, share

MOST = 3  # largest number of suggestions in a sentence
# {word of a kernel's cause: limiter whose suggestions apply to this cause, too}
LIKE = {
    "dram": "bandwidth",
    "l2": "bandwidth",
    "fma": "compute",
    "fp64": "compute",
    "tensor": "compute",
    "latency": "latency",
}


@functools.cache
def sections():
    """Returns [(kind, name, keys)] in the order of the file."""
    parser = configparser.ConfigParser(
        interpolation=None, delimiters="=", comment_prefixes=";", strict=True, empty_lines_in_values=False
    )
    parser.optionxform = str
    parser.read_string(pathlib.Path(__file__).with_name("advice.ini").read_text(encoding="utf-8"))
    return [(*name.split(" ", 1), dict(parser[name])) for name in parser.sections()]


def parts(text, separator):
    return [part.strip() for part in text.split(separator)] if text else []


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


@functools.cache
def causes(limiter):
    return [keys for kind, name, keys in sections() if kind == "cause" and name.split()[0] == limiter]


@functools.cache
def tries_against(limiters):
    """Returns [(name, keys)] of the [try] sections that help against one of these limiters."""
    found = [(name, keys) for kind, name, keys in sections() if kind == "try"]
    return [(name, keys) for name, keys in found if limiters & set(parts(keys["against"], ","))]


@functools.cache
def operands(expression):
    """Splits a VALUE into dividend and divisor; "" without a divisor."""
    return tuple(part.strip() for part in re.fullmatch("([^/]+)/?(.*)", expression).groups())


@functools.cache
def terms(when):
    """Parses `when` into [(VALUE, operator, words to compare with)]."""
    found = [re.fullmatch(r"([^=!<>]+)([=!<>]*)(.*)", term).groups() for term in parts(when, "&")]
    return [(value.strip(), operator, [number(word) for word in parts(words, ",")]) for value, operator, words in found]


OPERATORS = {
    "": lambda value, words: True,
    "=": lambda value, words: value in words,
    "!=": lambda value, words: value not in words,
    ">": lambda value, words: value > words[0],
    "<": lambda value, words: value < words[0],
}


class Row:
    """Evaluates VALUEs (see advice.ini) for one row of rows(), a dict. None means that the row lacks the value."""

    def __init__(self, values):
        self.values = values

    def variable(self, name):
        value = self.values.get(name)
        if isinstance(value, str):
            return number(value) if value else None
        return None if value is None or not math.isfinite(value) else float(value)

    def operand(self, text):
        name, bracket, level = text.rstrip("]").partition("[")
        return self.variable(f"{name}_{self.variable(level)}" if bracket else name)

    def value(self, expression):
        left, right = operands(expression)
        value = self.operand(left)
        if not right or value is None:
            return value
        divisor = self.operand(right)
        return value / divisor if divisor else None

    def holds(self, keys):
        for expression, operator, words in terms(keys.get("when", "")):
            value = self.value(expression)
            if value is None or not OPERATORS[operator](value, words):
                return False
        return True

    def hole(self, found):
        expression, _, form = (part.strip() for part in found[1].partition(":"))
        value = self.value(expression)
        if value is None or isinstance(value, str):
            return value or "-"
        if form == "%":
            return share(value)
        if form in ("", "x"):
            return f"{value:.2g}" if form else f"{value:.0f}"
        return scaled(value, form)

    def text(self, keys):
        return re.sub(r"\{([^}]*)\}", self.hole, keys["text"])


def cause(row, limiter):
    found = next((keys for keys in causes(limiter) if row.holds(keys)), None)
    return row.text(found) if found else cause(row, "unknown")


def tries(values):
    """Returns {name: keys} of the [try] rules that fit a row (a dict or a line of rows()), in file order. If the names
    of several rules begin with the same word, only the first of them is returned."""
    row, found, limiter = Row(values), {}, values.get("limited_by", "")
    words = parts(values.get("cause", "").split(":")[0], ",") if limiter == "kernel" else []
    for name, keys in tries_against(frozenset([limiter, *(LIKE[word] for word in words if word in LIKE)])):
        if name.split()[0] not in {other.split()[0] for other in found} and row.holds(keys):
            found[name] = keys
    return found


def sentence(values):
    """Returns the cause with its suggestions, then the sentences of the [also] rules that fit the row."""
    row = Row(values)
    words = [row.text(keys) for keys in list(tries(values).values())[:MOST]]
    first = cause(row, values.get("limited_by", "")) + (f"; try {', or '.join(words)}." if words else ".")
    also = [row.text(keys) for kind, _, keys in sections() if kind == "also" and row.holds(keys)]
    return " ".join([first, *(f"{text}." for text in also)])


def advise(table):
    return [sentence(row) for row in table.to_dict("records")]
