#include "model/json_line.h"

#include <ctype.h>

void json_line_clean(struct error *error)
{
    for (char *c = error->text; *c; ++c)
        *c = isprint((unsigned char)*c) ? *c : '?';
}

char *json_line_dump(json_t *object)
{
    char *line = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return line;
}

enum status json_line_load(const char *line, json_t **object, struct error *error)
{
    json_error_t where;
    json_t *loaded = json_loads(line, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(loaded)) {
        *object = loaded;
        return STATUS_OK;
    }
    json_decref(loaded);
    error_set(error, STATUS_SYSTEM, "not a JSON object (%s): '%.200s'",
              loaded ? "another type" : where.text, line);
    json_line_clean(error);
    return STATUS_SYSTEM;
}
