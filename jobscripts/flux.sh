#!/bin/bash
# Flux: flux batch jobscripts/flux.sh sweep.ini [roofsweep options]
# One rank per GPU on all nodes. Edit the two places marked EDIT.
# Tested only with a script in place of flux. Not tested: Flux itself.

# EDIT 1: the machine and the time. gpus is the number of GPUs of a node; `limit` (minutes) is --time-limit minus two.
#flux: --nodes=2
#flux: --exclusive
#flux: --time-limit=60m
gpus=4
limit=58
# If your centre requires a bank or a queue, add lines with --bank=PROJECT, --queue=NAME.
# On CPU nodes change `flux run` below: --tasks-per-node=1, no --gpus-per-node. Add `--device cpu` after the manifest.

#flux: --job-name=roofsweep

# EDIT 2: modules and the path of roofsweep.
# module load cuda openmpi netcdf
roofsweep=${ROOFSWEEP:-roofsweep}

# Each task sees all GPUs of its node and takes the one of its local rank. With -o gpu-affinity=per-task each
# task sees one GPU, as device 0; this works, too.
# roofsweep starts only configurations that can end two minutes before the limit. If one still runs then, the
# tasks get USR1: roofsweep writes its file and ends with status 5. Flux does not requeue by exit status: submit
# the same line again; --resume continues from the journal.
# After exit status 137 or 139 (processes were killed or crashed) roofsweep continues at once, at most three
# times, while five minutes are left.
for attempt in 1 2 3 4; do
    left=$((limit * 60 - SECONDS))
    flux run --nodes="$(flux getattr size)" --tasks-per-node="$gpus" --gpus-per-node="$gpus" \
        --time-limit="${left}s" --signal=USR1@2m \
        "$roofsweep" --time-limit "$((left - 120))s" --resume "${@:?flux batch jobscripts/flux.sh sweep.ini}"
    status=$?
    case $status in 137 | 139) ;; *) break ;; esac
    echo "flux.sh: roofsweep ended with status $status in attempt $attempt of 4" >&2
    [ $((limit * 60 - SECONDS)) -gt 300 ] || break
done
[ "$status" -eq 0 ] ||
    echo "flux.sh: it stops with status $status (docs/operating.md); submit again to go on" >&2
exit "$status"
