#!/bin/sh
# Programs with unusual behaviour (threads, forks, daemons, crashes), each a row on a CPU: the rows are as docs/programs.md
# promises. tests/gpu/programs.sh has the programs that need a GPU.
. "$(dirname "$0")/lib.sh"
cp "$root/sweeps/programs/roofsweep_region.py" .
cat >hostile.py <<'END'
import os
import signal
import subprocess
import sys
import threading

import roofsweep_region


def usual():
    with roofsweep_region.region():
        sum(range(1000))


def threads():
    every = [threading.Thread(target=usual) for _ in range(4)]
    [one.start() for one in every]
    [one.join() for one in every]


def fork():
    with roofsweep_region.region():
        if os.fork() == 0:
            os._exit(0)
        os.wait()


def both():
    with roofsweep_region.region():
        child = os.fork()
    if child:
        os.wait()  # or the child might be ended before it reports


def child():
    subprocess.run([sys.executable, "hostile.py", "usual"], check=True, env=dict(os.environ))


def exit_after():
    usual()
    os._exit(0)


def exit_within():
    with roofsweep_region.region():
        os._exit(0)


def never():
    sum(range(1000))


def daemon():
    subprocess.Popen(["setsid", "sleep", "4712"])
    usual()


def noisy():
    for _ in range(100):
        os.write(1, b"x" * 65536)
    usual()


def dumb():
    for descriptor in range(3):
        os.close(descriptor)
    usual()


def crash():
    usual()
    os.kill(os.getpid(), signal.SIGSEGV)


def status():
    usual()
    sys.exit(5)


def liar():
    with open(os.path.join(os.environ["ROOFSWEEP_REPORT"], "lies"), "w", encoding="ascii") as file:
        file.write("region fast\n")


def profiled():
    import cProfile

    cProfile.run("usual()")


def deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    usual()
    while True:
        signal.pause()


globals()[sys.argv[1].replace("-", "_")]()
END
cat >hostile.ini <<'END'
[sweep]
timeout = 60 s
retries = 0
[peaks]
memory = l1
compute = fp32
launch = no
[program hostile]
command = python3 hostile.py {mode}
mode = usual, threads, fork, both, child, exit-after, exit-within, never, daemon, noisy, dumb, crash, status, liar, profiled
END
expect 3 "$ROOFSWEEP_BIN/roofsweep" -q -d cpu -o hostile.nc hostile.ini
sed -i 's/^timeout = .*/timeout = 4 s/; s/^mode = .*/mode = deaf/' hostile.ini
expect 3 "$ROOFSWEEP_BIN/roofsweep" -q -d cpu -o deaf.nc hostile.ini
python '
import sys, xarray
def read(name): # no row of deaf.nc has samples
    data = xarray.open_dataset(name).load()
    missing = xarray.full_like(data["status"], float("nan"), dtype=float)
    return data.assign(samples=data.get("samples", missing))[["axis_mode", "status", "samples", "error"]]
data = xarray.concat([read("hostile.nc"), read("deaf.nc")], "config").set_index(config="axis_mode")
wanted = {
    "usual": 1, "threads": 4, "fork": 1, "child": 1, "exit-after": 1, "daemon": 1, "noisy": 1, "dumb": 1, "profiled": 1,
    "both": "several processes of the program open the region",
    "exit-within": "handed back no region", "never": "handed back no region", "crash": "signal 11",
    "status": "status 5", "liar": "is no number", "deaf": "",
}
faults = []
for mode, expected in wanted.items():
    row = data.sel(config=mode)
    found = row.error.item()
    print(f"{mode:<12} {int(row.status)} {found}")
    if isinstance(expected, int):
        well = row.status == 0 and row.samples == expected
    else:
        well = row.status == 2 and expected in found
    if not well:
        faults.append(f"{mode}: {int(row.status)}, {row.samples.item()} samples, {found}; wanted {expected}")
print("\n".join(faults))
sys.exit(bool(faults))
' || fail "hostile programs"
none_runs "sleep 4712|hostile.py"
