"""Short names of rows: label, name in the label's list, and the parameters that differ within these and the workload.
roofsweep stores them in the variable `name`; src/model/naming.h has the same rule."""

import itertools
import re
import shlex

# An entry of the variable `listed`, LABEL:PLACE NAME xCOUNT.
ENTRY = re.compile(r"(?P<label>[^ :]+):(?P<place>\d+)(?: (?P<layer>.*))? x(?P<count>\d+)", re.S)


def chosen_label(label, workload):
    """Returns the first label that a person chose. A section without a label has that of its workload."""
    words = label.split() or [""]
    return next((word for word in words if word != workload), words[0])


def entries(listed):
    """Returns {label, place, layer, count} of each entry of a row's `listed`."""
    return [entry.groupdict() for entry in map(ENTRY.fullmatch, listed.split("; ")) if entry]


def parameters_of(text):
    """Returns the words NAME=VALUE of a configuration's text; of a program its axes."""
    if not text.startswith("program "):
        return text.split()[1:]
    try:
        words = shlex.split(text)
        return shlex.split(next((word.removeprefix("axes=") for word in words if word.startswith("axes=")), ""))
    except ValueError:  # a quotation mark too many: the text is damaged
        return []


def computed(labels, texts, listed=()):
    """Returns the names of rows with these labels, configurations and entries of lists."""
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
    """Returns the stored names; computed ones if some are missing, or if rows of several files share one."""
    owners = {}
    if all(stored) and not (
        several and any(owners.setdefault(name, text) != text for name, text in zip(stored, texts))
    ):
        return list(stored)
    return computed(labels, texts, listed)
