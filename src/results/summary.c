#include "results/summary.h"

#include <stdint.h>
#include <stdio.h>

struct summary summary_of(const struct results *results, const char *file)
{
    struct summary summary = {.devices = results->device_count, .left = SIZE_MAX};
    snprintf(summary.file, sizeof summary.file, "%s", file);
    for (size_t i = 0; i < results->row_count; ++i)
        ++summary.rows[results->rows[i].status];
    for (size_t i = 0; i < results->device_count; ++i)
        summary.roofs += (size_t)results->devices[i].roof_count;
    return summary;
}

void summary_format(const struct summary *summary, int status, double seconds,
                    char text[SUMMARY_TEXT])
{
    size_t total = 0;
    int used;
    for (int i = 0; record_status_name[i]; ++i)
        total += summary->rows[i];
    used = snprintf(text, SUMMARY_TEXT, "summary status=%d rows=%zu", status, total);
    for (int i = 0; record_status_name[i]; ++i)
        used += snprintf(text + used, SUMMARY_TEXT - (size_t)used, " %s=%zu", record_status_name[i],
                         summary->rows[i]);
    if (summary->left != SIZE_MAX)
        used += snprintf(text + used, SUMMARY_TEXT - (size_t)used, " left=%zu", summary->left);
    snprintf(text + used, SUMMARY_TEXT - (size_t)used,
             " devices=%zu roofs=%zu seconds=%.1f file=%s", summary->devices, summary->roofs,
             seconds, summary->file);
}
