#!/bin/sh
# The paper's default conv2d with counters, by roofsweep's worker and by the Nsight Compute command line around
# the same worker without counters: the same metrics, every kernel of one iteration. Prints both times and
# their ratio. Needs a GPU whose counters may be read. Usage: tests/bench/counters_vs_ncu.sh [BUILD]
set -eu
build=$(cd "${1:-build}" && pwd)
worker=$build/bin/roofsweep-worker-cuda
[ -x "$worker" ] || { echo "the CUDA worker is not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
conv2d='"configuration":"conv2d precision=fp32 algorithm=implicit-precomp-gemm"'
request() { # request COUNTERS MORE
    echo "{\"op\":\"measure\",$conv2d,\"counters\":\"$1\"${2:-}}"
}
field() { # field NAME: one line for each record on standard input
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p"
}

# The first one pays for the set-up, once a process; all do everything: timing, trace, counters, verification.
for counters in auto auto auto off off off; do request $counters; done | "$worker" >replies
[ "$(sed -n 3p replies | field counters)" = counted ] || { echo "no counters: $(sed -n 3p replies | field counters)"; exit 77; }
counted=$(sed -n 3p replies | field wall_time)
plain=$(sed -n 6p replies | field wall_time)
echo "roofsweep: $counted s with counters, $plain s without"
awk "BEGIN { exit !($counted - $plain <= 0.3 && $counted <= 0.7) }" || echo "MORE THAN 0.3 s for counters, or 0.7 s in all"

ncu=$(command -v ncu) || { echo "ncu is not installed: nothing to compare with"; exit 77; }
flops=sm__sass_thread_inst_executed_op_
metrics=${flops}fadd_pred_on.sum,${flops}fmul_pred_on.sum,${flops}ffma_pred_on.sum,${flops}dfma_pred_on.sum
metrics=$metrics,${flops}hadd_pred_on.sum,${flops}hmul_pred_on.sum,${flops}hfma_pred_on.sum
metrics=$metrics,dram__bytes_read.sum,dram__bytes_write.sum,l1tex__t_bytes.sum
metrics=$metrics,lts__t_sectors_srcunit_tex_op_read.sum,lts__t_sectors_srcunit_tex_op_write.sum
begin=$(date +%s.%N)
request off ',"warmup":0,"iterations":1,"verify":false' | "$ncu" --metrics "$metrics" --csv "$worker" >ncu.csv
end=$(date +%s.%N)
awk "BEGIN { t = $end - $begin; printf \"ncu: %.1f s, %.0f times as long\n\", t, t / $counted; exit t < 25 * $counted }"
