/* Work for the scripted H200 (scripted_bench.h), and samples of it. For tests only. */
#ifndef ROOFSWEEP_TEST_TIMED_WORK_H
#define ROOFSWEEP_TEST_TIMED_WORK_H

#include <stdbool.h>

#include "model/record.h"
#include "worker/gpu/work.h"

/* An iteration is one empty kernel, */
enum status empty_iterate(struct gpu *gpu, struct work *work, struct error *error);
extern const struct work_ops empty_ops;
/* and what stands between iterations a kernel that waits. */
enum status nothing_reset(struct gpu *gpu, struct work *work, struct error *error);

/* Times so many samples of the work, hot, as a row does. */
struct record timed(struct work *work, int samples, double *seconds);
void assert_all_near(const double *seconds, int count, double expected);

#endif
