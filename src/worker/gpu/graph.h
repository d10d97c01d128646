/* Work in a graph: what the stream would be given is captured once, and launched as a whole. There
 * kernels follow each other with smaller gaps, and streams that a library forks cost less: as
 * frameworks run what they have compiled. */
#pragma once

#include <stdbool.h>

#include "worker/gpu/work.h"

/* Enqueues what is captured. */
typedef enum status graph_part(struct gpu *gpu, void *argument, struct error *error);

/* Captures what `enqueue` enqueues, ready for vendor.graph_launch; *graph is the caller's to drop.
 * STATUS_UNSUPPORTED with the reason if it cannot be captured. */
enum status graph_capture(struct gpu *gpu, graph_part *enqueue, void *argument,
                          struct graph **graph, struct error *error);
/* The same of so many iterations of the work. */
enum status graph_of_work(struct gpu *gpu, struct work *work, int iterations, struct graph **graph,
                          struct error *error);

/* Calls see() for each kernel of one iteration, in no order. The iteration is captured, not run.
 * *known is false where the library cannot be captured or the driver does not tell: that is
 * STATUS_OK. */
enum status graph_kernels(struct gpu *gpu, struct work *work, graph_kernel_visit *see,
                          void *argument, bool *known, struct error *error);

/* s, one of many iterations of one graph, the median of some launches. NaN for what must be
 * prepared between iterations, and for what cannot be captured: that is STATUS_OK. */
enum status graph_time(struct gpu *gpu, struct work *work, bool cold, double *seconds,
                       struct error *error);

/* Work that is replayed from a graph: launch = graph. One iteration is captured once; each
 * iteration is then one launch of that graph. Which algorithm runs was chosen before.
 *
 * What stands before an iteration (work_ops.reset, a flushed cache) is launched in the stream, as
 * it is for other work. A result that is compared comes from a graph as well: of the same calls and
 * of what fills the results before.
 *
 * Takes `stream`, the same work launched one by one, over: on success it is *work's member
 * `stream`, and released with it. STATUS_UNSUPPORTED with the reason if the work cannot be
 * captured; then it stays the caller's, as after any failure. */
enum status replay_create(struct gpu *gpu, struct work *stream, struct work **work,
                          struct error *error);
