#!/bin/sh
# Everything that a whole node is asked, one after the other, the most important first: all roofs, and the same 40
# configurations on each GPU; how sweeps scale over the GPUs; the self-test on all of them at once; programs, which are
# killed at random with their workers; whether any GPU stands out. Each step is bounded, and the next one follows
# whatever comes out. Prints a line for each step; files and logs are kept in FOLDER. Exit status 1: a step failed, or
# there was no time for it.
# Usage: tests/bench/node.sh FOLDER [BUILD [GPUS]]
# In the environment: WORKER, cuda (default) or cpu, with as many ranks as GPUS, which share the cores; STEPS, those
# that run: "sweep scaling self-test storm compare" if nothing is said; NODE_SECONDS, for all of them: 540, of which
# SCALING_SECONDS, 240, for scaling.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
build=$(cd "${2:-build}" && pwd)
worker=${WORKER:-cuda}
gpus=${3:-$(nvidia-smi -L | grep -c '^GPU')}
for python in "${ROOFSWEEP_PYTHON:-python3}" python3 /usr/bin/python3; do
    "$python" -c 'import xarray, netCDF4' 2>/dev/null && break
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$folder"
failures=0
end=$(($(date +%s) + ${NODE_SECONDS:-540}))
least=8 # s; with less a step is not begun

# room SECONDS: so many, or what is left.
room() {
    left=$((end - $(date +%s)))
    [ "$left" -lt "$1" ] || left=$1
    echo "$left"
}

# step SECONDS NAME COMMAND...: its output goes to NAME.txt.
step() {
    limit=$(room "$1")
    name=$2
    shift 2
    case " ${STEPS:-sweep scaling self-test storm compare} " in
    *" $name "*) ;;
    *) return 0 ;;
    esac
    if [ "$limit" -lt "$least" ]; then
        failures=$((failures + 1))
        echo "$name: no time is left"
        return 0
    fi
    begin=$(date +%s)
    status=0
    timeout -k 8 "$limit" "$@" >"$name.txt" 2>&1 || status=$?
    [ "$status" = 0 ] || failures=$((failures + 1))
    echo "$name: status $status, $(($(date +%s) - begin)) s; $(tail -n 1 "$name.txt")"
}

# All GPUs and one first, then half as many each time.
counts() {
    echo "$gpus"
    [ "$gpus" = 1 ] || echo 1
    count=$((gpus / 2))
    while [ "$count" -gt 1 ]; do
        echo "$count"
        count=$((count / 2))
    done
}

# One process for each GPU, all at once; what they have said is summed up even if they are cut off.
cat >self-test.sh <<SH
summary() {
    for gpu in \$(seq 0 $((gpus - 1))); do
        file=self-test-\$gpu.txt
        echo "GPU \$gpu: \$(grep -c ' right\$' \$file) right, \$(grep -c ' wrong\$' \$file) wrong; \$(tail -n 1 \$file)"
    done
}
processes=
trap 'kill \$processes; summary; exit 1' TERM
for gpu in \$(seq 0 $((gpus - 1))); do
    CUDA_VISIBLE_DEVICES=\$gpu "$build/bin/roofsweep" --self-test >self-test-\$gpu.txt 2>&1 &
    processes="\$processes \$!"
done
status=0
for process in \$processes; do wait "\$process" || status=1; done
summary
exit \$status
SH

step 100 sweep mpirun -n "$gpus" --oversubscribe --bind-to none "$build/bin/roofsweep" -d "$worker" --verbose \
    --overwrite -o "$folder/node.nc" "$root/sweeps/node.ini"
limit=$(room "${SCALING_SECONDS:-240}")
later=$(($(room 9999) - 20)) # s, to leave some for what follows
[ "$limit" -lt "$later" ] || limit=$later
export ROUNDS=1 SINGLE=no TOGETHER=default BATCHES="${BATCHES:-16 32}"
# shellcheck disable=SC2046 # words
WORKER=$worker SECONDS_IN_ALL=$((limit - 7)) KEEP=$folder ALGORITHMS=$folder/algorithms.json \
    step "$limit" scaling "$root/tests/bench/scaling.sh" "$build" $(counts)
[ "$worker" != cuda ] || step 90 self-test sh self-test.sh
limit=$(room 60)
step "$limit" storm "$python" "$root/tests/bench/kills.py" --programs "$((20 * gpus))" --kills 10 \
    --limit "$((limit - 15))" --worker "$worker" --ranks "$gpus" --build "$build"
step 30 compare "$python" "$root/postproc/roofsweep-post" compare node.nc
[ "$failures" = 0 ]
