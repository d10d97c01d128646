#include "model/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/command_line.h"

/* clang-format off */
/* Significands include the leading bit. Tolerances: inputs are exact and products are summed in
 * fp32 or wider. A right result differs by the rounding of stored values, by the order of sums, and
 * by losses of Winograd, FFT and recurrent algorithms; a wrong element differs by far more. The
 * second limit is below the errors of the next narrower format: sums of fp16 in fp16 1.5e-3,
 * factors of fp32 in tf32 2.5e-4 (tests/unit/test_verify.c). Products of fp8 inputs are multiples
 * of 2^-6 of the largest product. The 14-bit sums of tensor units of compute capability 9.0 are
 * exact below 256 times the largest product, and libraries move them to fp32 sums in time. The
 * remaining error is the rounding of the result to fp16. */
const struct precision_info precision_info[PRECISION_COUNT] = {
    [PRECISION_FP64] = {"fp64", PRECISION_FP64, 8, 53, {1e-12, 1e-10}},
    [PRECISION_FP32] = {"fp32", PRECISION_FP32, 4, 24, {1e-4, 2e-4}},
    [PRECISION_TF32] = {"tf32", PRECISION_TF32, 4, 11, {1e-4, 1e-3}},
    [PRECISION_FP16] = {"fp16", PRECISION_FP16, 2, 11, {4e-4, 1.2e-3}},
    [PRECISION_BF16] = {"bf16", PRECISION_BF16, 2, 8, {4e-3, 1.2e-2}},
    [PRECISION_FP8] = {"fp8", PRECISION_FP16, 1, 4, {4e-4, 1.2e-3}},
    [PRECISION_FP4] = {"fp4", PRECISION_FP4, 0, 2, {0.0, 0.0}},
    [PRECISION_INT8] = {"int8", PRECISION_INT8, 1, 8, {0.0, 0.0}},
};

const struct precision_info *precision_result(enum precision precision)
{
    return &precision_info[precision_info[precision].result];
}

const char *const memory_level_name[LEVEL_COUNT] = {"dram", "l3", "l2", "l1"};

#define DECLARE(name) extern const struct workload name##_workload;
WORKLOADS(DECLARE)
DECLARE(program)

#define ROW(name) &name##_workload,
const struct workload *const workloads[] = {WORKLOADS(ROW) ROW(program) NULL};
/* clang-format on */

const struct workload *workload_find(const char *name)
{
    for (size_t i = 0; workloads[i]; ++i)
        if (strcmp(workloads[i]->name, name) == 0)
            return workloads[i];
    return NULL;
}

void workload_hint(const char *const *others, bool (*filter)(const struct workload *workload),
                   const char *text, char hint[WORDS_HINT])
{
    enum { OTHERS_MAX = 16 };
    const char *names[OTHERS_MAX + sizeof workloads / sizeof *workloads] = {NULL};
    size_t count = 0;
    for (; others && others[count] && count < OTHERS_MAX; ++count)
        names[count] = others[count];
    for (size_t i = 0; workloads[i]; ++i)
        if (!filter || filter(workloads[i]))
            names[count++] = workloads[i]->name;
    words_hint(names, text, hint);
}

int workload_parameter(const struct workload *workload, const char *name)
{
    for (size_t i = 0; i < workload->count; ++i)
        if (strcmp(workload->parameters[i].name, name) == 0)
            return (int)i;
    return -1;
}

void workload_names(const struct workload *workload, const char **names, size_t at)
{
    for (size_t i = 0; i < workload->count; ++i)
        names[at++] = workload->parameters[i].name;
    names[at] = NULL;
}

/* Offset of a free text in `strings`. */
static size_t string_at(const struct workload *workload, size_t parameter)
{
    size_t at = 0;
    for (size_t i = 0; i < parameter; ++i)
        if (workload->parameters[i].kind == PARAMETER_TEXT)
            at += (size_t)workload->parameters[i].maximum + 1;
    return at;
}

