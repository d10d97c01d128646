#!/bin/sh
# How a sweep scales over the GPUs of a node, uncounted, counted row by row, and counted in batches. Prints a table
# with a line for each: from the first row's start to the last record, without roofs.
# Usage: tests/bench/scaling.sh [BUILD [GPUS...]]; GPUS: 1 2 4 if nothing is said.
# In the environment: WORKER, cuda (default), cpu (as many ranks as GPUS, which share the cores), or scripted: the
# worker of the tests, which measures nothing. TOGETHER, rows of a batch: 16 64 if nothing is said. ROUNDS, runs of
# which the median counts: 3. ALGORITHMS, as [sweep] algorithms: with the path of a file only the first run of all
# searches.
set -eu
build=$(cd "${1:-build}" && pwd)
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 1 2 4
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bin=$build/bin
device=cuda
verify=yes
case ${WORKER:-cuda} in
cuda) ;;
cpu) device=cpu ;;
scripted)
    verify=no
    bin=$work/bin
    mkdir bin
    cp "$build/bin/roofsweep" bin/
    cp "$build/tests/scripted_worker" bin/roofsweep-worker-cuda
    ;;
*) echo "WORKER is cuda, cpu or scripted" >&2; exit 2 ;;
esac

# 168 rows of both kinds, most of them short: what a batch is for.
cat >sweep.ini <<INI
[sweep]
device = $device
[measure]
warmup = 5
iterations = 20
verify = $verify
[peaks]
memory = dram
compute = fp32
launch = no
transfer = no
[conv2d layers]
batch = 16
height = 28, 56
width = 56
channels = 32, 64, 128
filters = 64, 128
kernel = 1, 3
stride = 1
precision = fp16, fp32
pass = forward, backward-data, backward-filter
[lstm steps]
batch = 16
sequence = 16, 32
features = 32
hidden = 16, 32, 64
precision = fp16, fp32
pass = forward, backward
INI

cat >measure.py <<'PY'
"""What one run took, as JSON: its rows, s from the first row's start to the last record, the median row, s from the
first rank's last row to the last record."""
import collections, json, os, statistics, sys

ends, starts, walls, counted = collections.defaultdict(float), [], [], 0
for line in open(sys.argv[1]):
    entry = json.loads(line)
    if entry["kind"] != "record":
        continue
    record = entry["entry"]
    assert record["status"] in ("measured", "skipped"), record
    starts.append(record["start_time"])
    walls.append(record["wall_time"])
    counted += record.get("counters") == "counted"
    end = record["start_time"] + record["wall_time"]
    ends[record["device_key"]] = max(ends[record["device_key"]], end)
last = os.stat(sys.argv[1]).st_mtime  # the last record's, which is the last line of the journal
row = statistics.median(walls)
print(json.dumps([len(starts), counted, last - min(starts), row, last - min(ends.values())]))
PY

# run GPUS NAME SETTINGS...: the runs of one line.
run() {
    gpus=$1
    name=$2
    shift 2
    for _ in $(seq "${ROUNDS:-3}"); do
        mpirun -n "$gpus" --oversubscribe --bind-to none "$bin/roofsweep" --quiet --overwrite \
            --set "algorithms=${ALGORITHMS:-run}" "$@" sweep.ini \
            >/dev/null 2>errors || { cat errors >&2; exit 1; }
        printf '%s\t%s\t%s\n' "$gpus" "$name" "$(python3 measure.py sweep.nc.journal)"
    done
}

for gpus in "$@"; do
    run "$gpus" uncounted --set counters=off
    run "$gpus" "one by one" --set count_together=1
    for together in ${TOGETHER:-16 64}; do
        run "$gpus" "batches of $together" --set "count_together=$together"
    done
done >runs

python3 - runs <<'PY'
import collections, json, statistics, sys

runs = collections.defaultdict(list)
for line in open(sys.argv[1]):
    gpus, name, figures = line.rstrip("\n").split("\t")
    runs[int(gpus), name].append(json.loads(figures))
medians = {key: [statistics.median(column) for column in zip(*rounds)] for key, rounds in runs.items()}
first = min(gpus for gpus, _ in medians)
print("| GPUs | counters | rows | counted | sweep s | times faster | median row s | row over uncounted | tail % |")
print("|---|---|---|---|---|---|---|---|---|")
for (gpus, name), (rows, counted, sweep, row, tail) in medians.items():
    faster = medians[first, name][2] / sweep
    over = sweep / medians[gpus, "uncounted"][2]
    print(
        f"| {gpus} | {name} | {rows:.0f} | {counted:.0f} | {sweep:.2f} | {faster:.2f} | {row:.3f} | {over:.2f} "
        f"| {100 * tail / sweep:.1f} |"
    )
PY
