/* A struct described by a const table, once: the table writes it as JSON (protocol, journal), reads
 * it back, and lays it out as NetCDF variables, with all that a file and docs/file-format.md say of
 * them. Adding a quantity is adding a member and a row.
 *
 * A value that was not measured is missing: NaN for doubles, FIELD_MISSING for integers, "" for
 * text. Missing values are left out of the JSON and become the fill value in NetCDF; they are never
 * 0. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "base/status.h"
#include "model/json_text.h"
#include "model/kernel.h"
#include "model/outcome.h"
#include "model/workload.h"

#define FIELD_MISSING OUTCOME_MISSING

enum field_type {
    FIELD_TEXT,    /* char[size], NUL-terminated */
    FIELD_INTEGER, /* int64_t */
    /* From here to FIELD_ACTIVITIES quantities, which fields_check checks. */
    FIELD_DOUBLE,     /* double */
    FIELD_LEVELS,     /* double[LEVEL_COUNT], in JSON an object by memory level name */
    FIELD_PRECISIONS, /* double[PRECISION_COUNT], in JSON an object by precision name */
    FIELD_HEALTH,     /* double[HEALTH_COUNT], in JSON an object by health name */
    FIELD_PARTS,      /* double[PART_COUNT], in JSON an object by the part's name */
    FIELD_ACTIVITIES, /* double[ACTIVITY_COUNT], in JSON an object by activity name */
    FIELD_FLAG,       /* int64_t, index into flags */
    FIELD_OUTCOME,    /* struct outcome, whose words are the flags; in JSON and NetCDF its text */
    FIELD_WORD,       /* struct word, in JSON and NetCDF a text */
    FIELD_SAMPLES     /* double[], of the file alone: as many as its longest row has */
};

/* What a driver tells of the health of a device, by the names of the file. */
#define HEALTH_LIST(ROW)                                                                           \
    ROW(ECC_CORRECTED, "ecc_corrected")                                                            \
    ROW(ECC_UNCORRECTED, "ecc_uncorrected")                                                        \
    ROW(ECC_CORRECTED_EVER, "ecc_corrected_ever")                                                  \
    ROW(ECC_UNCORRECTED_EVER, "ecc_uncorrected_ever")                                              \
    ROW(REMAPPED_CORRECTED, "rows_remapped_corrected")                                             \
    ROW(REMAPPED_UNCORRECTED, "rows_remapped_uncorrected")                                         \
    ROW(REMAP_PENDING, "remap_pending")                                                            \
    ROW(REMAP_FAILED, "remap_failed")                                                              \
    ROW(BANKS_WITHOUT_SPARES, "banks_without_spares")                                              \
    ROW(RETIRED_CORRECTED, "pages_retired_corrected")                                              \
    ROW(RETIRED_UNCORRECTED, "pages_retired_uncorrected")                                          \
    ROW(RETIRE_PENDING, "retirement_pending")                                                      \
    ROW(PCIE_GENERATION, "pcie_generation")                                                        \
    ROW(PCIE_GENERATION_MAX, "pcie_generation_max")                                                \
    ROW(PCIE_WIDTH, "pcie_width")                                                                  \
    ROW(PCIE_WIDTH_MAX, "pcie_width_max")                                                          \
    ROW(PCIE_REPLAYS, "pcie_replays")                                                              \
    ROW(NVLINKS_ACTIVE, "nvlinks_active")                                                          \
    ROW(NVLINK_ERRORS, "nvlink_errors")                                                            \
    ROW(THROTTLED_BY_POWER, "throttled_by_power_s")                                                \
    ROW(THROTTLED_BY_HEAT, "throttled_by_heat_s")                                                  \
    ROW(THROTTLED_BY_BOARD, "throttled_by_board_s")                                                \
    ROW(THROTTLED_BY_RELIABILITY, "throttled_by_reliability_s")                                    \
    ROW(POWER_CAP, "power_cap_W")                                                                  \
    ROW(POWER_CAP_DEFAULT, "power_cap_default_W")                                                  \
    ROW(PERSISTENCE, "persistence_mode")                                                           \
    ROW(COMPUTE_MODE, "compute_mode")                                                              \
    ROW(ECC_ENABLED, "ecc_enabled")                                                                \
    ROW(MEMORY_TEMPERATURE, "memory_temperature_K")                                                \
    ROW(XIDS, "xids")                                                                              \
    ROW(XIDS_OF_PROGRAMS, "xids_of_programs")                                                      \
    ROW(XID_LAST, "xid_last")

