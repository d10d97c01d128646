#include "worker/batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

struct batch {
    const struct device_ops *device;
    struct measured *rows; /* owned, oldest first */
    size_t count;
    struct expected expected; /* reference of the last row */
    size_t counted; /* number of first rows that are counted: their records are complete */
};

struct batch *batch_create(const struct device_ops *device)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch)
        batch->device = device;
    return batch;
}

void batch_destroy(struct batch *batch, struct device_state *state)
{
    if (!batch)
        return;
    for (size_t i = 0; i < batch->count; ++i) {
        if (state)
            batch->device->release(state, batch->rows[i].work);
        record_clear(&batch->rows[i].record);
    }
    expected_clear(&batch->expected);
    free(batch->rows);
    free(batch);
}

/* ---- counting ---- */

/* Also returns true if only counts of single kernels or causes are missing. */
static bool has_counts(const struct measured *row)
{
    return row->record.counters.code == COUNTED_YES ||
           row->record.counters.code == COUNTED_NOT_BY_KERNEL ||
           row->record.counters.code == COUNTED_WITHOUT_CAUSES;
}

static double counting_seconds(const struct measured *row)
{
    return fmax(row->record.wall_time_part[PART_COUNTS], 0); /* NaN: none */
}

/* Counts rows at once. The rows share the time that the device has not charged to one of them. */
static enum status count_rows(const struct batch *batch, struct device_state *state,
                              struct measured *rows, size_t count, struct error *error)
{
    double shared = -clock_monotonic();
    struct countable *counted = malloc(count * sizeof *counted);
    if (!counted)
        return error_set(error, STATUS_FAILED, "no memory for the counts of %zu rows", count);
    for (size_t i = 0; i < count; ++i) {
        struct measured *row = &rows[i];
        counted[i] =
            (struct countable){row->work, row->cold, row->kernels, row->causes, &row->record};
        shared += counting_seconds(row);
        row->seconds -= counting_seconds(row);
    }
    enum status status = batch->device->count_hardware(state, counted, count, error);
    free(counted);
    shared += clock_monotonic();
    for (size_t i = 0; i < count; ++i)
        shared -= counting_seconds(&rows[i]);
    for (size_t i = 0; i < count; ++i) {
        rows[i].seconds += counting_seconds(&rows[i]) + shared / (double)count;
        record_end_part(&rows[i].record, PART_COUNTS, rows[i].seconds);
    }
    return status;
}

/* Counts one row and completes its record. Returns STATUS_OK or STATUS_DEVICE. */
static enum status count_alone(const struct batch *batch, struct device_state *state,
                               struct measured *row, struct error *error)
{
    enum status status = count_rows(batch, state, row, 1, error);
    if (status == STATUS_DEVICE)
        return status;
    measure_end(batch->device, state, row, status, error);
    return STATUS_OK;
}

/* Rows that got no counts with others keep their work and are counted alone. */
enum status batch_count(struct batch *batch, struct device_state *state, struct error *error)
{
    struct measured *rows = batch->rows + batch->counted;
    const size_t count = batch->count - batch->counted;
    enum status status = count > 1 ? count_rows(batch, state, rows, count, error) : STATUS_FAILED;
    for (size_t i = 0; i < count && status == STATUS_OK; ++i)
        if (has_counts(&rows[i]))
            measure_end(batch->device, state, &rows[i], STATUS_OK, error);
    for (size_t i = 0; i < count && status != STATUS_DEVICE; ++i)
        if (rows[i].work)
            status = count_alone(batch, state, &rows[i], error);
    if (status == STATUS_DEVICE)
        return status;
    batch->counted = batch->count;
    return STATUS_OK;
}

/* ---- rows ---- */

static enum status begin(struct batch *batch, struct device_state *state,
                         const struct request *request, struct measured *row, struct error *error)
{
    bool beside = batch->counted < batch->count && batch->device->has_room(state, &request->config);
    enum status status = beside ? STATUS_OK : batch_count(batch, state, error);
    if (status == STATUS_OK)
        status = measure_begin(batch->device, state, request, &batch->expected, row, error);
    if (status || !beside || row->work || row->record.status == RECORD_MEASURED)
        return status;
    record_clear(&row->record); /* waiting rows may have caused the failure */
    status = batch_count(batch, state, error);
    return status ? status
                  : measure_begin(batch->device, state, request, &batch->expected, row, error);
}

enum status batch_measure(struct batch *batch, struct device_state *state,
                          const struct request *request, struct record *record, bool *waits,
                          struct error *error)
{
    struct measured row;
    if (!ARRAY_GROW(batch->rows, batch->count))
        return error_set(error, STATUS_SYSTEM, "no memory for %zu rows", batch->count + 1);
    enum status status = begin(batch, state, request, &row, error);
    TRY(status);
    *waits = row.work && request->count_later && batch->device->has_room;
    if (row.work && !*waits)
        status = count_alone(batch, state, &row, error);
    if (status)
        record_clear(&row.record);
    else if (*waits)
        batch->rows[batch->count++] = row;
    else
        *record = row.record;
    return status;
}

enum status batch_take(struct batch *batch, struct device_state *state, struct record *record,
                       struct error *error)
{
    if (batch->count == 0)
        return error_set(error, STATUS_USAGE, "op count: no row waits for its counters");
    TRY(batch->counted > 0 ? STATUS_OK : batch_count(batch, state, error));
    *record = batch->rows[0].record;
    --batch->counted;
    memmove(batch->rows, batch->rows + 1, --batch->count * sizeof *batch->rows);
    return STATUS_OK;
}
