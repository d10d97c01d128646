"""What counts of a program, for roofsweep: copy this file beside yours.

    for args in roofsweep_region.points(parser):    # once, or, with process = shared, for row after row
        ...                                         # warm-up
        with roofsweep_region.region(torch.cuda.synchronize):
            ...                                     # the iterations
        roofsweep_region.verified(error, tolerance) # optional: a relative error, and the largest that is right

`synchronize` waits for the device; without one the work is over when its call returns."""

import contextlib
import ctypes
import os
import shlex
import stat
import sys
import time


def points(parser):
    """The program's arguments; then, where roofsweep asks for further points of the section's axes, those with these.

    An axis NAME stands for the option --NAME."""
    shared = "ROOFSWEEP_POINT" in os.environ and stat.S_ISSOCK(os.fstat(0).st_mode)  # set by roofsweep alone
    while True:
        axes = shlex.split(os.environ.get("ROOFSWEEP_POINT", ""))
        yield parser.parse_args(sys.argv[1:] + ["--" + axis for axis in axes])
        if not shared:
            return
        os.write(0, b"done\n")
        line = sys.stdin.readline()
        if not line:  # no further point
            return
        os.environ.update(word.split("=", 1) for word in shlex.split(line))
        if counted():
            ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).roofsweep_point()


def _profiler(call):  # seen by roofsweep's library in the runs for kernels and counts, which load it
    if counted():
        getattr(ctypes.CDLL("libcuda.so.1"), call)()


def _hand_back(line):
    folder = os.environ.get("ROOFSWEEP_REPORT")  # set by roofsweep alone
    if folder:
        with open(os.path.join(folder, str(os.getpid())), "a", encoding="ascii") as file:
            file.write(line + "\n")


@contextlib.contextmanager
def region(synchronize=lambda: None):
    synchronize()
    _profiler("cuProfilerStart")
    begin = time.perf_counter()
    yield
    synchronize()
    seconds = time.perf_counter() - begin
    _profiler("cuProfilerStop")
    _hand_back(f"region {seconds!r}")


class Cold:
    """Regions of one iteration each, before which the caches are flushed.

    `flush` ends with reading: what it wrote last would be written back during the region, and be counted there. On a
    GPU the flush stands before the iteration in the queue, so that what the host takes to enqueue it is hidden. Time is
    that of ten flushes and iterations less that of ten flushes, over ten: so the host's wait for the device counts
    little."""

    def __init__(self, flush, synchronize, queued):
        self.flush, self.synchronize, self.queued = flush, synchronize, queued

    def _seconds(self, steps):
        self.synchronize()
        begin = time.perf_counter()
        for step in steps:
            self.flush()
            if not self.queued:
                self.synchronize()
                begin = time.perf_counter()
            step()
        self.synchronize()
        return time.perf_counter() - begin

    def region(self, step):
        if counted():  # nobody asks for the time, and the flush is not to be counted
            self.flush()
            with region(self.synchronize):
                step()
        elif self.queued:
            seconds = 0.0
            while seconds <= 0.0:  # the host was held up while it flushed alone
                seconds = (self._seconds([step] * 10) - self._seconds([lambda: None] * 10)) / 10
            _hand_back(f"region {seconds!r}")
        else:
            _hand_back(f"region {self._seconds([step])!r}")


def regions(count, run, synchronize, cold=None):
    """So many regions of `run`; with a Cold each after a flush."""
    for _ in range(count):
        if cold:
            cold.region(run)
            continue
        with region(synchronize):
            run()


def counted():
    """This run is for kernels and counts: what follows the regions can be left out, as nobody reads it."""
    return "CUDA_INJECTION64_PATH" in os.environ


def verified(error, tolerance):
    _hand_back(f"verify {float(error)!r} {tolerance!r}")
