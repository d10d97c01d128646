#include "results/time_parts.h"

#include <math.h>
#include <stdio.h>

/* The part of the time to which each reason of a stall belongs. */
static const enum time_part part_of[ACTIVITY_WAITS] = {
    [ACTIVITY_STALL_BARRIER] = TIME_BARRIER,
    [ACTIVITY_STALL_BRANCH_RESOLVING] = TIME_INSTRUCTION_FETCH,
    [ACTIVITY_STALL_DISPATCH_STALL] = TIME_OTHER,
    [ACTIVITY_STALL_DRAIN] = TIME_OTHER,
    [ACTIVITY_STALL_GMMA] = TIME_MATH_PIPE,
    [ACTIVITY_STALL_IMC_MISS] = TIME_INSTRUCTION_FETCH,
    [ACTIVITY_STALL_LG_THROTTLE] = TIME_MEMORY_QUEUES,
    [ACTIVITY_STALL_LONG_SCOREBOARD] = TIME_MEMORY_LATENCY,
    [ACTIVITY_STALL_MATH_PIPE_THROTTLE] = TIME_MATH_PIPE,
    [ACTIVITY_STALL_MEMBAR] = TIME_OTHER,
    [ACTIVITY_STALL_MIO_THROTTLE] = TIME_MEMORY_QUEUES,
    [ACTIVITY_STALL_MISC] = TIME_OTHER,
    [ACTIVITY_STALL_NO_INSTRUCTION] = TIME_INSTRUCTION_FETCH,
    [ACTIVITY_STALL_SHORT_SCOREBOARD] = TIME_DEPENDENCY,
    [ACTIVITY_STALL_SLEEPING] = TIME_OTHER,
    [ACTIVITY_STALL_TEX_THROTTLE] = TIME_MEMORY_QUEUES,
    [ACTIVITY_STALL_WAIT] = TIME_DEPENDENCY,
};

/* Share of the kernel's time in which a multiprocessor has a block. The counted cycles and the
 * traced time come from different runs, so their quotient can exceed 1. */
static double active_share(const struct kernel *kernel)
{
    return fmin(kernel->activity[ACTIVITY_MULTIPROCESSORS], 1); /* NaN gives 1 (fmin) */
}

/* How the kernels of a row divide the time in which at least one of them runs. Each member is a
 * factor for a part of a kernel's own time. */
struct division {
    double elapsed; /* factor for the kernel's whole time */
    double active;  /* factor for the time in which its multiprocessors have a block */
    double idle;    /* factor for the rest of its time */
};

/* The times of overlapping kernels add up to more than `busy`, because each kernel is stretched by
 * the others. The active time of overlapping kernels is not stretched, unless it alone exceeds
 * `busy`. */
static struct division divide(const struct record *record, double busy)
{
    double own = 0, active = 0;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        own += record->kernels[i].time;
        active += record->kernels[i].time * active_share(&record->kernels[i]);
    }
    struct division by = {.elapsed = own > busy ? 1 : own > 0 ? busy / own : 0};
    by.active = own > busy ? fmin(1, busy / active) : by.elapsed;
    by.idle = own > active ? (busy - by.active * active) / (own - active) : 0;
    return by;
}

static bool is_known(const struct kernel *kernel)
{
    return !isnan(kernel->activity[ACTIVITY_MULTIPROCESSORS]) &&
           !isnan(kernel->activity[ACTIVITY_ISSUE]);
}

static enum time_part idle_part(const struct kernel *kernel)
{
    const double full = 0.9; /* nine tenths of a wave, as in derive.c */
    const double blocks = (double)(kernel->grid_x * kernel->grid_y * kernel->grid_z);
    if (kernel->resident == FIELD_MISSING || kernel->grid_x == FIELD_MISSING)
        return TIME_OTHER;
    return blocks < full * (double)kernel->resident ? TIME_FEW_BLOCKS : TIME_IDLE_MULTIPROCESSORS;
}

/* Adds a kernel to the parts. */
static void kernel_add(const struct kernel *kernel, struct division by,
                       double parts[TIME_PART_COUNT])
{
    const double active = by.active * kernel->time * active_share(kernel);
    const double issuing = active * fmin(kernel->activity[ACTIVITY_ISSUE], 1);
    double waits = 0;
    if (!is_known(kernel)) {
        parts[TIME_INSIDE_KERNELS] += active;
        return;
    }
    for (int i = ACTIVITY_STALL_BARRIER; i < ACTIVITY_WAITS; ++i)
        waits += isnan(kernel->activity[i]) ? 0 : kernel->activity[i];
    parts[idle_part(kernel)] += by.idle * kernel->time * (1 - active_share(kernel));
    parts[TIME_ISSUING] += issuing;
    if (waits == 0)
        parts[TIME_OTHER] += active - issuing;
    for (int i = ACTIVITY_STALL_BARRIER; i < ACTIVITY_WAITS && waits > 0; ++i)
        if (!isnan(kernel->activity[i]))
            parts[part_of[i]] += (active - issuing) * kernel->activity[i] / waits;
}

/* Divides the time in which regions of a CPU run. The record's shares refer to the mean time, which
 * is longer than the median: the difference is taken first from the time off the processor, then
 * from the idle time. An unknown wait counts as 0. */
