/* Parameters of workloads: their kinds, ranges and words, and conversion of values from and to
 * text. Const data and pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum parameter_kind {
    PARAMETER_INTEGER, /* value.first */
    PARAMETER_EXTENT,  /* "3" or "3x5": value.first rows, value.second columns */
    PARAMETER_STEP,    /* an extent, but files omit columns that always equal rows */
    PARAMETER_PADDING, /* "same", "valid", "1", "1x0" or "1:2x0:1" with pixels before and after */
    PARAMETER_WORD,    /* value.first is the index into words */
    PARAMETER_TEXT     /* value.text: free text, UTF-8 without control characters and tabs */
};
/* For PARAMETER_PADDING value.first (rows) and value.second (columns) are one of these, or made by
 * padding_sides. */
enum { PADDING_SAME = -1, PADDING_VALID = -2 };
static inline int64_t padding_sides(int64_t before, int64_t after)
{
    return before | after << 32;
}
static inline int64_t padding_before(int64_t sides)
{
    return sides & UINT32_MAX;
}
static inline int64_t padding_after(int64_t sides)
{
    return sides >> 32;
}

/* Roles of parameters that code outside of the workload's file reads. */
enum parameter_role {
    ROLE_NONE,
    ROLE_CACHE,          /* words: workload_caches */
    ROLE_PRECISION,      /* words: workload_precisions, or _low */
    ROLE_PASS,           /* computation, forward or backward */
    ROLE_IMPLEMENTATION, /* the first word is "auto": the device's best library */
    ROLE_LAUNCH,         /* words: workload_launches */
    ROLE_ALGORITHM       /* the first word is "auto": the library decides */
};

struct parameter {
    const char *name;
    enum parameter_kind kind;
    bool series;              /* combined with every shape, independent of `vary` */
    int64_t minimum, maximum; /* inclusive limits of a number, or of the bytes of a text */
    const char *const *words; /* NULL-terminated; for PARAMETER_WORD only */
    const char *initial;      /* default, as in a manifest */
    enum parameter_role role;
    /* The parameter came after the first results. The canonical text omits its default, so that
     * earlier configurations keep their hash. The default, how they worked, never changes. */
    bool later;
    const char *help; /* one line for --list, with the unit */
    /* Member of the workload's shape that config_shape sets: offset and size in bytes, 0: none. A
     * word sets an enum, a bool, or a pointer to the word; an extent sets two numbers. */
    size_t member, size;
};

enum {
    WORKLOAD_PARAMETERS_MAX = 24,
    WORKLOAD_STRING = 768,                         /* a free text with its NUL */
    WORKLOAD_VALUE_TEXT = 2 * WORKLOAD_STRING + 1, /* any value, quoted if necessary */
    WORKLOAD_STRINGS = 2048,                       /* all free texts of a configuration */
    WORKLOAD_TEXT = 512 + 2 * WORKLOAD_STRINGS     /* a canonical text */
};

/* A value with its text. Plain data. */
struct value {
    int64_t first, second; /* second: 0 unless the kind has rows and columns */
    char text[WORKLOAD_STRING];
};
bool value_equal(const struct value *a, const struct value *b);

/* Convert a value from and to text. STATUS_USAGE: the value is not allowed; the error names the
 * allowed ones. Free text may be in double quotes, with the escapes \" and \\. parameter_format
 * adds quotes if the text is empty or has characters other than letters, digits and -_./:+@%. */
enum status parameter_parse(const struct parameter *parameter, const char *text,
                            struct value *value, struct error *error);
void parameter_format(const struct parameter *parameter, struct value value,
                      char text[WORKLOAD_VALUE_TEXT]);

/* Macros for parameter tables. */
#define WORKLOAD_ROW(...)                                                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define WORKLOAD_INTEGER(name, maximum, initial, ...)                                              \
    WORKLOAD_ROW(name, PARAMETER_INTEGER, false, 1, maximum, NULL, initial, ROLE_NONE,             \
                 .help = __VA_ARGS__)
