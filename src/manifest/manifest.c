#include "manifest/manifest.h"

#include <ctype.h>
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "manifest/axis.h"
#include "manifest/ini_lines.h"
#include "manifest/section.h"
#include "manifest/settings.h"
#include "model/device_kind.h"
#include "base/text.h"

enum { MANIFEST_BYTES = 16 << 20, SECTIONS_MAX = 10000, GROUPS_MAX = 8 };

static const struct section_kind *const section_kinds[] = {
#ifdef ROOFSWEEP_PROGRAMS
    &program_section,
#endif
    NULL,
};

const struct section_kind *section_kind_of(const struct workload *workload)
{
    size_t i = 0;
    while (section_kinds[i] && section_kinds[i]->workload != workload)
        ++i;
    return section_kinds[i];
}

/* A manifest while its lines are read. */
struct reader {
    struct manifest *manifest;
    struct settings settings;
    int group;                  /* index into settings_groups; -1: in a workload section */
    size_t room;                /* number of values that the rest of the manifest may have */
    void *labels;               /* tree of "WORKLOAD LABEL", owned, see tsearch */
    int group_line[GROUPS_MAX]; /* first line of each section of settings; 0: not there */
};

static int label_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Notes a label of a workload. Sections of other workloads may have the label, too. */
static enum status label_note(struct reader *reader, const struct workload *workload,
                              const char *label, struct error *error)
{
    for (const char *c = label; *c; ++c)
        if (!isalnum((unsigned char)*c) && !strchr("_.-", *c))
            return error_set(error, STATUS_USAGE,
                             "label '%s' has a '%.1s'; allowed: letters, digits, _ . -", label,
                             (unsigned char)*c < 0x80 ? c : "?");
    char *key, **found;
    if (asprintf(&key, "%s %s", workload->name, label) < 0)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    found = tsearch(key, &reader->labels, label_compare);
    if (found && *found == key)
        return STATUS_OK;
    free(key);
    if (!found)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    const struct section *first = reader->manifest->sections;
    while (first->workload != workload || strcmp(first->label, label) != 0)
        ++first;
    return error_set(error, STATUS_USAGE, "label '%s' is here a second time; first in line %d",
                     label, first->line);
}

static enum status workload_begin(struct reader *reader, const struct workload *workload,
                                  const char *label, int line, struct error *error)
{
    struct manifest *manifest = reader->manifest;
    TRY(label_note(reader, workload, label, error));
    if (workload->axes && !section_kind_of(workload))
        return error_set(error, STATUS_USAGE,
                         "[%s] is not in this build; configure with -DROOFSWEEP_PROGRAMS=ON",
                         workload->name);
    if (manifest->section_count == SECTIONS_MAX)
        return error_set(error, STATUS_USAGE,
                         "more than %d workload sections; one section can have lists and ranges",
                         SECTIONS_MAX);
    struct section section = {.workload = workload,
                              .kind = section_kind_of(workload),
                              .label = strdup(label),
                              .line = line};
    if (!section.label || !ARRAY_ADD(manifest->sections, manifest->section_count, section)) {
        free(section.label);
        return error_set(error, STATUS_SYSTEM, "out of memory");
    }
    reader->group = -1;
    return STATUS_OK;
}

static enum status section_begin(struct reader *reader, const struct ini_line *line,
                                 struct error *error)
{
    char name[INI_NAME_BYTES + 1], label[INI_NAME_BYTES + 1], hint[WORDS_HINT];
    ini_section_split(line->section, name, label);
    const struct workload *workload = workload_find(name);
    if (workload)
        return workload_begin(reader, workload, *label ? label : name, line->number, error);
    int group = words_find(settings_groups, name);
    if (group >= 0 && *label)
        return error_set(error, STATUS_USAGE, "[%s] takes no label, but has '%s'", name, label);
    if (group >= 0) {
        reader->group = group;
        return ini_line_first(line, &reader->group_line[group], error);
    }
    workload_hint(settings_groups, NULL, name, hint);
    return error_set(error, STATUS_USAGE, "unknown section [%s]%s", line->section, hint);
}

static enum status line_take(void *user, const struct ini_line *line, struct error *error)
{
    struct reader *reader = user;
    if (!line->key)
        return section_begin(reader, line, error);
    if (*line->section == '\0')
        return error_set(error, STATUS_USAGE,
                         "key '%s' stands before the first section; write [conv2d LABEL] or "
                         "another one above it",
                         line->key);
    if (*line->value == '\0' && *line->key != '|')
        return error_set(error, STATUS_USAGE, "key '%s' has no value", line->key);
    if (reader->group >= 0)
        return settings_take(&reader->settings, reader->group, line, error);
    struct section *section = &reader->manifest->sections[reader->manifest->section_count - 1];
    return section->kind ? section->kind->take(section, line, error)
                         : section_take(section, line, &reader->room, error);
}

