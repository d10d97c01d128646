#!/bin/bash
# Slurm: sbatch jobscripts/slurm.sh sweep.ini [roofsweep options]
# One rank per GPU on all nodes. Edit the two places marked EDIT.
# Several manifests: sbatch --array=1-9 jobscripts/slurm.sh sweep%a.ini      (%a: the number of the task)
# Tested on Slurm 22.05 with two virtual nodes, without GPUs.

# EDIT 1: the machine and the time. --ntasks-per-node is the number of GPUs of a node.
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --exclusive
#SBATCH --time=01:00:00
# If your centre requires these lines, remove one # from each:
##SBATCH --account=PROJECT
##SBATCH --partition=NAME
##SBATCH --mail-type=END,FAIL
#
# Each task sees all GPUs of its node and takes the one of its local rank. With --gpus-per-task=1 instead of
# --gpus-per-node each task sees one GPU, as device 0; this works, too. Two ranks on one GPU are refused.
#
# On CPU nodes: no --gpus line; --ntasks-per-node=1 (or the number of sockets); --cpus-per-task with the cores of a
# rank; `--device cpu` after the manifest.

# Two to three minutes before the time limit Slurm sends USR1 to the tasks (after `B:`, to this script instead).
# roofsweep then writes its file and ends with status 5; the interrupted rows are measured again later.
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --job-name=roofsweep

# EDIT 2: modules and the path of roofsweep.
# module load cuda openmpi netcdf
roofsweep=${ROOFSWEEP:-roofsweep}
export SLURM_MPI_TYPE=${SLURM_MPI_TYPE:-pmix} # for Open MPI; `srun --mpi=list` shows what there is

[ $# -gt 0 ] || { echo "usage: sbatch slurm.sh sweep.ini [roofsweep options]" >&2; exit 2; }
set -- "${@//%a/${SLURM_ARRAY_TASK_ID:-%a}}"
# srun does not inherit sbatch's --cpus-per-task.
[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# roofsweep starts only configurations that can end before the signal, which comes up to 3 min before the limit.
# Old versions of Slurm do not set SLURM_JOB_END_TIME.
limit=()
left=$((${SLURM_JOB_END_TIME:-0} - $(date +%s) - 180))
[ "$left" -le 0 ] || limit=(--time-limit "${left}s")

# --resume starts a sweep, or continues from its journal.
srun "$roofsweep" "${limit[@]}" --resume "$@"
status=$?
# 5: interrupted before the time limit. 137, 139: processes were killed (memory, a failed node) or crashed.
# Limits the requeues: otherwise a job whose time limit is too short for one configuration, or that always crashes,
# would run for ever.
case $status in
5) restarts=20 ;;
137 | 139) restarts=3 ;;
*) restarts=0 ;;
esac
if [ "${SLURM_RESTART_COUNT:-0}" -lt "$restarts" ]; then
    echo "slurm.sh: roofsweep ended with status $status; the job is requeued and goes on" >&2
    # Requeues only this task of an array. (In one task of an array, SLURM_JOB_ID is the number of the whole array.)
    scontrol requeue "${SLURM_ARRAY_TASK_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}"
elif [ "$status" -ne 0 ]; then
    echo "slurm.sh: roofsweep ended with status $status after ${SLURM_RESTART_COUNT:-0} restarts of at" \
        "most $restarts; see its messages above and docs/operating.md, and submit again to go on" >&2
fi
exit "$status"
