#!/bin/bash
# Slurm: sbatch jobscripts/slurm.sh sweep.ini [roofsweep options]
# One rank per GPU on all nodes. Edit the two places marked EDIT.

# EDIT 1: the machine and the time. --ntasks-per-node is the number of GPUs of a node.
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --exclusive
#SBATCH --time=01:00:00
#
# Each task sees all GPUs of its node, and takes the one of its rank on that node. With
# --gpus-per-task=1 in place of --gpus-per-node each task sees one GPU, as its device 0: roofsweep takes
# that. Both are right; two ranks that come to the same GPU are refused.
#
# CPU nodes: no --gpus line; --ntasks-per-node=1 (or the number of sockets) and --cpus-per-task with
# the cores of a rank, and `--device cpu` behind the manifest.

# Two minutes before the time limit, or up to one minute earlier, the tasks get USR1 (not this script: no
# B:). roofsweep then writes its file and ends with 5; what was being measured is measured again later.
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --job-name=roofsweep

# EDIT 2: modules, and where roofsweep is.
# module load cuda openmpi netcdf
roofsweep=${ROOFSWEEP:-roofsweep}
export SLURM_MPI_TYPE=${SLURM_MPI_TYPE:-pmix} # for Open MPI; `srun --mpi=list` shows what there is

[ $# -gt 0 ] || { echo "usage: sbatch slurm.sh sweep.ini [roofsweep options]" >&2; exit 2; }
# srun does not take sbatch's --cpus-per-task over by itself.
[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# --resume begins where there is no journal yet, and goes on where there is one.
srun "$roofsweep" --resume "$@"
status=$?
# Not for ever: a time limit that is too short for one configuration would never get further.
[ "$status" -ne 5 ] || [ "${SLURM_RESTART_COUNT:-0}" -ge 20 ] || scontrol requeue "$SLURM_JOB_ID"
exit "$status"
