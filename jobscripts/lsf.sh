#!/bin/bash
# LSF: manifest=sweep.ini bsub < jobscripts/lsf.sh      (read from standard input: no arguments)
# One rank per GPU on all hosts. Edit the two places marked EDIT.
# The commands of this script were tested on one host, with LSF's variables set by hand. LSF and jsrun were not tested.

# EDIT 1: the machine and the time. ptile is the number of GPUs of a host, -n is ptile times the hosts;
# `limit` (minutes) is -W minus three.
#BSUB -n 8
#BSUB -R "span[ptile=4]"
#BSUB -gpu "num=4:j_exclusive=yes"
#BSUB -W 60
limit=57
# If your centre requires these lines, remove one # from each:
##BSUB -P PROJECT
##BSUB -q QUEUE
##BSUB -N
# On CPU nodes: no -gpu line, ptile=1, a line with -x (exclusive), and options="--device cpu" beside manifest=.

#BSUB -J roofsweep
#BSUB -oo roofsweep.%J.log
# Status 5 is an interrupted sweep: LSF requeues the job, and --resume continues. -r: LSF also requeues it
# when a host fails.
#BSUB -Q "5"
#BSUB -r

# EDIT 2: modules and the path of roofsweep.
# module load cuda openmpi netcdf
roofsweep=${ROOFSWEEP:-roofsweep}

# roofsweep starts only configurations that can end before the limit. If one still runs then, `timeout` sends
# USR1 to Open MPI's mpirun, which forwards it to the ranks: roofsweep writes its file and ends with status 5.
# LSF's own warning signal (-wa, -wt) may reach a rank twice, from LSF and from mpirun, and a second signal ends
# a rank at once.
# With jsrun: jsrun -n ALL_GPUS -a 1 -g 1 -c CORES instead of mpirun.
# After exit status 137 or 139 (processes were killed or crashed) roofsweep continues at once, at most three
# times, while five minutes are left.
for attempt in 1 2 3 4; do
    left=$((limit * 60 - SECONDS))
    # shellcheck disable=SC2086 # options are words
    timeout --foreground --preserve-status --signal=USR1 "$left" \
        mpirun -n "$LSB_DJOB_NUMPROC" --hostfile "$LSB_DJOB_HOSTFILE" --bind-to none \
        "$roofsweep" --time-limit "${left}s" --resume "${manifest:?manifest=sweep.ini bsub < jobscripts/lsf.sh}" ${options:-}
    status=$?
    case $status in 137 | 139) ;; *) break ;; esac
    echo "lsf.sh: roofsweep ended with status $status in attempt $attempt of 4" >&2
    [ $((limit * 60 - SECONDS)) -gt 300 ] || break
done
[ "$status" -eq 0 ] ||
    echo "lsf.sh: it stops with status $status (docs/operating.md); submit again to go on" >&2
exit "$status"
