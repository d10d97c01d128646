/* The list of a workload section: CSV by RFC 4180, one configuration a line. The lines are in a
 * file, or in the section, where each begins with '|'. Lines of a file get a '|' when they are
 * read, for manifest_embed_lists. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "manifest/ini_lines.h"
#include "model/workload.h"

/* A line of a list, for the section's workload. */
struct list_row {
    struct config config; /* values of the columns; all other parameters have defaults */
    uint32_t set;         /* bit i: the line has a value of parameter i */
    char *name;           /* owned; NULL: none */
    int64_t count;        /* how often the network has the configuration */
    size_t place;         /* number of the line, from 1, among the list's lines of all workloads */
    int line;
};
struct list {
    const struct workload *workload; /* workload of the section */
    /* owned; value of the key `list`, after list_finish the path of the file with the lines; NULL:
     * the section has no list */
    char *path;
    int line;              /* line number of the key */
    char *text;            /* owned; the file's lines, each after a '|'; NULL: not from a file */
    char *header;          /* owned */
    char **columns;        /* owned array of names in `header`; NULL before the header */
    struct list_row *rows; /* [count], owned */
    size_t column_count, count, places;
};

/* Takes the key `list`, or a line that begins with '|'. */
enum status list_take(struct list *list, const struct workload *workload,
                      const struct ini_line *line, struct error *error);
/* Ends the list of a section that has one: reads the file, unless the section has the lines.
 * list->path is relative to `path`, the manifest. The error names the file. */
enum status list_finish(struct list *list, const char *path, struct error *error);
void list_clear(struct list *list);
