#include "model/protocol.h"

#include <ctype.h>
#include <string.h>

static const char *const op_words[] = {"devices", "describe", "tune",    "roof",
                                       "release", "roofs",    "measure", NULL};
static const char *const reply_words[] = {"devices", "device", "roofs", "roof",
                                          "record",  "error",  NULL};
static const char *const counters_words[] = {
    [COUNTERS_AUTO] = "auto", [COUNTERS_REQUIRE] = "require", [COUNTERS_OFF] = "off", NULL};
static const char *const status_words[] = {"ok",          "system", "usage",       "failed",
                                           "unsupported", "device", "interrupted", NULL};

/* Index of the word, or -1. */
static int word_index(const char *const *words, const char *word)
{
    for (int i = 0; word && words[i]; ++i)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

struct request request_default(enum request_op op)
{
    struct request request = {
        .op = op,
        .measure = {.warmup = 5, .iterations = 20, .min_time = 0.5, .max_time = 15, .verify = true},
        .peaks = {.launch = true, .transfer = true, .condition = {true, true}},
        .prove = true,
        .seed = 1,
    };
    memset(request.peaks.memory, true, sizeof request.peaks.memory);
    memset(request.peaks.compute, true, sizeof request.peaks.compute);
    return request;
}

static json_t *names_of_levels(const bool *wanted)
{
    json_t *array = json_array();
    for (int i = 0; i < LEVEL_COUNT; ++i)
        if (wanted[i])
            json_array_append_new(array, json_string(memory_level_name[i]));
    return array;
}

static json_t *names_of_precisions(const bool *wanted)
{
    json_t *array = json_array();
    for (int i = 0; i < PRECISION_COUNT; ++i)
        if (wanted[i])
            json_array_append_new(array, json_string(precision_info[i].name));
    return array;
}

static void encode_peaks(const struct request *request, json_t *object)
{
    json_object_set_new(object, "memory", names_of_levels(request->peaks.memory));
    json_object_set_new(object, "compute", names_of_precisions(request->peaks.compute));
    json_object_set_new(object, "launch", json_boolean(request->peaks.launch));
    json_object_set_new(object, "transfer", json_boolean(request->peaks.transfer));
    json_object_set_new(object, "prove", json_boolean(request->prove));
}

static void encode_roof(const struct request *request, json_t *object)
{
    json_object_set_new(object, "name", json_string(roof_kinds[request->kind].name));
    json_object_set_new(object, "condition", json_string(roof_condition_name[request->condition]));
    json_object_set_new(object, "start", json_real(request->start));
}

static void encode_measure(const struct request *request, json_t *object)
{
    const struct measure_settings *m = &request->measure;
    json_object_set_new(object, "configuration", json_string(request->configuration));
    json_object_set_new(object, "seed", json_integer((json_int_t)request->seed));
    json_object_set_new(object, "warmup", json_integer(m->warmup));
    json_object_set_new(object, "iterations", json_integer(m->iterations));
    json_object_set_new(object, "stop", json_real(m->stop));
    json_object_set_new(object, "min_time", json_real(m->min_time));
    json_object_set_new(object, "max_time", json_real(m->max_time));
    json_object_set_new(object, "counters", json_string(counters_words[m->counters]));
    json_object_set_new(object, "kernels", json_boolean(m->kernels));
    json_object_set_new(object, "verify", json_boolean(m->verify));
}

/* Consumes the object. */
static char *dump(json_t *object)
{
    char *line = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return line;
}

char *request_encode(const struct request *request)
{
    json_t *object = json_object();
    json_object_set_new(object, "op", json_string(op_words[request->op]));
    if (request->op == REQUEST_DESCRIBE) {
        json_object_set_new(object, "index", json_integer(request->index));
        json_object_set_new(object, "counters",
                            json_string(counters_words[request->measure.counters]));
    }
    if (request->op == REQUEST_TUNE || request->op == REQUEST_ROOFS)
        encode_peaks(request, object);
    if (request->op == REQUEST_ROOF)
        encode_roof(request, object);
    if (request->op == REQUEST_MEASURE)
        encode_measure(request, object);
    return dump(object);
}

static bool listed(const json_t *array, const char *name)
{
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const char *item = json_string_value(json_array_get(array, i));
        if (item && strcmp(item, name) == 0)
            return true;
    }
    return false;
}

