/* Workloads (parameters, validity, modelled cost) and configurations, for ranks and workers. Const
 * data and pure functions: thread-safe, nothing to free. Each workload has a file in workloads/ and
 * a row of the table in workload.c. */
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
    PRECISION_FP4,  /* e2m1, only for roofs; blocks of elements share a scale, which is 1 */
    PRECISION_INT8, /* only for roofs; its operations are no FLOPs */
    PRECISION_COUNT
};

/* Limits on relative errors of results. Up to `accurate` a result is accurate: sums in fp32 or
 * wider, rounded as rarely as the workload permits. Up to `right` it is inaccurate: further
 * roundings, such as those of partial sums. Beyond, it is wrong: a term or a part is missing, or a
 * format is too narrow. */
struct tolerance {
    double accurate, right;
};
/* Tolerance of a single element divided by that of all elements together. Rounding changes an
 * element by at most half a unit in the last place, which is 2.4 times the error of all elements
 * together. The rest of the factor allows for errors of sums. */
#define ELEMENT_TOLERANCES 10.0

struct precision_info {
    const char *name;
    enum precision result;      /* precision of results: fp16 for fp8 */
    size_t bytes;               /* size of a stored element; 0: two elements share a byte */
    int significand;            /* bits with the leading one, of elements and inputs */
    struct tolerance tolerance; /* of ||out - ref|| / ||ref|| for a result that is rounded once */
};
extern const struct precision_info precision_info[PRECISION_COUNT];
const struct precision_info *precision_result(enum precision precision); /* row of `result` */

/* From far to near. GPUs have no l3. */
enum memory_level { LEVEL_DRAM, LEVEL_L3, LEVEL_L2, LEVEL_L1, LEVEL_COUNT };
extern const char *const memory_level_name[LEVEL_COUNT];

struct config;
struct reference_request; /* model/reference.h */
struct expectation;

/* Number of elements of each tensor that a pass reads and writes, by enum tensor; 0: none. Floating
 * point, because sizes that are too large for any device may overflow int64_t. */
struct tensors {
    double read[TENSOR_COUNT], written[TENSOR_COUNT];
    bool wide[TENSOR_COUNT]; /* stored as fp64 with precision fp64, else as fp32 */
};
/* The type of a tensor's elements. Results and biases have the result type of the precision. */
enum precision tensor_stored(const struct tensors *tensors, enum tensor tensor,
                             enum precision precision);

/* Modelled cost of one iteration; workloads/ have the formulas. NaN: no model. */
struct cost {
    double flops; /* floating-point operations; a multiply-add is 2 */
    double bytes; /* compulsory traffic: each needed input is read once, each output written once */
    double memory; /* bytes of all tensors, without workspace */
};

/* model/workloads/README.md describes the members, and what follows if one is NULL. */
struct workload {
    const char *name;
    const struct parameter *parameters; /* sorted by name: the order of the canonical text */
    size_t count;
    const char *without_tensors; /* noun for the error that refuses tf32, such as "a pool" */
    enum status (*check)(const struct config *config, struct error *error); /* see config_check */
    struct cost (*cost)(const struct config *config); /* bytes or memory 0: taken from `tensors` */
    struct tensors (*tensors)(const struct config *config);
    /* Returns e: values of the input are uniform in [-2^e, 2^e). */
    int (*exponent)(const struct config *config, enum tensor tensor);
    /* Makes the expectation, which the caller owns also on failure. */
    enum status (*reference)(const struct reference_request *request,
                             struct expectation *expectation, struct error *error);
    struct tolerance (*tolerance)(const struct config *config);
    /* For programs: name of the parameter that has the axes of the section, as words NAME=VALUE.
     * NULL: the parameters are the axes. */
    const char *axes;
    /* For programs: returns whether one process measures this row and others. The queue begins with
     * such rows, in the order of the manifest. */
    bool (*shared)(const struct config *config);
};

/* A workload with one value for each parameter. Plain data without pointers to owned memory.
 * `strings` is all zero without free texts. */
struct config {
    const struct workload *workload;
    struct {
        int64_t first, second;
    } values[WORKLOAD_PARAMETERS_MAX]; /* in the order of the workload's parameters */
    /* values of free texts, each at a fixed offset, with room for `maximum` of the parameter */
    char strings[WORKLOAD_STRINGS];
};
struct value config_get(const struct config *config, size_t parameter);
void config_set(struct config *config, size_t parameter, const struct value *value);

/* clang-format off */
/* A file in workloads/ defines NAME_workload, one in worker/cpu/ NAME_routines. --list has this
 * order, and `program` at the end. */
