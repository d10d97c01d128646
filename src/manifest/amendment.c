#include "manifest/amendment.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "manifest/ini_lines.h"
#include "manifest/settings.h"

struct setting {
    char section[INI_NAME_BYTES + 1], key[INI_NAME_BYTES + 1];
    const char *value;
    bool parameter; /* at least one section of this label has the key as a parameter */
    bool used;      /* the setting has been written into a section */
    bool intact;    /* an INI line with the value is read back unchanged */
};

/* The amended text while it is written. */
struct writer {
    const struct amendment *amendment;
    struct setting settings[AMENDMENTS_MAX];
    bool kept[AMENDMENTS_MAX]; /* for each entry of --only: a section has this label */
    FILE *stream;
    const char *next; /* first line of the manifest's text that is not yet written */
    int number;       /* number of the line at `next`, from 1 */
    /* section of the line at `next` */
    char name[INI_NAME_BYTES + 1], label[INI_NAME_BYTES + 1];
    bool left_out;
};

bool amendment_is_empty(const struct amendment *amendment)
{
    return amendment->set_count == 0 && amendment->only_count == 0;
}

/* An ini_visit. Checks that the line keeps the whole value, because a `;` or `#` in the value could
 * begin a comment. */
static enum status line_compare(void *user, const struct ini_line *line, struct error *error)
{
    struct setting *setting = user;
    size_t length = strlen(line->value);
    (void)error;
    setting->intact = line->key && strcmp(line->key, setting->key) == 0 &&
                      strncmp(line->value, setting->value, length) == 0 &&
                      !setting->value[length + strspn(setting->value + length, " \t")];
    return STATUS_OK;
}

static enum status setting_check(const char *text, struct setting *setting, struct error *error)
{
    char *lines;
    if (asprintf(&lines, "[x]\n%s = %s", setting->key, setting->value) < 0)
        return error_set(error, STATUS_SYSTEM, "no memory for --set");
    enum status status =
        ini_lines_visit("--set", lines, strlen(lines), line_compare, setting, error);
    free(lines);
    TRY(status);
    return setting->intact ? STATUS_OK
                           : error_set(error, STATUS_USAGE,
                                       "--set '%.60s' has a comment, which begins with '#' or "
                                       "blank and ';'; leave it out",
                                       text);
}

static enum status setting_parse(const char *text, struct setting *setting, struct error *error)
{
    text += strspn(text, " \t");
    size_t length = strcspn(text, "="), dot = strcspn(text, "."), end = length;
    while (end > 0 && strchr(" \t", text[end - 1]))
        --end;
    if (text[length] != '=' || end == 0 || !text[length + 1] || length > 2 * INI_NAME_BYTES)
        return error_set(error, STATUS_USAGE, "--set '%.60s' is not KEY=VALUE or SECTION.KEY=VALUE",
                         text);
    if (strchr(text, '\n'))
        return error_set(error, STATUS_USAGE, "--set '%.60s' is not in one line", text);
    /* Splits at the last dot: labels may have dots, keys only after env and ungraphed. */
    size_t begin = 0;
    for (size_t i = dot; i < length; ++i)
        if (text[i] == '.' && strncmp(text + begin, "env.", 4) != 0 &&
            strncmp(text + begin, "ungraphed.", 10) != 0)
            begin = i + 1;
    snprintf(setting->section, sizeof setting->section, "%.*s", begin ? (int)begin - 1 : 0, text);
    snprintf(setting->key, sizeof setting->key, "%.*s", (int)(end - begin), text + begin);
    setting->value = text + length + 1;
    setting->value += strspn(setting->value, " \t");
    return setting_check(text, setting, error);
}

/* Whether the rest of the section at `text` has a line with `key`. */
static bool has_line(const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (; *text && *text != '['; text += strcspn(text, "\n"), text += *text == '\n') {
        text += strspn(text, " \t");
        if (strncmp(text, key, length) == 0 && text[length + strspn(text + length, " \t")] == '=')
            return true;
    }
    return false;
}

/* Whether the setting belongs to the section that the writer is in. Without a label a setting
 * adds no axis to a program. */
