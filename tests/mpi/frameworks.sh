#!/bin/sh
# Runs the programs of sweeps/programs as rows on the CPU, in each installed framework. Results are compared with the
# framework's own in fp64. The test is skipped without a framework. ROOFSWEEP_FRAMEWORKS names a Python that has some.
. "$(dirname "$0")/lib.sh"
frameworks=${ROOFSWEEP_FRAMEWORKS:-python3}
cp "$root"/sweeps/programs/*.py .
cat >sweep.ini <<'END'
[sweep]
timeout = 300 s
[peaks]
memory = l1
compute = fp32
launch = no
END
small="--batch 2 --filters 4 --channels 3 --size 9 --regions 3"
section() { # LABEL MODULE ITERATIONS COMMAND
    "$frameworks" -c "import $2" 2>/dev/null || return 0
    cat >>sweep.ini <<END
[program $1]
command = $frameworks $4 --iterations $3
iterations = $3
precision = fp32
END
}
section torch torch 4 "conv2d_torch.py $small --pass backward-data"
section torch-lstm torch 4 "lstm_torch.py --regions 3"
section torch-network torch 1 "network_torch.py --network transformer --batch 1 --regions 2"
section jax jax 4 "conv2d_jax.py $small --pass backward-filter"
section tensorflow tensorflow 4 "conv2d_tensorflow.py $small --pass backward"
section tensorflow-lstm tensorflow 4 "lstm_tensorflow.py --regions 3 --pass backward"
grep -q program sweep.ini || exit 77
expect 0 "$ROOFSWEEP_BIN/roofsweep" -q -d cpu -o out.nc sweep.ini
python '
import xarray
data = xarray.open_dataset("out.nc").load()
for row in range(data.sizes["config"]):
    one = data.isel(config=row)
    print(one.label.item(), float(one.time_median), float(one.verify_error))
    assert one.time_median > 0 and (one.label.item() == "torch-network" or one.verify_error >= 0)
' || fail "wrong rows"
