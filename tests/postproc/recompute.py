#!/usr/bin/env python3
"""Computes every derived variable of result files anew, from their raw ones, and compares.

Usage: recompute.py FILE... Exit status 0; 1 with a line for each difference; 77 (skipped) without xarray.

docs/method.md has the formulas in words. What follows shares no code with src/results/. A variable is derived
where its attribute `source` says so: one that this script does not compute is a failure. Files of older versions
have no such attribute; they are named and passed over."""

import math
import sys

from ceilings import devices, node_spread, verdict
from raw_file import NAN, File, divide, largest, np

# ---- kernels ----


def kernels(file):
    result = []
    for row, config in enumerate(file.values["kernel_config"]):
        device = int(file.values["config_device"][config]) if config >= 0 else -1
        of = {
            n: float(file.values[f"device_{n}"][device]) if device >= 0 else NAN
            for n in ("multiprocessors", "multiprocessor_threads")
        }
        blocks = math.prod(float(file.values[f"kernel_grid_{axis}"][row]) for axis in "xyz")
        threads = math.prod(float(file.values[f"kernel_block_{axis}"][row]) for axis in "xyz")
        resident = float(file.values["kernel_resident"][row])
        waves = divide(blocks, resident)
        whole = NAN if math.isnan(threads) else 32 * math.ceil(threads / 32)
        enough, least = "unknown", 4 * of["multiprocessors"]
        if not math.isnan(blocks + threads + of["multiprocessors"]):
            enough = "yes" if blocks >= least and blocks * threads >= 128 * least else "no"
        result.append(
            {
                "blocks": blocks,
                "threads": threads,
                "occupancy": divide(resident * whole, of["multiprocessors"] * of["multiprocessor_threads"]),
                "waves": waves,
                "tail_loss": NAN if math.isnan(waves) else 1 - waves / math.ceil(waves),
                "enough_parallelism": enough,
            }
        )
    return result


# ---- rows ----