struct value config_get(const struct config *config, size_t parameter)
{
    struct value value = {config->values[parameter].first, config->values[parameter].second, ""};
    if (config->workload->parameters[parameter].kind == PARAMETER_TEXT)
        strcpy(value.text, config->strings + string_at(config->workload, parameter));
    return value;
}

void config_set(struct config *config, size_t parameter, const struct value *value)
{
    const struct parameter *described = &config->workload->parameters[parameter];
    config->values[parameter].first = value->first;
    config->values[parameter].second = value->second;
    if (described->kind == PARAMETER_TEXT)
        /* strncpy pads with zeros: equal configurations are equal bytes */
        strncpy(config->strings + string_at(config->workload, parameter), value->text,
                (size_t)described->maximum + 1);
}

static void set_default(struct config *config, size_t i)
{
    const struct parameter *parameter = &config->workload->parameters[i];
    struct value value = {0};
    struct error unused;
    parameter_parse(parameter, parameter->initial, &value, &unused);
    config_set(config, i, &value);
}

struct config config_default(const struct workload *workload)
{
    struct config config = {.workload = workload};
    for (size_t i = 0; i < workload->count; ++i)
        set_default(&config, i);
    return config;
}

int workload_role(const struct workload *workload, enum parameter_role role)
{
    for (size_t i = 0; i < workload->count; ++i)
        if (workload->parameters[i].role == role)
            return (int)i;
    return -1;
}

const char *config_word(const struct config *config, enum parameter_role role)
{
    int i = workload_role(config->workload, role);
    return i < 0 ? NULL : config->workload->parameters[i].words[config->values[i].first];
}

bool config_cold(const struct config *config)
{
    char axis[WORKLOAD_STRING];
    int i = workload_role(config->workload, ROLE_CACHE);
    return i >= 0 ? config->values[i].first != 0
                  : config_axis(config, "cache", axis) && strcmp(axis, workload_caches[1]) == 0;
}

struct config config_hot(const struct config *config)
{
    struct config hot = *config;
    int i = workload_role(config->workload, ROLE_CACHE);
    if (i >= 0)
        hot.values[i].first = 0;
    return hot;
}

bool config_replayed(const struct config *config)
{
    int i = workload_role(config->workload, ROLE_LAUNCH);
    return i >= 0 && config->values[i].first != 0;
}

enum precision config_precision(const struct config *config)
{
    const char *word = config_word(config, ROLE_PRECISION);
    int i = word ? words_find(workload_precisions_low, word) : -1; /* the list lacks "mixed" */
    return i < 0 ? PRECISION_COUNT : (enum precision)i;
}

struct fill config_fill(const struct config *config, uint64_t seed, enum tensor tensor)
{
    const struct workload *workload = config->workload;
    int exponent = workload->exponent ? workload->exponent(config, tensor) : 0;
    return fill_make(seed, tensor, precision_info[config_precision(config)].significand, exponent);
}

static bool left_out(const struct parameter *parameter, const struct value *value)
{
    struct value initial = {0};
    struct error unused;
    return parameter->later &&
           parameter_parse(parameter, parameter->initial, &initial, &unused) == STATUS_OK &&
           value_equal(value, &initial);
}

void config_format(const struct config *config, char text[WORKLOAD_TEXT])
{
    const struct workload *workload = config->workload;
    size_t used = (size_t)snprintf(text, WORKLOAD_TEXT, "%s", workload->name);
    for (size_t i = 0; i < workload->count; ++i) {
        const struct parameter *parameter = &workload->parameters[i];
        const struct value value = config_get(config, i);
        char text_of_value[WORKLOAD_VALUE_TEXT];
        if (left_out(parameter, &value))
            continue;
        parameter_format(parameter, value, text_of_value);
        used += (size_t)snprintf(text + used, WORKLOAD_TEXT - used, " %s=%s", parameter->name,
                                 text_of_value);
    }
}

