/* One JSON object on one line, as ranks and workers exchange them. */
#ifndef ROOFSWEEP_JSON_LINE_H
#define ROOFSWEEP_JSON_LINE_H

#include <jansson.h>

#include "base/status.h"

/* STATUS_SYSTEM: it is no JSON object. The caller owns *object. */
enum status json_line_load(const char *line, json_t **object, struct error *error);
/* Consumes the object. The caller frees the line; NULL without memory. */
char *json_line_dump(json_t *object);

/* '?' for each byte that is not printable: an error that quotes a line may hold anything, and
 * ends on a terminal. */
void json_line_clean(struct error *error);

#endif
