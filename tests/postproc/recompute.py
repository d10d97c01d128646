#!/usr/bin/env python3
"""Computes every derived variable of result files from the measured variables, and compares.

Usage: recompute.py [--write] FILE... Exit status 0; 1 with a line for each difference.
--write replaces the derived variables of the files by the computed ones. Use it after a change of the formulas.

The formulas are written from docs/method.md and share no code with src/results/. A variable whose attribute `source`
says "derived" must be computed here."""

import math
import pathlib
import sys

from ceilings import devices, nodes, verdict
from raw_file import NAN, File, divide, largest, np

IDLE = ("few_blocks", "idle_multiprocessors")
UNITS = ("dram", "l2", "data_pipe", "issue", "fma", "fp64", "tensor")
# {part of the time: reasons of stalls}, in the order of the file
PARTS = {
    "gaps": (),
    "few_blocks": (),
    "idle_multiprocessors": (),
    "issuing": (),
    "memory_latency": ("long_scoreboard",),
    "memory_queues": ("lg_throttle", "mio_throttle", "tex_throttle"),
    "math_pipe": ("math_pipe_throttle", "gmma"),
    "barrier": ("barrier",),
    "dependency": ("wait", "short_scoreboard"),
    "instruction_fetch": ("no_instruction", "branch_resolving", "imc_miss"),
    "other": ("dispatch_stall", "drain", "membar", "misc", "sleeping"),
    "inside_kernels": (),
    "idle_threads": (),
    "off_processor": (),
    "at_roof": (),
}
# ---- kernels ----


def enough_parallelism(file):
    """Returns for each kernel whether it has enough blocks to fill the device: "yes", "no" or "unknown"."""
    result = []
    for row in range(len(file.values["kernel_config"])):
        blocks, resident = (float(file.values[f"kernel_{name}"][row]) for name in ("blocks", "resident"))
        known = not math.isnan(blocks + resident)
        result.append(("yes" if blocks >= 0.9 * resident else "no") if known else "unknown")
    return result


# ---- rows ----


