#include "results/table.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "model/workloads/program.h"
#include "results/table_columns.h"

enum { LINES_MAX = 200, NAME_WIDTH_MAX = 100 };

/* Rows of one label and workload. */
struct group {
    size_t begin, end;               /* of the table's order */
    const struct workload *workload; /* NULL: this version does not know it */
    bool *varies;                    /* owned; by parameter, whether it tells the rows apart */
    /* The same of a program's axes, by those of its first row. */
    bool axes[WORKLOAD_PARAMETERS_MAX];
};

struct table {
    const struct results *results;
    const struct row **order; /* owned */
    struct group *groups;     /* owned */
    size_t group_count;
};

/* What a row says is to be measured; its workload is NULL where this version does not know the text. */
static void row_config(const struct row *row, struct config *config)
{
    struct error unknown;
    if (row->record)
        *config = row->record->config;
    else if (config_parse(row->configuration, config, &unknown) != STATUS_OK)
        config->workload = NULL;
}

/* The axes of one program, in turn, against another's. */
struct comparison {
    struct group *group;
    const struct config *first, *other;
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
    axis_text(c->first, name, a);
    axis_text(c->other, name, b);
    if (c->axis < WORKLOAD_PARAMETERS_MAX && strcmp(a, b) != 0)
        c->group->axes[c->axis] = true;
    ++c->axis;
}

static void note_differences(struct group *group, const struct config *first,
                             const struct config *other)
{
    struct comparison comparison = {group, first, other, 0};
    if (config_is_program(first))
        program_axes_visit(first, axis_compare, &comparison);
    for (size_t i = 0; i < group->workload->count; ++i) {
        struct value a = config_get(first, i), b = config_get(other, i);
        group->varies[i] = group->varies[i] || !value_equal(&a, &b);
    }
}

/* The group that begins with this row. False: no memory. */
static bool group_find(const struct table *table, size_t begin, struct group *group)
{
    struct config first, other;
    row_config(table->order[begin], &first);
    *group = (struct group){begin, begin + 1, first.workload, NULL, {false}};
    if (first.workload && !(group->varies = calloc(first.workload->count + 1, sizeof(bool))))
        return false;
    for (; group->end < table->results->row_count; ++group->end) {
        if (strcmp(table->order[group->end]->label, table->order[begin]->label) != 0)
            break;
        row_config(table->order[group->end], &other);
        if (other.workload != first.workload)
            break;
        if (first.workload)
            note_differences(group, &first, &other);
    }
    return true;
}

static bool groups_find(struct table *table)
{
    for (size_t begin = 0; begin < table->results->row_count;
         begin = table->groups[table->group_count - 1].end) {
        void *grown = array_grow(table->groups, table->group_count, sizeof *table->groups);
        if (!grown)
            return false;
        table->groups = grown;
        if (!group_find(table, begin, &table->groups[table->group_count]))
            return false;
        ++table->group_count;
    }
    return true;
}

void table_destroy(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->group_count; ++i)
        free(table->groups[i].varies);
    free(table->groups);
    free(table->order);
    free(table);
}

struct table *table_create(const struct results *results)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->results = results;
    table->order = results_order(results);
    if (table->order && groups_find(table))
        return table;
    table_destroy(table);
    return NULL;
}

const struct row *table_row(const struct table *table, size_t line)
{
    return table->order[line];
}

/* The first label, and how many more there are. */
static void label_format(const char *label, char text[96])
{
    size_t first = strcspn(label, " "), more = 0;
    for (const char *space = label; (space = strchr(space, ' ')); ++space)
        ++more;
    int length = snprintf(text, 96, "%.*s", (int)(first < 64 ? first : 64), label);
    if (more > 0)
        snprintf(text + length, 96 - (size_t)length, "+%zu", more);
}

static const struct group *group_of(const struct table *table, size_t row)
{
    size_t i = 0;
    while (row >= table->groups[i].end)
        ++i;
    return &table->groups[i];
}