static void threads_add(const struct record *record, double busy, double roof,
                        double parts[TIME_PART_COUNT])
{
    const double mean = fmax(record->time_mean / record->time_median, 1); /* fmax ignores NaN */
    const double off = fmax(fmax(record->threads_waiting, 0) * mean - (mean - 1), 0);
    const double idle = fmax(1 - record->threads_running * mean - off, 0);
    const double running = (1 - off - idle) * busy;
    parts[TIME_OFF_PROCESSOR] = off * busy;
    parts[TIME_IDLE_THREADS] = idle * busy;
    parts[TIME_AT_ROOF] = fmin(fmax(roof, 0), running);
    parts[TIME_INSIDE_KERNELS] = running - parts[TIME_AT_ROOF];
}

void time_parts(const struct record *record, double time, double gap, double roof,
                double parts[TIME_PART_COUNT])
{
    const double busy = (1 - gap) * time;
    for (int i = 0; i < TIME_PART_COUNT; ++i)
        parts[i] = isnan(busy) ? NAN : 0;
    if (isnan(busy))
        return;
    parts[TIME_GAPS] = time - busy;
    if (!isnan(record->threads_running)) {
        threads_add(record, busy, roof * time, parts);
        return;
    }
    const struct division by = divide(record, busy);
    if (by.elapsed == 0)
        parts[TIME_INSIDE_KERNELS] = busy;
    for (size_t i = 0; i < record->kernel_count; ++i)
        kernel_add(&record->kernels[i], by, parts);
}

static bool is_memory(int unit)
{
    return unit == ACTIVITY_DRAM || unit == ACTIVITY_L2;
}

/* Returns the time in which the unit would do its work at its roof, s; NaN: unknown activity. */
static double unit_time(const struct record *record, int unit, struct division by)
{
    double time = 0;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        const struct kernel *kernel = &record->kernels[i];
        time += (is_memory(unit) ? by.elapsed : by.active * active_share(kernel)) * kernel->time *
                kernel->activity[unit];
    }
    return time;
}

/* Returns the unit that is busiest while the kernel is active. *share: of its roof; 0: unknown. */
static int kernel_unit(const struct kernel *kernel, double *share)
{
    int busiest = 0;
    *share = 0;
    for (int i = 0; i < ACTIVITY_UNITS; ++i) {
        double own = kernel->activity[i] / (is_memory(i) ? active_share(kernel) : 1);
        busiest = own > *share ? i : busiest;
        *share = fmax(*share, own);
    }
    return busiest;
}

/* Possible limits of a row: first the parts of its time, then the units. Shares are times in s. */
enum { CANDIDATES = TIME_PART_COUNT + ACTIVITY_UNITS };

static const double at_roof = 0.75; /* a unit limits a kernel from this share of its roof on */

/* If a kernel has a unit at its roof, moves the kernel's active time from the parts to the unit.
 * Issuing is work, so it is no candidate. Time without a block counts as few_blocks or as
 * idle_multiprocessors, whichever is more. */
static void candidates_find(const struct record *record, struct division by,
                            struct roof_share all[CANDIDATES])
{
    struct roof_share *idle = all + TIME_FEW_BLOCKS, *less = all + TIME_IDLE_MULTIPROCESSORS, *kept;
    by.idle = 0;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        double own[TIME_PART_COUNT] = {0}, share;
        int unit = kernel_unit(&record->kernels[i], &share);
        kernel_add(&record->kernels[i], by, own);
        for (int j = 0; j < TIME_PART_COUNT && share >= at_roof; ++j) {
            all[j].share -= own[j];
            all[TIME_PART_COUNT + unit].share += own[j];
        }
    }
    all[TIME_ISSUING].share = 0;
    kept = idle->share > less->share ? idle : less;
    kept->share = idle->share + less->share;
    (kept == idle ? less : idle)->share = 0;
}

void limit_write(const struct record *record, double time, const struct roof_share roofs[2],
                 const double parts[TIME_PART_COUNT], char text[LIMIT_TEXT])
{
    const double most_of_time = 0.8, near = 0.05;
    const struct division by = divide(record, time - parts[TIME_GAPS]);
    struct roof_share all[CANDIDATES], most = {NULL, 0}, *first = all, *second;
    for (int i = 0; i < TIME_PART_COUNT; ++i)
        all[i] = (struct roof_share){time_part_name[i], parts[i]};
    for (int i = 0; i < 2; ++i)
        if (roofs[i].share > most.share) /* false for NaN */
            most = roofs[i];
    for (int i = 0; i < ACTIVITY_UNITS; ++i) {
        struct roof_share unit = {activity_name[i], unit_time(record, i, by) / time};
        all[TIME_PART_COUNT + i] = (struct roof_share){activity_name[i], 0};
        most = unit.share > most.share ? unit : most;
    }
    all[TIME_AT_ROOF].name = most.name;
    candidates_find(record, by, all);
    for (struct roof_share *i = all; i < all + CANDIDATES; ++i)
        first = i->share > first->share ? i : first;
    second = all + (first == all);
    for (struct roof_share *i = all; i < all + CANDIDATES; ++i)
        second = i != first && i->share > second->share ? i : second;
    *text = '\0';
    if (most.share >= most_of_time)
        snprintf(text, LIMIT_TEXT, "%s %.0f %%", most.name, 100 * most.share);
    else if (first->share - second->share < near * time)
        snprintf(text, LIMIT_TEXT, "mixed: %s %.0f %%, %s %.0f %%", first->name,
                 100 * first->share / time, second->name, 100 * second->share / time);
    else if (!isnan(first->share))
        snprintf(text, LIMIT_TEXT, "%s %.0f %%", first->name, 100 * first->share / time);
}
