#include "model/request.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/field.h"
#include "model/json_line.h"
#include "model/roof_way.h"

static const char *const op_words[] = {"devices", "describe", "tune",  "roof", "release",
                                       "roofs",   "measure",  "count", NULL};

struct request request_default(enum request_op op)
{
    struct request request = {
        .op = op,
        .measure = measure_default,
        .peaks = roof_request_all(),
        .prove = true,
        .sustained = true,
        .seed = SEED_DEFAULT,
    };
    choice_init(&request.choice);
    return request;
}

/* One key of a request: which requests have it, and where its value is in struct request. */
struct key {
    const char *name;
    unsigned ops; /* a bit for each enum request_op */
    const struct key_type *type;
    size_t offset, size;
    int64_t maximum;           /* of an integer */
    const char *(*word)(int);  /* of words: by index, NULL behind the last */
    const char *required_text; /* what it must be, should it be missing; NULL: it has a default */
};

struct key_type {
    json_t *(*encode)(const struct key *key, const void *value);
    enum status (*decode)(const struct key *key, const json_t *json, void *value,
                          struct error *error);
    bool (*absent)(const void *value); /* it need not be said; NULL: it always is */
};

static enum status refuse(const json_t *json, const char *allowed, struct error *error)
{
    char *found = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    error_set(error, STATUS_USAGE, "%.60s; allowed: %s", found ? found : "", allowed);
    free(found);
    return STATUS_USAGE;
}

/* Integers and enums are of type int, int64_t or uint64_t. */
static json_t *integer_encode(const struct key *key, const void *value)
{
    int number;
    int64_t wide;
    memcpy(key->size == sizeof number ? (void *)&number : (void *)&wide, value, key->size);
    return json_integer(key->size == sizeof number ? number : wide);
}

static void integer_store(const struct key *key, int64_t wide, void *value)
{
    int number = (int)wide;
    memcpy(value, key->size == sizeof number ? (void *)&number : (void *)&wide, key->size);
}

static enum status integer_decode(const struct key *key, const json_t *json, void *value,
                                  struct error *error)
{
    char allowed[80];
    int64_t wide = json_integer_value(json);
    if (json_is_integer(json) && wide >= 0 && wide <= key->maximum) {
        integer_store(key, wide, value);
        return STATUS_OK;
    }
    snprintf(allowed, sizeof allowed, "a whole number from 0 to %lld", (long long)key->maximum);
    return refuse(json, allowed, error);
}

/* All 64 bits are allowed; JSON has them as a signed number. */
static enum status seed_decode(const struct key *key, const json_t *json, void *value,
                               struct error *error)
{
    if (!json_is_integer(json))
        return refuse(json, "a whole number", error);
    integer_store(key, json_integer_value(json), value);
    return STATUS_OK;
}

static json_t *number_encode(const struct key *key, const void *value)
{
    (void)key;
    return json_real(*(const double *)value);
}

static enum status number_decode(const struct key *key, const json_t *json, void *value,
                                 struct error *error)
{
    (void)key;
    if (!json_is_number(json) || json_number_value(json) < 0)
        return refuse(json, "a number from 0", error);
    *(double *)value = json_number_value(json);
    return STATUS_OK;
}

static json_t *flag_encode(const struct key *key, const void *value)
{
    (void)key;
    return json_boolean(*(const bool *)value);
}

static enum status flag_decode(const struct key *key, const json_t *json, void *value,
                               struct error *error)
{
    (void)key;
    if (!json_is_boolean(json))
        return refuse(json, "true, false", error);
    *(bool *)value = json_is_true(json);
    return STATUS_OK;
}

static const char *level_word(int i)
{
    return i < LEVEL_COUNT ? memory_level_name[i] : NULL;
}

static const char *precision_word(int i)
{
    return i < PRECISION_COUNT ? precision_info[i].name : NULL;
}

static const char *roof_word(int i)
{
    return i < ROOF_KINDS ? roof_kinds[i].name : NULL;
}

static const char *counters_word(int i)
{
    return counters_words[i];
}

static const char *condition_word(int i)
{
    return roof_condition_name[i];
}

static enum status word_index(const struct key *key, const json_t *json, int *index,
                              struct error *error)
{
    enum { WORDS = ROOF_KINDS + 1 }; /* the longest list */
    const char *words[WORDS] = {NULL};
    for (int i = 0; i < WORDS - 1 && key->word(i); ++i)
        words[i] = key->word(i);
    if (!json_is_string(json))
        return refuse(json, "a word, or a list of words", error);
    return words_parse(words, json_string_value(json), index, error);
}

static json_t *word_encode(const struct key *key, const void *value)
{
    return json_string(key->word(*(const int *)value));
}

static enum status word_decode(const struct key *key, const json_t *json, void *value,
                               struct error *error)
{
    int index;
    enum status status = word_index(key, json, &index, error);
    if (status == STATUS_OK)
        integer_store(key, index, value);
    return status;
}

/* A flag for each word. */
static json_t *words_encode(const struct key *key, const void *value)
{
    const bool *wanted = value;
    json_t *array = json_array();
    for (int i = 0; key->word(i); ++i)
        if (wanted[i])
            json_array_append_new(array, json_string(key->word(i)));
    return array;
}

