#!/bin/sh
# The guide's operations on a GPU, by libraries and by plain kernels: results are right in every precision and counted.
# A graph has the same FLOPs as a stream.
. "$(dirname "$0")/lib.sh"

cat >operations.ini <<INI
[sweep]
device = cuda
[peaks]
memory = dram
compute = fp32
launch = no
transfer = no
[linear layer]
batch = 64
inputs = 512
outputs = 768
activation = none, relu, gelu
fusion = fused, separate
implementation = cublaslt
precision = fp16, bf16, fp32, fp64
[linear gradient]
batch = 64
inputs = 512
outputs = 768
pass = backward-data, backward-weights
implementation = cublaslt
precision = fp16, fp32
[linear layer-replayed]
batch = 64
inputs = 512
outputs = 768
launch = stream, graph
implementation = cublaslt
precision = fp16
[attention whole]
batch = 2
heads = 8
sequence = 512
keys = 512
causal = no, yes
head_size = 64, 128
implementation = auto, plain
precision = fp16, bf16
[attention wide]
batch = 2
heads = 8
sequence = 384
keys = 512
causal = no, yes
precision = fp32
[attention odd]
batch = 2
heads = 3
sequence = 40
keys = 257
head_size = 16
causal = no, yes
implementation = plain
precision = fp64, fp32
[attention attention-replayed]
batch = 2
heads = 4
sequence = 256
keys = 256
launch = stream, graph
implementation = cudnn, plain
precision = fp16
[softmax rows]
rows = 1024
pass = forward, backward
implementation = cudnn, plain
precision = fp16, fp32
[softmax rows-replayed]
rows = 1024
launch = stream, graph
implementation = plain
precision = fp32
[softmax rows-auto]
rows = 1024
[norm moments-auto]
rows = 1024
precision = fp16
operation = layer, batch
pass = forward, training, backward
[pool window-auto]
batch = 8
layout = nhwc, nchw
[elementwise function-auto]
elements = 4000000
[pool window]
batch = 8
operation = max, average
layout = nhwc, nchw
precision = fp16, fp32
[elementwise function]
elements = 4000000, 4000001
implementation = cudnn, plain
operation = relu, sigmoid, tanh, add, scale
precision = fp16, fp32
INI
expect 0 run 1 operations.ini
"$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" operations.nc || fail "derived values"
python '
import sys, numpy, xarray
data = xarray.open_dataset("operations.nc").load()
status, text, label = data.status.values, data.configuration.values, data.label.values
wrong = []
def expect(good, i, what):
    if not good:
        wrong.append(f"{text[i]}: {what}")
for i in numpy.flatnonzero(status != 0):
    fused64 = label[i] == "layer" and "activation=gelu" in text[i] and "not as exact" in str(data.error.values[i])
    expect(status[i] == 1 and fused64, i, data.error.values[i])
good = numpy.flatnonzero(status == 0)
for i in good:
    expect(data.verify_error[i] >= 0, i, "not verified")
counted = [i for i in good if data.counters[i] == "counted"]
# `implementation = auto` uses the library.
for i in good:
    expect(not label[i].endswith("-auto") or data.implementation[i] == "cudnn", i, "not the library")
stream = {text[i]: i for i in good}
for i in good:
    j = stream.get(text[i].replace(" launch=graph", ""))
    if "launch=graph" not in text[i] or j is None:
        continue
    expect(data.time_median[i] < 1.1 * data.time_median[j], i, "slower in a graph")
    if i in counted and j in counted:
        expect(numpy.isclose(data.flops_counted[i], data.flops_counted[j], rtol=1e-3), i, "other FLOPs in a graph")
print(len(text), "rows,", len(good), "measured,", len(counted), "counted")
sys.exit("\n".join(wrong) or 0)
' || fail "a figure is missing or wrong"
