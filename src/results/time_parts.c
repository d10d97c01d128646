#include "results/time_parts.h"

#include <math.h>
#include <stdio.h>

/* The part of the time for each reason of stalls. */
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
    return fmin(kernel->activity[ACTIVITY_MULTIPROCESSORS], 1); /* fmin ignores NaN: 1 */
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
    return blocks < full * (double)kernel->resident ? TIME_FEW_BLOCKS : TIME_TAIL;
}

/* Adds a kernel that takes `time` s to the parts. */
static void kernel_add(const struct kernel *kernel, double time, double parts[TIME_PART_COUNT])
{
    if (!is_known(kernel)) {
        parts[TIME_INSIDE_KERNELS] += time;
        return;
    }
    const double active = time * active_share(kernel);
    const double issuing = active * fmin(kernel->activity[ACTIVITY_ISSUE], 1);
    double waits = 0;
    for (int i = ACTIVITY_STALL_BARRIER; i < ACTIVITY_WAITS; ++i)
        waits += isnan(kernel->activity[i]) ? 0 : kernel->activity[i];
    parts[idle_part(kernel)] += time - active;
    parts[TIME_ISSUING] += issuing;
    if (waits == 0)
        parts[TIME_OTHER] += active - issuing;
    for (int i = ACTIVITY_STALL_BARRIER; i < ACTIVITY_WAITS && waits > 0; ++i)
        if (!isnan(kernel->activity[i]))
            parts[part_of[i]] += (active - issuing) * kernel->activity[i] / waits;
}

static double kernels_time(const struct record *record)
{
    double time = 0;
    for (size_t i = 0; i < record->kernel_count; ++i)
        time += record->kernels[i].time;
    return time;
}

/* Divides the time in which regions of a CPU run. An unknown wait counts as 0. */
static void threads_add(const struct record *record, double busy, double roof,
                        double parts[TIME_PART_COUNT])
{
    const double running = record->threads_running * busy;
    parts[TIME_OFF_PROCESSOR] = fmax(record->threads_waiting, 0) * busy; /* fmax ignores NaN */
    parts[TIME_IDLE_THREADS] = fmax(busy - running - parts[TIME_OFF_PROCESSOR], 0);
    parts[TIME_AT_ROOF] = fmin(fmax(roof, 0), running);
    parts[TIME_INSIDE_KERNELS] = running - parts[TIME_AT_ROOF];
}

void time_parts(const struct record *record, double time, double gap, double at_roof,
                double parts[TIME_PART_COUNT])
{
    const double own = kernels_time(record), busy = (1 - gap) * time;
    const bool known = record->launches != FIELD_MISSING && !isnan(busy);
    for (int i = 0; i < TIME_PART_COUNT; ++i)
        parts[i] = known ? 0 : NAN;
    if (!known)
        return;
    parts[TIME_GAPS] = time - busy;
    if (!isnan(record->threads_running)) {
        threads_add(record, busy, at_roof * time, parts);
        return;
    }
    if (!(own > 0))
        parts[TIME_INSIDE_KERNELS] = busy;
    /* If kernels overlap, they divide the time in which at least one of them runs. */
    for (size_t i = 0; i < record->kernel_count && own > 0; ++i)
        kernel_add(&record->kernels[i], busy * record->kernels[i].time / own, parts);
}

/* Share of the row's time in which the unit is busy. NaN if a kernel's activity is unknown. */
static double unit_share(const struct record *record, int unit, double busy)
{
    const bool elapsed = unit == ACTIVITY_DRAM || unit == ACTIVITY_L2;
    double share = 0, own = kernels_time(record);
    for (size_t i = 0; i < record->kernel_count; ++i) {
        const struct kernel *kernel = &record->kernels[i];
        share += busy * kernel->time / own * (elapsed ? 1 : active_share(kernel)) *
                 kernel->activity[unit];
    }
    return share;
}

void limit_write(const struct record *record, double time, const struct roof_share roofs[2],
                 const double parts[TIME_PART_COUNT], char text[LIMIT_TEXT])
{
    const double at_roof = 0.8, near = 0.05;
    struct roof_share most = {NULL, 0};
    int first = 0, second = 1;
    for (int i = 0; i < 2; ++i)
        if (roofs[i].share > most.share) /* false for NaN */
            most = roofs[i];
    for (int i = 0; i < ACTIVITY_UNITS; ++i) {
        double share = unit_share(record, i, 1 - parts[TIME_GAPS] / time);
        if (share > most.share)
            most = (struct roof_share){activity_name[i], share};
    }
    for (int i = 1; i < TIME_PART_COUNT; ++i) {
        if (parts[i] > parts[first])
            second = first;
        else if (i > 1 && parts[i] > parts[second])
            second = i;
        first = parts[i] > parts[first] ? i : first;
    }
    const char *names[] = {first == TIME_AT_ROOF ? most.name : time_part_name[first],
                           second == TIME_AT_ROOF ? most.name : time_part_name[second]};
    *text = '\0';
    if (most.share >= at_roof)
        snprintf(text, LIMIT_TEXT, "%s %.0f %%", most.name, 100 * most.share);
    else if (parts[first] - parts[second] < near * time)
        snprintf(text, LIMIT_TEXT, "mixed: %s %.0f %%, %s %.0f %%", names[0],
                 100 * parts[first] / time, names[1], 100 * parts[second] / time);
    else if (!isnan(parts[first]))
        snprintf(text, LIMIT_TEXT, "%s %.0f %%", names[0], 100 * parts[first] / time);
}
