#include "worker/gpu/arena.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/units.h"
#include "worker/gpu/vendor.h"

static enum status memory_refuse(double bytes, const char *what, double available,
                                 struct error *error)
{
    char need[UNITS_TEXT], have[UNITS_TEXT];
    units_format(bytes, "B", need);
    units_format(available, "B", have);
    return error_set(error, STATUS_UNSUPPORTED, "needs %s of device memory for %s, %s are free",
                     need, what, have);
}

static enum status memory_check(double bytes, const char *what, struct error *error)
{
    double available, total;
    TRY(vendor_available(&available, &total, error));
    return bytes > available ? memory_refuse(bytes, what, available, error) : STATUS_OK;
}

enum status memory_allocate(double bytes, const char *what, void **memory, struct error *error)
{
    TRY(memory_check(bytes, what, error));
    void *result = NULL;
    enum status status = bytes > 0.0 ? vendor_allocate(bytes, &result, error) : STATUS_OK;
    if (status == STATUS_UNSUPPORTED) {
        double available, total;
        TRY(vendor_available(&available, &total, error));
        return memory_refuse(bytes, what, available, error);
    }
    if (status == STATUS_OK)
        *memory = result;
    return status;
}

/* ---- memory of rows ---- */

static const double waste_most = 2.0; /* largest ratio of a reused block to the rounded request */
static const double idle_most = 1.0 / 8;       /* share of the device's memory */
static const double left_for_others = 1.0 / 8; /* share of the device's memory for libraries */

struct block {
    void *memory;
    double bytes;
    double requested; /* byte; valid while the block is in use */
    bool used;
};

struct arena {
    struct gpu *gpu;
    struct block *blocks;
    int count;
    double total; /* byte, memory of the device; set by the first allocation */
};

struct arena *arena_open(struct gpu *gpu)
{
    struct arena *arena = calloc(1, sizeof *arena);
    if (arena)
        arena->gpu = gpu;
    return arena;
}

void arena_close(struct arena *arena)
{
    if (!arena)
        return;
    arena_trim(arena);
    free(arena->blocks);
    free(arena);
}

static double idle_bytes(const struct arena *arena)
{
    double sum = 0;
    for (int i = 0; i < arena->count; ++i)
        sum += arena->blocks[i].used ? 0 : arena->blocks[i].bytes;
    return sum;
}

void arena_trim(struct arena *arena)
{
    int kept = 0;
    for (int i = 0; i < arena->count; ++i)
        if (arena->blocks[i].used)
            arena->blocks[kept++] = arena->blocks[i];
        else
            vendor_free(arena->blocks[i].memory);
    arena->count = kept;
}

/* Rounds up to one of four sizes for each power of two, so that similar rows share blocks. */
static double rounded(double bytes)
{
    const double steps = 4, least = 512;
    double base = exp2(floor(log2(fmax(bytes, least))));
    return base + ceil((fmax(bytes, least) - base) / (base / steps)) * (base / steps);
}

static struct block *idle_find(const struct arena *arena, double bytes)
{
    struct block *best = NULL;
    for (int i = 0; i < arena->count; ++i) {
        struct block *block = &arena->blocks[i];
        if (!block->used && block->bytes >= bytes && block->bytes <= waste_most * rounded(bytes) &&
            (!best || block->bytes < best->bytes))
            best = block;
    }
    return best;
}

/* Trims first if libraries would have little memory left. Tries the exact size if it must. */
static enum status memory_get(struct arena *arena, double bytes, const char *what,
                              struct block *block, struct error *error)
{
    struct error refusal;
    double available;
    TRY(vendor_available(&available, &arena->total, error));
    block->bytes = rounded(bytes);
    if (available - block->bytes < left_for_others * arena->total)
        arena_trim(arena);
    enum status status = memory_allocate(block->bytes, what, &block->memory, &refusal);
    if (status == STATUS_OK)
        return STATUS_OK;
    if (status == STATUS_UNSUPPORTED) {
        arena_trim(arena);
        block->bytes = bytes;
        return memory_allocate(bytes, what, &block->memory, error);
    }
    *error = refusal;
    return status;
}

enum status arena_allocate(struct arena *arena, double bytes, const char *what, void **memory,
                           struct error *error)
{
    struct block *block = bytes > 0 ? idle_find(arena, bytes) : NULL;
    struct block made = {NULL, 0, bytes, true};
    if (bytes <= 0) {
        *memory = NULL;
        return STATUS_OK;
    }
    if (!block) {
        struct block *blocks = realloc(arena->blocks, ((size_t)arena->count + 1) * sizeof *blocks);
        if (!blocks)
            return error_set(error, STATUS_FAILED, "no memory for %d blocks", arena->count + 1);
        arena->blocks = blocks;
        TRY(memory_get(arena, bytes, what, &made, error));
        block = &arena->blocks[arena->count++];
        *block = made;
    }
    block->used = true;
    block->requested = bytes;
    *memory = block->memory;
    return STATUS_OK;
}

void arena_free(struct arena *arena, void *memory)
{
    struct error ignored; /* the next call reports a lost device */
    if (!memory)
        return;
    (void)vendor_synchronize(arena->gpu, &ignored);
    for (int i = 0; i < arena->count; ++i)
        if (arena->blocks[i].memory == memory)
            arena->blocks[i].used = false;
    if (idle_bytes(arena) > idle_most * arena->total)
        arena_trim(arena);
}

enum status arena_check(struct arena *arena, double bytes, const char *what, struct error *error)
{
    enum status status = memory_check(bytes, what, error);
    if (status != STATUS_UNSUPPORTED || idle_bytes(arena) == 0)
        return status;
    arena_trim(arena);
    return memory_check(bytes, what, error);
}

enum status arena_available(const struct arena *arena, double *bytes, struct error *error)
{
    double total;
    TRY(vendor_available(bytes, &total, error));
    for (int i = 0; i < arena->count; ++i)
        *bytes += arena->blocks[i].bytes - (arena->blocks[i].used ? arena->blocks[i].requested : 0);
    return STATUS_OK;
}
