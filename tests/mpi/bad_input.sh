#!/bin/sh
# Wrong input is an error that names the place and the remedy, before anything is measured.
. "$(dirname "$0")/lib.sh"
roofsweep=$ROOFSWEEP_BIN/roofsweep

expect 2 "$roofsweep"
says "no manifest"
expect 2 "$roofsweep" nowhere.ini
says "nowhere.ini"

write_sweep sweep.ini
sed 's/^filters/fliters/' sweep.ini >typo.ini
expect 2 run 2 typo.ini
says "typo.ini:18: "
says "did you mean 'filters'"
[ "$(grep -c 'did you mean' output)" = 1 ] || fail "more than one rank reports the error"
# Ranks that were started with different arguments are an error. A shell chooses the arguments, because Open MPI 5.0.7's
# own ways (a colon, or an application file) crash mpirun.
expect 2 "$ROOFSWEEP_MPIRUN" -n 2 --oversubscribe --bind-to none sh -c \
    '[ "$OMPI_COMM_WORLD_RANK" = 0 ] && exec "$0" sweep.ini; exec "$0" other.ini' "$roofsweep"
says "rank 1: started with 'other.ini', but rank 0 with 'sweep.ini'; all ranks of a job take the same"
# If srun does not know this MPI's PMI, it starts two jobs of one rank each.
expect 2 env SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 "$roofsweep" sweep.ini
says "srun started 2 tasks, but MPI sees each alone: use 'srun --mpi=pmix'"
# The launcher of another MPI starts separate jobs, too.
expect 2 env PMI_SIZE=2 PMI_RANK=0 "$roofsweep" sweep.ini
says "the launcher started 2 ranks, but MPI sees each alone: use the mpirun"
expect 2 "$roofsweep" --gather sweep.nc
says "name OUTPUT.journal, or say --output"
expect 2 "$roofsweep" --gather none.nc.journal
says "none.nc.journal: No such file or directory; --gather reads the file OUTPUT.journal that a sweep wrote"
expect 2 "$roofsweep" --program ' '
says "program: the command is empty"

expect 2 "$roofsweep" --output no/such/folder/x.nc sweep.ini
says "no/such/folder"
expect 2 "$roofsweep" --output new/ sweep.ini
says "no regular file"
mkfifo pipe.nc.journal
expect 2 "$roofsweep" --resume --output pipe.nc sweep.ini
says "pipe.nc.journal: it is no regular file"
# A name of 248 bytes and ".nc" is valid, but with ".journal" it is too long.
expect 2 "$roofsweep" --output "$(printf '%0248d' 0).nc" sweep.ini
says "name too long"
echo precious >taken.nc
expect 2 run 2 --output taken.nc sweep.ini
says "--overwrite"
[ "$(cat taken.nc)" = precious ] || fail "an existing output was touched"
expect 2 "$roofsweep" --resume --output taken.nc sweep.ini
says "journal"

# Reused roofs come from a journal, which roofsweep reads before it measures.
sed 's/^condition = .*/reuse = taken.nc/' sweep.ini >reuse.ini
expect 2 run 2 reuse.ini
says "reuse.ini:12: [peaks] reuse: taken.nc.journal: "

# A damaged line in the middle of a journal is an error with the number of the line.
batch=1 height=8 width=8 write_sweep sweep.ini
expect 0 "$roofsweep" sweep.ini
expect 2 "$roofsweep" --gather sweep.nc
says "sweep.nc is a result file; its journal is sweep.nc.journal"
sed -i '3s/"time_median"/"time_mediam"/' sweep.nc.journal
expect 1 "$roofsweep" --resume sweep.ini
says "sweep.nc.journal:3"
says "--skip-damaged"
# --resume refuses rows that were measured with other settings.
expect 0 "$roofsweep" --overwrite sweep.ini
sed -i 's/^iterations = .*/iterations = 7/' sweep.ini
expect 2 "$roofsweep" --resume sweep.ini
says "iterations=7"

# A manifest of more than 32 MiB with its lists is refused.
{ echo batch; echo 1; head -c 34000000 /dev/zero | tr '\0' '#'; } >long.csv
printf '[conv2d]\nlist = long.csv\n' >long.ini
expect 2 "$roofsweep" --dry-run long.ini
says "long.ini: 34000"
says "write shorter lists"

# A manifest for a GPU ends with status 4 and the reason if there is no GPU.
if ! nvidia-smi -L >/dev/null 2>&1; then
    expect 4 "$roofsweep" --device cuda --output gpu.nc sweep.ini
    says "; --device cpu, or auto, measures the CPU"
    [ ! -e gpu.nc.journal ] || fail "a sweep without a device leaves a journal"
fi

# The manifest requires counters, but the device has none: an error before anything is measured.
write_sweep require.ini
sed -i 's/^\[measure\]/&\ncounters = require/' require.ini
expect 4 run 2 require.ini
says "counters = require, but on 2 of 2 ranks refused: this kind of device has no counters; counters = auto measures without"
[ ! -e require.nc.journal ] || fail "a refused sweep leaves a journal"
expect 4 "$roofsweep" --self-test --device cpu
says "no counters"
