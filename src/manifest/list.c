#include "manifest/list.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

static const char blanks[] = " \t";

/* Cuts off the next field, in place, without blanks and quotes around it. Sets *at to the text
 * after the comma; NULL: it was the last field. */
static enum status field_next(char **at, char **field, struct error *error)
{
    char *from = *at + strspn(*at, blanks), *to = from;
    *field = from;
    if (*from == '"') {
        for (++from; *from && (*from != '"' || from[1] == '"'); ++from) {
            *to++ = *from;
            from += *from == '"';
        }
        if (!*from)
            return error_set(error, STATUS_USAGE,
                             "a double quote is not closed; a field ends in its line");
        from += 1 + strspn(from + 1, blanks);
        if (*from && *from != ',')
            return error_set(error, STATUS_USAGE,
                             "'%.40s' after a closing quote; a quote within a field is doubled",
                             from);
    } else {
        from += strcspn(from, ",");
        for (to = from; to > *field && strchr(blanks, to[-1]);)
            --to;
    }
    *at = *from ? from + 1 : NULL;
    *to = '\0';
    return STATUS_OK;
}

enum { NAME, COUNT, WORKLOAD, PARAMETERS };

static enum status column_find(const struct workload *workload, const char *column, int *found,
                               struct error *error)
{
    const char *known[PARAMETERS + WORKLOAD_PARAMETERS_MAX + 1] = {"name", "count", "workload"};
    char hint[WORDS_HINT];
    workload_names(workload, known, PARAMETERS);
    *found = words_find(known, column);
    if (*found >= 0)
        return STATUS_OK;
    words_hint(known, column, hint);
    return error_set(error, STATUS_USAGE, "unknown column '%s' of %s%s", column, workload->name,
                     hint);
}

/* Columns of other workloads are allowed beside a column `workload`. */
static enum status header_check(const struct list *list, struct error *error)
{
    const char *const *columns = (const char *const *)list->columns;
    const bool mixed = words_find(columns, "workload") >= 0;
    for (size_t i = 0; i < list->column_count; ++i) {
        bool known = false;
        int found;
        if (words_find(columns, columns[i]) != (int)i)
            return error_set(error, STATUS_USAGE, "column '%s' comes twice", columns[i]);
        for (size_t j = 0; mixed && !known && workloads[j]; ++j)
            known = workload_parameter(workloads[j], columns[i]) >= 0;
        if (!known)
            TRY(column_find(list->workload, columns[i], &found, error));
    }
    return STATUS_OK;
}

static enum status field_take(struct list_row *row, const char *column, const char *field,
                              struct error *error)
{
    const struct workload *workload = row->config.workload;
    int found;
    struct value value;
    TRY(column_find(workload, column, &found, error));
    const int parameter = found - PARAMETERS;
    if (found == COUNT)
        return error_prefix(error, units_integer(field, 1, INT32_MAX, &row->count, error), "count");
    if (found == NAME && strchr(field, ';'))
        return error_set(error, STATUS_USAGE,
                         "name: '%.60s' has a ';', which separates names in the result file",
                         field);
    if (found == NAME && !(row->name = strdup(field)))
        return error_set(error, STATUS_SYSTEM, "out of memory");
    if (found < PARAMETERS)
        return STATUS_OK;
    TRY(parameter_parse(&workload->parameters[parameter], field, &value, error));
    config_set(&row->config, (size_t)parameter, &value);
    row->set |= UINT32_C(1) << parameter;
    return STATUS_OK;
}

/* Takes a line below the header. */
static enum status row_take(struct list *list, char **fields, size_t count, int line,
                            struct error *error)
{
    const struct workload *workload = list->workload;
    char hint[WORDS_HINT];
    int mixed = words_find((const char *const *)list->columns, "workload");
    if (count != list->column_count)
        return error_set(error, STATUS_USAGE, "the header has %zu fields, and this line %zu",
                         list->column_count, count);
    list->places += 1;
    if (mixed >= 0 && strcmp(fields[mixed], workload->name) != 0) {
        if (workload_find(fields[mixed]))
            return STATUS_OK;
        workload_hint(NULL, NULL, fields[mixed], hint);
        return error_set(error, STATUS_USAGE, "unknown workload '%s'%s", fields[mixed], hint);
    }
    if (!ARRAY_GROW(list->rows, list->count))
        return error_set(error, STATUS_SYSTEM, "out of memory");
    struct list_row *row = &list->rows[list->count++];
    *row = (struct list_row){
        .config = config_default(workload), .count = 1, .place = list->places, .line = line};
    for (size_t i = 0; i < count; ++i)
        if (*fields[i])
            TRY(field_take(row, list->columns[i], fields[i], error));
    return STATUS_OK;
}