/* A row's name that gets the axes that vary, in turn. */
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
    size_t used = strlen(names->name);
    if (names->axis < WORKLOAD_PARAMETERS_MAX && names->group->axes[names->axis]) {
        axis_text(names->config, name, text);
        snprintf(names->name + used, WORKLOAD_TEXT - used, " %s=%s", name, text);
    }
    ++names->axis;
}

/* All else of a program follows from its axes. */
static void program_name(const struct table *table, const struct group *group,
                         const struct config *config, char name[WORKLOAD_TEXT])
{
    struct config first;
    struct axis_names names = {group, config, name, 0};
    row_config(table->order[group->begin], &first);
    program_axes_visit(&first, axis_append, &names);
}

void table_name(const struct table *table, size_t row, char name[WORKLOAD_TEXT])
{
    const struct group *group = group_of(table, row);
    struct config config;
    char value[WORKLOAD_VALUE_TEXT];
    size_t used;
    if (!group->workload) {
        snprintf(name, WORKLOAD_TEXT, "%s", table->order[row]->configuration);
        return;
    }
    label_format(table->order[row]->label, name);
    row_config(table->order[row], &config);
    if (config_is_program(&config)) {
        program_name(table, group, &config, name);
        return;
    }
    for (size_t i = 0; i < group->workload->count; ++i) {
        const struct parameter *parameter = &group->workload->parameters[i];
        if (!group->varies[i])
            continue;
        parameter_format(parameter, config_get(&config, i), value);
        used = strlen(name);
        snprintf(name + used, WORKLOAD_TEXT - used, " %s=%s", parameter->name, value);
    }
}

struct cell {
    const char *text; /* "-": missing */
    double number;    /* for programs, where the column has numbers; NaN: missing */
    char own[CELL];
};

/* How a format is written. head and foot may be NULL. */
struct style {
    bool people;
    void (*head)(const struct table *table, FILE *stream);
    void (*line)(const struct cell cells[COLUMNS], int width, bool first, FILE *stream);
    const char *foot;
};

/* Columns for people in their widths, the first one to the left. */
static void text_line(const struct cell cells[COLUMNS], int width, bool first, FILE *stream)
{
    (void)first;
    utf8_print(stream, "%-*s", width, cells[0].text);
    for (int i = 1; i < COLUMNS && table_columns[i].head; ++i)
        utf8_print(stream, " %*s", table_columns[i].width, cells[i].text);
    fputc('\n', stream);
}

/* Of the names of the first rows. */
static int name_width(const struct table *table)
{
    size_t width = strlen(table_columns[0].head);
    for (size_t i = 0; i < table->results->row_count && i < LINES_MAX; ++i) {
        char name[WORKLOAD_TEXT];
        table_name(table, i, name);
        width = strlen(name) > width ? strlen(name) : width;
    }
    return (int)(width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX);
}

static void text_head(const struct table *table, FILE *stream)
{
    struct cell heads[COLUMNS], units[COLUMNS];
    int width = name_width(table);
    for (int i = 0; i < COLUMNS; ++i) {
        heads[i].text = table_columns[i].head;
        units[i].text = table_columns[i].unit;
    }
    text_line(heads, width, true, stream);
    text_line(units, width, false, stream);
}

/* A bar would end the cell. */
static void markdown_cell(const char *text, FILE *stream)
{
    fputs("| ", stream);
    for (size_t length; *text; text += length) {
        length = strcspn(text, "|");
        utf8_print(stream, "%.*s", (int)length, text);
        if (text[length] == '|') {
            fputs("\\|", stream);
            ++length;
        }
    }
    fputc(' ', stream);
}

static void markdown_line(const struct cell cells[COLUMNS], int width, bool first, FILE *stream)
{
    (void)width;
    (void)first;
    for (int i = 0; i < COLUMNS && table_columns[i].head; ++i)
        markdown_cell(cells[i].text, stream);
    fputs("|\n", stream);
}