/* Cuts off the next "NAME=VALUE". Values in quotes may contain spaces. */
static char *item_next(char **rest)
{
    char *item = *rest, *end = item + strcspn(item, " =");
    if (end[0] == '=' && end[1] == '"') {
        const char *after = words_quote_end(end + 1);
        end += after ? after - end : 0;
    }
    end += strcspn(end, " ");
    *rest = *end ? end + 1 : NULL;
    *end = '\0';
    return item;
}

static enum status item_parse(char *item, struct config *config,
                              bool given[WORKLOAD_PARAMETERS_MAX], struct error *error)
{
    const struct workload *workload = config->workload;
    struct value value;
    char *equals = strchr(item, '=');
    if (equals)
        *equals = '\0';
    int i = equals ? workload_parameter(workload, item) : -1;
    if (i < 0)
        return error_set(error, STATUS_USAGE, "'%s' is no parameter of %s", item, workload->name);
    enum status status = parameter_parse(&workload->parameters[i], equals + 1, &value, error);
    if (status == STATUS_OK)
        config_set(config, (size_t)i, &value);
    given[i] = true;
    return status;
}

enum status config_parse_as(const struct workload *workload, const char *text,
                            struct config *config, struct error *error)
{
    char copy[WORKLOAD_TEXT], *rest = copy;
    if (strlen(text) >= sizeof copy)
        return error_set(error, STATUS_USAGE, "a configuration of %zu bytes is too long",
                         strlen(text));
    strcpy(copy, text);
    const char *name = strsep(&rest, " ");
    if (strcmp(name, workload->name) != 0)
        return error_set(error, STATUS_USAGE, "'%s' is no configuration of %s", text,
                         workload->name);
    struct config parsed = {.workload = workload};
    bool given[WORKLOAD_PARAMETERS_MAX] = {false};
    while (rest)
        TRY(item_parse(item_next(&rest), &parsed, given, error));
    for (size_t i = 0; i < workload->count; ++i)
        if (!given[i])
            set_default(&parsed, i);
    *config = parsed;
    return STATUS_OK;
}

enum status config_parse(const char *text, struct config *config, struct error *error)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " "), text);
    const struct workload *workload = workload_find(name);
    if (!workload)
        return error_set(error, STATUS_USAGE, "unknown workload '%s' in configuration '%s'", name,
                         text);
    return config_parse_as(workload, text, config, error);
}

void config_hash(const struct config *config, char hash[CONFIG_HASH_TEXT])
{
    char text[WORKLOAD_TEXT];
    config_format(config, text);
    config_text_hash(text, hash);
}

void config_text_hash(const char *text, char hash[CONFIG_HASH_TEXT])
{
    XXH128_hash_t h = XXH3_128bits(text, strlen(text));
    snprintf(hash, CONFIG_HASH_TEXT, "%016llx%016llx", (unsigned long long)h.high64,
             (unsigned long long)h.low64);
}

enum status config_check(const struct config *config, struct error *error)
{
    const struct workload *workload = config->workload;
    if (workload->without_tensors && config_precision(config) == PRECISION_TF32)
        return error_set(error, STATUS_UNSUPPORTED,
                         "tf32 is a precision of tensor units, which %s has no use for",
                         workload->without_tensors);
    TRY(workload->check ? workload->check(config, error) : STATUS_OK);
    /* Larger sizes in elements could exceed int64_t. */
    const double largest = 1e17;
    double memory = config_cost(config).memory;
    if (memory > largest)
        return error_set(error, STATUS_UNSUPPORTED,
                         "its tensors would take %.3g bytes; no device has that", memory);
    return STATUS_OK;
}

enum status config_check_multiples(const struct config *config, const char *one, const char *other,
                                   struct error *error)
{
    const int64_t multiple = 16, first = config_value(config, one).first,
                  second = config_value(config, other).first;
    return first % multiple == 0 && second % multiple == 0
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED,
                           "fp8 needs %s and %s in multiples of %lld, not %s=%lld %s=%lld", one,
                           other, (long long)multiple, one, (long long)first, other,
                           (long long)second);
}

