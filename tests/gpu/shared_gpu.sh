#!/bin/sh
# Two ranks on one GPU, and more ranks than GPUs, are refused before anything is measured.
. "$(dirname "$0")/lib.sh"
write_sweep sweep.ini
sed -i 's/^device = .*/device = auto/' sweep.ini
CUDA_VISIBLE_DEVICES=0 expect 4 run 2 sweep.ini
says "ranks 0 and 1 would both measure GPU GPU-"
says "srun --ntasks-per-node=2 --gpus-per-task=1"
if [ "$gpus" -gt 1 ]; then
    expect 4 run $((gpus + 1)) sweep.ini
    says "start at most $gpus ranks per node"
fi
[ ! -e sweep.nc.journal ] || fail "a refused sweep leaves a journal"
