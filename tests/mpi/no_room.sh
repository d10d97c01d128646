#!/bin/sh
# Full file systems: the error names the folder, no incomplete file is left, and nothing crashes.
. "$(dirname "$0")/lib.sh"
roofsweep=$ROOFSWEEP_BIN/roofsweep

batch=1 width=8 write_sweep sweep.ini
expect 0 "$roofsweep" sweep.ini
complete sweep.nc 20
unset TMPDIR
export OMPI_MCA_btl=self,tcp PMIX_MCA_gds=hash # Open MPI's shared memory is files, too
if ! run 2 --overwrite -o two.nc sweep.ini >output 2>&1; then
    cat output
    echo "Open MPI connects no ranks here without shared memory: skipped"
    exit 77
fi

# A limit on the size of files (ulimit -f): SIGXFSZ does not kill roofsweep, and HDF5 does not crash.
limited() {
    status=0
    (ulimit -f 400; exec "$@") >output 2>&1 || status=$? # blocks of 512 bytes
    [ "$status" = 1 ] || { cat output; fail "exit status $status under a limit to a file's size: $*"; }
}
limited "$roofsweep" --gather sweep.nc.journal -o limit.nc
says "File too large"
says "sweep.nc.journal keeps every row, for --gather"
[ ! -e limit.nc ] || fail "half a file is published"
limited "$ROOFSWEEP_MPIRUN" -n 2 --oversubscribe --bind-to none "$roofsweep" --overwrite sweep.ini
says "File too large"
says "sweep.nc.journal keeps every row, for --gather"
expect 0 "$roofsweep" --gather sweep.nc.journal
complete sweep.nc 20
[ -z "$(find . -name '.roofsweep-*')" ] || fail "temporary files are left"

# Full file systems need a mount namespace of their own.
unshare -m true 2>/dev/null || { echo "no mount namespaces here: the rest is skipped"; exit 77; }
cat >small.sh <<'SH'
set -e
mkdir -p small
mount -t tmpfs -o size=200k none "$1"
shift
exec "$@"
SH
# shellcheck disable=SC2317 # expect calls it
small() {
    unshare -m sh small.sh "$@"
}
expect 1 small small sh -c "status=0; '$roofsweep' --gather sweep.nc.journal -o small/x.nc || status=\$?; ls -A small; exit \$status"
says "small/x.nc: netCDF cannot make "
says ": No space left on device"
says "sweep.nc.journal keeps every row, for --gather"
grep -q '^x.nc$\|^\.roofsweep' output && fail "something is left in a full folder"
# The file system is full at the end of a sweep.
expect 1 small small sh -c "'$roofsweep' -o small/x.nc sweep.ini"
says "No space left on device"
exit 0