static bool is_meant(const struct setting *setting, const struct writer *writer)
{
    const struct workload *workload = workload_find(writer->name);
    const char *group = settings_group_of(setting->key);
    const int parameter = workload ? workload_parameter(workload, setting->key) : -1;
    const bool has = parameter >= 0;
    if (*setting->section)
        return strcmp(setting->section, writer->label) == 0 && (has || !setting->parameter);
    if (workload && workload->axes) {
        const bool axis = !has || parameter == workload_role(workload, ROLE_PRECISION);
        return !group && (!axis || has_line(writer->next, setting->key));
    }
    return workload ? has : group && strcmp(group, writer->name) == 0;
}

/* Whether a setting of this section has `key`, or (in sweep, measure, peaks) excludes it. */
static bool is_replaced(const struct writer *writer, const char *key)
{
    const bool group = words_find(settings_groups, writer->name) >= 0;
    for (size_t i = 0; i < writer->amendment->set_count; ++i) {
        const struct setting *setting = &writer->settings[i];
        const bool same =
            strcmp(setting->key, key) == 0 || (group && settings_exclude(setting->key, key));
        if (same && is_meant(setting, writer))
            return true;
    }
    return false;
}

/* Writes the lines before number `end`, as comments if `comment`. */
static void write_lines(struct writer *writer, int end, bool comment)
{
    for (; writer->number < end && *writer->next; ++writer->number) {
        int length = (int)strcspn(writer->next, "\n");
        fprintf(writer->stream, "%s%.*s\n", comment ? "#" : "", length, writer->next);
        writer->next += length + (writer->next[length] == '\n');
    }
}

static void write_settings(struct writer *writer)
{
    for (size_t i = 0; i < writer->amendment->set_count; ++i) {
        struct setting *setting = &writer->settings[i];
        if (!is_meant(setting, writer))
            continue;
        fprintf(writer->stream, "%s = %s\n", setting->key, setting->value);
        setting->used = true;
    }
}

/* An ini_visit. Writes the manifest up to and including this line. A section without a label has
 * its name as label. */
static enum status line_take(void *user, const struct ini_line *line, struct error *error)
{
    struct writer *writer = user;
    const struct amendment *amendment = writer->amendment;
    const char *key = line->key && *line->key == '|' ? "list" : line->key;
    (void)error;
    write_lines(writer, line->number, writer->left_out);
    if (!line->key) {
        ini_section_split(line->section, writer->name, writer->label);
        if (!*writer->label)
            strcpy(writer->label, writer->name);
        writer->left_out = amendment->only_count > 0 && workload_find(writer->name);
        for (size_t i = 0; i < amendment->only_count; ++i)
            if (strcmp(amendment->onlys[i], writer->label) == 0) {
                writer->kept[i] = true;
                writer->left_out = false;
            }
    }
    write_lines(writer, line->number + 1,
                writer->left_out || (line->key && is_replaced(writer, key)));
    if (!line->key && !writer->left_out)
        write_settings(writer);
    return STATUS_OK;
}

/* Adds sections [sweep], [measure] and [peaks] for settings that no section has taken. */
static void write_missing_groups(struct writer *writer)
{
    for (size_t i = 0; i < writer->amendment->set_count; ++i) {
        struct setting *setting = &writer->settings[i];
        const char *group = *setting->section ? setting->section : settings_group_of(setting->key);
        if (setting->used || !group || words_find(settings_groups, group) < 0)
            continue;
        snprintf(writer->name, sizeof writer->name, "%s", group);
        strcpy(writer->label, writer->name);
        fprintf(writer->stream, "[%s]\n", group);
        write_settings(writer);
    }
}

/* Sets `hint` to the text of words_hint for a wrong label, or to "" if memory is lacking. With
 * `groups`, sweep, measure and peaks are labels, too. */
static void hint_labels(const struct manifest *manifest, bool groups, const char *text,
                        char hint[WORDS_HINT])
{
    size_t count = 0;
    const char **labels = calloc(manifest->section_count + SETTINGS_MAX, sizeof *labels);
    *hint = '\0';
    for (size_t i = 0; labels && i < manifest->section_count; ++i)
        if (words_find(labels, manifest->sections[i].label) < 0)
            labels[count++] = manifest->sections[i].label;
    for (size_t i = 0; labels && groups && settings_groups[i]; ++i)
        labels[count++] = settings_groups[i];
    if (labels && count > 0)
        words_hint(labels, text, hint);
    free(labels);
}

