#include "model/naming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Configurations that share chosen label and workload. */
struct group {
    char *label;         /* owned */
    size_t length;       /* of `label` */
    struct config first; /* first configuration that was added */
    /* By parameter (of a program: by axis of `first`): true if its values differ. */
    bool varies[WORKLOAD_PARAMETERS_MAX];
};

struct naming {
    struct group *groups; /* owned */
    size_t count;
};

struct naming *naming_create(void)
{
    return calloc(1, sizeof(struct naming));
}

void naming_destroy(struct naming *naming)
{
    if (!naming)
        return;
    for (size_t i = 0; i < naming->count; ++i)
        free(naming->groups[i].label);
    free(naming->groups);
    free(naming);
}

/* Returns the label that names the row, and its length: the first that a person chose. A section
 * without a label has that of its workload. */
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

/* NULL: no group. Searches from the newest, because members of a group mostly come together. */
static struct group *group_find(const struct naming *naming, const char *label,
                                const struct config *config)
{
    size_t length;
    label = label_choose(label, config->workload, &length);
    for (size_t i = naming->count; i-- > 0;) {
        struct group *group = &naming->groups[i];
        if (group->first.workload == config->workload && group->length == length &&
            strncmp(group->label, label, length) == 0)
            return group;
    }
    return NULL;
}

/* NULL: no memory. */
static struct group *group_add(struct naming *naming, const char *label,
                               const struct config *config)
{
    struct group *grown = array_grow(naming->groups, naming->count, sizeof *grown);
    size_t length;
    label = label_choose(label, config->workload, &length);
    char *copy = grown ? strndup(label, length) : NULL;
    if (grown)
        naming->groups = grown;
    if (!copy)
        return NULL;
    naming->groups[naming->count] = (struct group){copy, length, *config, {false}};
    return &naming->groups[naming->count++];
}

/* Sets the name of axis `i` of the first configuration and its text in `config`. The axes of a
 * program determine all its parameters. False beyond the last axis. */
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

bool naming_add(struct naming *naming, const char *label, const struct config *config)
{
    if (!config->workload)
        return true;
    struct group *group = group_find(naming, label, config);
    if (!group)
        return group_add(naming, label, config) != NULL;
    for (size_t i = 0; i < WORKLOAD_PARAMETERS_MAX; ++i)
        group->varies[i] = group->varies[i] || axis_differs(&group->first, i, config);
    return true;
}

bool naming_format(const struct naming *naming, const char *label, const struct config *config,
                   char name[WORKLOAD_TEXT])
{
    const struct group *group = config->workload ? group_find(naming, label, config) : NULL;
    char axis[WORKLOAD_STRING], value[WORKLOAD_VALUE_TEXT];
    if (!group)
        return false;
    size_t used = (size_t)snprintf(name, WORKLOAD_TEXT, "%s", group->label);
    for (size_t i = 0; axis_text(&group->first, i, config, axis, value); ++i)
        if (group->varies[i] && used < WORKLOAD_TEXT)
            used += (size_t)snprintf(name + used, WORKLOAD_TEXT - used, " %s=%s", axis, value);
    return true;
}
