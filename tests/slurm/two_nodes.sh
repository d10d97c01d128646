#!/bin/bash
# A real Slurm with two virtual nodes on this machine runs srun and jobscripts/slurm.sh. The nodes
# have their own host names and /tmp (unshare). The machine's own Slurm is not touched, and all
# daemons end with the test. Needs root, the packages slurm-wlm and munge, and faketime for clocks
# that differ.
skip() {
    echo "skipped: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "not root"
for program in munged slurmctld slurmd srun sbatch scancel scontrol unshare; do
    command -v "$program" >/dev/null || skip "no $program (packages slurm-wlm munge util-linux)"
done
unshare --mount --uts --pid --fork true 2>/dev/null || skip "unshare is not allowed here"
id munge >/dev/null 2>&1 || skip "no user munge"

# The folder is not below /tmp, because each node has a /tmp of its own.
export TMPDIR=/var/tmp
. "$(dirname "$0")/../mpi/lib.sh"
chmod 755 "$work"
slurm_daemons="" munge_daemon=""
# Daemons end in order if they can, else by SIGKILL. All processes of a virtual node end when
# its `unshare` process ends.
clean_up() {
    scontrol shutdown >/dev/null 2>&1 || true
    for _ in $(seq 50); do
        # shellcheck disable=SC2086 # one word per process
        kill -0 $slurm_daemons 2>/dev/null || break
        sleep 0.1
    done
    for pid in $slurm_daemons $munge_daemon; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    cd /
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

cp "$ROOFSWEEP_BIN/roofsweep" "$ROOFSWEEP_BIN/roofsweep-worker-cpu" .
export PATH=$work:$PATH
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_pml=ob1
export OMP_WAIT_POLICY=passive # the nodes claim more cores than there are
python '
import socket
sockets = [socket.socket() for _ in range(3)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))
' >ports
read -r port port1 port2 <ports

write_slurm_conf() {
    mkdir state log
    cat >slurm.conf <<CONF
ClusterName=roofsweep
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool.%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmctldLogFile=$work/log/slurmctld
SlurmdLogFile=$work/log/slurmd.%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=pmix
ReturnToService=2
SchedulerParameters=sched_interval=2
KillWait=10 # s that ranks have to end in order, 30 by default
GresTypes=gpu
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$port1 CPUs=8 Gres=gpu:2 State=UNKNOWN
NodeName=n2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$port2 CPUs=8 Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
    printf 'Name=gpu File=/dev/%s\n' null zero >gres.conf
    # slurmd 24 and later does not start without cgroups; earlier versions do not know CgroupPlugin.
    case $(slurmd -V) in
    *" 2"[0-3].*) ;;
    *) echo CgroupPlugin=disabled >cgroup.conf ;;
    esac
    export SLURM_CONF=$work/slurm.conf
}

start_munge() {
    install -d -o munge -g munge -m 755 munge
    install -o munge -g munge -m 400 /dev/null munge/key
    head -c 1024 /dev/urandom >munge/key
    setsid setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --force \
        --socket="$work/munge/socket" --key-file="$work/munge/key" --pid-file="$work/munge/pid" \
        --log-file="$work/munge/log" --seed-file="$work/munge/seed" 2>munge.err &
    munge_daemon=$!
    for _ in $(seq 100); do
        [ ! -S munge/socket ] || return 0
        sleep 0.1
    done
    cat munge.err munge/log >&2
    fail "munged does not start"
}

# start_node NAME: starts a node with an empty spool, as after a boot, and a read-only /tmp/home.
start_node() {
    rm -rf "spool.$1"
    mkdir "spool.$1"
    setsid unshare --mount --uts --pid --fork --kill-child --mount-proc sh -c \
        "mount -t tmpfs tmpfs /tmp && mkdir /tmp/home && mount -t tmpfs -o ro tmpfs /tmp/home &&
        hostname $1 && exec slurmd -D -N $1" >"log/$1" 2>&1 &
    echo $! >"$1.pid"
    slurm_daemons="$! $slurm_daemons"
}

