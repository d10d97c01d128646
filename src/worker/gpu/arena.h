/* Device memory of rows. Freed blocks are kept for later rows, so that rows seldom need the driver:
 * allocating and freeing take locks that all processes of the node share, and freeing waits for the
 * device.
 *
 * Any tensor of a later row may reuse a block, except blocks of rows that wait for their counters.
 * A block is at most twice as large as the request. Idle blocks hold at most an eighth of the
 * device's memory, and are freed when memory is short. */
#pragma once

#include "base/status.h"

/* Allocates device memory; the caller frees it with vendor_free. *memory is NULL for 0 bytes.
 * STATUS_UNSUPPORTED: "needs BYTES of device memory for WHAT, FREE are free". */
enum status memory_allocate(double bytes, const char *what, void **memory, struct error *error);

struct arena;
struct gpu;

/* NULL: no memory. `gpu` must outlive the arena. */
struct arena *arena_open(struct gpu *gpu);
/* Frees all blocks, which must be idle. Takes NULL. */
void arena_close(struct arena *arena);

/* As memory_allocate, but the caller frees with arena_free. The contents are undefined. */
enum status arena_allocate(struct arena *arena, double bytes, const char *what, void **memory,
                           struct error *error);
/* Waits for the stream, because another row may use the block at once. Takes NULL. */
void arena_free(struct arena *arena, void *memory);

/* Returns all idle blocks to the driver. */
void arena_trim(struct arena *arena);

/* Returns the error of memory_allocate if `bytes` are not free, even after a trim. */
enum status arena_check(struct arena *arena, double bytes, const char *what, struct error *error);
/* Sets *bytes to the memory that is free, idle, or in used blocks beyond the requested sizes. */
enum status arena_available(const struct arena *arena, double *bytes, struct error *error);
