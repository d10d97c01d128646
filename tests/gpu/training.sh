#!/bin/sh
# Training steps on a GPU, by cuDNN and by hand-written kernels: results are right in every precision, each part of a
# step has a kernel, and hand-written kernels do the modelled FLOPs.
. "$(dirname "$0")/lib.sh"

cat >training.ini <<INI
[sweep]
device = cuda
[peaks]
memory = dram
compute = fp32
launch = no
transfer = no
[conv2d steps]
height = 28
width = 28
channels = 32
filters = 64
pass = forward, backward, training
bias = yes
activation = none, relu, tanh
implementation = plain, cudnn
precision = fp32, fp16
[conv2d bare]
height = 28
width = 28
channels = 32
filters = 64
pass = backward, training
layout = nhwc, nchw
implementation = plain, cudnn
precision = fp16
[conv2d others]
height = 28
width = 28
channels = 32
filters = 64
pass = training
bias = yes
activation = relu
implementation = plain, cudnn
precision = fp64, bf16
[conv2d alone]
height = 28
width = 28
channels = 32
filters = 64
padding = valid
pass = forward, backward-data, backward-filter
implementation = plain
precision = fp32
[conv2d not-offered]
pass = training
bias = yes
fusion = fused
implementation = cudnn
INI
expect 0 run 1 training.ini
"$ROOFSWEEP_PYTHON" "$root/tests/postproc/recompute.py" training.nc || fail "derived values"
python '
import numpy, xarray
data = xarray.open_dataset("training.nc").load()
label, status = data.label.values.astype(str), data.status.values
offered = label != "not-offered"
assert (status[offered] == 0).all(), data.error.values[status == 2]
assert (status[~offered] == 1).all()
good = data.isel(config=status == 0)
assert (good.verify_error >= 0).all()
# A whole step has seven kernels: forward, gradient of the activation, gradient of the bias, gradients of input and
# weights, and two updates.
whole = ((good["pass"] == "training") & (good.bias == "yes") & (good.activation == "relu")).values
plain = (good.implementation == "plain").values
assert (good.launches.values[whole & plain] == 7).all()
assert (good.launches.values[whole & ~plain] >= 8).all()
# Hand-written kernels do the modelled FLOPs.
alone = (good.label == "alone").values & (good.counters == "counted").values
assert numpy.allclose(good.flops_counted.values[alone], good.flops_model.values[alone], rtol=0.02)
' || fail "a figure is missing or wrong"
