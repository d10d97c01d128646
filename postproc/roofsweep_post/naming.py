"""Short names of rows: label, name in the label's list, and the parameters that differ between rows with the same
label, name and workload. roofsweep stores these names in the variable `name`, by the same rule (src/model/naming.h)."""

import itertools
import re
import shlex

# An entry of the variable `listed`, LABEL:PLACE NAME xCOUNT. PLACE is the number of the list's line.
ENTRY = re.compile(r"(?P<label>[^ :]+):(?P<place>\d+)(?: (?P<layer>.*))? x(?P<count>\d+)", re.S)


def chosen_label(label, workload):
    """Returns the first label that is not the name of the workload, which is the label of sections without one."""
    words = label.split() or [""]
    return next((word for word in words if word != workload), words[0])


def entries(listed):
    """Returns a dict of label, place, layer and count for each entry of a row's variable `listed`."""
    return [entry.groupdict() for entry in map(ENTRY.fullmatch, listed.split("; ")) if entry]


def parameters_of(text):
    """Returns the words NAME=VALUE of a configuration's text; for a program its axes."""
    if not text.startswith("program "):
        return text.split()[1:]
    try:
        words = shlex.split(text)
        return shlex.split(next((word.removeprefix("axes=") for word in words if word.startswith("axes=")), ""))
    except ValueError:  # a quotation mark is missing: the text is damaged
        return []


def computed(labels, texts, listed=()):
    """Returns the names of rows, computed from their labels, texts of configurations, and entries of `listed`."""
    found, shared = [], {}
    for label, text, own in zip(labels, texts, itertools.chain(listed, itertools.repeat(""))):
        workload = text.partition(" ")[0]
        chosen = chosen_label(label, workload) or workload
        layers = [entry["layer"] for entry in entries(own) if entry["label"] == chosen and entry["layer"]]
        key, words = (" ".join([chosen, *layers[:1]]), workload), parameters_of(text)
        shared[key] = shared.get(key, set(words)) & set(words)
        found.append((key, words))
    return [" ".join([key[0], *(word for word in words if word not in shared[key])]) for key, words in found]


def without_shared(names, told):
    """Returns (the names without the words that all share, these words as a text). told: parameters to leave out, too,
    because the reader sees them elsewhere."""
    words = [[word for word in name.split() if word.partition("=")[0] not in told] for name in names]
    shared = [word for word in words[0] if all(word in own for own in words)] if len({*map(tuple, words)}) > 1 else []
    return [" ".join(word for word in own if word not in shared) or name for own, name in zip(words, names)], (
        " ".join(shared)
    )


def names(stored, labels, texts, several, listed=()):
    """Returns the stored names. Computes names instead if some are missing, or if rows of several files have the same
    name."""
    owners = {}
    if all(stored) and not (
        several and any(owners.setdefault(name, text) != text for name, text in zip(stored, texts))
    ):
        return list(stored)
    return computed(labels, texts, listed)
