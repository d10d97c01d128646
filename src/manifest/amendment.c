#include "manifest/amendment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "manifest/ini_lines.h"
#include "manifest/settings.h"

/* One --set, taken apart. */
struct setting {
    char section[INI_NAME_BYTES + 1], key[INI_NAME_BYTES + 1];
    const char *value;
    bool used; /* some section has it now */
};

/* A line of the manifest's text; what is not parsed needs no more than this. */
struct scan {
    const char *line;
    size_t length;                                            /* without its end */
    char name[INI_NAME_BYTES + 1], label[INI_NAME_BYTES + 1]; /* of its section */
    bool begins;                                              /* it is "[NAME LABEL]" */
    char key[INI_NAME_BYTES + 1];                             /* "": it has none */
};

struct writer {
    const struct amendment *amendment;
    struct setting settings[AMENDMENTS_MAX];
    bool kept[AMENDMENTS_MAX]; /* by --only: there is such a section */
    FILE *stream;
};

bool amendment_is_empty(const struct amendment *amendment)
{
    return amendment->set_count == 0 && amendment->only_count == 0;
}

static enum status setting_parse(const char *text, struct setting *setting, struct error *error)
{
    size_t length = strcspn(text, "="), dot = strcspn(text, ".");
    if (text[length] != '=' || length == 0 || !text[length + 1] || length > 2 * INI_NAME_BYTES)
        return error_set(error, STATUS_USAGE, "--set '%.60s' is not KEY=VALUE or SECTION.KEY=VALUE",
                         text);
    if (strchr(text, '\n'))
        return error_set(error, STATUS_USAGE, "--set '%.60s' is not in one line", text);
    /* A label may have dots, a key has none: the last one counts. */
    size_t begin = 0;
    for (size_t i = dot; i < length; ++i)
        begin = text[i] == '.' ? i + 1 : begin;
    snprintf(setting->section, sizeof setting->section, "%.*s", begin ? (int)begin - 1 : 0, text);
    snprintf(setting->key, sizeof setting->key, "%.*s", (int)(length - begin), text + begin);
    setting->value = text + length + 1;
    return STATUS_OK;
}

/* Cuts the words out of "[NAME LABEL]"; a section without a label goes by its name. */
static void begin_section(struct scan *scan)
{
    static const char blanks[] = " \t";
    char text[INI_NAME_BYTES + 1], *rest = text;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(scan->line + 1, "]"), scan->line + 1);
    rest += strspn(rest, blanks);
    size_t length = strcspn(rest, blanks);
    snprintf(scan->name, sizeof scan->name, "%.*s", (int)length, rest);
    rest += length + strspn(rest + length, blanks);
    snprintf(scan->label, sizeof scan->label, "%.*s", (int)strcspn(rest, blanks), rest);
    if (!*scan->label)
        strcpy(scan->label, scan->name);
}

/* The line at `text`, of the section that the scan is in. */
static void scan_line(const char *text, struct scan *scan)
{
    scan->line = text;
    scan->length = strcspn(text, "\n");
    scan->begins = *text == '[';
    scan->key[0] = '\0';
    if (scan->begins)
        begin_section(scan);
    else if (*text != '#' && *text != ';' && strcspn(text, "=") < scan->length)
        snprintf(scan->key, sizeof scan->key, "%.*s", (int)strcspn(text, "= \t"), text);
}

static bool is_workload(const struct scan *scan)
{
    return workload_find(scan->name) != NULL;
}

/* Whether the section that the scan is in is meant by the setting. */
static bool is_meant(const struct setting *setting, const struct scan *scan)
{
    if (*setting->section)
        return strcmp(setting->section, scan->label) == 0;
    const struct workload *workload = workload_find(scan->name);
    const char *group = settings_group_of(setting->key);
    return workload ? workload_parameter(workload, setting->key) >= 0
                    : group && strcmp(group, scan->name) == 0;
}

static bool is_left_out(struct writer *writer, const struct scan *scan)
{
    const struct amendment *amendment = writer->amendment;
    if (amendment->only_count == 0 || !is_workload(scan))
        return false;
    for (size_t i = 0; i < amendment->only_count; ++i)
        if (strcmp(amendment->onlys[i], scan->label) == 0) {
            writer->kept[i] = true;
            return false;
        }
    return true;
}

/* A line of the greatest length would be too long as a comment. */
static void write_comment(const struct writer *writer, const struct scan *scan)
{
    int length = (int)(scan->length < INI_LINE_BYTES ? scan->length : INI_LINE_BYTES - 1);
    fprintf(writer->stream, "#%.*s\n", length, scan->line);
}

