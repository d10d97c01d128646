# shellcheck shell=sh
# Sourced by tests that need a GPU; skips them without one.
. "$(dirname "$0")/../mpi/lib.sh"
worker=$ROOFSWEEP_BIN/roofsweep-worker-cuda
[ -x "$worker" ] || { echo "the CUDA worker is not built"; exit 77; }
gpus=$(echo '{"op":"devices"}' | "$worker" 2>/dev/null | sed -n 's/.*"count":\([0-9]*\).*/\1/p')
[ -n "$gpus" ] || { echo "no GPU"; exit 77; }
