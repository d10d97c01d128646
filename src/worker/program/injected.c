#include "worker/program/injected.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { LINE_BYTES = 4096 };

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_FAILED, "out of memory");
}

static enum status opened_take(const char *text, struct injected *in, struct error *error)
{
    (void)text, (void)error;
    in->processes = 1;
    return STATUS_OK;
}

static enum status closed_take(const char *text, struct injected *in, struct error *error)
{
    void *regions = array_grow(in->regions, in->region_count, sizeof *in->regions);
    if (!regions)
        return no_memory(error);
    in->regions = regions;
    in->regions[in->region_count++] = strtod(text, NULL);
    return STATUS_OK;
}

static bool kernel_same(const struct kernel *a, const struct kernel *b)
{
    return a->grid_x == b->grid_x && a->grid_y == b->grid_y && a->grid_z == b->grid_z &&
           a->block_x == b->block_x && a->block_y == b->block_y && a->block_z == b->block_z &&
           a->registers == b->registers && a->static_shared == b->static_shared &&
           a->dynamic_shared == b->dynamic_shared && strcmp(a->name, b->name) == 0;
}

/* The row of this kernel, which is added if it is new; NULL without memory, or beyond what a record has. */
static struct kernel *row_of(struct injected *in, const struct kernel *kernel)
{
    for (size_t i = 0; i < in->kernel_count; ++i)
        if (kernel_same(&in->kernels[i], kernel))
            return &in->kernels[i];
    void *kernels = in->kernel_count < RECORD_KERNELS_MAX
                        ? array_grow(in->kernels, in->kernel_count, sizeof *kernel)
                        : NULL;
    if (!kernels)
        return NULL;
    in->kernels = kernels;
    in->kernels[in->kernel_count] = *kernel;
    return &in->kernels[in->kernel_count++];
}

static enum status kernel_take(const char *text, struct injected *in, struct error *error)
{
    struct kernel kernel;
    unsigned long long start, end, node;
    long long g[3], b[3], registers, fixed, dynamic;
    unsigned correlation;
    int name = 0;
    fields_clear(kernel_fields, &kernel);
    if (sscanf(text, "%llu %llu %u %llu %lld %lld %lld %lld %lld %lld %lld %lld %lld %n", &start,
               &end, &correlation, &node, &g[0], &g[1], &g[2], &b[0], &b[1], &b[2], &registers,
               &fixed, &dynamic, &name) < 13 ||
        name == 0)
        return error_set(error, STATUS_FAILED, "a kernel that means nothing: %.100s", text);
    kernel.grid_x = g[0], kernel.grid_y = g[1], kernel.grid_z = g[2];
    kernel.block_x = b[0], kernel.block_y = b[1], kernel.block_z = b[2];
    kernel.registers = registers, kernel.static_shared = fixed, kernel.dynamic_shared = dynamic;
    kernel.count = 0;
    kernel.time = 0.0;
    snprintf(kernel.name, sizeof kernel.name, "%s", text + name);
    struct kernel *row = row_of(in, &kernel);
    void *launches = array_grow(in->launches, in->launch_count, sizeof *in->launches);
    if (launches)
        in->launches = launches;
    if (!row || !launches)
        return no_memory(error);
    ++row->count;
    row->time += 1e-9 * (double)(end - start);
    in->launches[in->launch_count++] =
        (struct injected_launch){start, end, correlation, (size_t)(row - in->kernels)};
    in->in_graphs += node != 0;
    return STATUS_OK;
}

static enum status moved_take(const char *text, struct injected_moves *moves, struct error *error)
{
    unsigned long long start, end, bytes;
    if (sscanf(text, "%llu %llu %llu", &start, &end, &bytes) != 3 || end < start)
        return error_set(error, STATUS_FAILED, "a copy that means nothing: %.100s", text);
    ++moves->count;
    moves->bytes += (double)bytes;
    moves->time += 1e-9 * (double)(end - start);
    return STATUS_OK;
}

static enum status copy_take(const char *text, struct injected *in, struct error *error)
{
    return moved_take(text, &in->copies, error);
}

static enum status fill_take(const char *text, struct injected *in, struct error *error)
{
    return moved_take(text, &in->fills, error);
}

static enum status untraced_take(const char *text, struct injected *in, struct error *error)
{
    (void)error;
    snprintf(in->untraced, sizeof in->untraced, "%s", text);
    return STATUS_OK;
}

static enum status launched_take(const char *text, struct injected *in, struct error *error)
{
    (void)error;
    snprintf(in->sequence, sizeof in->sequence, "%s", text);
    return STATUS_OK;
}

static enum status passes_take(const char *text, struct injected *in, struct error *error)
{
    int last = 0;
    if (sscanf(text, "%zu %d", &in->passes, &last) != 2)
        return error_set(error, STATUS_FAILED, "passes that mean nothing: %.100s", text);
    in->last = last == 1;
    return STATUS_OK;
}

static enum status unloaded_take(const char *text, struct injected *in, struct error *error)
{
    (void)text, (void)error;
    in->unloaded = true;
    return STATUS_OK;
}

