#!/bin/sh
# Rows that are replayed from a CUDA graph (`launch = graph`) have right results, and the same kernels and counts as
# rows with `launch = stream`. They take no longer.
. "$(dirname "$0")/lib.sh"

cat >launch.ini <<INI
[sweep]
device = cuda
[measure]
cache = both
kernels = yes
[conv2d layer]
launch = stream, graph
precision = fp32, fp16
pass = forward, backward-data, backward-filter, training
[lstm cell]
launch = stream, graph
precision = fp32, fp16
pass = forward, backward
[matmul product]
launch = stream, graph
implementation = cublaslt, plain
precision = fp32
[compute-loop loop]
launch = stream, graph
elements = 12345
[elementwise values]
launch = stream, graph
INI
expect 0 run 1 launch.ini
"$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" launch.nc || fail "derived values"
python '
import numpy, xarray
data = xarray.open_dataset("launch.nc").load()
status = data.status.values
assert (status != 2).all(), data.error.values[status == 2]
text = [t.replace(" launch=graph", "") for t in data.configuration.values]
graph = (data.launch == "graph").values
stream = {t: i for i, t in enumerate(text) if not graph[i]}
captured = 0
for i in numpy.flatnonzero(graph & (status == 0)):
    j = stream[text[i]]
    assert data.verify_error[i] >= 0, text[i]
    assert data.time_median[i] < 1.1 * data.time_median[j], text[i]
    same = all(data[name][i] == data[name][j] for name in ("algorithm", "algorithm_id"))  # steps have no id
    if data.counters[i] == "counted" and same:
        assert data.launches[i] == data.launches[j], text[i]
        # The maximum of relu is not counted as a FLOP.
        assert data.flops_counted[i] > 0 or data.workload[i] == "elementwise", text[i]
        assert numpy.isclose(data.flops_counted[i], data.flops_counted[j], rtol=1e-3), text[i]
    captured += 1
    print(text[i], float(data.time_median[j]), float(data.time_median[i]), data.counters[i].values)
print("skipped:", [e for e, g, s in zip(data.error.values, graph, status) if g and s == 1])
assert captured > 0
' || fail "a figure is missing or wrong"
