#!/bin/bash
# Slurm: a verdict on each node of a partition: bash jobscripts/gate.sh PARTITION FOLDER [manifest, roofsweep options]
# Each node has its own job, which writes FOLDER/NODE.nc, because tasks of an array cannot choose their nodes. The last
# job joins the files. It writes FOLDER/verdicts with a line for each device, and FOLDER/drain with commands that drain
# the nodes of failing devices. A node with a damaged or missing file or a failed job has its own line, and is drained.
# `bash jobscripts/gate.sh verdict FOLDER` repeats the last job.
# Tested on Slurm 22.05 with two virtual nodes, without GPUs.
set -eu

# EDIT 1: the GPUs of a node. On CPU nodes: only --ntasks=1.
resources=(--ntasks=8 --gpus-per-node=8 --exclusive --time=00:10:00)
# export SBATCH_ACCOUNT=PROJECT
# EDIT 2: modules and the paths of roofsweep and its post-processor.
# module load cuda openmpi netcdf
roofsweep=${ROOFSWEEP:-roofsweep} post=${ROOFSWEEP_POST:-roofsweep-post}
export SLURM_MPI_TYPE=${SLURM_MPI_TYPE:-pmix} # for Open MPI; `srun --mpi=list` shows what there is

[ $# -ge 2 ] || { echo "usage: gate.sh PARTITION FOLDER [manifest, roofsweep options]; gate.sh verdict FOLDER" >&2; exit 2; }
[ $# -ge 3 ] || set -- "$@" gate
mkdir -p "$2"
folder=$(cd "$2" && pwd)
results=("$folder/fleet" "$folder/verdicts" "$folder/verdicts.json" "$folder/drain")
some_nodes() {
    [ -s "$folder/nodes" ] || { echo "gate.sh: no node in $folder/nodes" >&2; exit 2; }
}

case $1 in
node)
    node=$folder/$SLURMD_NODENAME status=0
    rm -f "$node.nc" "$node.status" # files of this job before it was requeued
    srun "$roofsweep" --quiet --overwrite --output "$node.nc" "${@:3}" || status=$?
    echo "$status" >"$node.status"
    exit "$status"
    ;;
verdict)
    some_nodes
    status=0 lost=() files=()
    while read -r node; do
        file=$folder/$node.nc ended=$(cat "$folder/$node.status" 2>/dev/null || echo unknown)
        if [ ! -e "$file" ]; then
            lost+=("$node: no result file")
        elif ! $post check --integrity "$file" >/dev/null; then
            lost+=("$node: the result file is damaged")
        elif [[ $ended != [03] ]]; then # status 3: rows failed; `compare` judges them
            lost+=("$node: the job ended with status $ended")
        else
            files+=("$file")
        fi
    done <"$folder/nodes"
    rm -f "${results[@]}"
    verdicts=$folder/verdicts.part drain=$folder/drain.part
    : >"$verdicts"
    : >"$drain"
    case ${#files[@]} in
    0) ;;
    1) cp "${files[0]}" "$folder/fleet" ;;
    *) $post merge "${files[@]}" --overwrite --output "$folder/fleet" || [ $? = 3 ] ;; # 3: rows failed
    esac
    if [ -e "$folder/fleet" ]; then
        $post compare "$folder/fleet" --quiet --json "$folder/verdicts.json" >"$verdicts" || status=$?
        $post compare "$folder/fleet" --drain >"$drain" || true
    fi
    for why in "${lost[@]}"; do
        status=1 node=${why%%: *}
        echo "FAIL $why, see $folder/$node.log" >>"$verdicts"
        echo "scontrol update NodeName=$node State=DRAIN Reason='roofsweep: ${why#*: }'" >>"$drain"
    done
    mv "$verdicts" "$folder/verdicts"
    mv "$drain" "$folder/drain"
    exit "$status"
    ;;
esac

sinfo --noheader --Node --partition "$1" --states idle,alloc,mix --format %N | sort -u >"$folder/nodes"
# A job that never begins leaves no file of an earlier gate.
while read -r node; do
    rm -f "$folder/$node.nc" "$folder/$node.status"
done <"$folder/nodes"
rm -f "${results[@]}"
some_nodes
jobs=""
while read -r node; do
    if job=$(sbatch --parsable --job-name=gate --partition "$1" --nodes=1 --nodelist "$node" "${resources[@]}" \
        --output "$folder/$node.log" "$0" node "$folder" "${@:3}"); then
        jobs=$jobs:$job
    else
        echo "gate.sh: no job for $node" >&2 # it has a FAIL line among the verdicts
    fi
done <"$folder/nodes"
sbatch --job-name=gate-verdict --partition "$1" --ntasks=1 ${jobs:+"--dependency=afterany$jobs"} \
    --output "$folder/verdict.log" "$0" verdict "$folder"