class Row:
    """A row of the dimension `config`, with the best roofs of its device (ceilings.py)."""

    def __init__(self, file, row, ceilings, enough):
        self.file, self.row = file, row
        device = int(file.values["config_device"][row])
        nothing = {name: [NAN] * 8 for name in ceilings[0]} | {
            "launch_overhead": NAN,
            "launch_overhead_graph": NAN,
            "constant_power": NAN,
        }
        self.ceilings = ceilings[device] if device >= 0 else nothing
        self.on_cpu = device >= 0 and file.values["device_kind"][device] == "cpu"
        self.cache = file.values["device_cache"][device] if device >= 0 else [NAN] * 8
        self.kernels = {
            kernel: enough[kernel] for kernel, config in enumerate(file.values["kernel_config"]) if config == row
        }
        self.known = file.values["workload"][row] != ""
        precision = file.values["precision"][row] if self.known else ""
        self.precision = file.precisions.index(precision) if precision in file.precisions else None
        self.cold = self.known and self.file.values["cache"][row] == "cold"
        self.level = self.find_level()

    def get(self, name):
        return float(self.file.values[name][self.row])

    def at(self, name, index):
        return float(self.file.values[name][self.row][index])

    def time(self):
        timer = divide(self.get("timer_overhead"), self.get("sample_iterations"))
        return self.get("time_median") - (0 if math.isnan(timer) else timer)

    # -- bytes --

    def bytes_counted(self):
        return not math.isnan(self.at("bytes_counted", 0))

    def level_time(self, level, written, every):
        found, part = self.ceilings["mixes"][level], divide(written, every)
        if found == NAN or not found or math.isnan(part):  # no device, no roofs, or an unknown mix of reads and writes
            return divide(every, self.ceilings["peak_bandwidth"][level])
        return every * float(np.interp(part, list(found), [1 / value for value in found.values()]))

    def traffic(self, level):
        l1, l2 = (self.file.levels.index(name) for name in ("l1", "l2"))
        if level == l1 and self.at("bytes_counted", l1) < 0.95 * self.at("bytes_counted", l2):
            return NAN, NAN
        if self.bytes_counted():
            written, every = (self.at(name, level) for name in ("bytes_written", "bytes_counted"))
            beyond = self.get("bytes_model") - every
            dirty = beyond if self.cold and level == self.file.levels.index("dram") and beyond > 0 else 0
            return written + dirty, every + dirty
        return NAN, self.get("bytes_model") if level == self.level else NAN

    def find_level(self):
        levels = self.file.levels
        if self.bytes_counted():
            times = [self.level_time(level, *self.traffic(level)) for level in range(len(levels))]
            known = [time if not math.isnan(time) else -1 for time in times]
            return known.index(max(known)) if max(known) >= 0 else levels.index("dram")
        if not self.known or self.cold:
            return levels.index("dram")
        footprint = self.get("footprint")
        if math.isnan(footprint) and self.on_cpu:
            footprint = self.get("bytes_model")
        if math.isnan(footprint):
            return None if math.isnan(self.get("bytes_model")) else levels.index("dram")
        caches = [levels.index(name) for name in (("l1", "l2", "l3") if self.on_cpu else ("l2", "l3"))]
        if all(math.isnan(self.cache[cache]) for cache in caches):
            return None
        found, whole = self.ceilings["working_set"], self.cache
        holds = {cache: whole[cache] if math.isnan(found[cache]) else found[cache] for cache in caches}
        return next((cache for cache in caches if footprint <= holds[cache]), levels.index("dram"))

    # -- FLOPs --

    def flops(self):
        counted = self.get("flops_counted")
        return self.get("flops_model") if math.isnan(counted) else counted

    def peak(self, unit, precision):
        if unit not in ("vector", "tensor") or precision is None:
            return NAN
        own = NAN if self.on_cpu else self.ceilings[f"cycle_{unit}"][precision] * self.get("sm_clock")
        return self.ceilings[f"peak_{unit}"][precision] if math.isnan(own) else own

    def parts(self):
        """Returns the counted [(unit, precision, FLOPs)], without int8 operations."""
        if math.isnan(self.get("flops_counted")):
            return []
        found = [
            (unit, precision, self.at(f"flops_{unit}", precision))
            for unit in ("vector", "tensor")
            for precision, name in enumerate(self.file.precisions)
            if name != "int8"
        ]
        vector = [part for part in found if part[0] == "vector" and not math.isnan(part[2])]
        return found if vector else []

    def compute_roof_time(self):
        flops, total = self.flops(), {"vector": 0.0, "tensor": 0.0}
        if not self.parts():
            return divide(flops, self.peak(self.file.word("unit", self.row), self.precision))
        for unit, precision, part in self.parts():
            peak = self.peak(unit, precision)
            if not math.isnan(part) and part != 0 and not (math.isnan(peak) and part < 0.01 * flops):
                total[unit] += divide(part, peak)
        return NAN if any(map(math.isnan, total.values())) else max(total.values())

    # -- energy --

    def energy_of(self, level, part):
        """Returns the energy of a byte of a memory level. part: share of the bytes that is written."""
        found = self.ceilings["energies"][level]
        if not isinstance(found, dict) or not found:
            return NAN
        return float(np.interp(0 if math.isnan(part) else part, list(found), list(found.values())))

    def energy_at_roofs(self, constant):
        flops, farther, total = self.flops(), NAN, constant
        parts = self.parts() or [(self.file.word("unit", self.row), self.precision, flops)]
        for unit, precision, part in parts if flops != 0 else ():
            known = unit in ("vector", "tensor") and precision is not None
            energy = self.ceilings[f"energy_{unit}"][precision] if known else NAN
            left_out = len(parts) > 1 and (math.isnan(part) or part == 0)
            left_out |= len(parts) > 1 and math.isnan(energy) and part < 0.01 * flops
            total += 0 if left_out else part * energy
        for level in range(len(self.file.levels)):
            written, every = self.traffic(level)
            beyond = every if math.isnan(farther) else every - farther
            if beyond > 0:
                total += beyond * self.energy_of(level, divide(written, every))
            farther = largest(farther, every)
        return NAN if math.isnan(farther) else total

    # -- kernels --

    def few_blocks_share(self):
        if not self.kernels or "unknown" in self.kernels.values():
            return NAN
        time = {kernel: float(self.file.values["kernel_time"][kernel]) for kernel in self.kernels}
        return divide(sum(time[kernel] for kernel, word in self.kernels.items() if word == "no"), sum(time.values()))

    # -- parts of the time --

    def time_parts(self, time, gap, at_roof):
        busy, names = (1 - gap) * time, list(PARTS)
        if math.isnan(busy):
            return dict.fromkeys(names, NAN)
        parts = dict.fromkeys(names, 0.0) | {"gaps": time - busy}
        running, waiting = (self.get(f"threads_{name}") for name in ("running", "waiting"))
        if not math.isnan(self.get("host_load")):  # of a CPU
            running = 1.0 if math.isnan(running) else running
            mean = max(1.0, largest(1.0, self.get("time_mean") / self.get("time_median")))
            # The median is below the mean, which contains outliers.
            off = max(0.0, (0.0 if math.isnan(waiting) else waiting) * mean - (mean - 1))
            idle = max(0.0, 1 - running * mean - off)
            parts |= {"off_processor": off * busy, "idle_threads": idle * busy}
            parts["at_roof"] = min((1 - off - idle) * busy, 0.0 if math.isnan(at_roof) else at_roof * time)
            parts["inside_kernels"] = (1 - off - idle) * busy - parts["at_roof"]
            return parts
        parts["inside_kernels"] = 0.0 if sum(map(self.kernel_time, self.kernels)) > 0 else busy
        for kernel in self.kernels if not parts["inside_kernels"] else ():
            for name, part in self.kernel_parts(kernel, busy).items():
                parts[name] += part
        return parts

    def kernel_time(self, kernel):
        return float(self.file.values["kernel_time"][kernel])

    def active_time(self, kernel):
        """Returns the time of the kernel, in s, in which multiprocessors have a block."""
        share = self.activity(kernel).get("multiprocessors", NAN)
        return self.kernel_time(kernel) * (1 if math.isnan(share) else min(share, 1))

    def kernel_parts(self, kernel, busy):
        """Returns {part: time in s} of a kernel. The time `busy` is divided among kernels in proportion to their times,
        or to their active times if they overlap."""
        whole, actives = (sum(map(one, self.kernels)) for one in (self.kernel_time, self.active_time))
        activity, scale = self.activity(kernel), busy / whole if whole <= busy else min(1, busy / actives)
        active, issue = scale * self.active_time(kernel), activity.get("issue", NAN)
        if math.isnan(issue) or math.isnan(activity.get("multiprocessors", NAN)):
            return {"inside_kernels": active}
        idle = (busy - scale * actives) * divide(self.kernel_time(kernel) - self.active_time(kernel), whole - actives)
        found = {dict(zip(("no", "yes"), IDLE)).get(self.kernels[kernel], "other"): idle if idle > 0 else 0.0}
        found["issuing"] = active * min(issue, 1)
        rest, waits = active - found["issuing"], {}
        for name, stalls in PARTS.items():
            for stall in stalls:
                wait = activity.get(f"stall_{stall}", NAN)
                waits[name] = waits.get(name, 0) + (0 if math.isnan(wait) else wait)
        if not sum(waits.values()):
            waits = {"other": 1}
        return found | {
            name: found.get(name, 0) + rest * wait / sum(waits.values()) for name, wait in waits.items() if wait
        }

    def activity(self, kernel):
        names = [str(name) for name in self.file.values.get("activity", ())]
        return {name: float(value) for name, value in zip(names, self.file.values["kernel_activity"][kernel])}

    def limit(self, time, shares, parts):
        level = "" if self.level is None else self.file.levels[self.level]
        used = [(shares["bandwidth_share"], level), (shares["compute_share"], "compute")]
        busy, found = time - parts["gaps"], dict(parts)
        whole, actives = (sum(map(one, self.kernels)) for one in (self.kernel_time, self.active_time))
        elapsed, scale = (busy / whole,) * 2 if 0 < whole <= busy else (1, min(1, divide(busy, actives)))
        work = dict.fromkeys(UNITS, 0.0)
        for kernel in self.kernels:
            activity, active = self.activity(kernel), self.active_time(kernel)
            own, memory = {unit: activity.get(unit, NAN) for unit in UNITS}, {"dram", "l2"}
            for unit in UNITS:
                work[unit] += own[unit] * (elapsed * self.kernel_time(kernel) if unit in memory else scale * active)
                own[unit] *= divide(self.kernel_time(kernel), active) if unit in memory else 1
            busiest = max(own, key=lambda unit: -1 if math.isnan(own[unit]) else own[unit])
            for name, part in self.kernel_parts(kernel, busy).items() if own[busiest] >= 0.75 else ():
                if name not in IDLE:
                    found[name] -= part
                    found[busiest] = found.get(busiest, 0) + part
        used += [(share / time, unit) for unit, share in work.items()]
        share, name = max([one for one in used if not math.isnan(one[0])], default=(0, ""), key=lambda one: one[0])
        if share >= 0.8:
            return f"{name} {100 * share:.0f} %"
        if math.isnan(parts["gaps"]):
            return ""
        idle = max(reversed(IDLE), key=found.get)
        found |= {"issuing": 0} | {name: sum(map(found.get, IDLE)) if name == idle else 0 for name in IDLE}
        (first, most), (second, more) = sorted(found.items(), key=lambda part: -part[1])[:2]
        first, second = (name if part == "at_roof" else part for part in (first, second))
        text = f"{first} {100 * most / time:.0f} %"
        return f"mixed: {text}, {second} {100 * more / time:.0f} %" if most - more < 0.05 * time else text

    # -- values of the paper's model --

    def roofline(self, flops, traffic, peak, bandwidth):
        replayed = "launch" in self.file.values and self.file.values["launch"][self.row] == "graph"
        graphed, count = self.get("launches_in_graphs"), self.get("launches")
        graphed = count if replayed else 0 if math.isnan(graphed) else graphed
        kinds = (graphed, "launch_overhead_graph"), (count - graphed, "launch_overhead")
        time, overhead = self.time(), sum(part * self.ceilings[name] for part, name in kinds if part != 0)
        overhead = overhead if count else count * self.ceilings["launch_overhead"]
        intensity, performance, balance = divide(flops, traffic), divide(flops, time), divide(peak, bandwidth)
        ceiling = math.inf if math.isinf(intensity) else intensity * bandwidth
        roof = NAN if math.isnan(peak) or math.isnan(ceiling) else min(peak, ceiling)
        box = divide(flops, overhead)
        if not math.isnan(roof) and not math.isnan(box):
            roof = min(roof, box)
        share = intensity if intensity == 0 or math.isinf(intensity) else divide(intensity, balance)
        compute = NAN if math.isnan(share) else time * min(1, share)
        moving = NAN if math.isnan(share) else divide(time, max(1, share))
        bound = "unknown"
        if time < overhead or (divide(flops, peak) < overhead and divide(traffic, bandwidth) < overhead):
            bound = "overhead"
        elif not math.isnan(compute) and not math.isnan(moving):
            bound = "compute" if compute >= moving else "bandwidth"
        fraction = divide(divide(traffic, time), bandwidth) if flops == 0 else divide(performance, roof)
        return {
            "performance": performance,
            "roof_fraction": fraction,
            "overhead_time": overhead,
            "paper_bound": bound,
        }

    # -- limiter --

    def limiter(self, shares):
        def known(name):
            return 0.0 if math.isnan(shares[name]) else max(shares[name], 0.0)

        explained, gap = max(known("compute_share"), known("bandwidth_share")), known("gap_share")
        rest = 1 - gap - explained
        few = shares["few_blocks_share"]
        roofs = not any(math.isnan(shares[name]) for name in ("compute_share", "bandwidth_share"))
        if not (roofs and (not math.isnan(shares["gap_share"]) or explained >= 0.6)) and not (
            gap > 0.5 or self.get("threads_running") < 0.6  # threads run too little to reach a roof
        ):
            return "unknown"
        nameless = math.isnan(few) and not self.on_cpu
        if explained >= (max(gap, rest) if nameless else 0.6):
            return "compute" if known("compute_share") >= known("bandwidth_share") else "bandwidth"
        if gap > rest:
            paced = "no" if self.on_cpu else self.file.word("host_paced", self.row)
            return {"yes": "host", "no": "overhead"}.get(paced, "gaps")
        return "unknown" if nameless else "latency" if few > 0.5 else "kernel"

    def evidence(self, shares):
        if self.file.word("status", self.row) != "measured":
            return ""

        def text(name):
            return "unknown" if math.isnan(shares[name]) else f"{100 * shares[name]:.1f} %"

        level = "no level" if self.level is None else self.file.levels[self.level]
        return (
            f"of the time: FLOPs at their roofs {text('compute_share')}, bytes at the roof of {level} "
            f"{text('bandwidth_share')}, idle between kernels {text('gap_share')}; "
            f"of the kernels' time without enough parallelism: {text('few_blocks_share')}"
        )

    def derive(self):
        levels = range(len(self.file.levels))
        flops = self.flops()
        own = self.peak(self.file.word("unit", self.row), self.precision)
        needed = self.compute_roof_time()
        peak = divide(flops, needed) if flops > 0 else own
        traffic = [self.traffic(level) for level in levels]
        times = [self.level_time(level, *traffic[level]) for level in levels]
        moved, moving = (NAN, NAN) if self.level is None else (traffic[self.level][1], times[self.level])
        bandwidth = NAN
        if self.level is not None:
            bandwidth = divide(moved, moving) if moving > 0 else self.ceilings["peak_bandwidth"][self.level]
        lasting, busy = self.time(), self.get("busy_time")
        # On CPUs the gap is that of the traced run.
        gap = self.get("gap_time") if self.on_cpu or math.isnan(lasting - busy) else max(lasting - busy, 0.0)
        named = self.level is not None and (self.bytes_counted() or not math.isnan(self.get("bytes_model")))
        shares = {
            "compute_share": divide(needed, lasting),
            "bandwidth_share": divide(moving, lasting),
            "gap_share": divide(gap, busy + gap if self.on_cpu else lasting),
            "few_blocks_share": self.few_blocks_share(),
        }
        at_roof = largest(shares["compute_share"], shares["bandwidth_share"])
        parts = self.time_parts(lasting, shares["gap_share"], at_roof)
        limit = self.limit(lasting, shares, parts)
        lasting = self.time() if math.isnan(self.get("energy_time")) else self.get("energy_time")
        constant = self.ceilings["constant_power"] * lasting
        energy = self.energy_at_roofs(constant)
        return self.roofline(flops, moved, peak, bandwidth) | {
            "energy_at_roofs": energy,
            "energy_constant_share": divide(constant, energy),
            "arithmetic_intensity": [divide(flops, traffic[level][1] or NAN) for level in levels],
            "roof_memory_level": self.file.levels[self.level] if named else "",
            "compute_roof": peak,
            "bandwidth_roof": bandwidth,
            "gap_time": gap,
            "level_time": times,
            "limiter": self.limiter(shares),
            "limiter_evidence": self.evidence(shares),
            "time_part": list(parts.values()),
            "limit": limit,
        }


