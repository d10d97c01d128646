#!/bin/sh
# Existing files at the place of the output or the journal. roofsweep does not replace files of others, does not follow
# their links, and leaves no temporary file.
. "$(dirname "$0")/lib.sh"
roofsweep=$ROOFSWEEP_BIN/roofsweep

batch=1 height=8 width=8 write_sweep sweep.ini
expect 0 "$roofsweep" sweep.ini
complete sweep.nc 4
cp sweep.nc.journal kept

journal_is_whole() {
    cmp kept sweep.nc.journal || fail "the journal was changed by: $*"
}
ln sweep.nc.journal twin
ln -s sweep.nc.journal pointer
for name in sweep.nc.journal ./sweep.nc.journal twin pointer kept; do
    expect 2 "$roofsweep" --gather sweep.nc.journal --output $name
    expect 2 "$roofsweep" --gather sweep.nc.journal --overwrite --output $name
    says "$name: it is "
    says "journal; --output names another"
    expect 2 "$roofsweep" --overwrite --output $name sweep.ini
    says "$name: it is a journal; --output names another"
    journal_is_whole --output $name
done
rm twin pointer

# An existing output needs --overwrite. A folder, a fifo or a device as output is an error.
expect 2 "$roofsweep" --gather sweep.nc.journal
says "sweep.nc exists; --overwrite replaces it, --output names another"
mkdir folder
mkfifo fifo
for name in folder fifo /dev/null; do
    expect 2 "$roofsweep" --gather sweep.nc.journal --overwrite -o $name
    says "$name: it is no regular file; --output names another"
done

# A file with the name of the journal that is no journal is kept, also with --overwrite.
echo diary >own.nc.journal
for option in --quiet --overwrite; do
    expect 2 "$roofsweep" $option --output own.nc sweep.ini
    says "own.nc.journal is no journal of roofsweep"
done
[ "$(cat own.nc.journal)" = diary ] || fail "--overwrite replaces what is no journal"

# The manifest cannot be the output: neither by name, nor by a link, nor by its own `output`.
cp sweep.ini manifest
ln sweep.ini hard.nc
ln -s sweep.ini soft.nc
for name in sweep.ini ./sweep.ini hard.nc soft.nc; do
    expect 2 "$roofsweep" --resume -o $name sweep.ini
    expect 2 "$roofsweep" -o $name sweep.ini
    says "$name: it is the manifest; --output names another"
    expect 2 "$roofsweep" --overwrite -o $name sweep.ini
    says "$name: it is the manifest; --output names another"
    cmp manifest sweep.ini || fail "the manifest is replaced through $name"
done
sed 's/^title = .*/output = own.ini/' sweep.ini >own.ini
expect 2 "$roofsweep" --overwrite own.ini
says "own.ini: it is the manifest"
rm hard.nc soft.nc own.ini

# A signal during publishing leaves no temporary file (except SIGKILL), and a complete output.
expect 0 "$roofsweep" --gather sweep.nc.journal -o trap.nc
for signal in TERM HUP KILL; do
    for part in 05 15 25 35; do
        "$roofsweep" --gather sweep.nc.journal -o trap.nc --overwrite >/dev/null 2>&1 &
        sleep "0.$part"
        kill -s $signal $! 2>/dev/null || true
        wait $! || true
        [ $signal = KILL ] || [ -z "$(find . -name '.roofsweep-*')" ] || fail "SIG$signal leaves $(ls -A)"
    done
    complete trap.nc 4
done
# The next run removes temporary files that SIGKILL left.
expect 0 "$roofsweep" --gather sweep.nc.journal -o trap.nc --overwrite
[ -z "$(find . -name '.roofsweep-*')" ] || fail "the next one leaves $(ls -A)"

# --overwrite through a link replaces the target and keeps the link, in --gather and in a new sweep.
mkdir store
ln -s store/real.nc link.nc
expect 2 "$roofsweep" --output link.nc sweep.ini # the link exists, although its target does not
expect 0 "$roofsweep" --overwrite --output link.nc sweep.ini
[ -L link.nc ] || fail "--overwrite replaces a link by a file"
complete store/real.nc 4
expect 2 "$roofsweep" --gather sweep.nc.journal -o link.nc
expect 0 "$roofsweep" --gather sweep.nc.journal -o link.nc --overwrite
[ -L link.nc ] || fail "--gather replaces a link by a file"

