"""Marks the part of a program that roofsweep measures. Copy this file beside your program:

    for args in roofsweep_region.points(parser):    # once, or, with process = shared, for row after row
        ...                                         # warm-up
        with roofsweep_region.region(torch.cuda.synchronize):
            ...                                     # the iterations
        roofsweep_region.verified(error, tolerance) # optional: relative error and its limit

`synchronize` waits for the device. The default does not wait: it suits calls that return when work is done."""

import contextlib
import ctypes
import os
import resource
import shlex
import stat
import sys
import time


def points(parser):
    """Yields the program's parsed arguments. With process = shared, yields them again for each further row, with the
    values of the section's axes: axis NAME becomes option --NAME."""
    shared = "ROOFSWEEP_POINT" in os.environ and stat.S_ISSOCK(os.fstat(0).st_mode)  # only roofsweep does this
    while True:
        axes = shlex.split(os.environ.get("ROOFSWEEP_POINT", ""))
        yield parser.parse_args(sys.argv[1:] + ["--" + axis for axis in axes])
        if not shared:
            return
        os.write(0, b"done\n")
        line = sys.stdin.readline()
        if not line:  # no further row
            return
        os.environ.update(word.split("=", 1) for word in shlex.split(line))
        if counted():
            ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).roofsweep_point()


def _profiler(call):  # roofsweep's library intercepts the call in runs for kernels and counts
    if counted():
        getattr(ctypes.CDLL("libcuda.so.1"), call)()


def _report(line):
    folder = os.environ.get("ROOFSWEEP_REPORT")  # only roofsweep sets it
    if folder:
        with open(os.path.join(folder, str(os.getpid())), "a", encoding="ascii") as file:
            file.write(line + "\n")


def _waited():
    """Returns, in s, the time that this process's threads have waited for a core, plus the time that a hypervisor has
    taken from its cores."""
    with open("/proc/stat", encoding="ascii") as file:
        stolen = int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    waited = stolen * int(os.environ["ROOFSWEEP_CORES"]) / os.sysconf("SC_NPROCESSORS_ONLN")
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as file:
            waited += 1e-9 * int(file.read().split()[1])
    return waited


@contextlib.contextmanager
def _threads():
    """On a CPU, reports what the threads do; only a CPU's worker sets ROOFSWEEP_CORES."""
    if "ROOFSWEEP_CORES" not in os.environ:
        yield
        return
    waited = _waited()
    before = resource.getrusage(resource.RUSAGE_SELF)
    yield
    after = resource.getrusage(resource.RUSAGE_SELF)
    # A process that was forked within the region counts from 0, and threads may have ended.
    running = max(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 0)
    switches = max(after.ru_nivcsw - before.ru_nivcsw, 0)
    _report(f"threads {running!r} {switches} {max(_waited() - waited, 0)!r}")


@contextlib.contextmanager
def region(synchronize=lambda: None):
    synchronize()
    _profiler("cuProfilerStart")
    with _threads():
        begin = time.perf_counter()
        yield
        synchronize()
        seconds = time.perf_counter() - begin
    _profiler("cuProfilerStop")
    _report(f"region {seconds!r}")


class Cold:
    """Measures regions of one iteration, each after a flush of the caches.

    `flush` must end with reading: lines that it wrote last would be written back, and counted, during the region. On a
    GPU (`queued`) the flush is queued before the iteration, which hides the host's part. The time is then
    (10 x (flush + iteration) - 10 x flush) / 10, so that the host's wait for the device matters little."""

    def __init__(self, flush, synchronize, queued):
        self.flush, self.synchronize, self.queued = flush, synchronize, queued

    def _seconds(self, steps):
        self.synchronize()
        begin = time.perf_counter()
        for step in steps:
            self.flush()
            step()
        self.synchronize()
        return time.perf_counter() - begin

    def region(self, step):
        if counted() or not self.queued:  # a run for counts needs no time, and must not count the flush
            self.flush()
            with region(self.synchronize):
                step()
            return
        seconds = 0.0
        while seconds <= 0.0:  # a delay of the host during the flushes makes the difference negative
            seconds = (self._seconds([step] * 10) - self._seconds([lambda: None] * 10)) / 10
        _report(f"region {seconds!r}")


def regions(count, run, synchronize, cold=None):
    """Measures `count` regions of `run`, with `cold` each after a flush."""
    for _ in range(count):
        if cold:
            cold.region(run)
            continue
        with region(synchronize):
            run()


def counted():
    """Returns whether this run collects kernels or counts. The program may then skip everything after its regions."""
    return "CUDA_INJECTION64_PATH" in os.environ


def verified(error, tolerance):
    _report(f"verify {float(error)!r} {float(tolerance)!r}")
