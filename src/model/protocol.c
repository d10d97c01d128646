#include "model/protocol.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/field.h"

const char *const counters_words[] = {[COUNTERS_AUTO] = "auto",
                                      [COUNTERS_REQUIRE] = "require",
                                      [COUNTERS_OFF] = "off",
                                      [COUNTERS_CAUSES] = "causes",
                                      NULL};

const struct measure_settings measure_default = {
    .warmup = 5,
    .iterations = 20,
    .min_time = 0.5,
    .max_time = 15,
    .repeat = 1,
    .counters = COUNTERS_AUTO,
    .verify = true,
};

static const char *const op_words[] = {"devices", "describe", "tune",  "roof", "release",
                                       "links",   "measure",  "count", NULL};

struct request request_default(enum request_op op)
{
    struct request request = {
        .op = op,
        .measure = measure_default,
        .peaks = roof_request_all(),
        .prove = true,
        .sustained = true,
        .seed = SEED_DEFAULT,
        .round = 1,
    };
    algorithm_init(&request.algorithm);
    return request;
}

/* A key of requests: the requests that have it, and the place of its value in struct request. */
struct key {
    const char *name;
    unsigned ops; /* a bit for each enum request_op */
    enum {
        INTEGER, /* from 0 to `maximum`; int, int64_t or uint64_t. WORD: an enum */
        SEED,    /* all 64 bits; JSON has a signed number */
        NUMBER,
        FLAG,
        WORD,
        WORDS, /* a flag for each word */
        TEXT,
        CONFIG,
        ALGORITHM
    } type;
    size_t offset, size;
    int64_t maximum; /* largest integer; number of words */
    /* First word, and bytes from one word to the next. */
    const char *const *words;
    size_t stride;
    bool brief;                /* omitted if 0 or false; INTEGER: also if 1 */
    const char *required_text; /* what an error asks for; NULL: a missing key has its default */
};

static const char *word_at(const struct key *key, int64_t i)
{
    return *(const char *const *)((const char *)key->words + (size_t)i * key->stride);
}

static void integer_store(const struct key *key, int64_t wide, void *value)
{
    int number = (int)wide;
    memcpy(value, key->size == sizeof number ? (void *)&number : (void *)&wide, key->size);
}

static int64_t integer_load(const struct key *key, const void *value)
{
    int number;
    int64_t wide;
    memcpy(key->size == sizeof number ? (void *)&number : (void *)&wide, value, key->size);
    return key->size == sizeof number ? number : wide;
}

static json_t *words_encode(const struct key *key, const bool *wanted)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < key->maximum; ++i)
        if (wanted[i])
            json_array_append_new(array, json_string(word_at(key, i)));
    return array;
}

/* NULL: the key is omitted. */
static json_t *value_encode(const struct key *key, const void *value)
{
    char text[WORKLOAD_TEXT];
    switch (key->type) {
    case INTEGER:
    case SEED:
        return key->brief && integer_load(key, value) < 2 ? NULL
                                                          : json_integer(integer_load(key, value));
    case NUMBER:
        return key->brief && *(const double *)value == 0.0 ? NULL
                                                           : json_real(*(const double *)value);
    case FLAG:
        return key->brief && !*(const bool *)value ? NULL : json_boolean(*(const bool *)value);
    case WORD:
        return json_string(word_at(key, integer_load(key, value)));
    case WORDS:
        return words_encode(key, value);
    case TEXT:
        return text_encode(value);
    case CONFIG:
        config_format(value, text);
        return json_string(text);
    case ALGORITHM:
    default:
        return algorithm_is_known(value) ? algorithm_encode(value) : NULL;
    }
}

static enum status refuse(const json_t *json, const char *allowed, struct error *error)
{
    char *found = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    error_set(error, STATUS_USAGE, "%.60s; allowed: %s", found ? found : "", allowed);
    free(found);
    return STATUS_USAGE;
}