static void decode_flag(const json_t *object, const char *name, bool *flag)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_boolean(value))
        *flag = json_is_true(value);
}

static void decode_peaks(const json_t *object, struct request *request)
{
    struct roof_request *peaks = &request->peaks;
    const json_t *memory = json_object_get(object, "memory");
    const json_t *compute = json_object_get(object, "compute");
    for (int i = 0; memory && i < LEVEL_COUNT; ++i)
        peaks->memory[i] = listed(memory, memory_level_name[i]);
    for (int i = 0; compute && i < PRECISION_COUNT; ++i)
        peaks->compute[i] = listed(compute, precision_info[i].name);
    decode_flag(object, "launch", &peaks->launch);
    decode_flag(object, "transfer", &peaks->transfer);
    decode_flag(object, "prove", &request->prove);
}

static void decode_number(const json_t *object, const char *name, double *value)
{
    const json_t *number = json_object_get(object, name);
    if (json_is_number(number))
        *value = json_number_value(number);
}

static void decode_integer(const json_t *object, const char *name, int *value)
{
    const json_t *number = json_object_get(object, name);
    if (json_is_integer(number))
        *value = (int)json_integer_value(number);
}

static void decode_measure(const json_t *object, struct request *request)
{
    struct measure_settings *m = &request->measure;
    const json_t *seed = json_object_get(object, "seed");
    decode_integer(object, "warmup", &m->warmup);
    decode_integer(object, "iterations", &m->iterations);
    decode_number(object, "stop", &m->stop);
    decode_number(object, "min_time", &m->min_time);
    decode_number(object, "max_time", &m->max_time);
    int counters =
        word_index(counters_words, json_string_value(json_object_get(object, "counters")));
    if (counters >= 0)
        m->counters = (enum counters_choice)counters;
    decode_flag(object, "kernels", &m->kernels);
    decode_flag(object, "verify", &m->verify);
    if (seed)
        request->seed = (uint64_t)json_integer_value(seed);
}

static enum status decode_configuration(const json_t *object, struct request *request,
                                        struct error *error)
{
    const char *configuration = json_string_value(json_object_get(object, "configuration"));
    if (!configuration || strlen(configuration) >= WORKLOAD_TEXT)
        return error_set(error, STATUS_USAGE,
                         "op measure needs \"configuration\", e.g. \"conv2d batch=16\"");
    strcpy(request->configuration, configuration);
    return STATUS_OK;
}

static enum status decode_roof(const json_t *object, struct request *request, struct error *error)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *condition = json_string_value(json_object_get(object, "condition"));
    int word = word_index(roof_condition_name, condition);
    request->kind = name ? roof_kind_find(name) : -1;
    if (request->kind < 0)
        return error_set(error, STATUS_USAGE,
                         "op roof needs the \"name\" of a roof, e.g. \"dram read\"");
    request->condition = word < 0 ? ROOF_ALONE : (enum roof_condition)word;
    decode_number(object, "start", &request->start);
    return STATUS_OK;
}

static json_t *names_of_roofs(const bool *found)
{
    json_t *array = json_array();
    for (int i = 0; i < ROOF_KINDS; ++i)
        if (found[i])
            json_array_append_new(array, json_string(roof_kinds[i].name));
    return array;
}

static enum status load(const char *line, json_t **object, struct error *error)
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
    for (char *c = error->text; *c; ++c) /* it may be anything, and ends on a terminal */
        *c = isprint((unsigned char)*c) ? *c : '?';
    return STATUS_SYSTEM;
}

