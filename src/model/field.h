/* A struct described by a const table, once: the table writes it as JSON (protocol, journal), reads
 * it back, and lays it out as NetCDF variables. Adding a quantity is adding a member and a row.
 *
 * A value that was not measured is missing: NaN for doubles, FIELD_MISSING for integers, "" for
 * text. Missing values are left out of the JSON and become the fill value in NetCDF; they are never
 * 0. */
#ifndef ROOFSWEEP_FIELD_H
#define ROOFSWEEP_FIELD_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "base/status.h"
#include "model/outcome.h"
#include "model/workload.h"

#define FIELD_MISSING OUTCOME_MISSING

enum field_type {
    FIELD_TEXT,       /* char[size], NUL-terminated */
    FIELD_INTEGER,    /* int64_t */
    FIELD_DOUBLE,     /* double */
    FIELD_LEVELS,     /* double[LEVEL_COUNT], in JSON an object by memory level name */
    FIELD_PRECISIONS, /* double[PRECISION_COUNT], in JSON an object by precision name */
    FIELD_FLAG,       /* int64_t, index into flags */
    FIELD_OUTCOME     /* struct outcome, whose words are the flags; in JSON and NetCDF its text */
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset, size;
    const char *units; /* udunits; "1" for counts, flags and text */
    const char *long_name;
    const char *const *flags; /* NULL-terminated; FIELD_FLAG: meanings, without spaces */
};

#define FIELD(structure, member, type, units, long_name)                                           \
    {                                                                                              \
#member, type, offsetof(structure, member), sizeof(((structure *)0)->member), units,       \
            long_name, NULL                                                                        \
    }
#define FIELD_OF_FLAGS(structure, member, flags, long_name)                                        \
    {                                                                                              \
#member, FIELD_FLAG, offsetof(structure, member), sizeof(int64_t), "1", long_name, flags   \
    }
#define FIELD_OF_OUTCOME(structure, member, words, long_name)                                      \
    {                                                                                              \
#member, FIELD_OUTCOME, offsetof(structure, member), sizeof(struct outcome), "1",          \
            long_name, words                                                                       \
    }

/* Sets every field of the struct to missing. A table ends with a row whose name is NULL. */
void fields_clear(const struct field *table, void *structure);

/* What a library or a user wrote may be no valid UTF-8, which JSON cannot hold: '?' for such bytes.
 * NULL for an empty text. New reference; the caller owns it. */
json_t *text_encode(const char *text);

/* New reference; the caller owns it. */
json_t *fields_encode(const struct field *table, const void *structure);

/* Unknown keys are ignored (a newer program wrote them); a wrong type is STATUS_SYSTEM. */
enum status fields_decode(const struct field *table, const json_t *object, void *structure,
                          struct error *error);

#endif
