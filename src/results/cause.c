#include "results/cause.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const unit_text[ACTIVITY_UNITS] = {
    [ACTIVITY_DRAM] = "device memory",
    [ACTIVITY_L2] = "l2",
    [ACTIVITY_DATA_PIPE] = "data pipe of l1 and shared memory",
    [ACTIVITY_ISSUE] = "issue slots",
    [ACTIVITY_FMA] = "FMA pipe",
    [ACTIVITY_FP64] = "FP64 pipe",
    [ACTIVITY_TENSOR] = "tensor pipe",
};

static const char *const wait_text[ACTIVITY_WAITS] = {
    [ACTIVITY_STALL_BARRIER] = "other threads at a barrier",
    [ACTIVITY_STALL_BRANCH_RESOLVING] = "branches",
    [ACTIVITY_STALL_DISPATCH_STALL] = "the dispatch of instructions",
    [ACTIVITY_STALL_DRAIN] = "stores at their end",
    [ACTIVITY_STALL_GMMA] = "the tensor pipe",
    [ACTIVITY_STALL_IMC_MISS] = "constants",
    [ACTIVITY_STALL_LG_THROTTLE] = "the queue to global memory",
    [ACTIVITY_STALL_LONG_SCOREBOARD] = "global memory",
    [ACTIVITY_STALL_MATH_PIPE_THROTTLE] = "pipes of arithmetic",
    [ACTIVITY_STALL_MEMBAR] = "memory barriers",
    [ACTIVITY_STALL_MIO_THROTTLE] = "the queue to shared memory",
    [ACTIVITY_STALL_MISC] = "other things",
    [ACTIVITY_STALL_NO_INSTRUCTION] = "instructions",
    [ACTIVITY_STALL_SHORT_SCOREBOARD] = "shared memory",
    [ACTIVITY_STALL_SLEEPING] = "the end of a sleep",
    [ACTIVITY_STALL_TEX_THROTTLE] = "the queue to textures",
    [ACTIVITY_STALL_WAIT] = "the fixed time of instructions",
};

static const double busy = 0.60;
static const double near = 0.05; /* shares within this distance give both verdicts */

struct cause {
    char words[128], why[CAUSE_TEXT - 130];
};

static void append(char *text, size_t size, const char *separator, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void append(char *text, size_t size, const char *separator, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    used += (size_t)snprintf(text + used, size - used, "%s", used > 0 ? separator : "");
    if (used >= size)
        return;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

#define WORD(cause, word) append((cause)->words, sizeof(cause)->words, ", ", "%s", word)
#define WHY(cause, ...)   append((cause)->why, sizeof(cause)->why, "; ", __VA_ARGS__)

/* fmax ignores NaN. */
static double largest(const double *activity, int first, int end)
{
    double found = NAN;
    for (int i = first; i < end; ++i)
        found = fmax(found, activity[i]);
    return found;
}

static void units_say(const double *activity, double most, struct cause *cause)
{
    for (int i = 0; i < ACTIVITY_UNITS; ++i)
        if (activity[i] >= busy - near && activity[i] >= most - near) {
            WORD(cause, activity_name[i]);
            WHY(cause, "%s %.0f %% busy", unit_text[i], 100 * activity[i]);
        }
}

/* Adds "1 block on a multiprocessor at a time (registers, shared memory)" if the threads of these
 * blocks fill less than half of the multiprocessor. */
static void occupancy_say(const struct kernel *kernel, const struct device *device,
                          struct cause *cause)
{
    double threads = (double)(kernel->block_x * kernel->block_y * kernel->block_z);
    double blocks = (double)kernel->resident / (double)device->multiprocessors;
    char limits[64] = "";
    if (kernel->resident == FIELD_MISSING || device->multiprocessors == FIELD_MISSING ||
        device->multiprocessor_threads == FIELD_MISSING ||
        blocks * threads >= 0.5 * (double)device->multiprocessor_threads)
        return;
    for (int i = 0; kernel->resident_limit != FIELD_MISSING && kernel_limit_name[i]; ++i)
        if (kernel->resident_limit & 1LL << i)
            append(limits, sizeof limits, ", ", "%s", kernel_limit_name[i]);
    WHY(cause, "%.2g block%s on a multiprocessor at a time%s%s%s", blocks, blocks > 1 ? "s" : "",
        *limits ? " (" : "", limits, *limits ? ")" : "");
}

static void latency_say(const struct kernel *kernel, const struct device *device,
                        struct cause *cause)
{
    const double *activity = kernel->activity;
    double longest = largest(activity, ACTIVITY_STALL_BARRIER, ACTIVITY_WAITS);
    WORD(cause, "latency");
    for (int i = ACTIVITY_STALL_BARRIER; i < ACTIVITY_WAITS; ++i)
        if (activity[i] >= fmin(longest, fmax(longest - near, 2 * near)))
            WHY(cause, "%.0f %% of the threads' time they wait for %s (%s)", 100 * activity[i],
                wait_text[i], activity_name[i] + strlen("stall_"));
    occupancy_say(kernel, device, cause);
}

static void cause_of_kernel(const struct kernel *kernel, const struct device *device,
                            char text[CAUSE_TEXT])
{
    const double most_active = 0.85;
    const double many = 5; /* waves; with more waves the last one is a small part */
    struct cause cause = {"", ""};
    *text = '\0';
    double most = largest(kernel->activity, 0, ACTIVITY_UNITS);
    if (isnan(most))
        return;
    bool idle = kernel->activity[ACTIVITY_MULTIPROCESSORS] < most_active;
    if (most < busy)
        latency_say(kernel, device, &cause);
    units_say(kernel->activity, most, &cause);
    if (most >= busy && most < busy + near)
        latency_say(kernel, device, &cause);
    if (idle) {
        WORD(&cause, "idle");
        WHY(&cause, "multiprocessors without a thread %.0f %% of the time",
            100 * (1 - kernel->activity[ACTIVITY_MULTIPROCESSORS]));
    }
    double waves =
        (double)(kernel->grid_x * kernel->grid_y * kernel->grid_z) / (double)kernel->resident;
    if ((idle || most < busy + near) && kernel->resident != FIELD_MISSING &&
        kernel->grid_x != FIELD_MISSING && waves < many)
        WHY(&cause, "%.1f waves of blocks", waves);
    snprintf(text, CAUSE_TEXT, "%s: %s", cause.words, cause.why);
}

void cause_write(const struct record *record, const struct device *device, char text[CAUSE_TEXT])
{
    const double all = 0.995;
    const struct kernel *kernel = NULL;
    double time = 0;
    *text = '\0';
    for (size_t i = 0; i < record->kernel_count; ++i) {
        time += record->kernels[i].time;
        if (!kernel || record->kernels[i].time > kernel->time)
            kernel = &record->kernels[i];
    }
    if (kernel)
        cause_of_kernel(kernel, device, text);
    if (*text && kernel->time < all * time)
        append(text, CAUSE_TEXT, "; ", "of the kernel with %.0f %% of the kernels' time",
               100 * kernel->time / time);
}
