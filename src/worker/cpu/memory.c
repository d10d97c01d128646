#include "worker/cpu/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "worker/cpu/topology.h"

/* Reads the number behind `key` on the first line that begins with it; NaN: none, as in "max". */
static double number_read(const char *folder, const char *name, const char *key)
{
    char line[8400];
    double number = NAN;
    snprintf(line, sizeof line, "%s/%s", folder, name);
    FILE *file = fopen(line, "r");
    size_t skip = strlen(key);
    while (file && isnan(number) && fgets(line, sizeof line, file))
        if (strncmp(line, key, skip) == 0 && sscanf(line + skip, "%lf", &number) != 1)
            break;
    if (file)
        fclose(file);
    return number;
}

/* Returns the free memory of a cgroup; NaN: no limit. Cached file pages can be reclaimed. */
static double group_available(const char *folder)
{
    static const struct {
        const char *limit, *usage, *cached;
    } versions[] = {
        {"memory.max", "memory.current", "inactive_file "},
        {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
    };
    double available = NAN;
    for (int i = 0; i < 2 && isnan(available); ++i)
        available = number_read(folder, versions[i].limit, "") -
                    number_read(folder, versions[i].usage, "") +
                    fmax(number_read(folder, "memory.stat", versions[i].cached), 0.0);
    return available;
}

double memory_available(void)
{
    double machine = number_read("/proc", "meminfo", "MemAvailable:") * 1024.0;
    double groups = cgroups_least("/proc/self/cgroup", "/sys/fs/cgroup", group_available);
    return fmax(fmin(machine, groups), 0.0);
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
