"""Variables that not every file has: a file lacks what no row, device or roof of it can have a value of.

Here they stand by what a missing value of them is; tests/postproc/variables.py holds them against the program's own
list."""

import numpy as np

FORMAT_VERSION = 2  # the newest that is understood; a file without the attribute is of a version before 2

# fmt: off
TEXTS = [
    "config_precision", "config_algorithm", "cache",  # parameters of most workloads, though not of programs
    "job_id", "layout_chosen", "algorithm_id", "algorithm_launches", "algorithm_origin", "refused_algorithms",
    "heuristic_algorithm", "heuristic_id",
    "runner_up_algorithm", "runner_up_id", "program_hash", "pci_id", "unit_note", "device_pci_id",
    "device_roofs_reused",
]
FLAGS = [
    "host_paced", "converged", "throttled", "algorithm_tuned", "kernel_enough_parallelism", "device_ecc",
    "device_mig", "device_roof_throttled", "device_roof_settled",
]
BY_LEVEL = [
    "bytes_counted", "bytes_read", "bytes_written", "kernel_bytes_counted", "device_working_set",
    "device_theory_bandwidth", "device_roof_bytes_ratio",
]
BY_PRECISION = [
    "flops_vector", "flops_tensor", "device_peak_tensor", "device_cycle_vector", "device_cycle_tensor",
    "device_sustained_vector", "device_sustained_tensor", "device_theory_vector", "device_theory_tensor",
]
NUMBERS = [
    "layout_other_time", "search_candidates", "search_time", "search_noise", "heuristic_time", "runner_up_time",
    "memcpy_count", "memcpy_bytes", "memcpy_time", "memset_count", "memset_bytes", "memset_time",
    "graph_time", "host_time", "profiler_ratio", "flops_counted", "sm_clock", "sm_clock_counted", "memory_clock",
    "temperature", "throttle_reasons", "sm_clock_free", "energy", "energy_time", "energy_clock", "power",
    "idle_power", "verify_error", "verify_tolerance", "verify_element_error", "verify_element_tolerance",
    "verify_elements", "sustained_fraction", "dependent_time", "host_share", "zero_flop_launches", "zero_flop_share",
    "few_blocks_share", "energy_idle_share", "search_margin", "kernel_grid_x", "kernel_grid_y", "kernel_grid_z",
    "kernel_block_x", "kernel_block_y", "kernel_block_z", "kernel_registers", "kernel_static_shared",
    "kernel_dynamic_shared", "kernel_cluster", "kernel_resident", "kernel_flops_counted", "kernel_blocks",
    "kernel_threads", "kernel_occupancy", "kernel_waves", "kernel_tail_loss", "device_multiprocessor_threads",
    "device_clock_max", "device_memory_clock_max", "device_power_limit", "device_count_together",
    "device_launch_dependent",
    "device_roof_nominal_fraction", "device_roof_clock_fraction", "device_roof_sm_clock", "device_roof_memory_clock",
    "device_roof_power", "device_roof_temperature", "device_roof_throttle_reasons", "device_roof_sustained",
    "device_roof_sustained_clock", "device_roof_sustained_power", "device_roof_settling_time",
    "device_roof_working_set", "device_roof_flops_ratio", "device_roof_node_spread", "flops_ratio",
    "bytes_ratio",
]
# fmt: on


def dimension(name):
    """What the rows of a variable are."""
    return next((word for word in ("kernel", "device_roof", "device") if name.startswith(f"{word}_")), "config")


def missing(data, name):
    """(dimensions, values) of a variable without any value."""
    dims = [dimension(name)]
    dims += ["memory_level"] if name in BY_LEVEL else ["precision"] if name in BY_PRECISION else []
    word = "" if name in TEXTS else "unknown" if name in FLAGS else None
    shape = [data.sizes[dim] for dim in dims]
    return dims, np.full(shape, np.nan) if word is None else np.full(shape, word, dtype=object)


def completed(data):
    """The dataset with all of them; what it lacks is missing."""
    names = [name for name in [*TEXTS, *FLAGS, *BY_LEVEL, *BY_PRECISION, *NUMBERS] if name not in data.variables]
    return data.assign({name: missing(data, name) for name in names})
