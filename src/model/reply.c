#include "model/reply.h"

#include <string.h>

#include "base/text.h"
#include "model/json_line.h"
#include "model/roof_way.h"

static const char *const reply_words[] = {"devices", "device", "roofs", "roof",
                                          "record",  "timed",  "error", NULL};
static const char *const status_words[] = {"ok",          "system", "usage",       "failed",
                                           "unsupported", "device", "interrupted", NULL};

static json_t *names_of_roofs(const bool *found)
{
    json_t *array = json_array();
    for (int i = 0; i < ROOF_KINDS; ++i)
        if (found[i])
            json_array_append_new(array, json_string(roof_kinds[i].name));
    return array;
}

static void roofs_encode(const struct reply *reply, json_t *object)
{
    json_object_set_new(object, "roofs", names_of_roofs(reply->found));
    if (roof_ways_any(reply->ways))
        json_object_set_new(object, "ways", roof_ways_encode(reply->ways));
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
    json_decref(reply->record_json);
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
        roofs_encode(reply, object);
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
    return json_line_dump(object);
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

static enum status decode_count(const json_t *object, struct reply *reply, struct error *error)
{
    const json_t *count = json_object_get(object, "count");
    reply->count = json_integer_value(count);
    return json_is_integer(count)
               ? STATUS_OK
               : error_set(error, STATUS_SYSTEM, "a reply with devices, but no count of them");
}

static enum status decode_found(const json_t *object, struct reply *reply, struct error *error)
{
    const json_t *roofs = json_object_get(object, "roofs");
    for (int i = 0; i < ROOF_KINDS; ++i)
        reply->found[i] = listed(roofs, roof_kinds[i].name);
    if (!json_is_array(roofs))
        return error_set(error, STATUS_SYSTEM, "a reply without its roofs");
    return roof_ways_decode(json_object_get(object, "ways"), reply->ways, error) ? STATUS_SYSTEM
                                                                                 : STATUS_OK;
}

static enum status decode_device(const json_t *object, struct reply *reply, struct error *error)
{
    enum status status = device_decode(json_object_get(object, "device"), &reply->device, error);
    return status ? status : fields_check(device_fields, &reply->device, error);
}

static enum status decode_roof(const json_t *object, struct reply *reply, struct error *error)
{
    enum status status =
        fields_decode(roof_fields, json_object_get(object, "roof"), &reply->roof, error);
    return status ? status : fields_check(roof_fields, &reply->roof, error);
}

static enum status decode_record(const json_t *object, struct reply *reply, struct error *error)
{
    json_t *record = json_object_get(object, "record");
    enum status status = record_decode(record, &reply->record, error);
    if (status == STATUS_OK)
        status = record_check(&reply->record, error);
    if (status == STATUS_OK)
        reply->record_json = json_incref(record);
    return status;
}

static enum status decode_timed(const json_t *object, struct reply *reply, struct error *error)
{
    const char *text = json_string_value(json_object_get(object, "configuration"));
    if (!text || strlen(text) >= sizeof reply->configuration)
        return error_set(error, STATUS_SYSTEM, "a timed row without its configuration");
    strcpy(reply->configuration, text);
    return STATUS_OK;
}

static enum status decode_error(const json_t *object, struct reply *reply)
{
    const char *word_of_status = json_string_value(json_object_get(object, "status"));
    const char *text = json_string_value(json_object_get(object, "text"));
    int status = words_find(status_words, word_of_status ? word_of_status : "");
    reply->status = status > 0 ? (enum status)status : STATUS_SYSTEM;
    error_set(&reply->error, reply->status, "%s", text && *text ? text : "no reason given");
    return STATUS_OK;
}

static enum status decode_body(const json_t *object, struct reply *reply, struct error *error)
{
    switch (reply->kind) {
    case REPLY_DEVICES:
        return decode_count(object, reply, error);
    case REPLY_DEVICE:
        return decode_device(object, reply, error);
    case REPLY_ROOFS:
        return decode_found(object, reply, error);
    case REPLY_ROOF:
        return decode_roof(object, reply, error);
    case REPLY_RECORD:
        return decode_record(object, reply, error);
    case REPLY_TIMED:
        return decode_timed(object, reply, error);
    default:
        return decode_error(object, reply);
    }
}

enum status reply_decode(const char *line, struct reply *reply, struct error *error)
{
    json_t *object;
    enum status status = json_line_load(line, &object, error);
    if (status)
        return status;
    const char *text = json_string_value(json_object_get(object, "reply"));
    int kind = words_find(reply_words, text ? text : "");
    reply_clear(reply);
    if (kind < 0) {
        status = error_set(error, STATUS_SYSTEM, "unknown reply '%.200s'", line);
    } else {
        reply->kind = (enum reply_kind)kind;
        status = decode_body(object, reply, error);
    }
    json_decref(object);
    return status;
}