class Row:
    """One row of config with its device's ceilings."""

    def __init__(self, file, row, ceilings, kernel_rows):
        self.file, self.row = file, row
        device = int(file.values["config_device"][row])
        nothing = {name: [NAN] * 8 for name in ceilings[0]} | {
            "launch_overhead": NAN,
            "launch_overhead_graph": NAN,
            "launch_dependent": NAN,
        }
        self.ceilings = ceilings[device] if device >= 0 else nothing
        self.on_cpu = device >= 0 and file.values["device_kind"][device] == "cpu"
        self.cache = file.values["device_cache"][device] if device >= 0 else [NAN] * 8
        self.kernels = [
            (kernel, kernel_rows[kernel]) for kernel, config in enumerate(file.values["kernel_config"]) if config == row
        ]
        self.known = file.values["workload"][row] != ""
        precision = file.values["config_precision"][row] if self.known else ""
        self.precision = file.precisions.index(precision) if precision in file.precisions else None
        self.level = self.find_level()

    def get(self, name):
        return float(self.file.values[name][self.row])

    def at(self, name, index):
        return float(self.file.values[name][self.row][index])

    # -- bytes --

    def bytes_counted(self):
        return not math.isnan(self.at("bytes_counted", 0))

    def level_time(self, level, read, written, every):
        of = self.ceilings
        return largest(
            divide(read, of["read_bandwidth"][level]),
            divide(written, of["write_bandwidth"][level]),
            divide(every, of["peak_bandwidth"][level]),
        )

    def traffic(self, level):
        if self.bytes_counted():
            return tuple(self.at(name, level) for name in ("bytes_read", "bytes_written", "bytes_counted"))
        return NAN, NAN, self.get("bytes_model") if level == self.level else NAN

    def find_level(self):
        levels = self.file.levels
        if self.bytes_counted():
            times = [self.level_time(level, *self.traffic(level)) for level in range(len(levels))]
            known = [time if not math.isnan(time) else -1 for time in times]
            return known.index(max(known)) if max(known) >= 0 else levels.index("dram")
        if not self.known or self.file.values["cache"][self.row] == "cold":
            return levels.index("dram")
        cache = levels.index("l2" if math.isnan(self.cache[levels.index("l3")]) else "l3")
        if math.isnan(self.get("footprint")) and not math.isnan(self.get("bytes_model")):
            return levels.index("dram")
        if math.isnan(self.get("footprint")) or math.isnan(self.cache[cache]):
            return None
        holds = self.ceilings["working_set"][cache]
        holds = self.cache[cache] if math.isnan(holds) else holds
        return cache if self.get("footprint") <= holds else levels.index("dram")

    # -- FLOPs --

    def flops(self):
        counted = self.get("flops_counted")
        return self.get("flops_model") if math.isnan(counted) else counted

    def peak(self, unit, precision):
        if unit not in ("vector", "tensor") or precision is None:
            return NAN
        own = self.ceilings[f"cycle_{unit}"][precision] * self.get("sm_clock_counted")
        return self.ceilings[f"peak_{unit}"][precision] if math.isnan(own) else own

    def parts(self):
        """(unit, precision, FLOPs), as counted; int8 operations are none."""
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
        flops, total = self.flops(), 0.0
        if not self.parts():
            return divide(flops, self.peak(self.file.word("unit", self.row), self.precision))
        for unit, precision, part in self.parts():
            peak = self.peak(unit, precision)
            if not math.isnan(part) and part != 0 and not (math.isnan(peak) and part < 0.01 * flops):
                total += divide(part, peak)
        return total

    def unit_note(self):
        unit = self.file.word("unit", self.row)
        share = {"vector": 1.0, "tensor": 0.0}.get(unit, NAN)
        if self.parts():
            share = divide(sum(p[2] for p in self.parts() if p[0] == "vector" and not math.isnan(p[2])), self.flops())
        vector, tensor = self.peak("vector", self.precision), self.peak("tensor", self.precision)
        if not (share > 0.5 and tensor > vector):
            return ""
        times = f"the roof of the tensor units is {tensor / vector:.1f} times as high"
        return f"vector units did {100 * share:.1f} % of the FLOPs; {times}"

    def tuned(self):
        own, first = (str(self.file.values[name][self.row]) for name in ("algorithm_id", "heuristic_id"))
        return ("yes" if own != first else "no") if own and first else "unknown"

    # -- kernels --

    def kernel_shares(self):
        time = {kernel: float(self.file.values["kernel_time"][kernel]) for kernel, _ in self.kernels}
        flops = {kernel: float(self.file.values["kernel_flops_counted"][kernel]) for kernel, _ in self.kernels}
        whole = self.get("flops_counted")
        if len(flops) == 1 or whole == 0:
            flops = {kernel: whole if math.isnan(value) else value for kernel, value in flops.items()}
        result = {"zero_flop_launches": NAN, "zero_flop_share": NAN, "few_blocks_share": NAN}
        if flops and not any(math.isnan(value) for value in flops.values()):
            idle = [kernel for kernel, value in flops.items() if value == 0]
            result["zero_flop_launches"] = sum(float(self.file.values["kernel_count"][kernel]) for kernel in idle)
            result["zero_flop_share"] = divide(sum(time[kernel] for kernel in idle), sum(time.values()))
        enough = {kernel: own["enough_parallelism"] for kernel, own in self.kernels}
        if enough and "unknown" not in enough.values():
            few = sum(time[kernel] for kernel, word in enough.items() if word == "no")
            result["few_blocks_share"] = divide(few, sum(time.values()))
        return result

    # -- the paper's model --

    def roofline(self, flops, traffic, peak, bandwidth):
        replayed = "launch" in self.file.values and self.file.values["launch"][self.row] == "graph"
        each = self.ceilings["launch_overhead_graph" if replayed else "launch_overhead"]
        time, overhead = self.get("time_median"), self.get("launches") * each
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
            "machine_balance": balance,
            "roof": roof,
            "roof_fraction": fraction,
            "compute_time": compute,
            "bandwidth_time": moving,
            "overhead_time": overhead,
            "bound": bound,
        }

    # -- what limits it --

    def limiter(self, shares):
        def known(name):
            return 0.0 if math.isnan(shares[name]) else max(shares[name], 0.0)

        explained, gap = max(known("compute_share"), known("bandwidth_share")), known("gap_share")
        rest = 1 - gap - explained
        few = shares["few_blocks_share"]
        if shares["host_share"] > 1:
            return "host"
        roofs = not any(math.isnan(shares[name]) for name in ("compute_share", "bandwidth_share"))
        if not (roofs and (not math.isnan(shares["gap_share"]) or explained > 0.5)) and gap <= 0.5:
            return "unknown"
        if gap > max(explained, rest):
            return "overhead"
        if rest > explained:
            return "unknown" if math.isnan(few) else "latency" if few > 0.5 else "kernel"
        return "compute" if known("compute_share") >= known("bandwidth_share") else "bandwidth"

    def evidence(self, shares):
        if self.file.word("status", self.row) != "measured":
            return ""

        def text(name):
            return "unknown" if math.isnan(shares[name]) else f"{100 * shares[name]:.1f} %"

        level = "no level" if self.level is None else self.file.levels[self.level]
        return (
            f"of the time: FLOPs at their roofs {text('compute_share')}, bytes at the roof of {level} "
            f"{text('bandwidth_share')}, idle between kernels {text('gap_share')}, host {text('host_share')}; "
            f"of the kernels' time without enough parallelism: {text('few_blocks_share')}"
        )

    def derive(self):
        levels = range(len(self.file.levels))
        flops, time = self.flops(), self.get("time_median")
        own = self.peak(self.file.word("unit", self.row), self.precision)
        needed = self.compute_roof_time()
        peak = divide(flops, needed) if flops > 0 else own
        traffic = [self.traffic(level) for level in levels]
        times = [self.level_time(level, *traffic[level]) for level in levels]
        moved, moving = (NAN, NAN) if self.level is None else (traffic[self.level][2], times[self.level])
        bandwidth = NAN
        if self.level is not None:
            bandwidth = divide(moved, moving) if moving > 0 else self.ceilings["peak_bandwidth"][self.level]
        source = {
            name: "counted" if counted else "none" if math.isnan(self.get(f"{name}_model")) else "modelled"
            for name, counted in (("flops", not math.isnan(self.get("flops_counted"))), ("bytes", self.bytes_counted()))
        }
        timer = divide(self.get("timer_overhead"), self.get("sample_iterations"))
        traced = self.get("trace_time")
        lasting = time if math.isnan(timer) else time - timer
        whole = traced if self.on_cpu and not math.isnan(traced) else lasting
        gap = whole - self.get("busy_time")
        timer_share = divide(timer, time)
        idle_energy = self.get("idle_power") * self.get("energy_time")
        gap = gap if math.isnan(gap) else max(gap, 0.0)
        sustained = self.ceilings.get(f"sustained_{self.file.word('unit', self.row)}")
        fastest = largest(self.peak("vector", self.precision), self.peak("tensor", self.precision))
        named = self.level is not None and source["bytes"] != "none"
        result = self.roofline(flops, moved, peak, bandwidth) | self.kernel_shares()
        result |= {
            "arithmetic_intensity": [divide(flops, traffic[level][2]) for level in levels],
            "roof_memory_level": self.file.levels[self.level] if named else "",
            "search_margin": divide(self.get("runner_up_time"), self.get("search_time")) - 1,
            "algorithm_tuned": self.tuned(),
            "useful_performance": divide(self.get("flops_model"), time),
            "compute_roof": peak,
            "bandwidth_roof": bandwidth,
            "sustained_fraction": divide(result["performance"], sustained[self.precision])
            if sustained and self.precision is not None
            else NAN,
            "configured_fraction": divide(result["performance"], fastest),
            "unit_note": self.unit_note(),
            "dependent_time": self.get("launches") * self.ceilings["launch_dependent"],
            "timer_share": timer_share,
            "timer_visible": "unknown" if math.isnan(timer_share) else "yes" if timer_share > 0.02 else "no",
            "energy_idle_share": divide(idle_energy, self.get("energy")),
            "busy_share": divide(self.get("busy_time"), whole),
            "gap_time": gap,
            "gap_share": divide(gap, whole),
            "host_share": divide(self.get("host_time"), lasting),
            "compute_roof_time": needed,
            "compute_share": divide(needed, lasting),
            "level_time": times,
            "bandwidth_share": divide(moving, lasting),
            "flops_source": source["flops"],
            "bytes_source": source["bytes"],
            "flops_ratio": divide(self.get("flops_counted"), self.get("flops_model")),
            "bytes_ratio": divide(self.at("bytes_counted", self.file.levels.index("dram")), self.get("bytes_model")),
        }
        result["limiter"] = self.limiter(result)
        result["limiter_evidence"] = self.evidence(result)
        return result