static enum status words_decode(const struct key *key, const json_t *json, void *value,
                                struct error *error)
{
    bool *wanted = value;
    int index;
    if (!json_is_array(json))
        return refuse(json, "a list of words", error);
    memset(wanted, false, key->size);
    for (size_t i = 0; i < json_array_size(json); ++i) {
        enum status status = word_index(key, json_array_get(json, i), &index, error);
        if (status)
            return status;
        wanted[index] = true;
    }
    return STATUS_OK;
}

static json_t *config_encode(const struct key *key, const void *value)
{
    char text[WORKLOAD_TEXT];
    (void)key;
    config_format(value, text);
    return json_string(text);
}

static enum status config_decode(const struct key *key, const json_t *json, void *value,
                                 struct error *error)
{
    (void)key;
    if (!json_is_string(json))
        return refuse(json, "a configuration, e.g. \"conv2d batch=16\"", error);
    return config_parse(json_string_value(json), value, error);
}

static json_t *choice_encode(const struct key *key, const void *value)
{
    (void)key;
    return fields_encode(choice_fields, value);
}

static enum status choice_decode(const struct key *key, const json_t *json, void *value,
                                 struct error *error)
{
    struct choice choice;
    choice_init(&choice);
    if (!json_is_object(json))
        return refuse(json, "an object with an algorithm", error);
    enum status status = fields_decode(choice_fields, json, &choice, error);
    if (status == STATUS_OK)
        status = fields_check(choice_fields, &choice, error);
    if (status == STATUS_OK)
        memcpy(value, &choice, key->size);
    return status ? STATUS_USAGE : STATUS_OK;
}

static bool choice_absent(const void *value)
{
    return !choice_is_made(value);
}

static json_t *ways_encode(const struct key *key, const void *value)
{
    (void)key;
    return roof_ways_encode(value);
}

static enum status ways_decode(const struct key *key, const json_t *json, void *value,
                               struct error *error)
{
    (void)key;
    return roof_ways_decode(json, value, error);
}

static bool ways_absent(const void *value)
{
    return !roof_ways_any(value);
}

static bool kinds_absent(const void *value)
{
    const bool *wanted = value;
    bool any = false;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        any |= wanted[kind];
    return !any;
}

static bool number_absent(const void *value)
{
    return *(const double *)value == 0.0;
}

static bool flag_absent(const void *value)
{
    return !*(const bool *)value;
}

static json_t *text_of(const struct key *key, const void *value)
{
    (void)key;
    return text_encode(value);
}

static enum status text_decode(const struct key *key, const json_t *json, void *value,
                               struct error *error)
{
    const char *text = json_string_value(json);
    if (!text || strlen(text) >= key->size)
        return refuse(json, "a text that is not too long", error);
    strcpy(value, text);
    return STATUS_OK;
}

static bool text_absent(const void *value)
{
    return *(const char *)value == '\0';
}

static const struct key_type integer = {integer_encode, integer_decode, NULL};
static const struct key_type seed = {integer_encode, seed_decode, NULL};
static const struct key_type number = {number_encode, number_decode, NULL};
static const struct key_type limit = {number_encode, number_decode, number_absent};
static const struct key_type flag = {flag_encode, flag_decode, NULL};
static const struct key_type raised = {flag_encode, flag_decode, flag_absent};
static const struct key_type word = {word_encode, word_decode, NULL};
static const struct key_type words = {words_encode, words_decode, NULL};
static const struct key_type some_kinds = {words_encode, words_decode, kinds_absent};
static const struct key_type plain_text = {text_of, text_decode, text_absent};
static const struct key_type earlier_choice = {choice_encode, choice_decode, choice_absent};
static const struct key_type roof_ways = {ways_encode, ways_decode, ways_absent};
static const struct key_type configuration = {config_encode, config_decode, NULL};

enum {
    DESCRIBE = 1 << REQUEST_DESCRIBE,
    TUNE = 1 << REQUEST_TUNE | 1 << REQUEST_ROOFS,
    ROOF = 1 << REQUEST_ROOF,
    MEASURE = 1 << REQUEST_MEASURE
};

