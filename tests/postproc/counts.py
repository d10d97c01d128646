#!/usr/bin/env python3
"""Checks that each row of tests/data whose counted values are far from the modelled ones has a reason."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "postproc"))
import roofsweep_post as post  # noqa: E402

explained, kinds = 0, set()
for path in sorted((ROOT / "tests/data").glob("*.nc")):
    table = post.rows(post.load(path), measured=False)
    for own, flops, bytes_ in zip(table.count_note, table.flops_ratio, table.bytes_ratio):
        assert "not explained" not in own, (path.name, own)
        assert ("FLOPs" in own) == (abs(flops - 1) > 0.1) and ("dram" in own) == (abs(bytes_ - 1) > 0.1), own
        reasons = [part.rsplit(": ", 1)[1] for part in own.split("; ") if part]
        explained += len(reasons)
        kinds.update(reasons)
assert explained > 600 and len(kinds) > 15, (explained, kinds)
print(f"{explained} reasons of {len(kinds)} kinds")
