#include "model/naming.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Configurations that share workload and title. */
struct group {
    char *title;         /* owned; label, and name in the label's list */
    struct config first; /* first configuration that was added */
    /* by parameter, or by axis of a program: whether the values differ */
    bool varies[WORKLOAD_PARAMETERS_MAX];
};

struct naming {
    void *groups; /* tree of owned groups, see tsearch */
};

static int group_compare(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int order = strcmp(x->first.workload->name, y->first.workload->name);
    return order ? order : strcmp(x->title, y->title);
}

static void group_destroy(void *group)
{
    free(((struct group *)group)->title);
    free(group);
}

struct naming *naming_create(void)
{
    return calloc(1, sizeof(struct naming));
}

void naming_destroy(struct naming *naming)
{
    if (!naming)
        return;
    tdestroy(naming->groups, group_destroy);
    free(naming);
}

/* Returns the first label that a person chose, and its length. (A section without a label has its
 * workload's name as label.) */
static const char *label_choose(const char *label, const struct workload *workload, size_t *length)
{
    const char *first = label;
    for (const char *at = label; *at; at += *length, at += *at == ' ') {
        *length = strcspn(at, " ");
        if (strlen(workload->name) != *length || strncmp(at, workload->name, *length) != 0)
            return at;
    }
    *length = strcspn(first, " ");
    return first;
}

/* Makes the title of a configuration, which the caller frees. NULL: no memory. */
static char *title_make(const char *label, const char *listed, const struct workload *workload)
{
    size_t length, entry;
    char *title;
    label = label_choose(label, workload, &length);
    for (const char *at = listed ? listed : ""; *at; at += entry + strspn(at + entry, "; ")) {
        entry = strcspn(at, ";");
        const char *name = memchr(at, ' ', entry), *count = memrchr(at, ' ', entry);
        if (strncmp(at, label, length) != 0 || at[length] != ':' || !name || name == count)
            continue;
        return asprintf(&title, "%.*s%.*s", (int)length, label, (int)(count - name), name) < 0
                   ? NULL
                   : title;
    }
    return strndup(label, length);
}

/* Sets the name of axis `i` of `first`, and its value in `config`. Axes are the parameters, or the
 * axes of a program. False beyond the last axis. */
static bool axis_text(const struct config *first, size_t i, const struct config *config,
                      char name[WORKLOAD_STRING], char text[WORKLOAD_VALUE_TEXT])
{
    if (i >= WORKLOAD_PARAMETERS_MAX)
        return false;
    if (!config_is_program(first)) {
        const struct parameter *parameter = &first->workload->parameters[i];
        if (i >= first->workload->count)
            return false;
        snprintf(name, WORKLOAD_STRING, "%s", parameter->name);
        parameter_format(parameter, config_get(config, i), text);
        return true;
    }
    if (!config_axis_name(first, i, name))
        return false;
    if (!config_axis(config, name, text))
        text[0] = '\0';
    return true;
}

static bool axis_differs(const struct config *first, size_t i, const struct config *config)
{
    char name[WORKLOAD_STRING], text[WORKLOAD_VALUE_TEXT], other[WORKLOAD_VALUE_TEXT];
    if (!config_is_program(first) && i < first->workload->count) {
        const struct value a = config_get(first, i), b = config_get(config, i);
        return !value_equal(&a, &b);
    }
    return axis_text(first, i, first, name, text) && axis_text(first, i, config, name, other) &&
           strcmp(text, other) != 0;
}

bool naming_add(struct naming *naming, const char *label, const char *listed,
                const struct config *config)
{
    if (!config->workload)
        return true;
    struct group *added = malloc(sizeof *added), **found = NULL;
    char *title = title_make(label, listed, config->workload);
    if (added && title) {
        *added = (struct group){title, *config, {false}};
        found = tsearch(added, &naming->groups, group_compare);
    }
    struct group *group = found ? *found : NULL;
    if (group == added && group)
        return true;
    free(title);
    free(added);
    for (size_t i = 0; group && i < WORKLOAD_PARAMETERS_MAX; ++i)
        group->varies[i] = group->varies[i] || axis_differs(&group->first, i, config);
    return group;
}

bool naming_format(const struct naming *naming, const char *label, const char *listed,
                   const struct config *config, char name[WORKLOAD_TEXT])
{
    char axis[WORKLOAD_STRING], value[WORKLOAD_VALUE_TEXT];
    if (!config->workload)
        return false;
    const struct group key = {title_make(label, listed, config->workload), *config, {false}};
    struct group *const *found = key.title ? tfind(&key, &naming->groups, group_compare) : NULL;
    free(key.title);
    if (!found)
        return false;
    const struct group *group = *found;
    size_t used = (size_t)snprintf(name, WORKLOAD_TEXT, "%s", group->title);
    for (size_t i = 0; axis_text(&group->first, i, config, axis, value); ++i)
        if (group->varies[i] && used < WORKLOAD_TEXT)
            used += (size_t)snprintf(name + used, WORKLOAD_TEXT - used, " %s=%s", axis, value);
    return true;
}
