#!/bin/sh
# The CPU worker's roofs beside what others reach on the same cores: copy and triad by STREAM's rules, the GEMMs
# of OpenBLAS, and, where it is installed, likwid-bench for every level. By turns, several times over, the best of
# each, because a machine's neighbours come and go; STREAM and the worker's DRAM roofs more often than the rest,
# because DRAM is what is shared with them. Prints a table; fails where a roof is below 0.95 of another's figure.
# A round takes a minute or two with likwid-bench. Usage: tests/bench/cpu_roofs.sh [BUILD] [ROUNDS]
set -eu
here=$(dirname "$0")
worker=$(cd "${1:-build}" && pwd)/bin/roofsweep-worker-cpu
rounds=${2:-3}
[ -x "$worker" ] || { echo "the CPU worker is not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
field() { # field NAME: one line for each line of standard input that has it
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^\"}]*\).*/\1/p" | sed 's/,$//'
}

# The same cores for all, and one thread on each.
echo '{"op":"describe"}' | "$worker" | sed 's/,"/,\n"/g' >"$work/device"
cores=$(field multiprocessors <"$work/device")
list=$(field uuid <"$work/device" | sed "s/^cpu-$(field hostname <"$work/device" | cut -c 1-42)-//")
l3=$(field l3 <"$work/device")
case $list in *[!0-9,-]*) pin= ;; *) pin="taskset -c $list" ;; esac # a long list is shortened
export OMP_NUM_THREADS="$cores" OPENBLAS_NUM_THREADS="$cores" OMP_PROC_BIND=true

# shellcheck disable=SC2046 # several flags
cc -O3 -march=native -fopenmp -o "$work/others" "$here/cpu_roofs.c" $(pkg-config --cflags --libs openblas) -lm
bytes=$(awk "BEGIN { b = 4 * ${l3:-0}; printf \"%.0f\", (b > 1e8 ? b : 1e8) }")
extent=$((cores < 16 ? 2048 : 6144))
# OpenBLAS may not know this CPU and take the kernels of an older one.
cores_of_blas=default
grep -q avx512f /proc/cpuinfo && cores_of_blas="default SkylakeX"

# likwid-bench's kernels for a roof; vector kinds that this CPU has not are not tried.
kinds=$(grep -o -w -e avx512f -e avx2 /proc/cpuinfo | sort -u | sed 's/^avx512f$/avx512/; s/^avx2$/avx/')
likwid_kernels() { # likwid_kernels ROOF
    case $1 in
    *read) names='load' ;;
    *write) names='store store_mem' ;;
    *copy) names='copy copy_mem' ;;
    *triad) names='stream stream_mem' ;;
    'fp64 vector') names='peakflops' ;;
    'fp32 vector') names='peakflops_sp' ;;
    *) names= ;;
    esac
    for name in $names; do
        for kind in $kinds; do
            grep -o -w -e "${name}_$kind" -e "${name}_${kind}_fma" "$work/kernels" || true
        done
    done
}
likwid=
if command -v likwid-bench >/dev/null && [ "$(nproc)" = "$(nproc --all)" ]; then
    likwid-bench -a | sed 's/ .*//' >"$work/kernels" && likwid=yes
fi
own() { # own REQUEST: the worker's roofs, "NAME<tab>VALUE<tab>roofsweep<tab>SETTING"
    echo "$1" | $pin "$worker" | sed 's/{"name":/\n&/g' | sed 's/,"/,\n"/g' |
        awk -F'": *"?|"?[,}]*$' -v OFS='\t' '
            /^{"name"/ { name = $2 }
            /^"setting"/ { sub(/^"setting": *"/, ""); sub(/",$/, ""); setting = $0 }
            /^"(bandwidth|performance|time)"/ { value[name] = $2 }
            /^"samples"/ { print name, value[name], "roofsweep", setting }'
}
dram() {
    $pin "$work/others" "$bytes" 0
    own '{"op":"roofs","memory":["dram"],"compute":[],"launch":false}'
}

likwid_run() { # a roof of the worker on each line of standard input: name, value, who, setting
    while IFS='	' read -r roof _ _ setting; do
        # "2 threads on 24 KiB each, ..." to kilobytes of all together; arithmetic: little is enough.
        size=$(echo "$setting" | sed -n 's/.* on \([0-9.]*\) \([KM]\)iB each.*/\1 \2/p' |
            awk "{ printf \"%.0f\", \$1 * (\$2 == \"M\" ? 1048.576 : 1.024) * $cores }")
        for kernel in $(likwid_kernels "$roof"); do
            likwid-bench -t "$kernel" -i $((2000000 / ${size:-24} + 10)) -W "N:${size:-$((24 * cores))}kB:$cores" 2>/dev/null </dev/null |
                awk -v roof="$roof" -v who="likwid $kernel" -F: -v OFS='\t' \
                    '$1 == (roof ~ /vector/ ? "MFlops/s" : "MByte/s") { print roof, $2 * 1e6, who }'
            case $roof in dram*) dram ;; esac
        done
    done
}

round=0
while [ $round -lt "$rounds" ]; do
    own '{"op":"roofs"}' >"$work/own"
    cat "$work/own"
    dram
    for core in $cores_of_blas; do
        [ "$core" = default ] || export OPENBLAS_CORETYPE="$core"
        $pin "$work/others" 0 "$extent"
        unset OPENBLAS_CORETYPE
    done
    [ -z "$likwid" ] || grep -v gap "$work/own" | likwid_run
    round=$((round + 1))
done >"$work/all"

echo "$(field model <"$work/device"), cores $list, best of $rounds rounds"
awk -F'\t' '
    $3 == "roofsweep" { if (!($1 in own)) order[++roofs] = $1
                        if (!($1 in own) || ($1 ~ /gap/ ? $2 < own[$1] : $2 > own[$1])) {
                            own[$1] = $2; setting[$1] = $4 } next }
    { group = $3; sub(/ .*/, "", group); key = $1 FS (group == "likwid" ? group : $3)
      if (!(key in best) || $2 > best[key]) { best[key] = $2; who[key] = $3 } }
    END {
        printf "%-12s %10s %10s %6s  %s\n", "roof", "roofsweep", "other", "ratio", "what"
        for (i = 1; i <= roofs; ++i) {
            printf "%-12s %10.4g %10s %6s  %s\n", order[i], own[order[i]], "", "", setting[order[i]]
            for (key in best) {
                split(key, part, FS)
                if (part[1] != order[i])
                    continue
                ratio = own[order[i]] / best[key]
                low += ratio < 0.95
                printf "%-12s %10s %10.4g %6.3f  %s%s\n", "", "", best[key], ratio, who[key], ratio < 0.95 ? "  BELOW 0.95" : ""
            }
        }
        exit low > 0
    }' "$work/all"
