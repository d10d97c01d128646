/* Field tables. A const table describes the members of a struct: their form in JSON (protocol,
 * journal), their NetCDF variables, and the output of --list variables. A new quantity needs a
 * member and a row of the table.
 *
 * A missing value is NaN, FIELD_MISSING for integers, "" for text. JSON omits missing values;
 * NetCDF has the fill value. Missing is never 0. */
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
    FIELD_TEXT,       /* char[size], NUL-terminated */
    FIELD_INTEGER,    /* int64_t */
    FIELD_DOUBLE,     /* double; the types to FIELD_TIME_PARTS hold doubles */
    FIELD_LEVELS,     /* double[LEVEL_COUNT]; in JSON an object by level */
    FIELD_PRECISIONS, /* double[PRECISION_COUNT]; in JSON an object by precision */
    FIELD_HEALTH,     /* double[HEALTH_COUNT]; in JSON an object by name */
    FIELD_PARTS,      /* double[PART_COUNT]; in JSON an object by part */
    FIELD_ACTIVITIES, /* double[ACTIVITY_COUNT]; in JSON an object by activity */
    FIELD_TIME_PARTS, /* double[TIME_PART_COUNT]; in JSON an object by part */
    FIELD_FLAG,       /* int64_t, index into flags */
    FIELD_OUTCOME,    /* struct outcome with the words `flags`; in JSON and NetCDF a text */
    FIELD_WORD,       /* struct word, in JSON and NetCDF a text */
    FIELD_SAMPLES,    /* double[], an element for each sample of the longest row, only in NetCDF */
    FIELD_ROUNDS      /* double[ROUNDS_MAX], only in NetCDF */
};

/* Health of a device as its driver reports it, with names in files. */
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
extern const char *const field_no_yes[]; /* meanings of a flag: "no", "yes", NULL */
extern const char *const health_name[HEALTH_COUNT];
/* Parts of a row's wall time, in the order of the file. */
enum wall_part {
    PART_PREPARE,       /* memory, inputs, algorithms without a search */
    PART_SEARCH_BUILD,  /* build and identify the candidates of a search */
    PART_SEARCH_RUN,    /* time the candidates */
    PART_SEARCH_VERIFY, /* replace a wrong or inaccurate algorithm */
    PART_VERIFY,        /* reference, run and comparison */
    PART_TIMING,        /* all placements */
    PART_ENERGY,
    PART_TRACE,
    PART_COUNTS,
    PART_COUNT
};
extern const char *const wall_part_name[PART_COUNT];

/* Parts of the time of an iteration, which add up to this time. */
enum time_part {
    TIME_GAPS,       /* no kernel runs */
    TIME_FEW_BLOCKS, /* multiprocessors without a block, in kernels without a full wave */
    /* multiprocessors without a block in other kernels: in the last wave, at start and end, or
     * because blocks take unequal times */
    TIME_IDLE_MULTIPROCESSORS,
    TIME_ISSUING, /* multiprocessors with a block: issue slots that issue an instruction */
    /* other issue slots, by reason */
    TIME_MEMORY_LATENCY, /* global memory, from L1 to device memory */
    TIME_MEMORY_QUEUES,  /* queues to L1, shared memory and textures */
    TIME_MATH_PIPE,
    TIME_BARRIER,
    TIME_DEPENDENCY, /* wait for the instruction before, or for shared memory */
    TIME_INSTRUCTION_FETCH,
    TIME_OTHER,
    /* kernels without counted activities (counters = causes counts them); on CPUs threads that ran
     * below their roofs */
    TIME_INSIDE_KERNELS,
    TIME_IDLE_THREADS,  /* CPUs: threads that had nothing to do */
    TIME_OFF_PROCESSOR, /* CPUs: threads that waited for a core */
    TIME_AT_ROOF,       /* CPUs: time that the work needs at its nearest roof */
    TIME_PART_COUNT
};
extern const char *const time_part_name[TIME_PART_COUNT];

/* A word of a table, stored as its index. A word that is not in the table, because another version
 * wrote it, is stored as text. */
struct word {
    int64_t index; /* index into the table, WORD_OTHER or FIELD_MISSING */
    char other[32];
};
#define WORD_OTHER (-1)
typedef const char *word_of(int64_t index); /* NULL beyond the table */

const char *word_text(const struct word *word, word_of *words); /* "": missing */
void word_set(struct word *word, word_of *words, const char *text);
bool word_equal(const struct word *a, const struct word *b);

enum field_origin {
    FIELD_MEASURED,
    FIELD_DERIVED, /* computed from other variables of the file */
    FIELD_MODELLED /* from a model, a specification or a setting */
};