static void markdown_head(const struct table *table, FILE *stream)
{
    (void)table;
    for (int i = 0; i < COLUMNS && table_columns[i].head; ++i) {
        char head[CELL];
        snprintf(head, sizeof head, *table_columns[i].unit ? "%s, %s" : "%s", table_columns[i].head,
                 table_columns[i].unit);
        markdown_cell(head, stream);
    }
    fputs("|\n", stream);
    for (int i = 0; i < COLUMNS && table_columns[i].head; ++i)
        fputs(i == 0 ? "|---" : "|---:", stream);
    fputs("|\n", stream);
}

static bool is_missing(const struct cell *cell, int column)
{
    return table_columns[column].number ? isnan(cell->number) : strcmp(cell->text, "-") == 0;
}

/* RFC 4180: quotes around everything that is text, doubled within it. */
static void csv_line(const struct cell cells[COLUMNS], int width, bool first, FILE *stream)
{
    (void)width;
    (void)first;
    for (int i = 0; i < COLUMNS; ++i) {
        fputs(i > 0 ? "," : "", stream);
        if (is_missing(&cells[i], i))
            continue;
        if (table_columns[i].number) {
            fprintf(stream, "%.9g", cells[i].number);
            continue;
        }
        fputc('"', stream);
        for (const char *text = cells[i].text; *text;) {
            size_t length = strcspn(text, "\"");
            utf8_print(stream, "%.*s", (int)length, text);
            fputs(text[length] ? "\"\"" : "", stream);
            text += length + (text[length] != '\0');
        }
        fputc('"', stream);
    }
    fputs("\n", stream);
}

static void csv_head(const struct table *table, FILE *stream)
{
    (void)table;
    for (int i = 0; i < COLUMNS; ++i)
        fprintf(stream, "%s%s", i > 0 ? "," : "", table_columns[i].key);
    fputc('\n', stream);
}

static json_t *json_of(const struct cell *cell, int column)
{
    if (is_missing(cell, column))
        return json_null();
    if (!table_columns[column].number)
        return json_string(cell->text);
    bool whole = cell->number == floor(cell->number) && fabs(cell->number) < 1e9;
    return whole ? json_integer((json_int_t)cell->number) : json_real(cell->number);
}

static void json_line(const struct cell cells[COLUMNS], int width, bool first, FILE *stream)
{
    (void)width;
    json_t *object = json_object();
    fputs(first ? "" : ",\n", stream);
    for (int i = 0; object && i < COLUMNS; ++i) {
        json_t *value = json_of(&cells[i], i);
        json_object_set_new(object, table_columns[i].key, value ? value : json_null());
    }
    if (object)
        json_dumpf(object, stream, JSON_COMPACT);
    json_decref(object);
}

static void json_head(const struct table *table, FILE *stream)
{
    (void)table;
    fputs("[\n", stream);
}

static const struct style styles[] = {
    [TABLE_TEXT] = {true, text_head, text_line, ""},
    [TABLE_MARKDOWN] = {true, markdown_head, markdown_line, ""},
    [TABLE_CSV] = {false, csv_head, csv_line, ""},
    [TABLE_JSON] = {false, json_head, json_line, "\n]\n"},
};

static void line_print(const struct table *table, size_t place, const struct style *style,
                       int width, FILE *stream)
{
    struct table_line line;
    struct cell cells[COLUMNS];
    table_line_begin(table->results, table->order[place], &line);
    table_name(table, place, line.name);
    for (int i = 0; i < COLUMNS; ++i) {
        cells[i].text = table_columns[i].text(&line, cells[i].own);
        cells[i].number = table_columns[i].number ? table_columns[i].number(&line) : NAN;
    }
    style->line(cells, width, place == 0, stream);
    table_line_end(&line);
}

void table_print(const struct table *table, enum table_format format, FILE *stream)
{
    const struct style *style = &styles[format];
    size_t count = table->results->row_count;
    size_t shown = format == TABLE_TEXT && count > LINES_MAX ? LINES_MAX : count;
    int width = name_width(table);
    style->head(table, stream);
    for (size_t i = 0; i < shown; ++i)
        line_print(table, i, style, width, stream);
    if (shown < count)
        utf8_print(stream, "... and %zu more rows\n", count - shown);
    fputs(style->foot, stream);
}