static enum status integer_decode(const struct key *key, const json_t *json, void *value,
                                  struct error *error)
{
    char allowed[80] = "a whole number";
    int64_t wide = json_integer_value(json);
    if (key->type == INTEGER)
        snprintf(allowed, sizeof allowed, "a whole number from 0 to %lld", (long long)key->maximum);
    if (!json_is_integer(json) || (key->type == INTEGER && (wide < 0 || wide > key->maximum)))
        return refuse(json, allowed, error);
    integer_store(key, wide, value);
    return STATUS_OK;
}

static enum status word_index(const struct key *key, const json_t *json, int *index,
                              struct error *error)
{
    const char *words[ROOF_KINDS + 1] = {NULL}; /* the longest list */
    for (int64_t i = 0; i < key->maximum; ++i)
        words[i] = word_at(key, i);
    if (!json_is_string(json))
        return refuse(json, "a word, or a list of words", error);
    return words_parse(words, json_string_value(json), index, error);
}

static enum status words_decode(const struct key *key, const json_t *json, bool *wanted,
                                struct error *error)
{
    int index;
    if (!json_is_array(json))
        return refuse(json, "a list of words", error);
    memset(wanted, false, key->size);
    for (size_t i = 0; i < json_array_size(json); ++i) {
        TRY(word_index(key, json_array_get(json, i), &index, error));
        wanted[index] = true;
    }
    return STATUS_OK;
}

/* `line` is the whole request. */
static enum status value_decode(const struct key *key, const char *line, const json_t *json,
                                void *value, struct error *error)
{
    const char *text = json_string_value(json);
    int index;
    switch (key->type) {
    case INTEGER:
    case SEED:
        return integer_decode(key, json, value, error);
    case NUMBER:
        if (!json_is_number(json) || json_number_value(json) < 0)
            return refuse(json, "a number from 0", error);
        *(double *)value = json_number_value(json);
        return STATUS_OK;
    case FLAG:
        if (!json_is_boolean(json))
            return refuse(json, "true, false", error);
        *(bool *)value = json_is_true(json);
        return STATUS_OK;
    case WORD:
        TRY(word_index(key, json, &index, error));
        integer_store(key, index, value);
        return STATUS_OK;
    case WORDS:
        return words_decode(key, json, value, error);
    case TEXT:
        if (!text || strlen(text) >= key->size)
            return refuse(json, "a text that is not too long", error);
        strcpy(value, text);
        return STATUS_OK;
    case CONFIG:
        return text ? config_parse(text, value, error)
                    : refuse(json, "a configuration, e.g. \"conv2d batch=16\"", error);
    case ALGORITHM:
    default:
        if (!json_is_object(json))
            return refuse(json, "an object with an algorithm", error);
        return algorithm_decode(json_member(json_text_of(line), key->name), value, error)
                   ? STATUS_USAGE
                   : STATUS_OK;
    }
}

enum {
    DESCRIBE = 1 << REQUEST_DESCRIBE,
    TUNE = 1 << REQUEST_TUNE,
    ROOF = 1 << REQUEST_ROOF,
    LINKS = 1 << REQUEST_LINKS,
    MEASURE = 1 << REQUEST_MEASURE
};

#define AT(member)                                                                                 \
    .offset = offsetof(struct request, member), .size = sizeof(((struct request *)0)->member)
