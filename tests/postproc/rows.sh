#!/bin/sh
# `roofsweep-post rows`: the table of configurations, and advice: each rule on a row that is made up for it, all of them
# on the committed files.
. "$(dirname "$0")/../mpi/lib.sh"
. "$here/../postproc/samples.sh"
h200=$root/tests/data/paper_h200.nc

python '
from roofsweep_post.advice import CAUSES, RULES, advise, sentence, tries
base = {"time_median": 1e-4, "gap": 8e-5, "gap_share": 0.8, "host_time": 2e-4, "compute_share": 0.6, "flops": 1e9,
        "bandwidth_share": 0.5, "few_blocks_share": 0.9, "launches": 1.0, "peak": 1e15, "bandwidth": 4e12,
        "unit": "vector", "config_precision": "fp64", "roof_memory_level": "dram", "cache": "hot",
        "config_algorithm": "winograd", "counters": "counted"}
# For each rule: its limiter, what makes it hold, words of its sentence, and what makes it not hold.
examples = {
    "graph": ("overhead", {"launches": 3.0}, "a CUDA graph", {"launches": 1.0}),
    "fuse": ("host", {"launches": 40.0}, "fusing its 40 kernels", {"launches": 2.0}),
    "batch": ("latency", {"batch": 16.0}, "a larger batch than 16", {"batch": float("nan")}),
    "sequence": ("overhead", {"sequence": 16.0}, "fuses the time steps", {"sequence": 1.0}),
    "unit": ("compute", {"config_precision": "fp32"}, "tensor units", {"unit": "tensor"}),
    "padding": ("bandwidth", {"unit": "tensor", "config_precision": "fp16", "channels": 3.0, "filters": 64.0},
                "padding channels to a multiple of 8", {"channels": 8.0}),
    "flops": ("kernel", {"flops_counted": 3e9, "flops_model": 1e9}, "does 3 times the FLOPs", {"flops_counted": 1e9}),
    "layout": ("bandwidth", {"layout": "nhwc", "bytes_counted_dram": 4e6, "bytes_model": 1e6},
               "layout nchw: this one moves 4 times the bytes", {"bytes_counted_dram": 1e6}),
    "precision": ("bandwidth", {}, "a narrower precision", {"config_precision": "fp16"}),
    "cache": ("bandwidth", {"cache": "cold", "config_precision": "fp16"}, "found in the cache", {"cache": "hot"}),
    "neighbours": ("bandwidth", {"config_precision": "fp16"}, "its neighbours", {"roof_memory_level": "l2"}),
    "algorithm": ("kernel", {"config_algorithm": "auto"}, "other algorithms", {"config_algorithm": "fft"}),
    "counters": ("unknown", {"counters": "off"}, "hardware counters", {"counters": "counted"}),
}
assert [rule.name for rule in RULES] == list(examples), "a rule without an example"
for name, (limiter, more, words, less) in examples.items():
    row = base | {"limited_by": limiter} | more
    assert name in [rule.name for rule in tries(row)], (name, row)
    assert words in sentence(row), (name, sentence(row))
    assert name not in [rule.name for rule in tries(row | less)], name
    other = "unknown" if limiter != "unknown" else "compute"
    assert name not in [rule.name for rule in tries(row | {"limited_by": other})], name
for limiter in CAUSES:  # a row of which nothing else is known
    assert "nan" not in sentence({"limited_by": limiter, "time_median": 1e-3, "launches": 2.0}), limiter

import sys
import roofsweep_post as post
for path in sys.argv[1:]:
    table = post.rows(post.load(path))
    limiters = set(table["limited_by"])
    assert limiters <= set(CAUSES), limiters
    for text in advise(table):
        assert text.endswith(".") and "nan" not in text and "(- of" not in text, text
' "$h200" golden.nc || fail "advice"

expect 0 script rows "$h200" --sort time --most 3
[ "$(wc -l <output)" = 4 ] || { cat output; fail "not three rows"; }
expect 0 script rows "$h200" --advice --where precision=fp32 label=conv2d-kernel kernel=9
says "tf32, fp16 or bf16, which have tensor units"
expect 0 script rows golden.nc
row "^conv2d *#0 node1" "25 us" "4.0 %" latency "two modes, throttled"
refused "no row has batch=77" rows "$h200" --where batch=77
