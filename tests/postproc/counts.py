#!/usr/bin/env python3
"""Reasons of counts that are far from the model, on the committed files: each such row has one, and it is of the kind
that the file's own count_note says, which a program wrote that looked at every tile."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "postproc"))
try:
    import roofsweep_post as post
    import xarray
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

# What the file's note says, and what the reason must say then.
KINDS = {
    "Winograd": "Winograd",
    "Fourier": "Fourier",
    "padding zeros": "padding zeros",
    "the recurrence": "a recurrence of whole tiles",
    "tiles": "whole tiles",
    "a maximum is one FLOP": "a maximum",
    "sums across threads": "sums across threads",
    "convert the layout": "convert the layout",
    "partial sums": "partial sums",
    "sets the result to zero": "sets the result to zero",
    "workspace": "workspace",
    "l2 does not hold": "l2 does not hold",
    "own writes": "own writes",
    "the code of its": "the code of its",
    "hot cache": "hot cache",
    "what was written": "what was written",
}

explained = 0
for path in sorted((ROOT / "tests/data").glob("*.nc")):
    table = post.rows(post.load(path), measured=False)
    with xarray.open_dataset(path) as data:
        notes = data.count_note.values if "count_note" in data else [None] * len(table)
    for note, own, flops, bytes_ in zip(notes, table.count_note, table.flops_ratio, table.bytes_ratio):
        assert "not explained" not in own, (path.name, own)
        assert ("FLOPs" in own) == (abs(flops - 1) > 0.1) and ("dram" in own) == (abs(bytes_ - 1) > 0.1), own
        if note is None:  # a file of a later version
            continue
        parts = [text.split("; dram bytes: ") for text in (note, own)]
        assert len(parts[0]) == len(parts[1]), (note, own)
        for said, reason in zip(*parts):
            kind = next((kind for kind in KINDS if kind in said), "")
            assert bool(kind) == bool(said) and KINDS.get(kind, "") in reason, (path.name, said, reason)
            explained += bool(kind)
assert explained > 600, explained
print(f"{explained} reasons")
