/* The list of a workload section: CSV by RFC 4180, one configuration a line, in a file or in the
 * section with a '|' in front. A file is read as lines with '|', so that errors name its lines and
 * that manifest_embed_lists can keep it in the manifest's text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "manifest/ini_lines.h"
#include "model/workload.h"

/* A line of a list, for the section's workload. */
struct list_row {
    struct config config; /* values of the columns; all other parameters have defaults */
    uint32_t set;         /* bit of each parameter that has a value */
    char *name;           /* owned; NULL: none */
    int64_t count;        /* how often the network has it */
    size_t place;         /* number of the line, from 1, among the list's lines of all workloads */
    int line;
};
struct list {
    const struct workload *workload; /* workload of the section */
    char *path; /* owned; value of the key `list`, and after list_finish the path of the file that
                   has the lines; NULL: the section has no list */
    int line;   /* line number of the key */
    char *text; /* owned; the file's lines, each behind a '|'; NULL: not from a file */
    char **columns; /* owned; names in `header`, owned; NULL before the header */
    char *header;
    struct list_row *rows; /* owned */
    size_t column_count, count, places;
};

/* Takes the key `list`, or a line with '|'. `workload` is that of the section. */
enum status list_take(struct list *list, const struct workload *workload,
                      const struct ini_line *line, struct error *error);
/* Ends the list of a section that has one: reads the file, unless the section has the lines.
 * `path` is the manifest's, to which list->path is relative. The error has a place in front. */
enum status list_finish(struct list *list, const char *path, struct error *error);
void list_clear(struct list *list);