#define AT(member) offsetof(struct request, member), sizeof(((struct request *)0)->member)
/* clang-format off */
static const struct key keys[] = {
    {"index", DESCRIBE, &integer, AT(index), INT_MAX, NULL, NULL},
    {"memory", TUNE, &words, AT(peaks.memory), 0, level_word, NULL},
    {"compute", TUNE, &words, AT(peaks.compute), 0, precision_word, NULL},
    {"launch", TUNE, &flag, AT(peaks.launch), 0, NULL, NULL},
    {"transfer", TUNE, &flag, AT(peaks.transfer), 0, NULL, NULL},
    {"prove", TUNE, &flag, AT(prove), 0, NULL, NULL},
    {"ways", 1 << REQUEST_TUNE, &roof_ways, AT(peaks.ways), 0, NULL, NULL},
    {"later", 1 << REQUEST_TUNE, &some_kinds, AT(peaks.later), 0, roof_word, NULL},
    {"name", ROOF, &word, AT(kind), 0, roof_word, "the \"name\" of a roof, e.g. \"dram read\""},
    {"condition", ROOF, &word, AT(condition), 0, condition_word, NULL},
    {"start", ROOF, &number, AT(start), 0, NULL, NULL},
    {"sustained", ROOF | 1 << REQUEST_ROOFS, &flag, AT(sustained), 0, NULL, NULL},
    {"only_sustained", ROOF, &raised, AT(only_sustained), 0, NULL, NULL},
    {"hold", ROOF, &flag, AT(hold), 0, NULL, NULL},
    {"configuration", MEASURE, &configuration, AT(config), 0, NULL,
     "\"configuration\", e.g. \"conv2d batch=16\""},
    {"seed", MEASURE, &seed, AT(seed), 0, NULL, NULL},
    {"warmup", MEASURE, &integer, AT(measure.warmup), WARMUP_MAX, NULL, NULL},
    {"iterations", MEASURE, &integer, AT(measure.iterations), ITERATIONS_MAX, NULL, NULL},
    {"stop", MEASURE, &number, AT(measure.stop), 0, NULL, NULL},
    {"min_time", MEASURE, &number, AT(measure.min_time), 0, NULL, NULL},
    {"max_time", MEASURE, &number, AT(measure.max_time), 0, NULL, NULL},
    {"counters", DESCRIBE | MEASURE, &word, AT(measure.counters), 0, counters_word, NULL},
    {"kernels", MEASURE, &flag, AT(measure.kernels), 0, NULL, NULL},
    {"verify", MEASURE, &flag, AT(measure.verify), 0, NULL, NULL},
    {"energy", MEASURE, &flag, AT(measure.energy), 0, NULL, NULL},
    {"count_later", MEASURE, &raised, AT(count_later), 0, NULL, NULL},
    {"choice", MEASURE, &earlier_choice, AT(choice), 0, NULL, NULL},
    {"folder", MEASURE, &plain_text, AT(folder), 0, NULL, NULL},
    {"timeout", MEASURE, &limit, AT(timeout), 0, NULL, NULL},
};
/* clang-format on */
enum { KEYS = sizeof keys / sizeof *keys };

static bool key_belongs(const struct key *key, enum request_op op)
{
    return key->ops >> op & 1;
}

char *request_encode(const struct request *request)
{
    json_t *object = json_object();
    json_object_set_new(object, "op", json_string(op_words[request->op]));
    for (const struct key *key = keys; key < keys + KEYS; ++key) {
        const char *value = (const char *)request + key->offset;
        if (key_belongs(key, request->op) && !(key->type->absent && key->type->absent(value)))
            json_object_set_new(object, key->name, key->type->encode(key, value));
    }
    return json_line_dump(object);
}

static enum status decode_op(const json_t *object, enum request_op *op, struct error *error)
{
    char hint[WORDS_HINT];
    const char *text = json_string_value(json_object_get(object, "op"));
    int found = words_find(op_words, text ? text : "");
    if (found < 0) {
        words_hint(op_words, text ? text : "", hint);
        return error_set(error, STATUS_USAGE, "unknown op '%.60s'%s", text ? text : "", hint);
    }
    *op = (enum request_op)found;
    return STATUS_OK;
}

static enum status check_keys(json_t *object, enum request_op op, struct error *error)
{
    const char *names[KEYS + 2] = {"op"}, *name;
    size_t count = 1;
    json_t *unused;
    char hint[WORDS_HINT];
    for (const struct key *key = keys; key < keys + KEYS; ++key)
        if (key_belongs(key, op))
            names[count++] = key->name;
    json_object_foreach(object, name, unused) if (words_find(names, name) < 0)
    {
        words_hint(names, name, hint);
        return error_set(error, STATUS_USAGE, "op %s has no key '%.60s'%s", op_words[op], name,
                         hint);
    }
    return STATUS_OK;
}

static enum status decode_key(const json_t *object, const struct key *key, struct request *request,
                              struct error *error)
{
    const json_t *json = json_object_get(object, key->name);
    if (!json)
        return key->required_text ? error_set(error, STATUS_USAGE, "op %s needs %s",
                                              op_words[request->op], key->required_text)
                                  : STATUS_OK;
    enum status status = key->type->decode(key, json, (char *)request + key->offset, error);
    if (status)
        error_prefix(error, "%s", key->name);
    return status;
}

enum status request_decode(const char *line, struct request *request, struct error *error)
{
    json_t *object;
    enum request_op op = REQUEST_DEVICES;
    enum status status = json_line_load(line, &object, error);
    if (status)
        return status;
    status = decode_op(object, &op, error);
    struct request decoded = request_default(op);
    if (status == STATUS_OK)
        status = check_keys(object, op, error);
    for (const struct key *key = keys; key < keys + KEYS && status == STATUS_OK; ++key)
        if (key_belongs(key, op))
            status = decode_key(object, key, &decoded, error);
    json_decref(object);
    if (status)
        json_line_clean(error);
    else
        *request = decoded;
    return status;
}