#define TEXTS(array, count) .words = array, .stride = sizeof *(array), .maximum = count
#define NAMES(array, count) .words = &(array)[0].name, .stride = sizeof *(array), .maximum = count
/* clang-format off */
static const struct key keys[] = {
    {"index", DESCRIBE, INTEGER, AT(index), .maximum = INT_MAX},
    {"memory", TUNE, WORDS, AT(peaks.memory), TEXTS(memory_level_name, LEVEL_COUNT)},
    {"compute", TUNE, WORDS, AT(peaks.compute), NAMES(precision_info, PRECISION_COUNT)},
    {"launch", TUNE, FLAG, AT(peaks.launch)},
    {"transfer", TUNE, FLAG, AT(peaks.transfer)},
    {"prove", TUNE, FLAG, AT(prove)},
    {"name", ROOF, WORD, AT(kind), NAMES(roof_kinds, ROOF_KINDS),
     .required_text = "the \"name\" of a roof, e.g. \"dram read\""},
    {"condition", ROOF, WORD, AT(condition), TEXTS(roof_condition_name, 2)},
    {"start", ROOF, NUMBER, AT(start)},
    {"sustained", ROOF, FLAG, AT(sustained)},
    {"only_sustained", ROOF, FLAG, AT(only_sustained), .brief = true},
    {"energy", ROOF, FLAG, AT(peaks.energy), .brief = true},
    {"keep_busy", ROOF, FLAG, AT(keep_busy)},
    {"devices", LINKS, TEXT, AT(link.devices)},
    {"members", LINKS, INTEGER, AT(link.members), .maximum = INT_MAX},
    {"place", LINKS, INTEGER, AT(link.place), .maximum = INT_MAX},
    {"id", LINKS, TEXT, AT(link.id)},
    {"peers", LINKS, TEXT, AT(link.peers)},
    {"configuration", MEASURE, CONFIG, AT(config),
     .required_text = "\"configuration\", e.g. \"conv2d batch=16\""},
    {"seed", MEASURE, SEED, AT(seed)},
    {"warmup", MEASURE, INTEGER, AT(measure.warmup), .maximum = WARMUP_MAX},
    {"iterations", MEASURE, INTEGER, AT(measure.iterations), .maximum = ITERATIONS_MAX},
    {"stop", MEASURE, NUMBER, AT(measure.stop)},
    {"min_time", MEASURE, NUMBER, AT(measure.min_time)},
    {"max_time", MEASURE, NUMBER, AT(measure.max_time)},
    {"repeat", MEASURE, INTEGER, AT(measure.repeat), .maximum = REPEAT_MAX},
    {"counters", DESCRIBE | MEASURE, WORD, AT(measure.counters),
     TEXTS(counters_words, COUNTERS_CAUSES + 1)},
    {"kernels", MEASURE, FLAG, AT(measure.kernels)},
    {"verify", MEASURE, FLAG, AT(measure.verify)},
    {"energy", MEASURE, FLAG, AT(measure.energy)},
    {"count_later", MEASURE, FLAG, AT(count_later), .brief = true},
    {"round", MEASURE, INTEGER, AT(round), .maximum = ROUNDS_MAX, .brief = true},
    {"algorithm", MEASURE, ALGORITHM, AT(algorithm)},
    {"folder", MEASURE, TEXT, AT(folder)},
    {"timeout", MEASURE, NUMBER, AT(timeout), .brief = true},
    {"row", MEASURE, TEXT, AT(row)},
};
/* clang-format on */
enum { KEYS = sizeof keys / sizeof *keys };

static bool key_belongs(const struct key *key, enum request_op op)
{
    return key->ops >> op & 1;
}

/* Consumes the object. The caller frees the line; NULL: no memory. */
static char *line_dump(json_t *object)
{
    char *line = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return line;
}

/* Replaces unprintable bytes with '?': the error quotes a line, which may have any bytes. */
static void error_clean(struct error *error)
{
    for (char *c = error->text; *c; ++c)
        *c = isprint((unsigned char)*c) ? *c : '?';
}

/* STATUS_SYSTEM: it is no JSON object. The caller owns *object. */
static enum status line_load(const char *line, json_t **object, struct error *error)
{
    json_error_t where;
    json_t *loaded = json_loads(line, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(loaded)) {
        *object = loaded;
        return STATUS_OK;
    }
    json_decref(loaded);
    error_set(error, STATUS_SYSTEM, "not a JSON object (%s): '%.200s'",
              loaded ? "another type" : where.text, line);
    error_clean(error);
    return STATUS_SYSTEM;
}

