/* Device memory of rows. Freed blocks are kept for later rows, so that a row no larger than earlier
 * ones needs no allocation by the driver: allocating and freeing take locks that all processes of
 * the node share, and freeing waits for the device.
 *
 * Any tensor of a later row may reuse a block, except blocks of rows that wait for their counters.
 * A block is at most twice as large as the request. Idle blocks hold at most an eighth of the
 * device's memory, and are freed when memory is short. */
#pragma once

#include "base/status.h"

/* Allocates memory of the current device, to be freed with vendor_free. `what` completes the
 * message "needs BYTES of device memory for WHAT, FREE are free". No bytes: NULL.
 * STATUS_UNSUPPORTED: not enough is free. */
enum status memory_allocate(double bytes, const char *what, void **memory, struct error *error);

struct arena;
struct gpu;

/* NULL: no memory. `gpu` must outlive the arena. */
struct arena *arena_open(struct gpu *gpu);
/* Frees the blocks, which must all be idle. Takes NULL. */
void arena_close(struct arena *arena);

/* As memory_allocate, but the caller frees with arena_free. The contents are undefined. */
enum status arena_allocate(struct arena *arena, double bytes, const char *what, void **memory,
                           struct error *error);
/* Waits for the stream, because another row may use the block at once. Takes NULL. */
void arena_free(struct arena *arena, void *memory);

/* Returns all idle blocks to the driver. */
void arena_trim(struct arena *arena);

/* STATUS_UNSUPPORTED, worded as by memory_allocate, if `bytes` are not free. Trims if needed. */
enum status arena_check(struct arena *arena, double bytes, const char *what, struct error *error);
/* Sets *bytes to the memory that would be free if blocks were as small as requested, and none were
 * idle. */
enum status arena_available(const struct arena *arena, double *bytes, struct error *error);
