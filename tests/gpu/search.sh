#!/bin/sh
# The search for algorithms on a GPU: the values that it stores in a row agree with each other.
. "$(dirname "$0")/lib.sh"
measure() { echo "{\"op\":\"measure\",\"configuration\":\"$1\",\"counters\":\"off\"}"; }
for precision in fp32 fp16; do
    for pass in forward backward-data backward-filter; do
        for layout in nhwc nchw; do
            measure "conv2d precision=$precision pass=$pass layout=$layout"
        done
    done
done | "$worker" >conv2d || fail "conv2d"
{
    measure "conv2d cache=cold"
    measure "matmul precision=fp16"
    measure "lstm precision=fp16"
} | "$worker" >others || fail "others"
python '
import json
def rows(path):
    found = [json.loads(line)["record"] for line in open(path)]
    assert all(row["status"] == "measured" for row in found), [row.get("error") for row in found]
    return found
conv2d, others = rows("conv2d"), rows("others")
for row in conv2d + others:
    text = row["configuration"]
    assert len(row["algorithm_id"]) == 16, text
    assert row["search_candidates"] >= 1 and 0 <= row["search_noise"] < 0.5, text
    assert abs(row["search_time"] / row["time_median"] - 1) < 0.3, (text, row["search_time"], row["time_median"])
    if "runner_up_time" in row:
        assert row["runner_up_time"] * (1 + row["search_noise"]) >= row["search_time"], text
    if "heuristic_time" in row:
        same = row["heuristic_algorithm"] == row["algorithm"]
        assert same or row["heuristic_time"] > (1 + row["search_noise"]) * row["search_time"], text
assert all("heuristic_time" in row for row in conv2d)
' || fail "values of the rows"
