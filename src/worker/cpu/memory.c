#include "worker/cpu/memory.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Reads the number that follows `key` on the first line that begins with it. NaN without such a
 * number, for example for "max" (no limit). */
static double number_read(const char *path, const char *key)
{
    char line[256];
    double number = NAN;
    FILE *file = fopen(path, "r");
    size_t skip = strlen(key);
    while (file && isnan(number) && fgets(line, sizeof line, file))
        if (strncmp(line, key, skip) == 0 && sscanf(line + skip, "%lf", &number) != 1)
            break;
    if (file)
        fclose(file);
    return number;
}

/* Files of a version of control groups. */
struct control_group {
    const char *controller; /* second field of a line of /proc/self/cgroup */
    const char *mount, *limit, *usage, *inactive;
};
static const struct control_group control_groups[] = {
    {"", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "},
};

static double group_file(const struct control_group *group, const char *path, const char *name,
                         const char *key)
{
    char file[PATH_MAX + 512];
    snprintf(file, sizeof file, "%s%s/%s", group->mount, path, name);
    return number_read(file, key);
}

/* Returns the least free memory of the group and its parents, each of which may have a limit.
 * Cached file pages count as usage, but can be reclaimed. */
static double group_available(const struct control_group *group, char *path)
{
    double least = INFINITY;
    for (;;) {
        double limit = group_file(group, path, group->limit, "");
        double usage = group_file(group, path, group->usage, "");
        double cached = group_file(group, path, "memory.stat", group->inactive);
        least = fmin(least, limit - usage + fmax(cached, 0.0));
        char *slash = strrchr(path, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

static double groups_available(void)
{
    double least = INFINITY;
    char line[PATH_MAX + 256];
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file)) { /* "9:memory:/path", "0::/path" */
        line[strcspn(line, "\n")] = '\0';
        char *controller = strchr(line, ':');
        char *path = controller ? strchr(controller + 1, ':') : NULL;
        if (!path)
            continue;
        *path = '\0';
        for (size_t i = 0; i < sizeof control_groups / sizeof *control_groups; ++i)
            if (strcmp(controller + 1, control_groups[i].controller) == 0)
                least = fmin(least, group_available(&control_groups[i], path + 1));
    }
    if (file)
        fclose(file);
    return least;
}

double memory_available(void)
{
    double machine = number_read("/proc/meminfo", "MemAvailable:") * 1024.0;
    return fmax(fmin(machine, groups_available()), 0.0);
}

enum { LARGE_PAGE = 2 << 20 };

static size_t mapped_size(size_t bytes)
{
    return (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
}

void *memory_create(size_t bytes)
{
    size_t size = mapped_size(bytes > 0 ? bytes : 1);
    char *mapped =
        mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)mapped % LARGE_PAGE);
    if (before > 0)
        munmap(mapped, before);
    munmap(mapped + before + size, LARGE_PAGE - before);
    madvise(mapped + before, size, MADV_HUGEPAGE);
    return mapped + before;
}

void memory_destroy(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, mapped_size(bytes > 0 ? bytes : 1));
}

/* ---- elements ---- */

/* bf16 is the upper half of fp32. */
static uint16_t bf16_from(double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static double bf16_value(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float single;
    memcpy(&single, &bits, sizeof single);
    return single;
}

/* fp16: sign, 5 bits of exponent, 10 of mantissa. Numbers below 2^-14 are multiples of 2^-24. */
static uint16_t fp16_from(double value)
{
    const uint16_t infinite = 0x7c00;
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    if (isnan(value))
        return infinite | 1;
    double fraction = frexp(fabs(value), &exponent);
    if (exponent > 16 || isinf(value))
        return sign | infinite;
    if (fraction == 0.0 || exponent < -13)
        return (uint16_t)(sign | (uint16_t)ldexp(fabs(value), 24));
    return (uint16_t)(sign | ((uint16_t)(exponent + 14) << 10) |
                      ((uint16_t)ldexp(fraction, 11) & 0x3ff));
}

static double fp16_value(uint16_t half)
{
    int exponent = half >> 10 & 0x1f;
    double mantissa = half & 0x3ff, value;
    if (exponent == 0x1f)
        value = mantissa > 0.0 ? NAN : INFINITY;
    else
        value = exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024.0, exponent - 25);
    return half & 0x8000 ? -value : value;
}

void element_store(enum precision precision, void *data, int64_t index, double value)
{
    switch (precision) {
    case PRECISION_FP64:
        ((double *)data)[index] = value;
        break;
    case PRECISION_BF16:
        ((uint16_t *)data)[index] = bf16_from(value);
        break;
    case PRECISION_FP16:
        ((uint16_t *)data)[index] = fp16_from(value);
        break;
    default:
        ((float *)data)[index] = (float)value;
    }
}

double element_load(enum precision precision, const void *data, int64_t index)
{
    switch (precision) {
    case PRECISION_FP64:
        return ((const double *)data)[index];
    case PRECISION_BF16:
        return bf16_value(((const uint16_t *)data)[index]);
    case PRECISION_FP16:
        return fp16_value(((const uint16_t *)data)[index]);
    default:
        return ((const float *)data)[index];
    }
}
