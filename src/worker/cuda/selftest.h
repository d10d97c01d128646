/* The self-test: counts work with known FLOPs and bytes, and compares. */
#pragma once

#include <stdio.h>

#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/profiling/profiler.h"

/* As device_ops.self_test. */
enum status selftest_run(struct profiler *profiler, struct gpu *gpu, FILE *stream,
                         struct error *error);
