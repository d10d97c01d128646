/* Workloads (parameters, validity, modelled cost) and configurations, shared by ranks and workers.
 * Const data and pure functions: thread-safe, nothing to free. Each workload is a file in
 * workloads/ and a row of the table in workload.c. */
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
    PRECISION_FP4,  /* e2m1, roofs only; blocks of elements share a scale, which is 1 */
    PRECISION_INT8, /* roofs only; operations, which never count as FLOPs */
    PRECISION_COUNT
};

/* Limits on relative errors of results. Sums in fp32 or wider that are rounded once, or as often as
 * the workload states, err by up to `accurate`. Other roundings, such as of partial sums, err by up
 * to `right`: the result is inaccurate. A larger error is wrong: a term or a part is missing, or a
 * format is narrower. */
struct tolerance {
    double accurate, right;
};
/* An element that is rounded once differs by at most half a unit in its last place, 2.4 times the
 * error of all elements together. The rest of ELEMENT_TOLERANCES allows for errors of sums. */
#define ELEMENT_TOLERANCES 10.0

struct precision_info {
    const char *name;
    enum precision result;      /* precision of results: fp16 for fp8 */
    size_t bytes;               /* size of a stored element; 0: two elements share a byte */
    int significand;            /* bits with the leading one, of elements and inputs */
    struct tolerance tolerance; /* of ||out - ref|| / ||ref|| for a result that is rounded once */
};
extern const struct precision_info precision_info[PRECISION_COUNT];
const struct precision_info *precision_result(enum precision precision); /* that of results */

/* From far to near. GPUs have no l3. */
enum memory_level { LEVEL_DRAM, LEVEL_L3, LEVEL_L2, LEVEL_L1, LEVEL_COUNT };
extern const char *const memory_level_name[LEVEL_COUNT];

struct config;
struct reference_request; /* model/reference.h */
struct expectation;

/* Elements of each tensor that a pass reads and writes, by enum tensor; 0: none. In floating point,
 * because sizes that no device has overflow int64_t. */
struct tensors {
    double read[TENSOR_COUNT], written[TENSOR_COUNT];
    bool wide[TENSOR_COUNT]; /* stored as fp64 with precision fp64, else as fp32 */
};
/* The type of a tensor's elements. Results and biases have the result type of the precision. */
enum precision tensor_stored(const struct tensors *tensors, enum tensor tensor,
                             enum precision precision);

/* Modelled cost of one iteration, with formulas in workloads/. NaN: no model. */
struct cost {
    double flops;  /* floating-point operations; a multiply-add is 2 */
    double bytes;  /* compulsory traffic: each needed input and each output once */
    double memory; /* bytes of all tensors, without workspace */
};

struct workload {
    const char *name;
    const struct parameter *parameters; /* sorted by name: the order of the canonical text */
    size_t count;
    /* "a pool": the workload never uses tensor units; NULL: tf32 is allowed */
    const char *without_tensors;
    /* Refuses configurations that cannot exist, see config_check. NULL: all can. */
    enum status (*check)(const struct config *config, struct error *error);
    /* NULL: no model. The queue then starts with these configurations, and rows have counted FLOPs
     * and bytes or none. */
    struct cost (*cost)(const struct config *config); /* bytes, memory 0: those of `tensors` */
    struct tensors (*tensors)(const struct config *config); /* NULL: a program */
    /* Exponent e: the values of an input are uniform in [-2^e, 2^e). NULL: 0 for all inputs. */
    int (*exponent)(const struct config *config, enum tensor tensor);
    /* Makes the expectation, which the caller owns also on failure. NULL: results are not verified,
     * and rows say so. */
    enum status (*reference)(const struct reference_request *request,
                             struct expectation *expectation, struct error *error);
    /* Tolerance for results that are rounded more than once. NULL: precision_info's. */
    struct tolerance (*tolerance)(const struct config *config);
    /* For programs: parameter with the axes of the section, as words NAME=VALUE. NULL: the
     * parameters are the axes. */
    const char *axes;
    /* With `axes`: true if one process measures this row and others. The queue starts with these
     * rows, in the order of the manifest. */
    bool (*shared)(const struct config *config);
};

/* A workload with one value for each parameter. Plain data without pointers to owned memory.
 * `strings` is all zero without free texts. */