#define WORKLOAD_PIXELS(name, kind, minimum, initial, ...)                                         \
    WORKLOAD_ROW(name, kind, false, minimum, 1024, NULL, initial, ROLE_NONE, .help = __VA_ARGS__)
#define WORKLOAD_WORDS(name, words, initial, role, ...)                                            \
    WORKLOAD_ROW(name, PARAMETER_WORD, true, 0, 0, words, initial, role, .help = __VA_ARGS__)
#define WORKLOAD_FREE_TEXT(name, maximum, initial, ...)                                            \
    WORKLOAD_ROW(name, PARAMETER_TEXT, true, 0, maximum, NULL, initial, ROLE_NONE,                 \
                 .help = __VA_ARGS__)
#define WORKLOAD_SERIES(name, words, initial, ...)                                                 \
    WORKLOAD_WORDS(name, words, initial, ROLE_NONE, __VA_ARGS__)
/* Rows whose `later` is true. */
#define WORKLOAD_LATER_INTEGER(name, minimum, maximum, initial, ...)                               \
    WORKLOAD_ROW(name, PARAMETER_INTEGER, false, minimum, maximum, NULL, initial, ROLE_NONE, true, \
                 .help = __VA_ARGS__)
#define WORKLOAD_LATER_WORDS(...)  WORKLOAD_WORDS(__VA_ARGS__, .later = true)
#define WORKLOAD_LATER_TEXT(...)   WORKLOAD_FREE_TEXT(__VA_ARGS__, .later = true)
#define WORKLOAD_LATER_SERIES(...) WORKLOAD_SERIES(__VA_ARGS__, .later = true)
#define WORKLOAD_LAUNCH                                                                            \
    WORKLOAD_LATER_WORDS("launch", workload_launches, "stream", ROLE_LAUNCH,                       \
                         "of the kernels: one by one, or all replayed from a CUDA graph")
#define WORKLOAD_CACHE                                                                             \
    WORKLOAD_WORDS("cache", workload_caches, "hot", ROLE_CACHE,                                    \
                   "cold: caches flushed before each iteration")
#define WORKLOAD_PRECISION(help)                                                                   \
    WORKLOAD_WORDS("precision", workload_precisions, "fp32", ROLE_PRECISION, help, INTO(precision))
/* For workloads whose libraries have 8-bit products. */
#define WORKLOAD_PRECISION_LOW(help)                                                               \
    WORKLOAD_WORDS("precision", workload_precisions_low, "fp32", ROLE_PRECISION, help,             \
                   INTO(precision))
#define WORKLOAD_PASS(words, help)                                                                 \
    WORKLOAD_WORDS("pass", words, "forward", ROLE_PASS, help, INTO(pass))
#define WORKLOAD_IMPLEMENTATION(words)                                                             \
    WORKLOAD_WORDS("implementation", words, "auto", ROLE_IMPLEMENTATION,                           \
                   "auto: the device's best library")
#define WORKLOAD_ALGORITHM(words)                                                                  \
    WORKLOAD_WORDS("algorithm", words, "auto", ROLE_ALGORITHM,                                     \
                   "the library's; auto: fastest as measured", INTO(algorithm))
/* These macros follow the help of a row and name the member of SHAPE, the workload's struct.
 * INTO_BOTH names two neighbours, NAME_height and NAME_width. */
#define INTO(name)            offsetof(SHAPE, name), sizeof(((SHAPE *)0)->name)
#define INTO_BOTH(name)       offsetof(SHAPE, name##_height), 2 * sizeof(int64_t)
#define WORKLOAD_TABLE(array) array, sizeof(array) / sizeof *(array)
/* Words, each list NULL-terminated. */
extern const char *const workload_precisions[];
extern const char *const workload_precisions_low[];
extern const char *const workload_caches[], *const workload_launches[], *const workload_no_yes[];
extern const char *const workload_directions[], *const workload_accumulations[];
