#!/bin/sh
# Recurrent layers of every cell on a GPU, in the stream and from a graph: each algorithm has right results and counts,
# and its name lists its kernels.
. "$(dirname "$0")/lib.sh"

cat >recurrent.ini <<INI
[sweep]
device = cuda
[peaks]
memory = dram
compute = fp32, fp16
launch = no
transfer = no
[lstm cells]
cell = lstm, gru, relu, tanh
launch = stream, graph
algorithm = persist-static-small-h
precision = fp16
pass = forward, backward
[lstm chosen]
cell = lstm, gru
precision = fp32
[lstm single]
batch = 1
cell = gru
hidden = 2048
precision = fp16
pass = backward
[lstm wide]
cell = gru
hidden = 1024
precision = fp16
pass = backward
[lstm deep]
cell = lstm, gru, relu, tanh
hidden = 24
layers = 2
directions = 2
algorithm = standard
precision = fp32
pass = forward, backward
[lstm projected]
hidden = 64
projection = 24
launch = stream, graph
algorithm = standard
precision = fp16
pass = forward, backward
[lstm projected-deep]
hidden = 64
projection = 24
layers = 2
directions = 2
algorithm = standard
precision = fp32
pass = backward
[lstm formats]
cell = lstm, gru
algorithm = standard
precision = fp64, bf16
pass = backward
[lstm named]
cell = gru
algorithm = persist-static, persist-dynamic
precision = fp16
[lstm impossible]
cell = gru
projection = 8
INI
expect 0 run 1 recurrent.ini
"$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" recurrent.nc || fail "derived values"
python '
import numpy, xarray
data = xarray.open_dataset("recurrent.nc").load()
text, label, status = (data[v].values.astype(str) for v in ("configuration", "label", "status"))
print("skipped:", *sorted(f"{t}: {e}" for t, e, s in zip(text, data.error.values, status) if s == "1"), sep="\n")
assert (status != "2").all(), data.error.values[status == "2"]
assert (status[label == "impossible"] == "1").all()
must = (label != "impossible") & (label != "deep") & (label != "named")
assert (status[must] == "0").all(), text[must & (status != "0")]
deep = (label == "deep") & (status == "1")
assert all("cell=relu" in t and "backward" in t for t in text[deep]), text[deep]
stream = {t: i for i, t in enumerate(text) if "launch=graph" not in t}
for i in numpy.flatnonzero(status == "0"):
    assert data.verify_error[i] >= 0, text[i]
    one = "layers=1" in text[i] and "directions=1" in text[i]  # otherwise samples of a backward row share one forward pass
    assert str(data.output_hash[i].values) != "varies" or not one, text[i]
    name, identity = str(data.algorithm[i].values), str(data.algorithm_id[i].values)
    assert len(identity) == 16 and ": " in name, (text[i], name, identity)
    assert data.launches[i] >= 1, text[i]
    assert label[i] != "single" or data.search_noise[i] == 0, text[i]  # one candidate: persist-dynamic is not compiled
    wanted = [w for w in text[i].split() if w.startswith("algorithm=")][0][10:]
    assert wanted == "auto" or name.startswith(wanted + ": "), (text[i], name)
    counted = data.counters[i] == "counted"
    if counted:
        assert data.flops_counted[i] > 0.5 * data.flops_model[i], (text[i], float(data.flops_counted[i]))
    j = stream[text[i].replace(" launch=graph", "")]
    if i != j and status[j] == "0":
        assert data.time_median[i] < 1.1 * data.time_median[j], text[i]
        if counted and identity == data.algorithm_id[j]:
            assert data.launches[i] == data.launches[j], text[i]
            assert numpy.isclose(data.flops_counted[i], data.flops_counted[j], rtol=1e-3), text[i]
    print(text[i], "|", name, identity, int(data.launches[i]), f"{float(data.time_median[i]):.3g} s,",
          f"{float(data.flops_counted[i] / data.flops_model[i]):.3g} of the model")
' || fail "a figure is missing or wrong"