enum status request_decode(const char *line, struct request *request, struct error *error)
{
    json_t *object;
    enum status status = load(line, &object, error);
    if (status)
        return status;
    const char *word = json_string_value(json_object_get(object, "op"));
    int op = word_index(op_words, word);
    if (op < 0) {
        status =
            error_set(error, STATUS_USAGE,
                      "unknown op '%s'; allowed: devices, describe, tune, roof, release, roofs, "
                      "measure",
                      word ? word : "");
        json_decref(object);
        return status;
    }
    *request = request_default((enum request_op)op);
    request->index = json_integer_value(json_object_get(object, "index"));
    decode_peaks(object, request);
    decode_measure(object, request);
    if (op == REQUEST_MEASURE)
        status = decode_configuration(object, request, error);
    if (op == REQUEST_ROOF)
        status = decode_roof(object, request, error);
    json_decref(object);
    return status;
}

void reply_init(struct reply *reply)
{
    memset(reply, 0, sizeof *reply);
    device_init(&reply->device);
    fields_clear(roof_fields, &reply->roof);
    record_init(&reply->record);
}

void reply_clear(struct reply *reply)
{
    record_clear(&reply->record);
    reply_init(reply);
}

char *reply_encode(const struct reply *reply)
{
    json_t *object = json_object();
    json_object_set_new(object, "reply", json_string(reply_words[reply->kind]));
    if (reply->kind == REPLY_DEVICES)
        json_object_set_new(object, "count", json_integer(reply->count));
    if (reply->kind == REPLY_DEVICE)
        json_object_set_new(object, "device", device_encode(&reply->device));
    if (reply->kind == REPLY_ROOFS)
        json_object_set_new(object, "roofs", names_of_roofs(reply->found));
    if (reply->kind == REPLY_ROOF)
        json_object_set_new(object, "roof", fields_encode(roof_fields, &reply->roof));
    if (reply->kind == REPLY_RECORD)
        json_object_set_new(object, "record", record_encode(&reply->record));
    if (reply->kind == REPLY_ERROR) {
        json_object_set_new(object, "status", json_string(status_words[reply->status]));
        json_object_set_new(object, "text", text_encode(reply->error.text));
    }
    return dump(object);
}

static void decode_found(const json_t *object, bool *found)
{
    const json_t *roofs = json_object_get(object, "roofs");
    for (int i = 0; i < ROOF_KINDS; ++i)
        found[i] = listed(roofs, roof_kinds[i].name);
}

static enum status decode_error(const json_t *object, struct reply *reply)
{
    int status = word_index(status_words, json_string_value(json_object_get(object, "status")));
    const char *text = json_string_value(json_object_get(object, "text"));
    reply->status = status > 0 ? (enum status)status : STATUS_SYSTEM;
    error_set(&reply->error, reply->status, "%s", text && *text ? text : "no reason given");
    return STATUS_OK;
}

enum status reply_decode(const char *line, struct reply *reply, struct error *error)
{
    json_t *object;
    enum status status = load(line, &object, error);
    if (status)
        return status;
    int kind = word_index(reply_words, json_string_value(json_object_get(object, "reply")));
    reply_clear(reply);
    reply->kind = (enum reply_kind)kind;
    reply->count = json_integer_value(json_object_get(object, "count"));
    if (kind < 0)
        status = error_set(error, STATUS_SYSTEM, "unknown reply '%.200s'", line);
    else if (kind == REPLY_DEVICE)
        status = device_decode(json_object_get(object, "device"), &reply->device, error);
    else if (kind == REPLY_ROOFS)
        decode_found(object, reply->found);
    else if (kind == REPLY_ROOF)
        status = fields_decode(roof_fields, json_object_get(object, "roof"), &reply->roof, error);
    else if (kind == REPLY_RECORD)
        status = record_decode(json_object_get(object, "record"), &reply->record, error);
    else if (kind == REPLY_ERROR)
        status = decode_error(object, reply);
    json_decref(object);
    return status;
}
