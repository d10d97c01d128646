#include "manifest/section.h"

#include <limits.h>
#include <stdlib.h>

#include "base/text.h"
#include "manifest/axis.h"
#include "manifest/exclusion.h"
#include "manifest/list.h"
#include "manifest/settings.h"

enum status section_take(struct section *section, const struct ini_line *line, size_t *room,
                         struct error *error)
{
    enum { VARY, EXCLUDE, LIST, PARAMETERS };
    static const char *const vary_words[] = {"product", "zip", "one-at-a-time", NULL};
    const struct workload *workload = section->workload;
    const char *keys[PARAMETERS + WORKLOAD_PARAMETERS_MAX + 1] = {"vary", "exclude", "list"};
    workload_names(workload, keys, PARAMETERS);
    int key = words_find(keys, line->key), parameter = key - PARAMETERS;
    if (key == LIST || *line->key == '|')
        return list_take(&section->list, workload, line, error);
    if (key < 0)
        return ini_line_unknown(line, keys, settings_group_of(line->key), error);
    int *noted = key == VARY      ? &section->vary_line
                 : key == EXCLUDE ? &section->exclude_line
                                  : &section->axes[parameter].line;
    TRY(ini_line_first(line, noted, error));
    if (key >= PARAMETERS)
        return axis_parse(&workload->parameters[parameter], line->value, room,
                          &section->axes[parameter], error);
    int index = 0;
    enum status status = key == VARY
                             ? words_parse(vary_words, line->value, &index, error)
                             : exclusions_parse(workload, line->value, room, &section->exclusions,
                                                &section->exclusion_count, error);
    if (key == VARY && status == STATUS_OK)
        section->vary = (enum vary)index;
    return error_prefix(error, status, "%s", keys[key]);
}

/* Number of values of an axis that belongs to the shape; 0 for a series, and for a parameter that
 * the section lacks. */
static size_t shape_count(const struct section *section, size_t parameter)
{
    return section->workload->parameters[parameter].series ? 0 : section->axes[parameter].count;
}

static enum status zip_check(const struct section *section, const char *path, struct error *error)
{
    const struct parameter *parameters = section->workload->parameters;
    size_t first = section->workload->count;
    for (size_t i = 0; i < section->workload->count; ++i) {
        if (shape_count(section, i) < 2)
            continue;
        if (first == section->workload->count)
            first = i;
        if (shape_count(section, i) != shape_count(section, first))
            return error_set(
                error, STATUS_USAGE,
                "%s:%d: vary = zip: %s has %zu values and %s has %zu; allowed: lists of "
                "one length, and single values",
                path, section->axes[i].line, parameters[i].name, shape_count(section, i),
                parameters[first].name, shape_count(section, first));
    }
    return STATUS_OK;
}

/* In a zip a value may come twice, because another axis may differ. */
static enum status distinct_check(const struct section *section, const char *path,
                                  struct error *error)
{
    for (size_t i = 0; i < section->workload->count; ++i) {
        if (section->vary == VARY_ZIP && shape_count(section, i))
            continue;
        enum status status =
            axis_distinct(&section->workload->parameters[i], &section->axes[i], error);
        TRY(error_prefix(error, status, "%s:%d", path, section->axes[i].line));
    }
    return STATUS_OK;
}

/* Refuses a parameter that is a key of the section and a column of its list. */
static enum status list_check(const struct section *section, struct error *error)
{
    const struct workload *workload = section->workload;
    for (size_t i = 0; i < section->list.count; ++i)
        for (size_t j = 0; j < workload->count; ++j)
            if (section->list.rows[i].set >> j & 1 && section->axes[j].count)
                return error_set(error, STATUS_USAGE,
                                 "%s:%d: %s is also a key of [%s %s]; leave out one",
                                 section->list.path, section->list.rows[i].line,
                                 workload->parameters[j].name, workload->name, section->label);
    return STATUS_OK;
}

enum status section_finish(struct section *section, const char *path, const char *cache,
                           size_t *room, struct error *error)
{
    if (section->list.path)
        TRY(list_finish(&section->list, path, error));
    TRY(list_check(section, error));
    enum status status = distinct_check(section, path, error);
    if (status == STATUS_OK && section->vary == VARY_ZIP)
        status = zip_check(section, path, error);
    int parameter = workload_role(section->workload, ROLE_CACHE);
    if (status || parameter < 0 || section->axes[parameter].count)
        return status;
    section->axes[parameter].line = INT_MAX;
    return axis_parse(&section->workload->parameters[parameter], cache, room,
                      &section->axes[parameter], error);
}

void section_clear(struct section *section)
{
    for (size_t i = 0; i < WORKLOAD_PARAMETERS_MAX; ++i)
        axis_clear(&section->axes[i]);
    list_clear(&section->list);
    exclusions_destroy(section->exclusions, section->exclusion_count);
    free(section->label);
}
