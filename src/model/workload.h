/* What can be measured: workloads, with their parameters, validity and modelled cost, and
 * configurations of them.
 *
 * Rank and workers share it. Everything is const data and pure functions: thread-safe, nothing to
 * free. What one workload is stands in its file of workloads/; a new one is such a file and a row
 * of the table in workload.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "model/fill.h"
#include "model/parameter.h"

enum precision {
    PRECISION_FP64,
    PRECISION_FP32,
    PRECISION_TF32, /* stored as fp32, multiplied with 10 bits of mantissa */
    PRECISION_FP16,
    PRECISION_BF16,
    PRECISION_FP8,  /* e4m3; results are fp16 */
    PRECISION_FP4,  /* e2m1, of roofs only; a number of neighbours share a scale, which is 1 */
    PRECISION_INT8, /* of roofs only; its operations are no FLOPs, and are never added to them */
    PRECISION_COUNT
};

/* Relative errors of results. Up to `accurate` they are what the precision makes of sums in fp32 or
 * wider, rounded once, or as often as the workload says. Up to `right` other roundings explain
 * them, as those of a sum's pieces: the result is inaccurate. Beyond it is wrong: a term is lost, a
 * part left out, a narrower format was used. */
struct tolerance {
    double accurate, right;
};
/* An element that is rounded once is off by half a unit in its last place at most, which is 2.4
 * times what all elements together are off. The rest is room for sums. */
#define ELEMENT_TOLERANCES 10.0

struct precision_info {
    const char *name;
    enum precision result; /* of what is stored at the end: that of an fp8 product is fp16 */
    size_t bytes;          /* of one stored element; 0: two of them share a byte */
    int significand; /* bits, the leading one included; inputs are drawn so that they fit exactly */
    struct tolerance tolerance; /* of ||out - ref|| / ||ref|| of a result that is rounded once */
};
extern const struct precision_info precision_info[PRECISION_COUNT];
const struct precision_info *precision_result(enum precision precision); /* of what is stored */

/* From far to near. A GPU has no l3. */
enum memory_level { LEVEL_DRAM, LEVEL_L3, LEVEL_L2, LEVEL_L1, LEVEL_COUNT };
extern const char *const memory_level_name[LEVEL_COUNT];

struct config;
struct reference_request; /* model/reference.h */
struct expectation;

/* Modelled cost of one iteration; the formulas and what they count stand in workloads/. A member is
 * NaN where there is no model. */
struct cost {
    double flops; /* floating-point operations; a multiply-add is 2 */
    double bytes; /* compulsory traffic: what is needed of each input once, each output once */
    /* bytes that must be allocated for the tensors, without the library's workspace */
    double memory;
};

struct workload {
    const char *name;
    const struct parameter *parameters; /* sorted by name: the order of the canonical text */
    size_t count;
    const char *const *implementations; /* "NAME: what it is", NULL-terminated, for --list */
    const char *without_tensors; /* "a pool" has no use for tensor units; NULL: tf32 is allowed */
    /* See config_check; NULL if every configuration can exist. */
    enum status (*check)(const struct config *config, struct error *error);
    /* NULL: nothing is modelled. Then such configurations are handed out first, and their rows have
     * counted FLOPs and bytes or none. */
    struct cost (*cost)(const struct config *config);
    /* An input's values are uniform in [-2^e, 2^e); this is e. NULL: 0 for all inputs. */
    int (*exponent)(const struct config *config, enum tensor tensor);
    /* Makes what the results must be, owned by the caller also on failure. NULL: results are not
     * verified, and their rows say so. */
    enum status (*reference)(const struct reference_request *request,
                             struct expectation *expectation, struct error *error);
    /* As precision_info's, where results are rounded more than once. NULL: they are not. */
    struct tolerance (*tolerance)(const struct config *config);
    /* A workload that runs commands: the parameter that holds the axes of its section, as words
     * NAME=VALUE. NULL: the parameters are the axes. */
    const char *axes;
    /* With `axes`: whether one process measures this row and others. Such rows are handed out
     * first, in the order of the manifest. */
    bool (*shared)(const struct config *config);
};