enum health {
#define ROW(of, name) HEALTH_##of,
    HEALTH_LIST(ROW) HEALTH_COUNT
#undef ROW
};
extern const char *const health_name[HEALTH_COUNT];
/* What the wall time of a row is spent on, in this order. */
enum wall_part {
    PART_PREPARE,       /* memory, inputs, and what is bound without a search */
    PART_SEARCH_BUILD,  /* candidates of a search are made and identified */
    PART_SEARCH_RUN,    /* they run */
    PART_SEARCH_VERIFY, /* another algorithm is taken because a result was wrong or inaccurate */
    PART_VERIFY,        /* reference, run, comparison */
    PART_TIMING,        /* all placements */
    PART_ENERGY,
    PART_TRACE,
    PART_COUNTS,
    PART_COUNT
};
extern const char *const wall_part_name[PART_COUNT];

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

enum field_origin {
    FIELD_MEASURED,
    FIELD_DERIVED, /* follows from others of the file: a reader can make it anew */
    FIELD_MODELLED /* what a model, a specification or a setting says */
};

/* Whether a result file has the variable. */
enum field_presence {
    PRESENT_IF_KNOWN, /* a row has a value */
    PRESENT_ALWAYS,   /* every reader needs it */
    PRESENT_NEVER     /* JSON alone has it */
};
#define ALWAYS    .presence = PRESENT_ALWAYS
#define JSON_ONLY .presence = PRESENT_NEVER

struct field {
    const char *name; /* in JSON; in the file with the prefix of its table */
    enum field_type type;
    size_t offset, size;
    double maximum;        /* of a quantity, see fields_check */
    const char *units;     /* udunits; "1" for counts, flags and text */
    const char *long_name; /* read alone: no "its" or "then" */
    const char *comment;   /* what the long name leaves open; NULL: nothing */
    enum field_origin origin;
    enum field_presence presence;
    /* NULL-terminated, without spaces; FIELD_FLAG: meanings. FIELD_INTEGER: names of its bits from
     * the lowest on; NULL: it is no bit mask */
    const char *const *flags;
    bool flags_known; /* FIELD_FLAG: never missing, or with a word for that */
    word_of *words;   /* FIELD_WORD */
};

/* Thirty years: nobody has waited for it. And the year 10000, in seconds since 1970. */
#define FIELD_SECONDS_MAX 1e9
#define FIELD_DATE_MAX    253402300800.0

/* Rows of a table. After the long name .comment, .origin and .presence may follow. */
#define FIELD_ROW(structure, member, of_name, of_type, of_units, of_maximum, ...)                  \
    {                                                                                              \
        .name = of_name, .type = of_type, .offset = offsetof(structure, member),                   \
        .size = sizeof(((structure *)0)->member), .maximum = of_maximum, .units = of_units,        \
        .long_name = __VA_ARGS__                                                                   \
    }
#define FIELD(structure, member, of_type, of_units, ...)                                           \
    FIELD_ROW(structure, member, #member, of_type, of_units, HUGE_VAL, __VA_ARGS__)
#define FIELD_OF_SECONDS(structure, member, ...)                                                   \
    FIELD_ROW(structure, member, #member, FIELD_DOUBLE, "s", FIELD_SECONDS_MAX, __VA_ARGS__)
#define FIELD_OF_DATE(structure, member, ...)                                                      \
    FIELD_ROW(structure, member, #member, FIELD_DOUBLE, "seconds since 1970-01-01T00:00:00Z",      \
              FIELD_DATE_MAX, __VA_ARGS__)
#define FIELD_OF_FLAGS(structure, member, of_flags, ...)                                           \
    FIELD(structure, member, FIELD_FLAG, "1", __VA_ARGS__, .flags = of_flags)
#define FIELD_OF_BITS(structure, member, of_flags, ...)                                            \
    FIELD(structure, member, FIELD_INTEGER, "1", __VA_ARGS__, .flags = of_flags)
#define FIELD_OF_OUTCOME(structure, member, of_flags, ...)                                         \
    FIELD(structure, member, FIELD_OUTCOME, "1", __VA_ARGS__, .flags = of_flags)
#define FIELD_OF_WORDS(structure, member, shown_as, of_words, ...)                                 \
    FIELD_ROW(structure, member, shown_as, FIELD_WORD, "1", HUGE_VAL, __VA_ARGS__,                 \
              .words = of_words)

/* Of a field of several numbers: their names, and how many there are. */
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

/* Ignores unknown members, which a newer program may have written; of a repeated member the last
 * counts. STATUS_SYSTEM: no object, or a value of the wrong type. */
enum status fields_decode(const struct field *table, struct json_text object, void *structure,
                          struct error *error);
/* Decodes one member for callers that read others of the same object. `*next` is the table at
 * first: members mostly come in the table's order, so the search goes on where it ended. */
enum status field_decode(const struct field *table, const struct field **next,
                         struct json_text name, struct json_text value, void *structure,
                         struct error *error);

/* STATUS_SYSTEM, with the field's name: a number is below 0 or above its maximum, and so was not
 * measured. */
enum status fields_check(const struct field *table, const void *structure, struct error *error);
/* The same of one number that is in no table. */
enum status field_check_number(const char *name, double value, double maximum, struct error *error);