/* The default title is "". The default output of "a/conv2d.ini" is "conv2d.nc". */
static enum status text_defaults(struct manifest *manifest, struct error *error)
{
    struct sweep_settings *sweep = &manifest->sweep;
    const char *slash = strrchr(manifest->path, '/');
    const char *name = slash ? slash + 1 : manifest->path;
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, ".ini") == 0)
        length -= 4;
    if (!sweep->title)
        sweep->title = strdup("");
    if (!sweep->output && asprintf(&sweep->output, "%.*s.nc", (int)length, name) < 0)
        sweep->output = NULL;
    return sweep->title && sweep->output ? STATUS_OK
                                         : error_set(error, STATUS_SYSTEM, "out of memory");
}

static enum status reader_finish(struct reader *reader, struct error *error)
{
    struct manifest *manifest = reader->manifest;
    bool roofs_only = reader->group_line[words_find(settings_groups, "peaks")] != 0;
    if (manifest->section_count == 0 && !roofs_only)
        return error_set(
            error, STATUS_USAGE,
            "%s: no workload; add a section such as [conv2d LABEL] or [lstm LABEL], or "
            "[peaks] to measure the roofs alone",
            manifest->path);
    TRY(settings_finish(&reader->settings, manifest->path, error));
    for (size_t i = 0; i < manifest->section_count; ++i) {
        struct section *section = &manifest->sections[i];
        if (section->kind)
            TRY(section->kind->finish(section, manifest->path, &reader->room, error));
        TRY(section_finish(section, manifest->path, settings_cache(&reader->settings),
                           &reader->room, error));
    }
    return STATUS_OK;
}

enum status manifest_parse(const char *path, const char *text, size_t length,
                           struct manifest **manifest, struct error *error)
{
    static const struct {
        const char *begin, *what;
    } others[] = {
        {"\x89HDF", "a result file, not a manifest; roofsweep-post reads it"},
        {"{\"xxh3\":", "a journal, not a manifest; --gather makes its result file"},
    };
    struct reader reader = {
        .settings = settings_default(), .group = -1, .room = MANIFEST_VALUES_MAX};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        size_t begin = strlen(others[i].begin);
        if (length >= begin && memcmp(text, others[i].begin, begin) == 0)
            return error_set(error, STATUS_USAGE, "%s: %s", path, others[i].what);
    }
    enum status status = error_set(error, STATUS_SYSTEM, "out of memory");
    struct manifest *parsed = reader.manifest = calloc(1, sizeof *parsed);
    if (!parsed)
        return status;
    parsed->path = strdup(path);
    parsed->text = strndup(text, length);
    if (parsed->path && parsed->text)
        status = ini_lines_visit(path, text, length, line_take, &reader, error);
    if (status == STATUS_OK)
        status = reader_finish(&reader, error);
    tdestroy(reader.labels, free);
    parsed->sweep = reader.settings.sweep;
    parsed->measure = reader.settings.measure;
    parsed->peaks = reader.settings.peaks;
    parsed->reuse = reader.settings.reuse;
    parsed->reuse_line = settings_line(&reader.settings, "reuse");
    if (status == STATUS_OK)
        status = text_defaults(parsed, error);
    if (status)
        manifest_destroy(parsed);
    else
        *manifest = parsed;
    return status;
}

/* Reads to the end of the stream. The caller owns *text. */
static enum status stream_read(FILE *stream, char **text, size_t *length, struct error *error)
{
    char *buffer = malloc(MANIFEST_BYTES + 1);
    if (!buffer)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    *length = fread(buffer, 1, MANIFEST_BYTES + 1, stream);
    if (!ferror(stream) && *length <= MANIFEST_BYTES) {
        *text = buffer;
        return STATUS_OK;
    }
    enum status status =
        ferror(stream) ? error_set(error, STATUS_USAGE, "%s", strerror(errno))
                       : error_set(error, STATUS_USAGE,
                                   "larger than %d bytes: no manifest; name the file that lists "
                                   "what to measure",
                                   MANIFEST_BYTES);
    free(buffer);
    return status;
}

/* Parses a manifest, and sets its folder to the folder of `path`. */
static enum status parse_at(const char *path, const char *name, const char *text, size_t length,
                            struct manifest **manifest, struct error *error)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
    char *whole = folder ? realpath(folder, NULL) : NULL;
    free(folder);
    if (!whole)
        return error_set(error, STATUS_USAGE, "the folder of %s: %s", path, strerror(errno));
    enum status status = manifest_parse(name, text, length, manifest, error);
    if (status)
        free(whole);
    else
        (*manifest)->folder = whole;
    return status;
}