start_cluster() {
    write_slurm_conf
    start_munge
    setsid slurmctld -D -c >log/ctld 2>&1 &
    slurm_daemons="$! $slurm_daemons"
    start_node n1
    start_node n2
    for _ in $(seq 200); do
        [ "$(sinfo -h -t idle -o %D 2>/dev/null)" != 2 ] || return 0
        sleep 0.1
    done
    tail -n 20 log/* >&2
    fail "the two nodes do not come up"
}

# ran_on FILE HOSTS: the rows of FILE were measured on HOSTS.
ran_on() {
    python '
import sys, xarray
hosts = set(xarray.open_dataset(sys.argv[1]).device_hostname.values)
assert hosts == set(sys.argv[2].split()), hosts
' "$1" "$2" || fail "$1: not measured on $2"
}

count_records() {
    grep -c '"kind":"record"' job.nc.journal 2>/dev/null || true
}

enough_records() {
    [ "$(count_records)" -ge "$1" ]
}

enough_records_or_end() {
    enough_records "$1" || job_is COMPLETED Reason=
}

# job_is STATE MORE: scontrol shows STATE and MORE for the job.
job_is() {
    scontrol show job "$job" >job.state
    grep -q "JobState=$1" job.state && grep -q "$2" job.state
}

nodes_are_idle() {
    [ "$(sinfo -h -t idle -o %D)" = 2 ]
}

no_job() {
    [ -z "$(squeue -h)" ]
}

# wait_for WHAT COMMAND...: waits until COMMAND succeeds, at most 15 minutes, and not after the job has failed.
job=none
wait_for() {
    what=$1 since=$SECONDS
    shift
    while [ $((SECONDS - since)) -lt 900 ]; do
        ! "$@" 2>/dev/null || return 0
        ! job_is FAILED Reason= 2>/dev/null || break
        sleep 0.1
    done
    { tail -n 20 log/* job.out; scontrol show job; sinfo -N -l; } >&2 || true
    fail "waited $((SECONDS - since)) s for: $what"
}

# measures_more COUNT: waits for COUNT more records. Sets $least: the journal has at least $least records afterwards.
measures_more() {
    least=$(count_records)
    least=$((${least:-0} + $1))
    wait_for "$least records" enough_records_or_end "$least"
    enough_records "$least" || fail "the job ended with $(count_records) records, fewer than $least"
}

# promise TEXT: the commands that follow prove TEXT.
promise() {
    echo "$SECONDS s: $*"
}

# submit MANIFEST: starts $job, which writes job.nc, by the job script.
submit() {
    rm -f job.out
    job=$(sbatch --parsable --output=job.out slurm.sh "$1" --output job.nc)
}

# start_again: starts a requeued job, which Slurm would delay for two minutes. If the job starts in the second in which
# it ended, the start fails ("Job credential revoked"): so this waits for idle nodes, then for the next second.
start_again() {
    wait_for "the job's nodes" nodes_are_idle
    scontrol update JobId="$job" StartTime=now+1 TimeLimit=60
}

# ended_in_order: the job has written a file with the finished rows.
ended_in_order() {
    grep -q "interrupted by a signal" job.out || { cat job.out; fail "not interrupted in an orderly way"; }
    ! grep -q "worker was killed" job.out || { cat job.out; fail "the signal killed workers"; }
    some job.nc "$least" 99
}

start_cluster
memory=l2 batch=1 write_sweep sweep.ini
# 100 rows of at least 1.6 s on four ranks: no job ends before it is interrupted, which takes up to half a minute.
sed 's/^iterations = .*/stop = 50 %\nmin_time = 1.6 s\nmax_time = 1.6 s/' sweep.ini >long.ini
for name in small1.ini small2.ini; do
    memory=l2 batch=1 height=8 width=8 write_sweep "$name"
done
sed '/^#SBATCH --gpus/d; s/\(--ntasks-per-node\)=.*/\1=2/' "$root/jobscripts/slurm.sh" >slurm.sh

promise "each task has a GPU, which nobody can open; home and working folder are read-only"
expect 0 env HOME=/tmp/home srun -N2 --ntasks-per-node=2 --gpus-per-task=1 --chdir=/tmp/home \
    roofsweep --device auto --output "$work/sweep.nc" "$work/sweep.ini"
says "cpu, because no GPU can be used: "
complete sweep.nc 100
ran_on sweep.nc "n1 n2"
expect 4 srun -N1 --gpus=1 roofsweep --device cuda --output none.nc sweep.ini
says "--device cpu, or auto, measures the CPU"

# The Open MPI of Debian has no PMI2.
promise "without a PMI of this MPI each task would be a job of its own"
for type in none pmi2; do
    ! srun --mpi=$type -N2 roofsweep --output none.nc small1.ini >output 2>&1 || fail "two jobs of one output"
    grep -qi pmix output || { cat output; fail "the way out is not named"; }
    [ ! -e none.nc.journal ] || fail "a task took itself for a job"
done

promise "the clock of n2 is five minutes ahead, so that the job's end has passed there"
if command -v faketime >/dev/null; then
    # shellcheck disable=SC2016 # for the shell of the task
    expect 0 env SLURM_JOB_END_TIME=$(($(date +%s) + 120)) srun -N2 --ntasks-per-node=2 sh -c \
        '[ "$SLURM_NODEID" = 0 ] || set -- faketime -f +5m "$@"; exec "$@"' sh roofsweep --output clocks.nc sweep.ini
    complete clocks.nc 100
    python '
import netCDF4, numpy
apart = numpy.ptp(netCDF4.Dataset("clocks.nc")["start_time"][:])
assert 290 < apart < 900, f"rows began within {apart} s"
' || fail "the clocks did not differ"
else
    echo "skipped: no faketime"
fi

promise "mpirun in a job; an array over manifests"
sbatch -N2 --ntasks-per-node=1 --wrap="$ROOFSWEEP_MPIRUN --bind-to none roofsweep --output mpirun.nc small1.ini"
sbatch --ntasks-per-node=1 --array=1-2 slurm.sh small%a.ini
wait_for "the end of all jobs" no_job
complete mpirun.nc 4
ran_on mpirun.nc "n1 n2"
complete small1.nc 4
complete small2.nc 4

promise "scancel ends a job in order"
submit long.ini
measures_more 8
scancel "$job"
wait_for "the job's end" job_is CANCELLED Restarts=0
ended_in_order
wait_for "its nodes" nodes_are_idle

promise "the signal before the time limit ends a job in order; then the job is requeued"
submit long.ini
measures_more 8
scontrol update JobId="$job" EndTime=now+130 # the signal comes when Slurm next looks, every half minute
wait_for "requeue" job_is PENDING Restarts=1
ended_in_order
start_again

promise "the node of rank 0 dies; --gather works, and the requeued job completes its rows"
measures_more 8
node=$(cat n1.pid)
kill -KILL "$node"
wait "$node" 2>/dev/null || true
slurm_daemons=${slurm_daemons/$node /}
scontrol update NodeName=n1 State=DOWN Reason=killed # Slurm itself would wait five minutes for its answer
wait_for "second requeue" job_is PENDING Restarts=2
expect 0 roofsweep --gather job.nc.journal --output dead.nc
some dead.nc "$least" 99
start_node n1
start_again
wait_for "the job's end" job_is COMPLETED "Restarts=[2-9]" # Open MPI may fail at the first start after a crash of a node
complete job.nc 100
ran_on job.nc "n1 n2"

promise "a verdict on each node: the slower one is found by name, and drained"
cat >gate.ini <<'INI'
[sweep]
distribute = replicate
[peaks]
memory = l2
compute = fp32
launch = no
condition = alone
INI
sed 's/^resources=.*/resources=(--ntasks=1)/' "$root/jobscripts/gate.sh" >gate.sh
chmod +x gate.sh
cp -R "$root/postproc" postproc # a node has a /tmp of its own, which hides a tree in ours
export ROOFSWEEP_POST="$ROOFSWEEP_PYTHON $PWD/postproc/roofsweep-post"
wait_for "its nodes" nodes_are_idle
./gate.sh all gate gate.ini >output
wait_for "the verdict" test -e gate/drain
[ "$(wc -l <gate/verdicts)" = 2 ] || { cat gate/*.log gate/verdicts; fail "no verdict on each node"; }
python '
import netCDF4
# Both nodes are this machine. The roofs of n2 become half of those of n1, a difference far above noise.
one, two = (netCDF4.Dataset(f"gate/{node}.nc", "a") for node in ("n1", "n2"))
for data in one, two:
    data["device_roof_spread"][:] = 0.01
for value in "bandwidth", "performance", "sustained":
    name = f"device_roof_{value}"
    if name in one.variables:
        two[name][:] = 0.5 * one[name][:]
'
expect 1 ./gate.sh verdict gate
found=$(grep -cx -e "scontrol update NodeName=n2 State=DRAIN Reason='roofsweep: .* slower by [3-7][0-9]\.[0-9] %.*'" \
    -e "# srun --exclude=n2" gate/drain) || true
[ "$found" = 2 ] || { cat gate/drain gate/verdicts; fail "n2 is not found"; }
expect 0 sh gate/drain
sinfo -h -R -o "%N %E" | grep -q "^n2 roofsweep: " || { sinfo -R; fail "n2 is not drained"; }
scontrol update NodeName=n2 State=RESUME

promise "the HealthCheckProgram of docs/operating.md drains nodes that miss their targets, with the verdict as reason"
# The target is a time: other work on this machine could make a missed target of a roof inconclusive.
python '
import netCDF4
model = netCDF4.Dataset("gate/n1.nc")["device_model"][0]
print(f"[{model}]", f"[{model} | small]", "where = label=grid", "time_median = 1 ns", sep="\n")
' >targets.ini
printf 'HealthCheckProgram=%s\nHealthCheckInterval=5\nHealthCheckNodeState=IDLE\n' "$work/health.sh" >>slurm.conf
sed -n '/^#!/,/^```/p' "$root/docs/operating.md" | sed "/^\`/d; s|^export PATH=|export SLURM_CONF=$SLURM_CONF PATH=$work:|
    s|/var/lib|/tmp|g; s/-n 8/-n 1/; s| gate >| $work/small1.ini >|; s|roofsweep-post|$ROOFSWEEP_POST|
    s|/etc/slurm/h200.ini|$work/targets.ini|" >health.sh
chmod +x health.sh
drained() {
    [ "$(sinfo -h -R -o %E | grep -c "^gate: FAIL #0 n[12] .* small: time_median ")" = "$1" ]
}
scontrol reconfigure
wait_for "drained nodes" drained 2
# Slurm gives an Epilog its job's variables, but no SLURM_TASKS_PER_NODE.
sed "/scontrol/d; s|/tmp/roofsweep|$work/epilog|g" health.sh >epilog.sh
expect 1 env -i SLURMD_NODENAME=n1 SLURM_JOB_ID=7 SLURM_JOBID=7 SLURM_NODELIST=n1 sh epilog.sh
grep -q "^FAIL #0 .* small: time_median " epilog/verdicts || { cat epilog/*.log; fail "no verdict"; }
