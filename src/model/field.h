/* A struct described by a const table, once: the table writes it as JSON (protocol, journal), reads
 * it back, and lays it out as NetCDF variables. Adding a quantity is adding a member and a row.
 *
 * A value that was not measured is missing: NaN for doubles, FIELD_MISSING for integers, "" for
 * text. Missing values are left out of the JSON and become the fill value in NetCDF; they are never
 * 0. */
#ifndef ROOFSWEEP_FIELD_H
#define ROOFSWEEP_FIELD_H

#include <math.h>
#include <stdbool.h>
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
    FIELD_OUTCOME,    /* struct outcome, whose words are the flags; in JSON and NetCDF its text */
    FIELD_WORD        /* struct word, in JSON and NetCDF a text */
};

/* A word out of a table, by its index. One that the table lacks, because another version of the
 * program wrote it, is kept as text. */
struct word {
    int64_t index; /* WORD_OTHER, or FIELD_MISSING */
    char other[32];
};
#define WORD_OTHER (-1)
typedef const char *word_of(int64_t index); /* NULL: the table has no such index */

const char *word_text(const struct word *word, word_of *words); /* "" if it is missing */
void word_set(struct word *word, word_of *words, const char *text);
bool word_equal(const struct word *a, const struct word *b);

struct field {
    const char *name;
    enum field_type type;
    size_t offset, size;
    double maximum;    /* of a quantity, see fields_check */
    const char *units; /* udunits; "1" for counts, flags and text */
    const char *long_name;
    /* NULL-terminated, without spaces; FIELD_FLAG: meanings. FIELD_INTEGER: names of its bits from the
     * lowest on; NULL: it is no bit mask */
    const char *const *flags;
    word_of *words; /* FIELD_WORD */
};

/* Thirty years: nobody has waited for it. */
#define FIELD_SECONDS_MAX 1e9

#define FIELD(structure, member, of_type, of_units, what)                                          \
    {                                                                                              \
        .name = #member, .type = of_type, .offset = offsetof(structure, member),                   \
        .size = sizeof(((structure *)0)->member), .maximum = HUGE_VAL, .units = of_units,          \
        .long_name = what                                                                          \
    }
#define FIELD_OF_SECONDS(structure, member, what)                                                  \
    {                                                                                              \
        .name = #member, .type = FIELD_DOUBLE, .offset = offsetof(structure, member),              \
        .size = sizeof(double), .maximum = FIELD_SECONDS_MAX, .units = "s", .long_name = what      \
    }
#define FIELD_OF_FLAGS(structure, member, of_flags, what)                                          \
    {                                                                                              \
        .name = #member, .type = FIELD_FLAG, .offset = offsetof(structure, member),                \
        .size = sizeof(int64_t), .units = "1", .long_name = what, .flags = of_flags                \
    }
#define FIELD_OF_BITS(structure, member, of_flags, what)                                           \
    {                                                                                              \
        .name = #member, .type = FIELD_INTEGER, .offset = offsetof(structure, member),             \
        .size = sizeof(int64_t), .maximum = HUGE_VAL, .units = "1", .long_name = what,             \
        .flags = of_flags                                                                          \
    }
#define FIELD_OF_WORDS(structure, member, shown_as, of_words, what)                                \
    {                                                                                              \
        .name = shown_as, .type = FIELD_WORD, .offset = offsetof(structure, member),               \
        .size = sizeof(struct word), .units = "1", .long_name = what, .words = of_words            \
    }
#define FIELD_OF_OUTCOME(structure, member, of_flags, what)                                        \
    {                                                                                              \
        .name = #member, .type = FIELD_OUTCOME, .offset = offsetof(structure, member),             \
        .size = sizeof(struct outcome), .units = "1", .long_name = what, .flags = of_flags         \
    }

/* The names of the elements of a FIELD_LEVELS or FIELD_PRECISIONS, and how many there are. */
size_t field_elements(const struct field *field);
const char *field_element_name(const struct field *field, size_t i);

/* Sets every field of the struct to missing. A table ends with a row whose name is NULL. */
void fields_clear(const struct field *table, void *structure);

/* The member has no value; of an array, no element has. */
bool field_is_missing(const struct field *field, const void *structure);

/* What a library or a user wrote may be no valid UTF-8, which JSON cannot hold: '?' for such bytes.
 * NULL for an empty text. New reference; the caller owns it. */
json_t *text_encode(const char *text);

/* New reference; the caller owns it. */
json_t *fields_encode(const struct field *table, const void *structure);

/* Unknown keys are ignored (a newer program wrote them); a wrong type is STATUS_SYSTEM. */
enum status fields_decode(const struct field *table, const json_t *object, void *structure,
                          struct error *error);

/* STATUS_SYSTEM, with the field's name: a number is below 0 or above its maximum, and so was not
 * measured. What a worker reports is checked; what a journal holds is taken as an older version
 * wrote it. */
enum status fields_check(const struct field *table, const void *structure, struct error *error);
/* The same of one number that is in no table. */
enum status field_check_number(const char *name, double value, double maximum, struct error *error);

#endif