char *request_encode(const struct request *request)
{
    json_t *object = json_object();
    json_object_set_new(object, "op", json_string(op_words[request->op]));
    for (const struct key *key = keys; key < keys + KEYS; ++key) {
        json_t *value = key_belongs(key, request->op)
                            ? value_encode(key, (const char *)request + key->offset)
                            : NULL;
        if (value)
            json_object_set_new(object, key->name, value);
    }
    return line_dump(object);
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

enum status request_decode(const char *line, struct request *request, struct error *error)
{
    json_t *object;
    enum request_op op = REQUEST_DEVICES;
    TRY(line_load(line, &object, error));
    enum status status = decode_op(object, &op, error);
    struct request decoded = request_default(op);
    if (status == STATUS_OK)
        status = check_keys(object, op, error);
    for (const struct key *key = keys; key < keys + KEYS && status == STATUS_OK; ++key) {
        const json_t *json = json_object_get(object, key->name);
        if (!key_belongs(key, op) || (!json && !key->required_text))
            continue;
        status = json ? value_decode(key, line, json, (char *)&decoded + key->offset, error)
                      : error_set(error, STATUS_USAGE, "op %s needs %s", op_words[op],
                                  key->required_text);
        if (json)
            error_prefix(error, status, "%s", key->name);
    }
    json_decref(object);
    if (status)
        error_clean(error);
    else
        *request = decoded;
    return status;
}

/* ---- replies ---- */

static const char *const reply_words[] = {"devices", "device", "links", "roofs", "roof",
                                          "record",  "timed",  "error", NULL};
static const char *const status_words[] = {"ok",          "system", "usage",       "failed",
                                           "unsupported", "device", "interrupted", NULL};

void reply_init(struct reply *reply)
{
    memset(reply, 0, sizeof *reply);
    device_init(&reply->device);
    fields_clear(roof_fields, &reply->roof);
    record_init(&reply->record);
}

void reply_clear(struct reply *reply)
{
    free(reply->record_text);
    link_list_clear(&reply->links);
    record_clear(&reply->record);
    reply_init(reply);
}

char *reply_encode(const struct reply *reply)
{
    json_t *object = json_object();
    json_object_set_new(object, "reply", json_string(reply_words[reply->kind]));
    if (reply->kind == REPLY_DEVICES) {
        json_object_set_new(object, "count", json_integer(reply->count));
        json_object_set_new(object, "addresses", json_array());
    }
    for (int i = 0; i < reply->visible.count; ++i)
        json_array_append_new(json_object_get(object, "addresses"),
                              json_integer(reply->visible.address[i]));
    if (reply->kind == REPLY_DEVICE)
        json_object_set_new(object, "device", device_encode(&reply->device));
    if (reply->kind == REPLY_LINKS)
        json_object_set_new(object, "id", json_string(reply->id));
    link_list_encode(&reply->links, object);
    if (reply->kind == REPLY_ROOFS) {
        const struct key found = {NAMES(roof_kinds, ROOF_KINDS)};
        char counters[OUTCOME_TEXT];
        outcome_format(&reply->device.counters, counted_word, counters);
        json_object_set_new(object, "roofs", words_encode(&found, reply->found));
        json_object_set_new(object, "counters", text_encode(counters));
    }
    if (reply->kind == REPLY_ROOF)
        json_object_set_new(object, "roof", fields_encode(roof_fields, &reply->roof));
    if (reply->kind == REPLY_RECORD)
        json_object_set_new(object, "record", record_encode(&reply->record));
    if (reply->kind == REPLY_TIMED)
        json_object_set_new(object, "configuration", json_string(reply->configuration));
    if (reply->kind == REPLY_ERROR) {
        json_object_set_new(object, "status", json_string(status_words[reply->status]));
        json_object_set_new(object, "text", text_encode(reply->error.text));
    }
    return line_dump(object);
}

/* Ignores roofs that only another version has. */
static enum status decode_found(const json_t *object, struct reply *reply, struct error *error)
{
    const json_t *roofs = json_object_get(object, "roofs");
    const char *counters = json_string_value(json_object_get(object, "counters"));
    outcome_parse(counters ? counters : "", counted_word, &reply->device.counters);
    memset(reply->found, false, sizeof reply->found);
    for (size_t i = 0; i < json_array_size(roofs); ++i) {
        const char *name = json_string_value(json_array_get(roofs, i));
        int kind = name ? roof_kind_find(name) : -1;
        if (kind >= 0)
            reply->found[kind] = true;
    }
    return json_is_array(roofs) ? STATUS_OK
                                : error_set(error, STATUS_SYSTEM, "a reply without its roofs");
}

static enum status decode_devices(const json_t *object, struct reply *reply, struct error *error)
{
    const json_t *count = json_object_get(object, "count");
    const json_t *addresses = json_object_get(object, "addresses");
    reply->count = json_integer_value(count);
    for (size_t i = 0; i < json_array_size(addresses) && i < VISIBLE_MAX; ++i)
        reply->visible.address[reply->visible.count++] =
            (int)json_integer_value(json_array_get(addresses, i));
    return json_is_integer(count)
               ? STATUS_OK
               : error_set(error, STATUS_SYSTEM, "a reply with devices, but no count of them");
}

static enum status decode_record(struct json_text record, struct reply *reply, struct error *error)
{
    TRY(record_decode(record, &reply->record, error));
    TRY(record_check(&reply->record, error));
    reply->record_text = strndup(record.at, record.length);
    return reply->record_text ? STATUS_OK
                              : error_set(error, STATUS_SYSTEM, "no memory for a record");
}

static enum status decode_body(const json_t *object, struct json_text line, struct reply *reply,
                               struct error *error)
{
    const char *configuration = json_string_value(json_object_get(object, "configuration"));
    const char *status_word = json_string_value(json_object_get(object, "status"));
    const char *text = json_string_value(json_object_get(object, "text"));
    const char *id = json_string_value(json_object_get(object, "id"));
    int status;
    switch (reply->kind) {
    case REPLY_DEVICES:
        return decode_devices(object, reply, error);
    case REPLY_DEVICE:
        TRY(device_decode(json_member(line, "device"), &reply->device, error));
        return device_check(&reply->device, error);
    case REPLY_LINKS:
        snprintf(reply->id, sizeof reply->id, "%s", id ? id : "");
        return link_list_decode(line, &reply->links, error);
    case REPLY_ROOFS:
        return decode_found(object, reply, error);
    case REPLY_ROOF:
        TRY(fields_decode(roof_fields, json_member(line, "roof"), &reply->roof, error));
        return roof_check(&reply->roof, error);
    case REPLY_RECORD:
        return decode_record(json_member(line, "record"), reply, error);
    case REPLY_TIMED:
        if (!configuration || strlen(configuration) >= sizeof reply->configuration)
            return error_set(error, STATUS_SYSTEM, "a timed row without its configuration");
        strcpy(reply->configuration, configuration);
        return STATUS_OK;
    default:
        status = words_find(status_words, status_word ? status_word : "");
        reply->status = status > 0 ? (enum status)status : STATUS_SYSTEM;
        error_set(&reply->error, reply->status, "%s", text && *text ? text : "no reason given");
        return STATUS_OK;
    }
}

enum status reply_decode(const char *line, struct reply *reply, struct error *error)
{
    json_t *object;
    TRY(line_load(line, &object, error));
    enum status status = STATUS_OK;
    const char *text = json_string_value(json_object_get(object, "reply"));
    int kind = words_find(reply_words, text ? text : "");
    reply_clear(reply);
    if (kind < 0) {
        status = error_set(error, STATUS_SYSTEM, "unknown reply '%.200s'", line);
    } else {
        reply->kind = (enum reply_kind)kind;
        status = decode_body(object, json_text_of(line), reply, error);
    }
    json_decref(object);
    return status;
}
