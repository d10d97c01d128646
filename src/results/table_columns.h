/* The columns of the table, as data: what each says of a row, for people and for programs. */
#ifndef ROOFSWEEP_TABLE_COLUMNS_H
#define ROOFSWEEP_TABLE_COLUMNS_H

#include "results/derive.h"
#include "results/results.h"

enum { CELL = 64 };

/* A line, while its cells are made. */
struct table_line {
    const struct row *row;
    char name[WORKLOAD_TEXT];
    struct record record;
    struct device blank;
    const struct device *device;
    int64_t index; /* of the device; -1: it is not known */
    struct derived derived;
};

/* Of a row of these results. A row that cannot be read any more has no values. */
void table_line_begin(const struct results *results, const struct row *row,
                      struct table_line *line);
void table_line_end(struct table_line *line);

/* A column. Those without a head are for programs only. */
struct table_column {
    const char *head, *unit; /* for people */
    int width;
    const char *key; /* for programs */
    /* What it returns is `text`, or lives as long as the line. "-": missing. */
    const char *(*text)(const struct table_line *line, char text[CELL]);
    double (*number)(const struct table_line *line); /* NULL: programs get the text */
};

enum { COLUMNS = 18 };
extern const struct table_column table_columns[COLUMNS];

#endif