# --resume replaces the file of the same sweep without --overwrite.
expect 0 "$roofsweep" --resume sweep.ini
complete sweep.nc 4

# --skip-damaged keeps all rows but those in damaged lines, and names these lines.
lines=$(wc -l <sweep.nc.journal)
cp sweep.nc.journal damaged.journal
sed -i "${lines}s/\"time_median\"/\"time_mediam\"/" damaged.journal
tail -n 1 sweep.nc.journal >>damaged.journal
sed -i "$((lines - 1))s/\"time_median\"/\"time_mediam\"/" damaged.journal
expect 1 "$roofsweep" --gather damaged.journal -o rest.nc
says "damaged: lines $((lines - 1)), $lines"
[ ! -e rest.nc ] || fail "a damaged journal is gathered without --skip-damaged"
expect 1 "$roofsweep" --gather damaged.journal --skip-damaged -o rest.nc
says "2 damaged, left out: lines $((lines - 1)), $lines; the rest is in rest.nc"
complete rest.nc 3
expect 0 "$roofsweep" --gather sweep.nc.journal --skip-damaged -o whole.nc

# The reader of standard output closes the pipe: status 1.
for action in --list --help "--dry-run sweep.ini"; do
    # shellcheck disable=SC2086 # words
    { sleep 0.2; status=0; "$roofsweep" $action 2>output || status=$?; echo $status >code; } | true
    [ "$(cat code)" = 1 ] || fail "exit status $(cat code) of $action into a closed pipe"
    says "cannot write to standard output: Broken pipe"
done

# If nobody reads the pipe at standard output, a signal ends the wait, and so do 60 s (of a clock that runs faster). The
# result file is complete. A late reader of a non-blocking pipe gets the whole output.
cat >unread.py <<'PY'
import fcntl, os, subprocess, sys, time
reader, writer = os.pipe()
fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
os.set_blocking(writer, sys.argv[1] == "block")
os.write(writer, bytes(0 if sys.argv[1] == "late" else 4096))
job = subprocess.Popen(sys.argv[2:], stdout=writer)
os.close(writer)
while sys.argv[1] == "block" and not os.path.exists("unread.nc"):
    time.sleep(0.01)
time.sleep(0.3)
if sys.argv[1] == "block":
    job.terminate()
elif sys.argv[1] == "late":
    sys.stdout.buffer.write(open(reader, "rb").read())
sys.exit(job.wait(20))
PY
expect 0 "$ROOFSWEEP_PYTHON" unread.py late "$roofsweep" --list
"$roofsweep" --list | cmp - output || fail "a late reader misses something"
expect 0 "$ROOFSWEEP_PYTHON" unread.py block "$roofsweep" -o unread.nc sweep.ini
says "the table: cannot write to standard output: nobody reads it"
complete unread.nc 4
fast="LD_PRELOAD=$ROOFSWEEP_BUILD/tests/libstop_in.so CLOCK_RATE=100"
# shellcheck disable=SC2086 # words
expect 0 "$ROOFSWEEP_PYTHON" unread.py rest env $fast "$roofsweep" --resume -o unread.nc sweep.ini
says "the table: cannot write to standard output: nobody reads it"

# A full standard output is a failure; the result file is written nevertheless.
for action in --list --help --version "--dry-run sweep.ini" "--gather sweep.nc.journal -o full.nc"; do
    status=0
    # shellcheck disable=SC2086 # words
    "$roofsweep" $action 2>output >/dev/full || status=$?
    [ "$status" = 1 ] || fail "exit status $status of $action with a full standard output"
    says "cannot write to standard output: No space left on device"
    status=0
    # shellcheck disable=SC2086
    "$roofsweep" $action --overwrite 2>output >&- || status=$?
    [ "$status" = 1 ] || fail "exit status $status of $action with a closed standard output"
    says "cannot write to standard output"