static void write_settings(struct writer *writer, const struct scan *scan)
{
    for (size_t i = 0; i < writer->amendment->set_count; ++i) {
        struct setting *setting = &writer->settings[i];
        if (!is_meant(setting, scan))
            continue;
        fprintf(writer->stream, "%s = %s\n", setting->key, setting->value);
        setting->used = true;
    }
}

static bool is_replaced(const struct writer *writer, const struct scan *scan)
{
    for (size_t i = 0; i < writer->amendment->set_count; ++i)
        if (*scan->key && strcmp(writer->settings[i].key, scan->key) == 0 &&
            is_meant(&writer->settings[i], scan))
            return true;
    return false;
}

static void write_line(struct writer *writer, const struct scan *scan)
{
    if (is_left_out(writer, scan) || is_replaced(writer, scan)) {
        write_comment(writer, scan);
        return;
    }
    fprintf(writer->stream, "%.*s\n", (int)scan->length, scan->line);
    if (scan->begins)
        write_settings(writer, scan);
}

/* A setting of [sweep], [measure] or [peaks], which is not there yet. */
static void write_missing_groups(struct writer *writer)
{
    for (size_t i = 0; i < writer->amendment->set_count; ++i) {
        struct setting *setting = &writer->settings[i];
        const char *group = *setting->section ? setting->section : settings_group_of(setting->key);
        struct scan scan = {.line = ""};
        if (setting->used || !group || words_find(settings_groups, group) < 0)
            continue;
        snprintf(scan.name, sizeof scan.name, "%s", group);
        strcpy(scan.label, scan.name);
        fprintf(writer->stream, "[%s]\n", group);
        write_settings(writer, &scan);
    }
}

/* Labels of the manifest; `groups`: and the names of [sweep], [measure] and [peaks]. "": no memory. */
static void hint_labels(const struct manifest *manifest, bool groups, const char *text,
                        char hint[WORDS_HINT])
{
    size_t count = 0, room = manifest->section_count + 1;
    for (size_t i = 0; settings_groups[i]; ++i)
        ++room;
    const char **labels = calloc(room, sizeof *labels);
    *hint = '\0';
    for (; labels && count < manifest->section_count; ++count)
        labels[count] = manifest->sections[count].label;
    for (size_t i = 0; labels && groups && settings_groups[i]; ++i)
        labels[count++] = settings_groups[i];
    if (count > 0)
        words_hint(labels, text, hint);
    free(labels);
}

static enum status refuse_set(const struct setting *setting, const char *text,
                              const struct manifest *manifest, struct error *error)
{
    char hint[WORDS_HINT];
    if (!*setting->section)
        return error_set(error, STATUS_USAGE,
                         "--set '%.60s': no section here may have the key '%.50s'", text,
                         setting->key);
    hint_labels(manifest, true, setting->section, hint);
    return error_set(error, STATUS_USAGE, "--set '%.60s': no section here has the label '%.50s'%s",
                     text, setting->section, hint);
}

static enum status refuse_only(const char *label, const struct manifest *manifest,
                               struct error *error)
{
    char hint[WORDS_HINT];
    hint_labels(manifest, false, label, hint);
    return error_set(error, STATUS_USAGE, "--only '%.60s': no workload section has that label%s",
                     label, hint);
}

static enum status check_used(const struct writer *writer, const struct manifest *manifest,
                              struct error *error)
{
    const struct amendment *amendment = writer->amendment;
    for (size_t i = 0; i < amendment->set_count; ++i)
        if (!writer->settings[i].used)
            return refuse_set(&writer->settings[i], amendment->sets[i], manifest, error);
    for (size_t i = 0; i < amendment->only_count; ++i)
        if (!writer->kept[i])
            return refuse_only(amendment->onlys[i], manifest, error);
    return STATUS_OK;
}

enum status amendment_apply(const struct amendment *amendment, const struct manifest *manifest,
                            char **amended, struct error *error)
{
    struct writer writer = {.amendment = amendment};
    struct scan scan = {.line = ""};
    char *text = NULL;
    size_t size;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < amendment->set_count && status == STATUS_OK; ++i)
        status = setting_parse(amendment->sets[i], &writer.settings[i], error);
    if (status)
        return status;
    if (!(writer.stream = open_memstream(&text, &size)))
        return error_set(error, STATUS_SYSTEM, "no memory for the amended manifest");
    for (const char *line = manifest->text; *line;
         line += scan.length + (line[scan.length] == '\n')) {
        scan_line(line, &scan);
        write_line(&writer, &scan);
    }
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
    enum status status = amendment_apply(amendment, *manifest, &text, error);
    if (status)
        return status;
    status = manifest_parse((*manifest)->path, text, strlen(text), &changed, error);
    free(text);
    if (status) {
        error_prefix(error, "after --set and --only");
        return status;
    }
    manifest_destroy(*manifest);
    *manifest = changed;
    return STATUS_OK;
}
