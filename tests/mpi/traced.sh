#!/bin/sh
# roofsweep opens only these files for writing, as strace shows: output, journal, and temporary files with random names.
. "$(dirname "$0")/lib.sh"
roofsweep=$ROOFSWEEP_BIN/roofsweep

command -v strace >/dev/null || { echo "no strace"; exit 77; }
strace -f -o probe true 2>/dev/null || { echo "strace is not permitted here"; exit 77; }
rm -f probe
batch=1 height=8 width=8 write_sweep sweep.ini
mkdir temporary results
export TMPDIR="$work/temporary"

cat >check.py <<'PY'
import os, re, sys

trace, work = sys.argv[1:]
random = re.compile(r"/\.roofsweep-[0-9a-f]{16}$")
names, wrong, folders = {}, [], {}
for line in open(trace, errors="replace"):
    call = re.search(r"\b(open|openat|creat|rename|renameat2?|linkat?|symlinkat?|mkdir(?:at)?|mknod(?:at)?)\((.*)\) += (-?\d+)", line)
    if not call or int(call[3]) < 0:
        continue
    kind, arguments = call[1], call[2]
    if opened := re.search(r"O_DIRECTORY.* = (\d+)<(.*)>$", line.rstrip()):
        folders[opened[1]] = opened[2]
    if kind in ("open", "openat") and not re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_TMPFILE", arguments):
        continue
    path = os.path.join(work, re.findall(r'"((?:[^"\\]|\\.)*)"', arguments)[-1])
    path = os.path.normpath(re.sub(r"^/proc/self/fd/(\d+)", lambda link: folders.get(link[1], link[0]), path))
    if path.startswith(("/dev/null", "/dev/tty", "/proc/", "/sys/")):
        continue
    names.setdefault(path, []).append(line)
    if "O_TMPFILE" in arguments and path in (f"{work}/results", f"{work}/temporary"):
        continue # no name at all
    if random.search(path) and os.path.dirname(path) in (f"{work}/results", f"{work}/temporary"):
        first = names[path][0]
        if "O_CREAT" in first and not ("O_EXCL" in first and "O_NOFOLLOW" in first):
            wrong.append(line)
        continue
    if path not in (f"{work}/results/x.nc", f"{work}/results/x.nc.journal"):
        wrong.append(line)
if not any(random.search(name) for name in names) or f"{work}/results/x.nc" not in names:
    wrong.append("the trace shows no file of ours: is this test still right?\n")
sys.stdout.writelines(wrong)
sys.exit(bool(wrong))
PY
# traced FILE ARGUMENTS...: writes to FILE the names of the files that roofsweep opens, except those of MPI (TMPDIR,
# shared memory).
traced() {
    trace=$1
    shift
    expect 0 strace -f -y -o "$trace" -e trace=file "$roofsweep" "$@"
    grep -vE '"([^"]*/)?(ompi|open_mpi|pmix|openmpi-sessions|vader|sm_segment|prte|prrte)[-._a-z0-9]*|dstore_sm|/dev/shm/(vader|sm_|osc)' "$trace" >"$trace.own"
    "$ROOFSWEEP_PYTHON" check.py "$trace.own" "$work" || fail "files that roofsweep must not open, see above"
}
traced sweep -o results/x.nc sweep.ini
traced resume --resume -o results/x.nc sweep.ini
traced gather --gather results/x.nc.journal --overwrite -o results/x.nc
[ "$(ls -A results)" = "$(printf 'x.nc\nx.nc.journal')" ] || fail "results/ holds $(ls -A results)"
[ -z "$(find temporary -name '.roofsweep*')" ] || fail "a temporary file is left"
