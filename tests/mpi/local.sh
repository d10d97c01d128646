#!/bin/sh
# What needs no launcher, no device and no output file; and --gather.
. "$(dirname "$0")/lib.sh"
roofsweep=$ROOFSWEEP_BIN/roofsweep
expect 0 "$roofsweep" --help
says "Exit status"
expect 0 "$roofsweep" --version
says "roofsweep 0."
expect 0 "$roofsweep" --list
says "[lstm LABEL]"
says "backward-filter"
write_sweep sweep.ini
expect 0 "$roofsweep" --dry-run sweep.ini
says "configurations: 200"
# Without MPI no process knows its rank: each does what was asked for, whatever a shell's variables say.
expect 0 run 3 --dry-run sweep.ini
[ "$(grep -c "configurations: 200" output)" = 3 ] || fail "not every process prints the plan"
for variable in SLURM_PROCID PMI_RANK PMIX_RANK OMPI_COMM_WORLD_RANK; do
    expect 0 env $variable=3 "$roofsweep" --version
    says "roofsweep 0."
    expect 1 env $variable=3 "$roofsweep" --gather nowhere.nc.journal
    says "nowhere.nc.journal"
    expect 2 env $variable=3 "$roofsweep" --frobnicate
    says "unknown option"
done
[ "$(ls)" = "$(printf 'output\nsweep.ini')" ] || fail "a dry run leaves files: $(ls)"
ldd "$roofsweep" | grep -qE '\blib(cuda|cudart|cupti|cudnn|cublas|nvidia)' && fail "roofsweep links CUDA"

# --gather rebuilds the same file from the journal alone.
sed -i 's/^batch = .*/batch = 1/; s/^width = .*/width = 8/' sweep.ini
expect 0 "$roofsweep" sweep.ini
# A log that nobody reads any more does not end it.
{ "$roofsweep" --overwrite sweep.ini; echo $? >code; } 2>&1 | true
[ "$(cat code)" = 0 ] || fail "exit status $(cat code) when the log is closed"
mkdir elsewhere
cp sweep.nc.journal elsewhere/
expect 0 "$roofsweep" --gather elsewhere/sweep.nc.journal
ncdump sweep.nc | sed 1d | grep -v date_ >one
ncdump elsewhere/sweep.nc | sed 1d | grep -v date_ >two
cmp one two || fail "gathered file differs"
# A torn last line costs a warning, nothing else.
head -c -20 sweep.nc.journal >torn.nc.journal
expect 0 "$roofsweep" --gather torn.nc.journal
says "incomplete"