# ---- comparison ----


def expected(file):
    """Returns {variable: values by row}."""
    ceilings, enough = devices(file), enough_parallelism(file)
    roofs = range(file.data.sizes.get("device_roof", 0))
    rows = [Row(file, row, ceilings, enough).derive() for row in range(file.data.sizes["config"])]
    result = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
    names = ("peak_bandwidth", "peak_vector", "peak_tensor", "launch_overhead", "latency")
    result |= {f"device_{name}": [row[name] for row in ceilings] for name in names}
    result["device_roof_verdict"] = [verdict(file, row) for row in roofs]
    return result | nodes(file)


def same(file, name, row, wanted):
    if isinstance(wanted, str):
        found = file.word(name, row) if "flag_meanings" in file.data[name].attrs else str(file.values[name][row])
        return found, found == wanted
    found = file.values[name][row]
    return found, np.allclose(found, np.asarray(wanted, dtype=float), rtol=1e-12, atol=0, equal_nan=True)


def check(path):
    file = File(path)
    wanted, failures = expected(file), 0
    # Variables that depend on values which only the journal has.
    given = {"sm_clock", "kernel_blocks", "kernel_threads", "cause", "device_sm_clock_free"}
    names = set(file.derived()) - set(wanted) - given
    unknown = [name for name in names if file.data[name].size > 0]
    for name in unknown:
        print(f"{path}: {name} is derived, but recompute.py does not compute it")
    for name in sorted(set(wanted) & set(file.derived())):
        for row, value in enumerate(wanted[name]):
            found, equal = same(file, name, row, value)
            if not equal:
                failures += 1
                print(f"{path}: {name}[{row}] is {found}, not {value}")
    committed = pathlib.Path(path).resolve().parent == pathlib.Path(__file__).resolve().parents[1] / "data"
    lacking = set() if committed else set(wanted) - set(file.data.variables)
    for name in sorted(lacking):
        for row, value in enumerate(wanted[name]):
            known = value not in ("", "unknown") if isinstance(value, str) else not np.all(np.isnan(value))
            if known:
                failures += 1
                print(f"{path}: {name}[{row}] is {value}, and the file lacks the variable")
    count = len(set(wanted) & set(file.derived()))
    print(f"{path}: {count} derived variables of {file.data.sizes['config']} rows, {failures} differences")
    return failures + len(unknown)


def write(path):
    """Replaces the derived variables of the file by the computed ones. If a flag has no value for a computed word, a
    value for this word is added."""
    import netCDF4  # imported here, because checks work without it

    file = File(path)
    file.data.close()
    with netCDF4.Dataset(path, "a") as data:
        for name, values in expected(file).items():
            variable = data.variables[name] if name in set(file.derived()) else None
            meanings = getattr(variable, "flag_meanings", "").split()
            if variable is None or all(same(file, name, row, value)[1] for row, value in enumerate(values)):
                continue
            if meanings:
                meanings += sorted(set(values) - set(meanings))
                variable.flag_meanings = " ".join(meanings)
                variable.flag_values = np.arange(len(meanings), dtype=variable.dtype)
                values = [meanings.index(value) for value in values]
            text = isinstance(values[0], str)
            variable[:] = np.array(values, object) if text else np.ma.masked_invalid(np.array(values, float))


if __name__ == "__main__":
    paths = [path for path in sys.argv[1:] if path != "--write"]
    if not paths:
        sys.exit(__doc__)
    for path in paths if "--write" in sys.argv else ():
        write(path)
    sys.exit(1 if sum(check(path) for path in paths) else 0)