/* Takes the header or a line below it. An ini_visit for lists in files. */
static enum status line_take(void *user, const struct ini_line *line, struct error *error)
{
    struct list *list = user;
    size_t count = 0, most = 2;
    const char *text = line->value + strspn(line->value, blanks);
    if (*text == '#' || !text[strspn(text, " \t,")]) /* spreadsheets end with lines of commas */
        return STATUS_OK;
    for (const char *c = line->value; *c; ++c)
        most += *c == ',';
    char *copy = strdup(line->value), *at = copy, **fields = calloc(most, sizeof *fields);
    enum status status =
        copy && fields ? STATUS_OK : error_set(error, STATUS_SYSTEM, "out of memory");
    while (status == STATUS_OK && at)
        status = field_next(&at, &fields[count++], error);
    if (status == STATUS_OK && !list->columns) {
        list->columns = fields;
        list->column_count = count;
        list->header = copy;
        return header_check(list, error);
    }
    if (status == STATUS_OK)
        status = row_take(list, fields, count, line->number, error);
    free(fields);
    free(copy);
    return status;
}

enum status list_take(struct list *list, const struct workload *workload,
                      const struct ini_line *line, struct error *error)
{
    list->workload = workload;
    if (*line->key == '|' && !list->path)
        return error_set(error, STATUS_USAGE,
                         "a line of a list; write 'list = NAME' above its lines");
    if (*line->key == '|')
        return line_take(list, line, error);
    TRY(ini_line_first(line, &list->line, error));
    list->path = strdup(line->value);
    return list->path ? STATUS_OK : error_set(error, STATUS_SYSTEM, "out of memory");
}

static enum status file_read(struct list *list, FILE *file, size_t *size)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark; some editors write it */
    char *line = NULL;
    size_t room = 0;
    FILE *text = open_memstream(&list->text, size);
    for (ssize_t length; text && (length = getline(&line, &room, file)) >= 0;) {
        const size_t skipped = ftell(text) == 0 && strncmp(line, mark, 3) == 0 ? 3 : 0;
        fputc('|', text);
        fwrite(line + skipped, 1, (size_t)length - skipped, text);
        if (line[length - 1] != '\n')
            fputc('\n', text);
    }
    free(line);
    return text && fclose(text) == 0 && !ferror(file) ? STATUS_OK : STATUS_SYSTEM;
}

enum status list_finish(struct list *list, const char *path, struct error *error)
{
    const char *slash = strrchr(path, '/');
    int folder = slash && *list->path != '/' ? (int)(slash - path + 1) : 0;
    char *place;
    if (asprintf(&place, "%.*s%s", list->columns ? INT_MAX : folder, path,
                 list->columns ? "" : list->path) < 0)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    free(list->path);
    list->path = place;
    if (!list->columns) {
        FILE *file;
        size_t size = 0;
        if (file_open(place, &file, error) != STATUS_OK)
            return error_prefix(error, STATUS_USAGE, "%s:%d: list", path, list->line);
        enum status status = file_read(list, file, &size);
        fclose(file);
        if (status)
            return error_set(error, status, "%s: cannot be read", place);
        TRY(ini_lines_visit(place, list->text, size, line_take, list, error));
    }
    return list->count ? STATUS_OK
                       : error_set(error, STATUS_USAGE, "%s: the list has no configuration of %s",
                                   place, list->workload->name);
}

void list_clear(struct list *list)
{
    for (size_t i = 0; i < list->count; ++i)
        free(list->rows[i].name);
    free(list->rows);
    free(list->columns);
    free(list->header);
    free(list->path);
    free(list->text);
}