/* A workload with one value for each parameter. Plain data; copy it freely: numbers and texts lie
 * within it, nothing is owned elsewhere. Of a workload without free texts, `strings` is all
 * zero. */
struct config {
    const struct workload *workload;
    struct {
        int64_t first, second;
    } values[WORKLOAD_PARAMETERS_MAX]; /* by the workload's parameter order */
    /* The free texts, each at a place of its own with room for its parameter's `maximum`. */
    char strings[WORKLOAD_STRINGS];
};
struct value config_get(const struct config *config, size_t parameter);
void config_set(struct config *config, size_t parameter, const struct value *value);

extern const struct workload *const workloads[];        /* NULL-terminated */
const struct workload *workload_find(const char *name); /* NULL if there is none */
/* words_hint of a `text` that is none of `others` (NULL-terminated; NULL: none) and of the workloads
 * that `filter` takes (NULL: all). "" without memory. */
void workload_hint(const char *const *others, bool (*filter)(const struct workload *workload),
                   const char *text, char hint[WORDS_HINT]);

/* Index of the parameter in workload->parameters, or -1. */
int workload_parameter(const struct workload *workload, const char *name);

/* All parameters at their defaults. */
struct config config_default(const struct workload *workload);

/* The index of the parameter in this role, or -1; the word that it has, NULL if there is none. */
int workload_role(const struct workload *workload, enum parameter_role role);
const char *config_word(const struct config *config, enum parameter_role role);
bool config_replayed(const struct config *config); /* launch = graph */
bool config_cold(const struct config *config);     /* caches are flushed before each iteration */
/* The same with a hot cache: what has the same inputs, results and algorithms to choose from. */
struct config config_hot(const struct config *config);
/* PRECISION_COUNT if the workload has no such parameter: it may use several. */
enum precision config_precision(const struct config *config);

/* An input's elements: what devices fill it with, and what the reference computes from. */
struct fill config_fill(const struct config *config, uint64_t seed, enum tensor tensor);

/* The canonical text, "conv2d algorithm=auto batch=16 ...", parameters sorted by name. It is what
 * the identity of a configuration is computed from, so its form must never change. Later parameters
 * (struct parameter) are not in it at their defaults. A text without them is read as that. */
void config_format(const struct config *config, char text[WORKLOAD_TEXT]);
enum status config_parse(const char *text, struct config *config, struct error *error);
/* The same with a row that may be in no table; the text must begin with its name. */
enum status config_parse_as(const struct workload *workload, const char *text,
                            struct config *config, struct error *error);

/* 128-bit xxHash (XXH3) of the canonical text, as 32 lower-case hexadecimal digits. */
enum { CONFIG_HASH_TEXT = 33 };
void config_hash(const struct config *config, char hash[CONFIG_HASH_TEXT]);
void config_text_hash(const char *text, char hash[CONFIG_HASH_TEXT]);

/* STATUS_UNSUPPORTED with the reason if the configuration cannot exist (an output of no pixels,
 * groups that do not divide the channels, ...). */
enum status config_check(const struct config *config, struct error *error);
/* Of the 2-norm over all compared elements of a tensor; of any one element over the larger of
 * itself and the tensor's root mean square ELEMENT_TOLERANCES times as much. */
struct tolerance config_tolerance(const struct config *config);
struct cost config_cost(const struct config *config); /* all NaN if the workload has no model */

/* Whether the configuration is a command with axes of its own. False without a workload. */
bool config_is_program(const struct config *config);
bool config_is_shared(const struct config *config); /* see struct workload */
/* The value of a program's axis, into `text` of WORKLOAD_STRING bytes. False: it has none of this
 * name. */
bool config_axis(const struct config *config, const char *name, char *text);
/* The name of a program's axis `i`. False: it has fewer. */
bool config_axis_name(const struct config *config, size_t i, char name[WORKLOAD_STRING]);

/* Of a parameter that the workload has: for its own file, which knows that. */
struct value config_value(const struct config *config, const char *parameter);
