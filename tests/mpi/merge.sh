#!/bin/sh
# --merge: the files of single devices give the file of all, to the digit; readers refuse what ncrcat joins. Needs neither
# MPI nor a device: the rows are simulated.
. "$(dirname "$0")/lib.sh"
roofsweep=$ROOFSWEEP_BIN/roofsweep
export PYTHONPATH="$root/postproc"
post() {
    "$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" "$@"
}
# dump FILE: all of it but its name, with all digits.
dump() {
    ncdump -p 9,17 -n same "$1" >"$1.cdl" || fail "$1 cannot be read"
}

"$ROOFSWEEP_BUILD/tests/simulated_journal" all.nc.journal 400
expect 0 "$roofsweep" --gather all.nc.journal
for device in 0 1 2 3 4 5 6 7; do
    grep -v '"kind":"record"' all.nc.journal | grep -e '"kind":"session"' -e "\"simulated/$device\"" >$device.nc.journal
    grep '"kind":"record"' all.nc.journal | grep "\"simulated/$device\"" >>$device.nc.journal
    expect 0 "$roofsweep" --gather $device.nc.journal
done
expect 0 "$roofsweep" --merge 3.nc 0.nc 1.nc 2.nc 7.nc 6.nc 5.nc 4.nc -o merged.nc
says "400 rows"
says "summary status=0 rows=400"
dump all.nc
dump merged.nc
cmp all.nc.cdl merged.nc.cdl || fail "the files of single devices do not give the file of all"
expect 0 post rows merged.nc

# The same through roofsweep-post; a file that is there stays, and so do the files that are read.
ROOFSWEEP=$roofsweep
export ROOFSWEEP
expect 0 post merge 0.nc 1.nc -o two.nc
expect 2 post merge 0.nc 2.nc -o two.nc
says "two.nc exists; --overwrite replaces it"
expect 0 post merge 0.nc 2.nc -o two.nc --overwrite
expect 2 "$roofsweep" --merge 0.nc 1.nc -o 1.nc --overwrite
says "it is one of the files to merge"
ln -s 1.nc link.nc
expect 2 "$roofsweep" --merge 0.nc 1.nc -o link.nc --overwrite
says "it is one of the files to merge"
expect 2 "$roofsweep" --merge 0.nc 1.nc -o all.nc.journal --overwrite
says "it is a journal"
unset ROOFSWEEP
expect 2 env PATH=/nowhere "$(command -v "$ROOFSWEEP_PYTHON")" "$root/postproc/roofsweep-post" merge 0.nc 1.nc -o other.nc
says "no program 'roofsweep' in the path"

# What clashes is named, and the file is not written.
expect 2 "$roofsweep" --merge two.nc 0.nc -o clash.nc
says "on GPU-simulated-0 of nowhere in two.nc and 0.nc"
[ ! -e clash.nc ] || fail "a file of clashes"
expect 0 "$roofsweep" --merge two.nc 0.nc --newest -o newest.nc
says "the one measured last holds"

# Bad input: each is named, with the reason.
head -c 60000 0.nc >cut.nc
for pair in "missing.nc:No such file" "cut.nc:no netCDF file, or it is not whole" "0.nc.journal:no netCDF file" \
    "$root/tests/data/paper_h200.nc:an older version" "1.nc:are the same file"; do
    expect 2 "$roofsweep" --merge 1.nc "${pair%%:*}" -o bad.nc
    says "${pair%%:*}"
    says "${pair#*:}"
    [ ! -e bad.nc ] || fail "a file of bad input"
done
for words in "--merge 0.nc" "--merge 0.nc 1.nc" "--merge 0.nc -o x.nc" "--newest --gather 0.nc.journal"; do
    # shellcheck disable=SC2086 # words
    expect 2 "$roofsweep" $words
done

# What ncrcat makes of them has the devices of the first alone.
command -v ncrcat >/dev/null || { echo "skipped: no ncrcat (Debian: nco)"; exit 77; }
ncrcat -O 0.nc 1.nc joined.nc
expect 2 post rows joined.nc
says "roofsweep --merge"
expect 2 "$roofsweep" --merge joined.nc 2.nc -o bad.nc
says "ncrcat"
