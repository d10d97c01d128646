#!/bin/bash
# PBS Pro, OpenPBS: qsub -v manifest=sweep.ini jobscripts/pbs.sh      (qsub passes no arguments)
# One rank per GPU on all nodes. Edit the two places marked EDIT.
# The commands of this script were tested on one node, with PBS' variables set by hand. PBS itself was not tested.

# EDIT 1: the machine and the time. mpiprocs is the number of GPUs of a node; `limit` (minutes) is walltime minus three.
#PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4
#PBS -l place=scatter:excl
#PBS -l walltime=01:00:00
limit=57
# If your centre requires these lines, remove one # from each:
##PBS -A PROJECT
##PBS -q QUEUE
##PBS -m ae
# On CPU nodes: select=2:ncpus=64:mpiprocs=1, and -v "manifest=sweep.ini,options=--device cpu".

#PBS -N roofsweep
#PBS -j oe
#PBS -r y

# EDIT 2: modules and the path of roofsweep.
# module load cuda openmpi netcdf
roofsweep=${ROOFSWEEP:-roofsweep}

cd "$PBS_O_WORKDIR" || exit
# roofsweep starts only configurations that can end before the limit. PBS sends no signal before the limit, so
# `timeout` sends USR1. Open MPI's mpirun forwards it to the ranks, roofsweep writes its file and ends with status 5.
# With --foreground only mpirun gets the signal; a second signal would end a rank at once. --resume starts a
# sweep, or continues from its journal. PBS reruns the job when a node fails (-r y), but does not requeue by exit
# status: after status 5 submit the same line again, or a chain of jobs: qsub -W depend=afternotok:JOB -v manifest=...
# After exit status 137 or 139 (processes were killed or crashed) roofsweep continues at once, at most three
# times, while five minutes are left.
for attempt in 1 2 3 4; do
    left=$((limit * 60 - SECONDS))
    # shellcheck disable=SC2086 # options are words
    timeout --foreground --preserve-status --signal=USR1 "$left" \
        mpirun -n "$(wc -l <"$PBS_NODEFILE")" --hostfile "$PBS_NODEFILE" --bind-to none \
        "$roofsweep" --time-limit "${left}s" --resume "${manifest:?qsub -v manifest=sweep.ini jobscripts/pbs.sh}" ${options:-}
    status=$?
    case $status in 137 | 139) ;; *) break ;; esac
    echo "pbs.sh: roofsweep ended with status $status in attempt $attempt of 4" >&2
    [ $((limit * 60 - SECONDS)) -gt 300 ] || break
done
[ "$status" -eq 0 ] ||
    echo "pbs.sh: it stops with status $status (docs/operating.md); submit again to go on" >&2
exit "$status"
