#!/bin/sh
# Job scripts restart a sweep or stop with a message. Scripts replace launchers and batch systems. Each start of
# roofsweep ends with the next status in the file `statuses`.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
for launcher in srun mpirun; do
    cat >bin/$launcher <<'SH'
#!/bin/sh
echo "$*" >>starts
status=$(head -n 1 statuses)
sed -i 1d statuses
exit "$status"
SH
done
cat >bin/flux <<'SH'
#!/bin/sh
[ "$1" = run ] && exec srun "$@"
echo 1
SH
printf '#!/bin/sh\necho "$*" >>requeues\n' >bin/scontrol
chmod +x bin/*
export PATH="$work/bin:$PATH" SLURM_JOB_ID=7 PBS_O_WORKDIR="$work" PBS_NODEFILE="$work/nodes"
export LSB_DJOB_NUMPROC=1 LSB_DJOB_HOSTFILE="$work/nodes" manifest=sweep.ini
echo n1 >nodes

fail() {
    echo "FAIL: $*" >&2
    cat output >&2
    exit 1
}
# expect SCRIPT STATUSES STARTS STATUS: runs that end with STATUSES make the script start STARTS runs and end with STATUS.
expect() {
    rm -f starts requeues
    # shellcheck disable=SC2086 # a list of words
    printf '%s\n' $2 >statuses
    status=0
    bash "$root/jobscripts/$1.sh" sweep.ini >output 2>&1 || status=$?
    [ "$status" = "$4" ] || fail "$1 after $2: status $status instead of $4"
    [ "$(wc -l <starts)" = "$3" ] || fail "$1 after $2: $(wc -l <starts) starts instead of $3"
    ! grep -v -e '--resume sweep.ini' starts || fail "$1: no --resume"
}
says() {
    grep -qF -- "$1" output || fail "it does not say: $1"
}

for script in pbs lsf flux; do
    expect $script 0 1 0
    [ ! -s output ] || fail "$script says something after a complete sweep"
    for status in 1 2 3 4 5; do
        expect $script $status 1 $status
        says "it stops with status $status"
    done
    # The time limit of roofsweep is 56 or 57 minutes of the job's hour.
    grep -qE -- '--time-limit (3[0-9]{3})s --resume' starts || fail "$script: no time limit"
    expect $script "137 0" 2 0
    says "status 137 in attempt 1 of 4"
    expect $script "139 5" 2 5
    says "it stops with status 5"
    expect $script "137 139 137 139" 4 139
    says "it stops with status 139"
done

# requeued STATUS RESTARTS YES|NO: whether the script requeues a job after RESTARTS restarts.
requeued() {
    export SLURM_RESTART_COUNT="$2"
    expect slurm "$1" 1 "$1"
    [ -e requeues ] && found=yes || found=no
    [ "$found" = "$3" ] || fail "slurm: status $1 after $2 restarts: requeued: $found"
    [ "$1" = 0 ] || says "ended with status $1"
}
requeued 0 0 no
! grep -q time-limit starts || fail "slurm: a limit that nobody knows"
SLURM_JOB_END_TIME=$(($(date +%s) + 3780))
export SLURM_JOB_END_TIME
requeued 0 0 no
grep -qE -- '--time-limit (3600|359[0-9])s --resume' starts || fail "slurm: no time limit"
SLURM_JOB_END_TIME=$(date +%s)
requeued 0 0 no
! grep -q time-limit starts || fail "slurm: a limit below 0"
requeued 3 0 no
requeued 4 0 no
requeued 5 0 yes
requeued 5 19 yes
requeued 5 20 no
requeued 137 2 yes
requeued 137 3 no
requeued 139 0 yes
grep -qx 'requeue 7' requeues || fail "another job is requeued"
# An array's last task has the array's SLURM_JOB_ID. A requeue of this number would requeue all tasks.
export SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=2
requeued 5 0 yes
grep -qx 'requeue 7_2' requeues || fail "all tasks of an array are requeued"