/* Condition under which a result file has the variable. */
enum field_presence {
    PRESENT_IF_KNOWN, /* some row has a value */
    PRESENT_ALWAYS,   /* in every file */
    PRESENT_NEVER     /* JSON only */
};
#define ALWAYS    .presence = PRESENT_ALWAYS
#define JSON_ONLY .presence = PRESENT_NEVER

struct field {
    const char *name; /* name in JSON; NetCDF adds the table's prefix */
    enum field_type type;
    size_t offset, size;
    const char *units;     /* udunits, which fields_check knows; "1" for counts, flags and text */
    const char *long_name; /* must be understood without the name */
    const char *comment;   /* additional explanation; NULL: none */
    enum field_origin origin;
    enum field_presence presence;
    /* NULL-terminated, without spaces. FIELD_FLAG, FIELD_OUTCOME: meanings. FIELD_INTEGER: names of
     * the bits from the lowest on; NULL: no bit mask. */
    const char *const *flags;
    bool flags_known;   /* FIELD_FLAG: never missing, or a word means "missing" */
    word_of *words;     /* FIELD_WORD */
    double least, most; /* limits, narrower than those of the unit; 0: those of the unit */
    bool beyond_row;    /* the time may exceed the wall_time of its row */
};

#define FIELD_SECONDS_MAX   1e9        /* s, thirty years */
#define FIELD_ITERATION_MIN 1e-9       /* s */
#define FIELD_RATE          .least = 1 /* of a measured rate: 0 would make times infinite */

/* Rows of a table. Designators such as .comment, .origin and .presence may follow the long name. */
#define FIELD_ROW(structure, member, of_name, of_type, of_units, ...)                              \
    {                                                                                              \
        .name = of_name, .type = of_type, .offset = offsetof(structure, member),                   \
        .size = sizeof(((structure *)0)->member), .units = of_units, .long_name = __VA_ARGS__      \
    }
#define FIELD(structure, member, of_type, of_units, ...)                                           \
    FIELD_ROW(structure, member, #member, of_type, of_units, __VA_ARGS__)
#define FIELD_OF_SECONDS(structure, member, ...)                                                   \
    FIELD(structure, member, FIELD_DOUBLE, "s", __VA_ARGS__)
#define FIELD_OF_ITERATION(structure, member, ...)                                                 \
    FIELD_OF_SECONDS(structure, member, __VA_ARGS__, .least = FIELD_ITERATION_MIN)
#define FIELD_OF_DATE(structure, member, ...)                                                      \
    FIELD(structure, member, FIELD_DOUBLE, "seconds since 1970-01-01T00:00:00Z", __VA_ARGS__)
#define FIELD_OF_FLAGS(structure, member, of_flags, ...)                                           \
    FIELD(structure, member, FIELD_FLAG, "1", __VA_ARGS__, .flags = of_flags)
#define FIELD_OF_BITS(structure, member, of_flags, ...)                                            \
    FIELD(structure, member, FIELD_INTEGER, "1", __VA_ARGS__, .flags = of_flags)
#define FIELD_OF_OUTCOME(structure, member, of_flags, ...)                                         \
    FIELD(structure, member, FIELD_OUTCOME, "1", __VA_ARGS__, .flags = of_flags)
#define FIELD_OF_WORDS(structure, member, shown_as, of_words, ...)                                 \
    FIELD_ROW(structure, member, shown_as, FIELD_WORD, "1", __VA_ARGS__, .words = of_words)

/* Number and names of the elements, for a field of several numbers. */
size_t field_elements(const struct field *field);
const char *field_element_name(const struct field *field, size_t i);

/* Sets every field to missing. A row whose name is NULL ends the table. */
void fields_clear(const struct field *table, void *structure);

/* An array is missing if all its elements are. */
bool field_is_missing(const struct field *field, const void *structure);

/* Returns a JSON string; NULL for "". Bytes that are not valid UTF-8, which texts of libraries and
 * users may contain, become '?'. The caller owns the reference. */
json_t *text_encode(const char *text);

/* The caller owns the reference. */
json_t *fields_encode(const struct field *table, const void *structure);

/* Ignores unknown members, which a newer program may have written. The last of repeated members
 * counts. STATUS_SYSTEM: no object, or a value of a wrong type. */
enum status fields_decode(const struct field *table, struct json_text object, void *structure,
                          struct error *error);
/* Decodes one member, for callers that also read other members of the object. Set *next to `table`
 * before the first call. The search for the name begins at *next, because members are mostly in the
 * order of the table. */
enum status field_decode(const struct field *table, const struct field **next,
                         struct json_text name, struct json_text value, void *structure,
                         struct error *error);

/* STATUS_SYSTEM, with the name of the field: a quantity is beyond the limits of unit or field. */
enum status fields_check(const struct field *table, const void *structure, struct error *error);
/* As fields_check, for one number. */
enum status field_check_number(const struct field *field, double value, struct error *error);