enum status manifest_read(const char *path, struct manifest **manifest, struct error *error)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "stdin" : path;
    FILE *stream = stdin;
    char *text = NULL;
    size_t length = 0;
    enum status status = standard ? STATUS_OK : file_open(path, &stream, error);
    if (status == STATUS_USAGE)
        return error_append(error, status, "; '-' reads standard input");
    if (status)
        return STATUS_USAGE;
    status = stream_read(stream, &text, &length, error);
    if (!standard)
        fclose(stream);
    TRY(error_prefix(error, status, "%s", name));
    status = parse_at(standard ? "-" : path, name, text, length, manifest, error);
    free(text);
    return status;
}

enum status manifest_of_program(const char *command, struct manifest **manifest,
                                struct error *error)
{
    if (command[strspn(command, " \t")] == '\0')
        return error_set(error, STATUS_USAGE, "--program: the command is empty");
    if (strchr(command, '\n') || strstr(command, " ;") || strstr(command, "\t;"))
        return error_set(error, STATUS_USAGE,
                         "--program: a line break, or a ';' after a blank; write a manifest with "
                         "[program LABEL], or a script");
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    fputs("[program program]\nregion = all\ncommand = ", stream);
    for (; *command; ++command) /* single braces would name an axis */
        fprintf(stream, "%c%s", *command, *command == '{' ? "{" : *command == '}' ? "}" : "");
    fputc('\n', stream);
    if (fclose(stream) != 0) {
        free(text);
        return error_set(error, STATUS_SYSTEM, "out of memory");
    }
    enum status status = parse_at("program", "program", text, strlen(text), manifest, error);
    free(text);
    return status;
}

enum status manifest_embed_lists(struct manifest *manifest, struct error *error)
{
    const struct section *section = manifest->sections, *end = section + manifest->section_count;
    const char *next = manifest->text;
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    for (int line = 1; *next; ++line) {
        size_t length = strcspn(next, "\n");
        length += next[length] == '\n';
        fwrite(next, 1, length, stream);
        next += length;
        for (; section < end && section->list.line <= line; ++section)
            if (section->list.text)
                fprintf(stream, "%s%s", next[-1] == '\n' ? "" : "\n", section->list.text);
    }
    if (fclose(stream) != 0) {
        free(text);
        return error_set(error, STATUS_SYSTEM, "no memory for the lists of the manifest");
    }
    free(manifest->text);
    manifest->text = text;
    if (size > 2 * MANIFEST_BYTES) /* JSON may double it, and JOURNAL_LINE_BYTES is the limit */
        return error_set(error, STATUS_USAGE,
                         "%s: %zu bytes with its lists, each copied into every section that names "
                         "it; allowed: %d; write shorter lists",
                         manifest->path, size, 2 * MANIFEST_BYTES);
    return STATUS_OK;
}

void manifest_destroy(struct manifest *manifest)
{
    if (!manifest)
        return;
    for (size_t i = 0; i < manifest->section_count; ++i) {
        struct section *section = &manifest->sections[i];
        if (section->kind)
            section->kind->destroy(section->own);
        section_clear(section);
    }
    free(manifest->sections);
    free(manifest->sweep.title);
    free(manifest->sweep.output);
    free(manifest->reuse);
    free(manifest->folder);
    free(manifest->path);
    free(manifest->text);
    free(manifest);
}

void manifest_settings_text(const struct manifest *manifest, char text[256])
{
    const struct measure_settings *measure = &manifest->measure;
    char rule[128], repeat[32] = "";
    if (measure->iterations)
        snprintf(rule, sizeof rule, "iterations=%d", measure->iterations);
    else
        snprintf(rule, sizeof rule, "stop=%.12g min_time=%.12g max_time=%.12g", measure->stop,
                 measure->min_time, measure->max_time);
    for (int i = 0; measure->by_kind && i < DEVICE_KINDS; ++i)
        if (device_kinds[i].stop > 0)
            snprintf(rule + strlen(rule), sizeof rule - strlen(rule),
                     " %s:stop=%g,min_time=%g,max_time=%g", device_kinds[i].name,
                     device_kinds[i].stop, device_kinds[i].min_time, device_kinds[i].max_time);
    if (measure->repeat > 1)
        snprintf(repeat, sizeof repeat, " repeat=%d", measure->repeat);
    snprintf(text, 256, "warmup=%d %s%s counters=%s kernels=%s verify=%s%s seed=%llu",
             measure->warmup, rule, repeat, counters_words[measure->counters],
             measure->kernels ? "yes" : "no", measure->verify ? "yes" : "no",
             measure->energy ? " energy=yes" : "", (unsigned long long)manifest->sweep.seed);
}
