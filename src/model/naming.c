#include "model/naming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/workloads/program.h"

/* Configurations of one label and workload. */
struct group {
    char *label;         /* owned */
    struct config first; /* the one that was added first */
    /* By parameter, or of a program by its axes as the first one has them: do they tell the
     * configurations apart? */
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

/* NULL: there is none. The newest first: configurations of one group mostly come together. */
static struct group *group_find(const struct naming *naming, const char *label,
                                const struct config *config)
{
    for (size_t i = naming->count; i-- > 0;) {
        struct group *group = &naming->groups[i];
        if (group->first.workload == config->workload && strcmp(group->label, label) == 0)
            return group;
    }
    return NULL;
}

/* NULL: no memory. */
static struct group *group_add(struct naming *naming, const char *label,
                               const struct config *config)
{
    struct group *grown = array_grow(naming->groups, naming->count, sizeof *grown);
    char *copy = grown ? strdup(label) : NULL;
    if (grown)
        naming->groups = grown;
    if (!copy)
        return NULL;
    naming->groups[naming->count] = (struct group){.label = copy, .first = *config};
    return &naming->groups[naming->count++];
}

/* The axes of one program, in turn, against another's. */
struct comparison {
    struct group *group;
    const struct config *other;
    size_t axis;
};

static void axis_text(const struct config *config, const char *name, char text[WORKLOAD_STRING])
{
    if (!program_axis(config, name, text))
        text[0] = '\0';
}

static void axis_compare(void *user, const char *name)
{
    struct comparison *c = user;
    char a[WORKLOAD_STRING], b[WORKLOAD_STRING];
    axis_text(&c->group->first, name, a);
    axis_text(c->other, name, b);
    if (c->axis < WORKLOAD_PARAMETERS_MAX && strcmp(a, b) != 0)
        c->group->varies[c->axis] = true;
    ++c->axis;
}

static void differences_note(struct group *group, const struct config *other)
{
    struct comparison comparison = {group, other, 0};
    if (config_is_program(other)) {
        program_axes_visit(&group->first, axis_compare, &comparison);
        return;
    }
    for (size_t i = 0; i < other->workload->count; ++i) {
        struct value a = config_get(&group->first, i), b = config_get(other, i);
        group->varies[i] = group->varies[i] || !value_equal(&a, &b);
    }
}

bool naming_add(struct naming *naming, const char *label, const struct config *config)
{
    if (!config->workload)
        return true;
    struct group *group = group_find(naming, label, config);
    if (!group)
        return group_add(naming, label, config) != NULL;
    differences_note(group, config);
    return true;
}

static void label_format(const char *label, char text[WORKLOAD_TEXT])
{
    size_t first = strcspn(label, " "), more = 0;
    for (const char *space = label; (space = strchr(space, ' ')); ++space)
        ++more;
    int length = snprintf(text, WORKLOAD_TEXT, "%.*s", (int)(first < 64 ? first : 64), label);
    if (more > 0)
        snprintf(text + length, WORKLOAD_TEXT - (size_t)length, "+%zu", more);
}

static void append(char name[WORKLOAD_TEXT], const char *parameter, const char *value)
{
    size_t used = strlen(name);
    snprintf(name + used, WORKLOAD_TEXT - used, " %s=%s", parameter, value);
}

/* A name that gets the axes that vary, in turn. */
struct axis_names {
    const struct group *group;
    const struct config *config;
    char *name;
    size_t axis;
};

static void axis_append(void *user, const char *name)
{
    struct axis_names *names = user;
    char text[WORKLOAD_STRING];
    if (names->axis < WORKLOAD_PARAMETERS_MAX && names->group->varies[names->axis]) {
        axis_text(names->config, name, text);
        append(names->name, name, text);
    }
    ++names->axis;
}

bool naming_format(const struct naming *naming, const char *label, const struct config *config,
                   char name[WORKLOAD_TEXT])
{
    const struct group *group = config->workload ? group_find(naming, label, config) : NULL;
    char value[WORKLOAD_VALUE_TEXT];
    if (!group)
        return false;
    label_format(label, name);
    if (config_is_program(config)) { /* all else of a program follows from its axes */
        struct axis_names names = {group, config, name, 0};
        program_axes_visit(&group->first, axis_append, &names);
        return true;
    }
    for (size_t i = 0; i < config->workload->count; ++i) {
        const struct parameter *parameter = &config->workload->parameters[i];
        if (!group->varies[i])
            continue;
        parameter_format(parameter, config_get(config, i), value);
        append(name, parameter->name, value);
    }
    return true;
}