struct tolerance config_tolerance(const struct config *config)
{
    const struct workload *workload = config->workload;
    return workload->tolerance ? workload->tolerance(config)
                               : precision_info[config_precision(config)].tolerance;
}

enum precision tensor_stored(const struct tensors *tensors, enum tensor tensor,
                             enum precision precision)
{
    if (tensors->wide[tensor])
        return precision == PRECISION_FP64 ? PRECISION_FP64 : PRECISION_FP32;
    return tensors->written[tensor] > 0 || tensor == TENSOR_BIAS ? precision_info[precision].result
                                                                 : precision;
}

double config_tensor_bytes(const struct config *config)
{
    const struct tensors tensors = config->workload->tensors(config);
    const enum precision precision = config_precision(config);
    double bytes = 0.0;
    for (int i = 0; i < TENSOR_COUNT; ++i)
        bytes += (tensors.read[i] + tensors.written[i]) *
                 (double)precision_info[tensor_stored(&tensors, (enum tensor)i, precision)].bytes;
    return bytes;
}

struct cost config_cost(const struct config *config)
{
    const struct workload *workload = config->workload;
    struct cost cost = workload->cost ? workload->cost(config) : (struct cost){NAN, NAN, NAN};
    if (workload->tensors && cost.memory == 0.0)
        cost.memory = config_tensor_bytes(config);
    if (workload->tensors && cost.bytes == 0.0)
        cost.bytes = cost.memory;
    return cost;
}

struct value config_value(const struct config *config, const char *parameter)
{
    return config_get(config, (size_t)workload_parameter(config->workload, parameter));
}

void config_shape(const struct config *config, void *shape)
{
    for (size_t i = 0; i < config->workload->count; ++i) {
        const struct parameter *parameter = &config->workload->parameters[i];
        const int narrow = (int)config->values[i].first;
        char *member = (char *)shape + parameter->member;
        if (parameter->kind == PARAMETER_WORD && parameter->size == sizeof *parameter->words)
            memcpy(member, &parameter->words[narrow], parameter->size);
        else if (parameter->size == sizeof(bool))
            *(bool *)member = narrow != 0;
        else /* the size of an enum, a number or two numbers */
            memcpy(member,
                   parameter->size == sizeof narrow ? (const void *)&narrow : &config->values[i],
                   parameter->size);
    }
}

bool config_is_program(const struct config *config)
{
    return config->workload && config->workload->axes;
}

bool config_is_shared(const struct config *config)
{
    return config_is_program(config) && config->workload->shared(config);
}

/* Words NAME=VALUE of a program's axes; none without axes. */
static struct command_line axes_split(const struct config *config)
{
    struct command_line line = {0};
    struct error unused;
    if (config_is_program(config) &&
        command_line_split(config_value(config, config->workload->axes).text, &line, &unused))
        return (struct command_line){0};
    return line;
}

bool config_axis_name(const struct config *config, size_t i, char name[WORKLOAD_STRING])
{
    struct command_line line = axes_split(config);
    bool found = i < line.count;
    if (found)
        snprintf(name, WORKLOAD_STRING, "%.*s", (int)strcspn(line.words[i], "="), line.words[i]);
    command_line_clear(&line);
    return found;
}

bool config_axis(const struct config *config, const char *name, char *text)
{
    struct command_line line = axes_split(config);
    bool found = false;
    for (size_t i = 0, length = strlen(name); i < line.count && !found; ++i) {
        const char *word = line.words[i];
        found = strncmp(word, name, length) == 0 && word[length] == '=' &&
                strlen(word + length + 1) < WORKLOAD_STRING;
        if (found)
            strcpy(text, word + length + 1);
    }
    command_line_clear(&line);
    return found;
}
