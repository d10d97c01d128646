/* Device memory of rows. What a row gives back is kept for the next ones, so that a row that is no
 * larger than those before it asks the driver for nothing: allocating and freeing wait for locks
 * that all processes of the node share, and freeing for the device.
 *
 * Blocks, not one for each role: rows that wait for their counters keep theirs. A block serves any
 * role. It is never more than twice as large as what it is asked for. What lies idle is at most an
 * eighth of the device's memory, and is given to the driver when memory is short. */
#pragma once

#include "base/status.h"

/* Of the current device, asked for with a reason that people can read, and freed with vendor.free:
 * `what` names it in the message "needs BYTES of device memory for WHAT, FREE are free". No bytes:
 * NULL. STATUS_UNSUPPORTED if so much is not free. */
enum status memory_allocate(double bytes, const char *what, void **memory, struct error *error);

/* STATUS_UNSUPPORTED if so much is not free now. */
enum status memory_check(double bytes, const char *what, struct error *error);

struct arena;
struct gpu;

/* For work on this GPU, which must outlive it. NULL without memory. */
struct arena *arena_open(struct gpu *gpu);
/* Frees the idle blocks; none is in use any more. Takes NULL. */
void arena_close(struct arena *arena);

/* As memory_allocate, same errors: aligned as by vendor.allocate, contents undefined, no bytes:
 * NULL. To be given back by arena_free. */
enum status arena_allocate(struct arena *arena, double bytes, const char *what, void **memory,
                           struct error *error);
/* Waits for the stream first: the next one may use the block at once. Takes NULL. */
void arena_free(struct arena *arena, void *memory);

/* Gives all that is idle to the driver. */
void arena_trim(struct arena *arena);

/* As memory_check. Trims if it helps. */
enum status arena_check(struct arena *arena, double bytes, const char *what, struct error *error);
/* Byte that would be free if every row had been given exactly what it asked for, and nothing were
 * idle. */
enum status arena_available(const struct arena *arena, double *bytes, struct error *error);