struct config {
    const struct workload *workload;
    struct {
        int64_t first, second;
    } values[WORKLOAD_PARAMETERS_MAX]; /* by the workload's parameter order */
    /* Free texts, each at a fixed offset with room for its parameter's `maximum`. */
    char strings[WORKLOAD_STRINGS];
};
struct value config_get(const struct config *config, size_t parameter);
void config_set(struct config *config, size_t parameter, const struct value *value);

/* clang-format off */
/* Each has a file in workloads/ that defines NAME_workload, and one in worker/cpu/ that defines
 * NAME_routines. Lists have this order; `program` follows. */
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
/* Formats words_hint for a `text` that is neither in `others` (NULL-terminated, or NULL) nor a
 * workload that `filter` accepts (NULL: all). "" without memory. */
void workload_hint(const char *const *others, bool (*filter)(const struct workload *workload),
                   const char *text, char hint[WORDS_HINT]);

/* Index of the parameter in workload->parameters, or -1. */
int workload_parameter(const struct workload *workload, const char *name);

/* All parameters at their defaults. */
struct config config_default(const struct workload *workload);

/* Index of the parameter in this role, or -1; its word, or NULL. */
int workload_role(const struct workload *workload, enum parameter_role role);
const char *config_word(const struct config *config, enum parameter_role role);
bool config_replayed(const struct config *config); /* launch = graph */
/* Whether caches are flushed before each iteration; programs tell it by an axis `cache`. */
bool config_cold(const struct config *config);
/* The configuration with a hot cache: same inputs, results and candidate algorithms. */
struct config config_hot(const struct config *config);
/* PRECISION_COUNT if the parameter is missing or "mixed": several precisions are possible. */
enum precision config_precision(const struct config *config);

/* Elements of an input, for device and reference. */
struct fill config_fill(const struct config *config, uint64_t seed, enum tensor tensor);

/* The canonical text, "conv2d algorithm=auto batch=16 ...", with parameters sorted by name. It
 * defines the identity of a configuration, so its form never changes. It omits later parameters
 * (struct parameter) at their defaults. */
void config_format(const struct config *config, char text[WORKLOAD_TEXT]);
enum status config_parse(const char *text, struct config *config, struct error *error);
/* Parses a configuration of a workload that may be in no table; the text must begin with its name.
 */
enum status config_parse_as(const struct workload *workload, const char *text,
                            struct config *config, struct error *error);

/* 128-bit xxHash (XXH3) of the canonical text, as 32 lower-case hexadecimal digits. */
enum { CONFIG_HASH_TEXT = 33 };
void config_hash(const struct config *config, char hash[CONFIG_HASH_TEXT]);
void config_text_hash(const char *text, char hash[CONFIG_HASH_TEXT]);

/* STATUS_UNSUPPORTED with the reason: the configuration cannot exist (no output pixels, groups that
 * do not divide the channels, ...). */
enum status config_check(const struct config *config, struct error *error);
/* Tolerance of the 2-norm over all compared elements of a tensor. The tolerance of one element,
 * over the larger of itself and the tensor's root mean square, is ELEMENT_TOLERANCES times
 * as large. */
struct tolerance config_tolerance(const struct config *config);
struct cost config_cost(const struct config *config); /* all NaN if the workload has no model */

/* True for a command with axes. False without a workload. */
bool config_is_program(const struct config *config);
bool config_is_shared(const struct config *config); /* see struct workload */
/* Sets the value of a program's axis. False: no axis with this name. */
bool config_axis(const struct config *config, const char *name, char *text);
/* Sets the name of axis `i` of a program. False beyond the last axis. */
bool config_axis_name(const struct config *config, size_t i, char name[WORKLOAD_STRING]);

/* For the workload's own file: the workload must have the parameter. */
struct value config_value(const struct config *config, const char *parameter);
/* Sets the members of a workload's shape that its parameters name. */
void config_shape(const struct config *config, void *shape);
/* Defines NAME_from for a shape whose members are all parameters. */
#define WORKLOAD_SHAPE(name)                                                                       \
    struct name name##_from(const struct config *config)                                           \
    {                                                                                              \
        struct name s;                                                                             \
        config_shape(config, &s);                                                                  \
        return s;                                                                                  \
    }
