#!/bin/sh
# One process without a launcher: commands that need no device, --gather, a wrong date, and standard streams that are
# closed or full.
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
# Commands without MPI do not have ranks: each process executes the command, also if the environment names a rank.
expect 0 run 3 --dry-run sweep.ini
[ "$(grep -c "configurations: 200" output)" = 3 ] || fail "not every process prints the plan"
for variable in SLURM_PROCID PMI_RANK PMIX_RANK OMPI_COMM_WORLD_RANK; do
    expect 0 env $variable=3 "$roofsweep" --version
    says "roofsweep 0."
    expect 2 env $variable=3 "$roofsweep" --gather nowhere.nc.journal
    says "nowhere.nc.journal"
    expect 2 env $variable=3 "$roofsweep" --frobnicate
    says "unknown option"
done
[ "$(ls)" = "$(printf 'output\nsweep.ini')" ] || fail "a dry run leaves files: $(ls)"
ldd "$roofsweep" | grep -qE '\blib(cuda|cudart|cupti|cudnn|cublas|nvidia)' && fail "roofsweep links CUDA"

# --gather makes the same file from the journal alone.
sed -i 's/^batch = .*/batch = 1/; s/^width = .*/width = 8/' sweep.ini
expect 0 "$roofsweep" sweep.ini
# The sweep continues when the reader of its log ends.
{ "$roofsweep" --overwrite sweep.ini; echo $? >code; } 2>&1 | true
[ "$(cat code)" = 0 ] || fail "exit status $(cat code) when the log is closed"
# A long title is cut between characters.
expect 0 "$roofsweep" --overwrite --set "title=xy$(printf 'é %.0s' $(seq 100))" sweep.ini
ncdump -h sweep.nc | grep -q ':title = "xyé é .* é "' || fail "the title has other letters"
mkdir elsewhere
cp sweep.nc.journal elsewhere/
expect 0 "$roofsweep" --gather elsewhere/sweep.nc.journal
ncdump sweep.nc | sed 1d | grep -v date_ >one
ncdump elsewhere/sweep.nc | sed 1d | grep -v date_ >two
cmp one two || fail "gathered file differs"
tail -n 1 output | grep -qE '^roofsweep: summary status=0 rows=([0-9]+) measured=\1 skipped=0 failed=0 devices=1 roofs=[0-9]+ seconds=[0-9.]+ file=elsewhere/sweep.nc$' ||
    fail "the last line is no summary: $(tail -n 1 output)"
# Standard output holds the table in CSV or JSON and nothing else.
"$roofsweep" --gather elsewhere/sweep.nc.journal --overwrite --json >table.json 2>output
says "roofsweep: summary status=0"
python '
import json, math, xarray
data = xarray.open_dataset("sweep.nc")
with open("table.json") as stream:
    rows = json.load(stream)
assert len(rows) == data.sizes["config"], (len(rows), data.sizes)
pairs = zip(sorted(row["time_median"] for row in rows), sorted(data.time_median.values))
assert all(math.isclose(a, b, rel_tol=1e-8) for a, b in pairs)
assert {row["status"] for row in rows} == {"measured"}
assert {row["config_hash"] for row in rows} == set(data.config_hash.values)
'
head -c -20 sweep.nc.journal >torn.nc.journal
expect 0 "$roofsweep" --gather torn.nc.journal
says "incomplete"
# --set and --only change the manifest of one run. The file records the changed manifest.
expect 0 "$roofsweep" --dry-run --set batch=1,2,3 --set "height=8" --only grid sweep.ini
says "configurations: 12 "
expect 0 "$roofsweep" --resume --set height=8 --set timeout=59s sweep.ini
ncdump -h sweep.nc | grep -q 'height = 8' || fail "the file does not keep the manifest that was run"
expect 2 "$roofsweep" --dry-run --set bach=1 sweep.ini
says "no section here may have the key 'bach'"
expect 0 "$roofsweep" --list matmul
! grep -q conv2d output || fail "--list matmul prints others"
expect 0 "$roofsweep" --list chips
says "multiply-adds of one multiprocessor in one clock"
expect 2 "$roofsweep" --gather sweep.nc.journal torn.nc.journal -o both.nc
says "--gather takes one journal; roofsweep-post merge"