/* The known key that `key` may be a typo of; NULL: none. */
static const char *nearest_key(const struct manifest *manifest, const char *key)
{
    const char *keys[SETTINGS_MAX + 1] = {NULL}, *groups[SETTINGS_MAX], *near;
    settings_keys(keys, groups);
    near = words_nearest(keys, key);
    for (size_t i = 0; !near && i < manifest->section_count; ++i) {
        const char *names[WORKLOAD_PARAMETERS_MAX + 1];
        workload_names(manifest->sections[i].workload, names, 0);
        near = words_nearest(names, key);
    }
    return near;
}

static enum status check_used(const struct writer *writer, const struct manifest *manifest,
                              struct error *error)
{
    static const char *const of_one_section[] = {"vary", "exclude", "list", NULL};
    const struct amendment *amendment = writer->amendment;
    char hint[WORDS_HINT];
    for (size_t i = 0; i < amendment->set_count; ++i) {
        const struct setting *setting = &writer->settings[i];
        if (setting->used)
            continue;
        if (!*setting->section && words_find(of_one_section, setting->key) >= 0)
            return error_set(error, STATUS_USAGE,
                             "--set '%.60s' needs the label of a section: LABEL.%s",
                             amendment->sets[i], setting->key);
        if (!*setting->section) {
            const char *near = nearest_key(manifest, setting->key);
            return error_set(error, STATUS_USAGE,
                             "--set '%.60s': no section here may have the key '%.50s'%s%s%s",
                             amendment->sets[i], setting->key, near ? "; did you mean '" : "",
                             near ? near : "", near ? "'?" : "");
        }
        hint_labels(manifest, true, setting->section, hint);
        return error_set(error, STATUS_USAGE,
                         "--set '%.60s': no section here has the label '%.50s'%s",
                         amendment->sets[i], setting->section, hint);
    }
    for (size_t i = 0; i < amendment->only_count; ++i) {
        if (writer->kept[i])
            continue;
        hint_labels(manifest, false, amendment->onlys[i], hint);
        return error_set(error, STATUS_USAGE,
                         "--only '%.60s': no workload section has that label%s",
                         amendment->onlys[i], hint);
    }
    return STATUS_OK;
}

static enum status amendment_apply(const struct amendment *amendment,
                                   const struct manifest *manifest, char **amended,
                                   struct error *error)
{
    struct writer writer = {.amendment = amendment, .next = manifest->text, .number = 1};
    char *text = NULL;
    size_t size;
    for (size_t i = 0; i < amendment->set_count; ++i) {
        struct setting *setting = &writer.settings[i];
        TRY(setting_parse(amendment->sets[i], setting, error));
        for (size_t j = 0; j < manifest->section_count; ++j)
            if (!manifest->sections[j].kind &&
                strcmp(manifest->sections[j].label, setting->section) == 0 &&
                workload_parameter(manifest->sections[j].workload, setting->key) >= 0)
                setting->parameter = true;
    }
    if (!(writer.stream = open_memstream(&text, &size)))
        return error_set(error, STATUS_SYSTEM, "no memory for the amended manifest");
    enum status status = ini_lines_visit(manifest->path, manifest->text, strlen(manifest->text),
                                         line_take, &writer, error);
    write_lines(&writer, INT_MAX, writer.left_out);
    write_missing_groups(&writer);
    if (fclose(writer.stream) != 0)
        status = error_set(error, STATUS_SYSTEM, "no memory for the amended manifest");
    if (status == STATUS_OK)
        status = check_used(&writer, manifest, error);
    if (status == STATUS_OK)
        *amended = text;
    else
        free(text);
    return status;
}

enum status amendment_read(const struct amendment *amendment, struct manifest **manifest,
                           struct error *error)
{
    struct manifest *changed;
    char *text;
    TRY(amendment_apply(amendment, *manifest, &text, error));
    enum status status = manifest_parse((*manifest)->path, text, strlen(text), &changed, error);
    free(text);
    TRY(error_prefix(error, status, AMENDED));
    changed->amended = true;
    changed->folder = (*manifest)->folder;
    (*manifest)->folder = NULL;
    manifest_destroy(*manifest);
    *manifest = changed;
    return STATUS_OK;
}