#define WORKLOADS(X) \
    X(conv2d) \
    X(lstm) \
    X(matmul) \
    X(linear) \
    X(attention) \
    X(compute_loop) \
    X(shared_loop) \
    X(elementwise) \
    X(pool) \
    X(softmax) \
    X(norm)
/* clang-format on */
extern const struct workload *const workloads[];        /* NULL-terminated */
const struct workload *workload_find(const char *name); /* NULL if there is none */
/* Formats words_hint for `text`. Allowed words are `others` (NULL-terminated, or NULL) and the
 * workloads that `filter` accepts (NULL: all). */
void workload_hint(const char *const *others, bool (*filter)(const struct workload *workload),
                   const char *text, char hint[WORDS_HINT]);

/* Index of the parameter in workload->parameters, or -1. */
int workload_parameter(const struct workload *workload, const char *name);
/* Fills `names` from index `at` on with the parameters' names, and ends it with NULL. */
void workload_names(const struct workload *workload, const char **names, size_t at);

/* All parameters at their defaults. */
struct config config_default(const struct workload *workload);

/* Index of the parameter with this role, or -1. config_word: its word; NULL: no such parameter. */
int workload_role(const struct workload *workload, enum parameter_role role);
const char *config_word(const struct config *config, enum parameter_role role);
bool config_replayed(const struct config *config); /* launch = graph */
/* Whether caches are flushed before each iteration. For programs the axis `cache` decides. */
bool config_cold(const struct config *config);
/* The configuration with a hot cache: inputs, results and candidate algorithms are the same. */
struct config config_hot(const struct config *config);
/* PRECISION_COUNT: the parameter is missing, or is "mixed" (several precisions). */
enum precision config_precision(const struct config *config);

/* The elements of an input, equal on the device and in the reference. */
struct fill config_fill(const struct config *config, uint64_t seed, enum tensor tensor);

/* The canonical text, such as "conv2d algorithm=auto batch=16 ...", with parameters sorted by name.
 * The text identifies a configuration in files, so its form never changes. Later parameters (struct
 * parameter) with their default are omitted. */
void config_format(const struct config *config, char text[WORKLOAD_TEXT]);
enum status config_parse(const char *text, struct config *config, struct error *error);
/* As config_parse, for a workload that need not be in `workloads`; the text must begin with its
 * name. */
enum status config_parse_as(const struct workload *workload, const char *text,
                            struct config *config, struct error *error);

/* 128-bit xxHash (XXH3) of the canonical text, as 32 lower-case hexadecimal digits. */
enum { CONFIG_HASH_TEXT = 33 };
void config_hash(const struct config *config, char hash[CONFIG_HASH_TEXT]);
void config_text_hash(const char *text, char hash[CONFIG_HASH_TEXT]);

/* STATUS_UNSUPPORTED with the reason: the configuration cannot exist, such as one without output
 * pixels. */
enum status config_check(const struct config *config, struct error *error);
/* For `check`: refuses two parameters unless both are multiples of 16, which libraries need for
 * fp8. */
enum status config_check_multiples(const struct config *config, const char *one, const char *other,
                                   struct error *error);
/* Tolerance of the error of a tensor, in the 2-norm over all compared elements. The tolerance of
 * one element is ELEMENT_TOLERANCES times as large, relative to the larger of the element and the
 * root mean square of the tensor. */
struct tolerance config_tolerance(const struct config *config);
struct cost config_cost(const struct config *config); /* all NaN if the workload has no model */
/* Bytes of `tensors` that are read plus those that are written. */
double config_tensor_bytes(const struct config *config);

/* True if the workload is a program; false without a workload. */
bool config_is_program(const struct config *config);
bool config_is_shared(const struct config *config); /* see struct workload */
/* Sets the value of a program's axis. False: no axis with this name. */
bool config_axis(const struct config *config, const char *name, char *text);
/* Sets the name of axis `i` of a program. False beyond the last axis. */
bool config_axis_name(const struct config *config, size_t i, char name[WORKLOAD_STRING]);

/* The value of a parameter, which the workload must have. */
struct value config_value(const struct config *config, const char *parameter);
/* Sets the members of the workload's shape that its parameters name. */
void config_shape(const struct config *config, void *shape);
/* Defines NAME_from for a shape whose members are all parameters. */
#define WORKLOAD_SHAPE(name)                                                                       \
    struct name name##_from(const struct config *config)                                           \
    {                                                                                              \
        struct name s;                                                                             \
        config_shape(config, &s);                                                                  \
        return s;                                                                                  \
    }
