#include "results/row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/members.h"

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_SYSTEM, "no memory for more results");
}

enum status row_of_record(const struct record *record, struct row *row, struct error *error)
{
    const char *const texts[] = {record->configuration, record->label, record->device_key,
                                 record->status == RECORD_MEASURED ? "" : record->error};
    enum { COUNT = sizeof texts / sizeof *texts };
    const char *copies[COUNT];
    size_t size = 0;
    for (size_t i = 0; i < COUNT; ++i)
        size += strlen(texts[i]) + 1;
    char *copy = malloc(size), *at = copy;
    if (!copy)
        return no_memory(error);
    for (size_t i = 0; i < COUNT; ++i) {
        copies[i] = at;
        at = stpcpy(at, texts[i]) + 1;
    }
    *row = (struct row){.texts = copy,
                        .configuration = copies[0],
                        .label = copies[1],
                        .device_key = copies[2],
                        .error = copies[3],
                        .status = record->status,
                        .attempts = record->attempts,
                        .end_time = record->start_time + record->wall_time,
                        .wall_time = record->wall_time,
                        .kernels = record->kernel_count,
                        .samples = record->sample_count};
    memcpy(row->config_hash, record->config_hash, sizeof row->config_hash);
    time_marks(record, row->marks);
    return STATUS_OK;
}

/* Those whose texts are copied come first. */
enum {
    CONFIGURATION,
    LABEL,
    DEVICE_KEY,
    ERROR,
    TEXTS,
    CONFIG_HASH = TEXTS,
    STATUS,
    ATTEMPTS,
    START_TIME,
    WALL_TIME,
    KERNELS,
    SAMPLES,
    HOST_PACED,
    BIMODAL,
    TIME_MEDIAN,
    TIME_MEDIAN_LOW,
    TIME_MEDIAN_HIGH,
    SAMPLE_ITERATIONS,
    TIMER_OVERHEAD,
    MEMBERS
};

static bool status_find(const struct member *member, int64_t *status)
{
    for (*status = 0; member->value && record_status_name[*status]; ++*status)
        if (strlen(record_status_name[*status]) + 2 == member->length &&
            memcmp(member->value + 1, record_status_name[*status], member->length - 2) == 0)
            return true;
    return false;
}

/* An absent text is empty. False: it is no text. */
static bool text_take(const struct member *member, char **at, const char **copy)
{
    *copy = *at;
    **at = '\0';
    if (member->value && !member_text(member, *at))
        return false;
    *at += strlen(*at) + 1;
    return true;
}

static bool texts_take(const struct member *members, struct row *row)
{
    char *at = row->texts;
    return text_take(&members[CONFIGURATION], &at, &row->configuration) &&
           text_take(&members[LABEL], &at, &row->label) &&
           text_take(&members[DEVICE_KEY], &at, &row->device_key) &&
           text_take(&members[ERROR], &at, &row->error);
}

static bool hash_take(const struct member *member, char hash[CONFIG_HASH_TEXT])
{
    return !member->value || (member->length < CONFIG_HASH_TEXT + 2 && member_text(member, hash));
}

static int64_t integer_of(const struct member *member)
{
    double value = member_number(member);
    return fabs(value) < 1e15 ? (int64_t)value : FIELD_MISSING;
}

static int64_t is_yes(const struct member *member)
{
    static const char yes[] = "\"yes\"";
    return member->value && member->length == strlen(yes) &&
           memcmp(member->value, yes, strlen(yes)) == 0;
}

/* Of a record that has no more than they need. */
static void marks_find(const struct member *members, char marks[TIME_MARKS])
{
    struct record record;
    marks[0] = '\0';
    if (!members[TIME_MEDIAN].value)
        return;
    record_init(&record);
    record.host_paced = is_yes(&members[HOST_PACED]);
    record.bimodal = is_yes(&members[BIMODAL]);
    record.time_median = member_number(&members[TIME_MEDIAN]);
    record.time_median_low = member_number(&members[TIME_MEDIAN_LOW]);
    record.time_median_high = member_number(&members[TIME_MEDIAN_HIGH]);
    record.sample_iterations = integer_of(&members[SAMPLE_ITERATIONS]);
    record.timer_overhead = member_number(&members[TIMER_OVERHEAD]);
    time_marks(&record, marks);
}

static const struct member wanted[MEMBERS] = {
    [CONFIGURATION] = {.name = "configuration"},
    [LABEL] = {.name = "label"},
    [DEVICE_KEY] = {.name = "device_key"},
    [ERROR] = {.name = "error"},
    [CONFIG_HASH] = {.name = "config_hash"},
    [STATUS] = {.name = "status"},
    [ATTEMPTS] = {.name = "attempts"},
    [START_TIME] = {.name = "start_time"},
    [WALL_TIME] = {.name = "wall_time"},
    [KERNELS] = {.name = "kernels"},
    [SAMPLES] = {.name = "sample"},
    [HOST_PACED] = {.name = "host_paced"},
    [BIMODAL] = {.name = "bimodal"},
    [TIME_MEDIAN] = {.name = "time_median"},
    [TIME_MEDIAN_LOW] = {.name = "time_median_low"},
    [TIME_MEDIAN_HIGH] = {.name = "time_median_high"},
    [SAMPLE_ITERATIONS] = {.name = "sample_iterations"},
    [TIMER_OVERHEAD] = {.name = "timer_overhead"},
};

enum status row_of_text(const char *text, size_t length, struct row *row, struct error *error)
{
    struct member members[MEMBERS];
    memcpy(members, wanted, sizeof members);
    struct row found = {.texts = NULL};
    size_t size = TEXTS;
    if (!members_find(text, length, members, MEMBERS))
        return error_set(error, STATUS_SYSTEM, "not a JSON object");
    if (!status_find(&members[STATUS], &found.status))
        return error_set(error, STATUS_SYSTEM, "a record without a status");
    if (found.status == RECORD_MEASURED)
        members[ERROR].value = NULL;
    for (size_t i = 0; i < TEXTS; ++i)
        size += members[i].length;
    if (!(found.texts = malloc(size)))
        return no_memory(error);
    if (!texts_take(members, &found) || !hash_take(&members[CONFIG_HASH], found.config_hash)) {
        row_clear(&found);
        return error_set(error, STATUS_SYSTEM, "a text has a value of the wrong type");
    }
    marks_find(members, found.marks);
    found.attempts = integer_of(&members[ATTEMPTS]);
    found.wall_time = member_number(&members[WALL_TIME]);
    found.end_time = member_number(&members[START_TIME]) + found.wall_time;
    found.kernels = member_elements(&members[KERNELS]);
    found.samples = member_elements(&members[SAMPLES]);
    *row = found;
    return STATUS_OK;
}

void row_clear(struct row *row)
{
    free(row->texts);
    if (row->record)
        record_clear(row->record);
    free(row->record);
    *row = (struct row){.texts = NULL};
}

int row_compare(const struct row *a, const struct row *b)
{
    int order = strcmp(a->label, b->label);
    if (order == 0)
        order = strverscmp(a->configuration, b->configuration);
    return order ? order : strverscmp(a->device_key, b->device_key);
}