done
complete full.nc 4
status=0
"$roofsweep" --overwrite sweep.ini 2>output >/dev/full || status=$?
[ "$status" = 1 ] || fail "exit status $status of a sweep with a full standard output"
says "cannot write to standard output"
complete sweep.nc 4
[ -z "$(find . -name '.roofsweep-*')" ] || fail "temporary files are left: $(ls -A)"

# Links and journals of another user are refused.
mkdir -m 777 shared
echo precious >victim
ln -s ../victim shared/x.nc
ln -s .. shared/way
if chown -h 65534 shared/x.nc shared/way sweep.nc.journal 2>/dev/null; then
    for name in x.nc way/victim; do
        expect 2 "$roofsweep" --overwrite -o shared/$name sweep.ini
        says "'${name%/*}' is a link of user "
    done
    [ "$(cat victim)" = precious ] || fail "a link of another user is followed"
    for action in --resume --overwrite; do
        expect 2 "$roofsweep" $action sweep.ini
        says "sweep.nc.journal belongs to user "
    done
    expect 0 "$roofsweep" --resume --any-owner sweep.ini
fi

# If no file can be published in the output's folder, the sweep does not begin.
expect 2 env LD_PRELOAD="$ROOFSWEEP_BUILD/tests/libfail_call.so" FAIL_CALL="fsync 2 5" "$roofsweep" -o tried.nc sweep.ini
says "cannot write tried.nc: cannot make its folder durable: Input/output error; --output names another"
[ ! -e tried.nc.journal ] || fail "a sweep begins that cannot be published"

# A file that appears at the output's place during the sweep stays, except with --overwrite.
wrap_workers
worker 'echo precious >appeared.nc; exec "$REAL"'
expect 1 bin/roofsweep -o appeared.nc sweep.ini
says "appeared.nc has appeared meanwhile and is not replaced: the results are in appeared.nc.spare-1"
[ "$(cat appeared.nc)" = precious ] || fail "a file that appears is replaced"
complete appeared.nc.spare-1 4
expect 0 bin/roofsweep --overwrite -o appeared.nc sweep.ini
complete appeared.nc 4

# --resume replaces the earlier file, but no file that appears during the sweep.
grep -v '"kind":"record"' kept >resumed.nc.journal
worker 'mkfifo resumed.nc 2>fifo.error; exec "$REAL"'
expect 1 bin/roofsweep --resume -o resumed.nc sweep.ini
says "resumed.nc has appeared meanwhile and is not replaced: the results are in resumed.nc.spare-1"
[ -p resumed.nc ] || fail "--resume replaces a fifo that appears"
complete resumed.nc.spare-1 4

# --gather does not write the output of a running job.
worker '"$GATHER" --gather gathered.nc.journal >gathering 2>&1; echo $? >code
    "$GATHER" --gather gathered.nc.journal -o other.nc >>gathering 2>&1; exec "$REAL"'
export GATHER="$roofsweep"
expect 0 bin/roofsweep -o gathered.nc sweep.ini
complete gathered.nc 4
[ "$(cat code)" = 2 ] || fail "--gather takes the output of a running job: $(cat gathering)"

# The journal disappears with its folder, is replaced by another sweep's journal, or is truncated during the sweep. Its
# rows continue under another name.
worker 'while read -r line; do
    case $line in *\"op\":\"measure\"*) echo >>seen; [ "$(wc -l <seen)" != 3 ] || eval "$HARM" ;; esac
    printf "%s\n" "$line"
done | "$REAL"'
for HARM in "rm -r out" "rm out/x.nc.journal" "cp kept copy; mv copy out/x.nc.journal" ": >out/x.nc.journal" \
    "cat kept >out/x.nc.journal" "printf X | dd of=out/x.nc.journal bs=1 seek=100 conv=notrunc 2>dd"; do
    export HARM
    spare=out/x.nc.spare-1
    [ "$HARM" != "rm -r out" ] || spare=./x.nc.spare-1
    rm -rf out seen
    mkdir out
    expect 1 bin/roofsweep -o out/x.nc sweep.ini
    says "while it was written: its rows are in $spare.journal; --resume --output $spare goes on"
    complete $spare 4
    [ ! -e out/x.nc ] || fail "rows that are not in out/x.nc.journal are in out/x.nc"
    expect 0 bin/roofsweep --resume -o $spare sweep.ini
    complete $spare 4
done