# ---- comparison ----


def expected(file):
    """variable -> its values, row by row."""
    ceilings, kernel_rows = devices(file), kernels(file)
    roofs = range(file.data.sizes.get("device_roof", 0))
    rows = [Row(file, row, ceilings, kernel_rows).derive() for row in range(file.data.sizes["config"])]
    result = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
    result |= {f"kernel_{name}": [row[name] for row in kernel_rows] for name in (kernel_rows[0] if kernel_rows else {})}
    names = [name for name in (ceilings[0] if ceilings else {}) if name != "launch_overhead_graph"]
    result |= {f"device_{name}": [row[name] for row in ceilings] for name in names}
    result["device_roof_verdict"] = [verdict(file, row) for row in roofs]
    result["device_roof_node_spread"] = [node_spread(file, row) for row in roofs]
    return result


def same(file, name, row, wanted):
    if isinstance(wanted, str):
        found = file.word(name, row) if "flag_meanings" in file.data[name].attrs else str(file.values[name][row])
        return found, found == wanted
    found = file.values[name][row]
    return found, np.allclose(found, np.asarray(wanted, dtype=float), rtol=1e-12, atol=0, equal_nan=True)


def check(path):
    file = File(path)
    if not file.derived():
        print(f"{path}: of an older version, which does not say what is derived")
        return 0
    wanted, failures = expected(file), 0
    unknown = [name for name in file.derived() if name not in wanted and file.data[name].size > 0]
    for name in unknown:
        print(f"{path}: {name} is derived, and nobody computes it anew here")
    for name in sorted(set(wanted) & set(file.derived())):
        for row, value in enumerate(wanted[name]):
            found, equal = same(file, name, row, value)
            if not equal:
                failures += 1
                print(f"{path}: {name}[{row}] is {found}, not {value}")
    since = {"flops_ratio", "bytes_ratio"} if "count_note" in file.data else set()  # files before these two
    lacking = set(wanted) - set(file.data.variables) - since if "format_version" in file.data.attrs else ()
    for name in sorted(lacking):
        for row, value in enumerate(wanted[name]):
            known = value not in ("", "unknown") if isinstance(value, str) else not np.all(np.isnan(value))
            if known:
                failures += 1
                print(f"{path}: {name}[{row}] is {value}, and the file lacks the variable")
    count = len(set(wanted) & set(file.derived()))
    print(f"{path}: {count} derived variables of {file.data.sizes['config']} rows, {failures} differences")
    return failures + len(unknown)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(1 if sum(check(path) for path in sys.argv[1:]) else 0)
