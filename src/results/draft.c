#include "results/draft.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* HDF5 says "HDF error" where a disk is full: the file itself knows why. */
static enum status build(struct staged_file *draft, const struct draft_content *content,
                         const char *place, const char *output, struct error *error)
{
    enum status status = staged_file_open(draft, place, output, error);
    if (status)
        return status;
    status = content->fill(content->context, draft, error);
    while (status == STATUS_OK && content->again(content->context)) {
        staged_file_close(draft); /* it can have its name only once */
        status = staged_file_open(draft, place, output, error);
        if (status)
            return status;
        status = content->fill(content->context, draft, error);
    }
    if (status == STATUS_OK)
        return STATUS_OK;
    int obstacle = staged_file_obstacle(draft);
    if (obstacle)
        error_set(error, status, "folder '%s': %s", place, strerror(obstacle));
    staged_file_close(draft);
    return status;
}

static enum status build_somewhere(struct staged_file *draft, const struct draft_content *content,
                                   const char *output, struct error *error)
{
    char places[STAGED_PLACES][STAGED_PLACE];
    size_t count = staged_file_places(output, content->size, places);
    struct error tried[STAGED_PLACES];
    for (size_t i = 0; i < count; ++i)
        if (build(draft, content, places[i], output, &tried[i]) == STATUS_OK)
            return STATUS_OK;
    char causes[1024] = "";
    for (size_t i = 0, used = 0; i < count && used < sizeof causes; ++i)
        used += (size_t)snprintf(causes + used, sizeof causes - used, "%s%.300s", i ? "; " : "",
                                 tried[i].text);
    return error_set(error, STATUS_SYSTEM,
                     "no place to build it in, of about %.0f MB: %.800s; let TMPDIR name a folder "
                     "with room",
                     ceil(content->size / 1e6), causes);
}

/* HDF5 does not write to where the file shall be: it calls a missing folder "Permission denied" and
 * a full disk "HDF error". */
enum status draft_publish(const struct draft_content *content, const char *path,
                          struct error *error)
{
    struct staged_file draft;
    staged_file_sweep(path);
    enum status status = build_somewhere(&draft, content, path, error);
    if (status) {
        error_prefix(error, "%s", path);
        return status;
    }
    status = staged_file_publish(&draft, path, error);
    staged_file_close(&draft);
    return status;
}
