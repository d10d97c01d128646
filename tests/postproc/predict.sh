#!/bin/sh
# Tests `roofsweep-post predict`: errors of its predictions for rows of tests/data.
. "$(dirname "$0")/../mpi/lib.sh"
data=$root/tests/data
export OPENBLAS_NUM_THREADS=1 PYTHONPATH="$root/postproc"
PATH=$ROOFSWEEP_BIN:$PATH

expect 0 "$root/postproc/roofsweep-post" predict "$data/paper_h100.nc" --leave-one-out
awk '$1 == "all" && $3 <= 5 && $7 >= 90 && $7 <= 98 && $9 > 50 { good = 1 } END { exit !good }' output ||
  fail "leaving one out: $(grep '^all' output)"
all=$(awk '$1 == "all" { print "below " $3 " %, nine of ten are below " $5 " %, and " $7 " % of the times" }' output)
tr '\n' ' ' <"$root/postproc/README.md" | grep -qF "$all" || fail "postproc/README.md does not say: $all"

python '
import json, subprocess, sys
import numpy as np
import roofsweep_post as post
from roofsweep_post import predict
from roofsweep_post.cli import arguments

data, tool = sys.argv[1:]
found, _ = predict.measured(arguments(["predict", data + "/paper_h100.nc", "--where", "workload=conv2d"]))
shuffled = found["time_median"].sample(frac=1, random_state=1).to_numpy()
(model, own), = predict.fitted(found.assign(time_median=shuffled)).values()
mean, _ = model.left_out(own["config_hash"].to_numpy())
error = np.median(np.abs(np.expm1(mean - np.log(shuffled / own["roof"]))))
assert error > 0.3, error
# Each row is predicted as if the rows of its configuration did not exist.
groups = own["config_hash"].to_numpy() + ""
groups[:3] = groups[0]
words, values = list(own["words"]), np.log(shuffled / own["roof"].to_numpy())
with_fixed = type("", (predict.Likeness,), {"search": lambda self, start: model.fitted})
others, again = with_fixed(words[3:], values[3:]), with_fixed(words, values).left_out(groups)
assert np.allclose([found[:3] for found in again], others.at(words[:3])[:2]), "rows of a configuration are left out"

mixed = predict.Likeness([{"padding": "1"}, {"padding": "2"}], np.array([0.0, 1.0]), [{"padding": "same"}])
assert np.isfinite(mixed.at([{"padding": "same"}])[0]).all(), "a word beside the numbers of the file"

def predicted(*words):
    return json.loads(subprocess.run([tool, "predict", *words, "--json"], capture_output=True, check=True).stdout)

open("between.ini", "w").write("[conv2d x]\nbatch = 24\nprecision = fp16\n")
row, = predicted(data + "/paper_h100.nc", "--manifest", "between.ini")
times = found[found["name"].str.contains("conv2d-batch") & found["configuration"].str.contains(
    "cache=hot.*pass=forward precision=fp16")].groupby("batch")["time_median"].min()
assert times[16] < row["time_low"] < row["time"] < row["time_high"] < times[32] * 1.2, (row, times)

# Predicts times on an H200 from times on an H100 and the roofs of both.
times = post.rows(post.load(data + "/paper_h200.nc")).set_index("configuration")["time_median"]
words = data + "/paper_h100.nc", "--device", data + "/paper_h200.nc", "--manifest", data + "/../../sweeps/paper.ini"
rows = predicted(*words)
off = np.median([abs(row["time"] / times[row["configuration"]] - 1) for row in rows])
text = f"predicts {len(rows)} rows of an H200 with a median error of {off:.1%}".replace("%", " %")
assert text in " ".join(open(tool.removesuffix("roofsweep-post") + "README.md").read().split()), text
times = post.rows(post.load(data + "/node_4xh200.nc")).groupby("configuration")["time_median"].median()
before = post.rows(post.load(data + "/node_2xh100.nc")).groupby("configuration")["time_median"].median()
words = data + "/node_2xh100.nc", "--device", data + "/node_4xh200.nc", "--manifest", data + "/../../sweeps/node.ini"
rows = [row for row in predicted(*words) if row["configuration"] in times]
off = [abs(row["time"] / times[row["configuration"]] - 1) for row in rows]
unscaled = [abs(before[row["configuration"]] / times[row["configuration"]] - 1) for row in rows]
inside = np.mean([row["time_low"] < times[row["configuration"]] < row["time_high"] for row in rows])
assert len(rows) == 40 and np.median(off) < 0.035 < np.median(unscaled) and inside > 0.85, (
    len(rows), np.median(off), np.median(unscaled), inside)
' "$data" "$root/postproc/roofsweep-post" || fail "predictions"

printf '[matmul]\nm = 128\n[conv2d]\nbatch = 16\n' >other.ini
expect 1 "$root/postproc/roofsweep-post" predict "$data/paper_h100.nc" --manifest other.ini
says "no prediction of 1 configurations: no measured row of matmul"
expect 2 "$root/postproc/roofsweep-post" predict "$data/paper_h100.nc"
says "one of --manifest SWEEP.ini and --leave-one-out"
printf '[conv2d]\nbtch = 16\n' >wrong.ini
expect 2 "$root/postproc/roofsweep-post" predict "$data/paper_h100.nc" --manifest wrong.ini
says "wrong.ini:2"

# A roof that one of the devices lacks is no reason to predict with another.
printf '[matmul]\nm = 8192\nn = 8192\nk = 8192\nprecision = fp16, fp8\n' >roof.ini
expect 1 "$root/postproc/roofsweep-post" predict "$data/node_2xh100.nc" -m roof.ini --device "$data/roofs_2xcpu.nc"
says "no prediction of 2 configurations: no roof in $data/roofs_2xcpu.nc of fp16, fp8"
! grep -q "fp8 .*[0-9] [mu]*s" output || fail "a time without a roof"
expect 0 "$root/postproc/roofsweep-post" predict "$data/node_2xh100.nc" -m roof.ini
cp output own
expect 0 "$root/postproc/roofsweep-post" predict "$data/node_2xh100.nc" -m roof.ini --device "$data/node_4xh200.nc"
[ "$(awk '/fp16/ { print $3 }' own)" != "$(awk '/fp16/ { print $3 }' output)" ] || fail "the roof of the old device"
expect 2 "$root/postproc/roofsweep-post" predict "$data/node_2xh100.nc" -m "$root/sweeps/roofs.ini"
says "roofs.ini has no configuration to predict"
expect 2 "$root/postproc/roofsweep-post" predict "$data/roofs_2xh100.nc" -m roof.ini
[ "$(wc -l <output)" = 1 ] || { cat output; fail "more than the message"; }
expect 2 "$root/postproc/roofsweep-post" predict "$data/node_2xh100.nc" --leave-one-out --json
says "takes neither --device nor --json"
# A workload of two configurations has no errors, and does not count in the line "all".
expect 0 "$root/postproc/roofsweep-post" predict "$data/resnet50_h200.nc" --leave-one-out
grep -q "^linear  *2  *-  *-  *-  *-$" output || { cat output; fail "errors of two rows"; }
grep -q "^all  *50 " output || { cat output; fail "two rows among all"; }
