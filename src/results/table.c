#include "results/table.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "model/naming.h"
#include "results/table_columns.h"

enum { LINES_MAX = 200, NAME_WIDTH_MAX = 100 };

struct table {
    const struct results *results;
    const struct row **order; /* owned */
    struct naming *naming;    /* owned */
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

static bool rows_name(const struct table *table)
{
    struct config config;
    for (size_t i = 0; i < table->results->row_count; ++i) {
        row_config(table->order[i], &config);
        if (!naming_add(table->naming, table->order[i]->label, &config))
            return false;
    }
    return true;
}

void table_destroy(struct table *table)
{
    if (!table)
        return;
    naming_destroy(table->naming);
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
    table->naming = naming_create();
    if (table->order && table->naming && rows_name(table))
        return table;
    table_destroy(table);
    return NULL;
}

const struct row *table_row(const struct table *table, size_t line)
{
    return table->order[line];
}

void table_name(const struct table *table, size_t line, char name[WORKLOAD_TEXT])
{
    const struct row *row = table->order[line];
    struct config config;
    row_config(row, &config);
    if (!naming_format(table->naming, row->label, &config, name))
        snprintf(name, WORKLOAD_TEXT, "%s", row->configuration);
}

struct cell {
    const char *text; /* "-": missing */
    double number;    /* for programs, where the column has numbers; NaN: missing */
    char own[CELL];
};

/* What all lines share. */
struct layout {
    int width; /* of the first column */
    bool shown[COLUMNS];
};

/* How a format is written. */
struct style {
    bool people; /* columns without a head are left out */
    void (*head)(const struct layout *layout, FILE *stream);
    void (*line)(const struct cell cells[COLUMNS], const struct layout *layout, bool first,
                 FILE *stream);
    const char *foot;
};

/* Columns for people in their widths, the first one to the left. */
static void text_columns(const struct cell cells[COLUMNS], const struct layout *layout,
                         FILE *stream)
{
    utf8_print(stream, "%-*s", layout->width, cells[0].text);
    for (int i = 1; i < COLUMNS; ++i)
        if (layout->shown[i])
            utf8_print(stream, " %*s", table_columns[i].width, cells[i].text);
    fputc('\n', stream);
}

static void text_line(const struct cell cells[COLUMNS], const struct layout *layout, bool first,
                      FILE *stream)
{
    (void)first;
    text_columns(cells, layout, stream);
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

static void text_head(const struct layout *layout, FILE *stream)
{
    struct cell heads[COLUMNS], units[COLUMNS];
    for (int i = 0; i < COLUMNS; ++i) {
        heads[i].text = table_columns[i].head;
        units[i].text = table_columns[i].unit;
    }
    text_columns(heads, layout, stream);
    text_columns(units, layout, stream);
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

static void markdown_line(const struct cell cells[COLUMNS], const struct layout *layout, bool first,
                          FILE *stream)
{
    (void)first;
    for (int i = 0; i < COLUMNS; ++i)
        if (layout->shown[i])
            markdown_cell(cells[i].text, stream);
    fputs("|\n", stream);
}

static void markdown_head(const struct layout *layout, FILE *stream)
{
    for (int i = 0; i < COLUMNS; ++i) {
        char head[CELL];
        if (!layout->shown[i])
            continue;
        snprintf(head, sizeof head, *table_columns[i].unit ? "%s, %s" : "%s", table_columns[i].head,
                 table_columns[i].unit);
        markdown_cell(head, stream);
    }
    fputs("|\n", stream);
    for (int i = 0; i < COLUMNS; ++i)
        if (layout->shown[i])
            fputs(i == 0 ? "|---" : "|---:", stream);
    fputs("|\n", stream);
}

static bool is_missing(const struct cell *cell, int column)
{
    return table_columns[column].number ? isnan(cell->number) : strcmp(cell->text, "-") == 0;
}

/* RFC 4180: quotes around everything that is text, doubled within it. */
static void csv_text(const char *text, FILE *stream)
{
    fputc('"', stream);
    while (*text) {
        size_t length = strcspn(text, "\"");
        utf8_print(stream, "%.*s", (int)length, text);
        fputs(text[length] ? "\"\"" : "", stream);
        text += length + (text[length] != '\0');
    }
    fputc('"', stream);
}

static void csv_line(const struct cell cells[COLUMNS], const struct layout *layout, bool first,
                     FILE *stream)
{
    (void)first;
    for (int i = 0; i < COLUMNS; ++i) {
        if (!layout->shown[i])
            continue;
        fputs(i > 0 ? "," : "", stream);
        if (is_missing(&cells[i], i))
            continue;
        if (table_columns[i].number)
            fprintf(stream, "%.9g", cells[i].number);
        else
            csv_text(cells[i].text, stream);
    }
    fputs("\n", stream);
}

static void csv_head(const struct layout *layout, FILE *stream)
{
    for (int i = 0; i < COLUMNS; ++i)
        if (layout->shown[i])
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

static void json_line(const struct cell cells[COLUMNS], const struct layout *layout, bool first,
                      FILE *stream)
{
    json_t *object = json_object();
    fputs(first ? "" : ",\n", stream);
    for (int i = 0; object && i < COLUMNS; ++i) {
        if (!layout->shown[i])
            continue;
        json_t *value = json_of(&cells[i], i);
        json_object_set_new(object, table_columns[i].key, value ? value : json_null());
    }
    if (object)
        json_dumpf(object, stream, JSON_COMPACT);
    json_decref(object);
}

static void json_head(const struct layout *layout, FILE *stream)
{
    (void)layout;
    fputs("[\n", stream);
}

static const struct style styles[] = {
    [TABLE_TEXT] = {true, text_head, text_line, ""},
    [TABLE_MARKDOWN] = {true, markdown_head, markdown_line, ""},
    [TABLE_CSV] = {false, csv_head, csv_line, ""},
    [TABLE_JSON] = {false, json_head, json_line, "\n]\n"},
};

static struct layout layout_of(const struct table *table, const struct style *style)
{
    struct layout layout = {.width = name_width(table)};
    for (int i = 0; i < COLUMNS; ++i)
        layout.shown[i] = !style->people || table_columns[i].head;
    return layout;
}

static void line_print(const struct table *table, size_t place, const struct style *style,
                       const struct layout *layout, FILE *stream)
{
    struct table_line line;
    struct cell cells[COLUMNS];
    table_line_begin(table->results, table->order[place], &line);
    table_name(table, place, line.name);
    for (int i = 0; i < COLUMNS; ++i) {
        cells[i].text = table_columns[i].text(&line, cells[i].own);
        cells[i].number = table_columns[i].number ? table_columns[i].number(&line) : NAN;
    }
    style->line(cells, layout, place == 0, stream);
    table_line_end(&line);
}

void table_print(const struct table *table, enum table_format format, FILE *stream)
{
    const struct style *style = &styles[format];
    const struct layout layout = layout_of(table, style);
    size_t count = table->results->row_count;
    size_t shown = format == TABLE_TEXT && count > LINES_MAX ? LINES_MAX : count;
    style->head(&layout, stream);
    for (size_t i = 0; i < shown; ++i)
        line_print(table, i, style, &layout, stream);
    if (shown < count)
        utf8_print(stream, "... and %zu more rows\n", count - shown);
    fputs(style->foot, stream);
}
