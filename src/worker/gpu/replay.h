/* Work that is replayed from a CUDA graph: launch = graph. One iteration is captured once; each
 * iteration is then one launch of that graph. Which algorithm runs was chosen in the stream before.
 *
 * What stands before an iteration (work_ops.reset, a flushed cache) is launched in the stream, as it is
 * for other work. A result that is compared comes from a graph as well: of the same calls and of what
 * fills the results before. */
#ifndef ROOFSWEEP_REPLAY_H
#define ROOFSWEEP_REPLAY_H

#include "worker/gpu/work.h"

/* Takes `stream`, the same work launched one by one, over: on success it is *work's member `stream`, and
 * released with it. STATUS_UNSUPPORTED with the reason if the work cannot be captured; then it stays the
 * caller's, as after any failure. */
enum status replay_create(struct gpu *gpu, struct work *stream, struct work **work,
                          struct error *error);

#endif