# A row fails if oneDNN fails after the verification.
if ldd "$ROOFSWEEP_BIN/roofsweep-worker-cpu" | grep -q libdnnl; then
    printf '[sweep]\ndevice = cpu\n[peaks]\nmemory = l1\ncompute = fp32\nlaunch = no\n[matmul m]\nm = 64\n' >failing.ini
    expect 3 env LD_PRELOAD="$ROOFSWEEP_BUILD/tests/libfail_call.so" FAIL_ONEDNN=3 "$roofsweep" failing.ini
    says "oneDNN failed in an iteration"
fi

# If the date is before 1970, because nobody has set the clock, rows have no start times.
cat >undated.ini <<'INI'
[sweep]
device = cpu
[peaks]
memory = l1
compute = fp32
condition = together
launch = no
[matmul net]
list = net.csv
n = 64
k = 64
[matmul other]
m = 32
[program]
command = true
region = all
INI
printf 'm,name,count\n64,first,2\n64,"second, third",1\n' >net.csv
rows=3
has_programs || { rows=2; sed -i '/^\[program\]/,$d' undated.ini; }
LD_PRELOAD=$ROOFSWEEP_BUILD/tests/libstop_in.so EPOCH_SHIFT=-2500000000 \
    expect 0 "$ROOFSWEEP_BIN/roofsweep" -o undated.nc undated.ini
complete undated.nc "$rows"
python 'import netCDF4; data = netCDF4.Dataset("undated.nc"); assert data["start_time"][:].mask.all()' ||
    fail "a date before 1970"
# Rows of a list keep their names and counts, also if the last session left out their section.
expect 0 "$roofsweep" --resume --only other -o undated.nc undated.ini
python '
import netCDF4
data = netCDF4.Dataset("undated.nc")
row = list(data["label"][:]).index("net")
found = data["name"][row], data["listed"][row], data["count"][row], data["count"][:].count()
assert found == ("net first", "net:1 first x2; net:2 second, third x1", 3, 1), found
' || fail "the list of a row"

# If standard error is full and has no reader, roofsweep drops messages, but no rows, and reacts to signals.
cat >unread.py <<'END'
import fcntl, os, signal, subprocess, sys, time
read, write = os.pipe()
fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
os.write(write, b"x" * 4096)
run = subprocess.Popen(sys.argv[2:], stderr=write, stdout=subprocess.DEVNULL)
while run.poll() is None and sys.argv[1] == "TERM" and not (os.path.exists("unread.nc.journal")
      and b'"kind":"record"' in open("unread.nc.journal", "rb").read()):
    time.sleep(0.05)
if sys.argv[1] == "TERM":
    run.terminate()
sys.exit(run.wait()) # ctest bounds the wait
END
batch=1 height=8 width=8 write_sweep unread.ini
sed 's/^iterations = .*/iterations = 20000/' unread.ini >slow.ini
expect 5 "$ROOFSWEEP_PYTHON" unread.py TERM "$ROOFSWEEP_BIN/roofsweep" -v -o unread.nc slow.ini
expect 0 "$ROOFSWEEP_PYTHON" unread.py - "$ROOFSWEEP_BIN/roofsweep" -v -o unread.nc --overwrite unread.ini
complete unread.nc 4

# Long sums are accurate. (These rows failed when the error grew with the number of terms.)
cat >sums.ini <<'INI'
[sweep]
device = cpu
output = sums.nc
[measure]
iterations = 1
warmup = 0
[peaks]
memory = dram
condition = alone
[norm batch]
operation = batch
pass = training
rows = 200704
columns = 4
[softmax row]
rows = 1
columns = 4000000
implementation = auto, plain
INI
expect 0 "$roofsweep" sums.ini
says "3 configurations: 3 measured"
! grep -q inaccurate output || fail "a long sum is inaccurate"
