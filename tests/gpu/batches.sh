#!/bin/sh
# Counters of several rows read together, on a GPU: they are those of rows that are counted one by one, whatever
# the order, and what waits disturbs no time.
. "$(dirname "$0")/lib.sh"
echo '{"op":"describe","counters":"auto"}' | "$worker" | grep -q '"counters":"counted"' ||
    { echo "the counters cannot be read"; exit 77; }

for precision in fp16 fp32; do
    for pass in forward backward-data backward-filter; do
        for rest in "" "cache=cold" "filters=512" "kernel=1 stride=1" "height=14 width=14"; do
            echo "conv2d precision=$precision pass=$pass $rest"
        done
    done
    echo "matmul precision=$precision"
    echo "matmul precision=$precision cache=cold m=512"
    echo "lstm precision=$precision"
    echo "lstm precision=$precision pass=backward"
done >configurations

# measure LATER KERNELS: the requests of the configurations on standard input.
measure() {
    while read -r configuration; do
        echo "{\"op\":\"measure\",\"configuration\":\"$configuration\",\"count_later\":$1,\"kernels\":$2}"
    done
}
# together SIZE KERNELS: the same, counted after so many each.
together() {
    split -l "$1" - part-
    for part in part-*; do
        measure true "$2" <"$part"
        sed 's/.*/{"op":"count"}/' "$part"
        rm "$part"
    done
}
measure false false <configurations | "$worker" | grep '"reply":"record"' >single || fail "single"
measure false false <configurations | "$worker" | grep '"reply":"record"' >again || fail "single, again"
together 100 false <configurations | "$worker" | grep '"reply":"record"' >whole || fail "one batch"
shuf --random-source=configurations configurations | together 100 false | "$worker" |
    grep '"reply":"record"' >shuffled || fail "shuffled"
shuf --random-source=single configurations | together 7 false | "$worker" | grep '"reply":"record"' >sevens ||
    fail "batches of seven"
grep -v lstm configurations | together 8 true | "$worker" | grep '"reply":"record"' >kernels || fail "kernels"

python '
import json, statistics
def rows(path):
    found = [json.loads(line)["record"] for line in open(path)]
    assert all(row["status"] == "measured" for row in found), [row.get("error") for row in found]
    wrong = [(row["configuration"], row["counters"]) for row in found if row["counters"] != "counted"]
    assert not wrong, (path, wrong)
    by_name = {row["configuration"]: row for row in found}
    assert len(by_name) == len(found), path
    return by_name
single = rows("single")
FLOOR = 524288 # byte: of so few nobody knows whose they are; twice what turns up in ranges that write nothing
failures = []
for name in "again", "whole", "shuffled", "sevens", "kernels":
    others = rows(name)
    assert name == "kernels" or set(others) == set(single), name
    worst, compared, times = {}, 0, []
    for text, row in others.items():
        one = single[text]
        times.append(row["time_median"] / one["time_median"])
        if row["algorithm_id"] != one["algorithm_id"]:
            continue
        compared += 1
        if row["flops_counted"] != one["flops_counted"]:
            failures.append((name, text, "FLOPs", one["flops_counted"], row["flops_counted"]))
        for level in "dram", "l2":
            a, b = one["bytes_counted"][level], row["bytes_counted"][level]
            off = abs(a - b) / max(a, FLOOR)
            worst[level] = max(worst.get(level, 0), off)
            if off > 0.005 and abs(a - b) > FLOOR and name != "again":
                failures.append((name, text, level, a, b))
        if name == "kernels":
            flops = sum(kernel["flops_counted"] for kernel in row["kernels"])
            if abs(flops - row["flops_counted"]) > 1e-3 * row["flops_counted"]:
                failures.append((name, text, "kernels", row["flops_counted"], flops))
    spread = sorted(times)
    dram, l2 = (100 * worst.get(level, 0) for level in ("dram", "l2"))
    print(f"{name}: {compared} of {len(others)} rows chose the same algorithm; bytes differ by at most {dram:.2f} % at "
          f"DRAM, {l2:.2f} % at L2; times: median {statistics.median(spread):.4f}, {spread[0]:.3f} to {spread[-1]:.3f} "
          f"of those of the first run")
for failure in failures:
    print("differs:", *failure)
assert not failures
' || fail "counts of batches and of single rows"