static enum status value_take(const char *text, struct injected *in, struct error *error)
{
    int quantity = -1;
    double value = NAN;
    if (sscanf(text, "%d %lf", &quantity, &value) != 2 || quantity < 0 ||
        quantity >= QUANTITY_COUNT)
        return error_set(error, STATUS_FAILED, "a value that means nothing: %.100s", text);
    in->values[quantity] = value;
    return STATUS_OK;
}

/* Launch by launch, in their order. */
static enum status each_room(struct injected *in, size_t launch, struct error *error)
{
    if (launch < in->each_count)
        return STATUS_OK;
    void *each = launch == in->each_count ? array_grow(in->each, launch, sizeof *in->each) : NULL;
    if (!each)
        return no_memory(error);
    in->each = each;
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        in->each[launch][i] = NAN;
    ++in->each_count;
    return STATUS_OK;
}

static enum status each_take(const char *text, struct injected *in, struct error *error)
{
    size_t launch;
    int quantity = -1;
    double value = NAN;
    if (sscanf(text, "%zu %d %lf", &launch, &quantity, &value) != 3 || quantity < 0 ||
        quantity >= QUANTITY_COUNT)
        return error_set(error, STATUS_FAILED, "a value that means nothing: %.100s", text);
    enum status status = each_room(in, launch, error);
    if (status == STATUS_OK)
        in->each[launch][quantity] = value;
    return status;
}

static enum status refused_take(const char *text, struct injected *in, struct error *error)
{
    char *reason;
    long code = strtol(text, &reason, 10);
    (void)error;
    outcome_set(&in->refusal, code == COUNTED_INCOMPLETE ? COUNTED_INCOMPLETE : COUNTED_REFUSED,
                "%s", reason + strspn(reason, " "));
    return STATUS_OK;
}

static const struct {
    const char *word;
    enum status (*take)(const char *text, struct injected *in, struct error *error);
} lines[] = {
    {"opened", opened_take},     {"closed", closed_take},     {"kernel", kernel_take},
    {"untraced", untraced_take}, {"launched", launched_take}, {"passes", passes_take},
    {"value", value_take},       {"refused", refused_take},   {"each", each_take},
    {"copy", copy_take},         {"fill", fill_take},         {"unloaded", unloaded_take},
};

static enum status line_take(char *line, struct injected *in, struct error *error)
{
    line[strcspn(line, "\n")] = '\0';
    size_t length = strcspn(line, " ");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i)
        if (strlen(lines[i].word) == length && strncmp(line, lines[i].word, length) == 0)
            return lines[i].take(line + length + (line[length] == ' '), in, error);
    return error_set(error, STATUS_FAILED, "a line that means nothing: %.100s", line);
}

void injected_init(struct injected *in)
{
    memset(in, 0, sizeof *in);
    in->refusal.code = OUTCOME_MISSING;
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        in->values[i] = NAN;
}

static enum status file_take(const char *path, struct injected *in, struct error *error)
{
    char line[LINE_BYTES];
    enum status status = STATUS_OK;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(error, STATUS_FAILED, "%s: %s", path, strerror(errno));
    while (status == STATUS_OK && fgets(line, sizeof line, file))
        status = line_take(line, in, error);
    fclose(file);
    return status;
}

/* One that opened no region tells why there was none to count; that of the program counts. */
static enum status process_take(const char *path, struct injected *all, struct error *error)
{
    struct injected one;
    injected_init(&one);
    enum status status = file_take(path, &one, error);
    if (status == STATUS_OK && one.processes && all->processes)
        status = error_set(error, STATUS_FAILED,
                           "several processes of the program open the region; only one may");
    if (status == STATUS_OK && (one.processes || !all->processes)) {
        injected_clear(all);
        *all = one;
        return STATUS_OK;
    }
    injected_clear(&one);
    return status;
}

static bool is_injected(const char *name)
{
    size_t length = strlen(name), suffix = strlen(INJECTED_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, INJECTED_SUFFIX) == 0;
}

enum status injected_read(const char *folder, struct injected *injected, struct error *error)
{
    struct injected all;
    enum status status = STATUS_OK;
    DIR *opened = opendir(folder);
    if (!opened)
        return error_set(error, STATUS_FAILED, "%s: %s", folder, strerror(errno));
    injected_init(&all);
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(opened));) {
        char path[4096 + 256];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (is_injected(entry->d_name))
            status = process_take(path, &all, error);
    }
    closedir(opened);
    if (status)
        injected_clear(&all);
    else
        *injected = all;
    return status;
}

void injected_clear(struct injected *injected)
{
    free(injected->regions);
    free(injected->kernels);
    free(injected->launches);
    free(injected->each);
    injected_init(injected);
}

static int starts_compare(const void *a, const void *b)
{
    const struct injected_launch *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

double injected_busy(struct injected *injected)
{
    uint64_t end = 0, busy = 0;
    if (injected->launch_count)
        qsort(injected->launches, injected->launch_count, sizeof *injected->launches,
              starts_compare);
    for (size_t i = 0; i < injected->launch_count; ++i) {
        const struct injected_launch *launch = &injected->launches[i];
        if (launch->end > end)
            busy += launch->end - (launch->start > end ? launch->start : end);
        end = launch->end > end ? launch->end : end;
    }
    return 1e-9 * (double)busy;
}
