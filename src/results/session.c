#include "results/session.h"

#include <stdlib.h>
#include <string.h>

#include "model/field.h"

#define S(member, type, units, long_name) FIELD(struct session, member, type, units, long_name)
static const struct field session_fields[] = {
    S(id, FIELD_TEXT, "1", "session"),
    S(version, FIELD_TEXT, "1", "version of roofsweep"),
    S(settings, FIELD_TEXT, "1", "how measurements were made"),
    S(title, FIELD_TEXT, "1", "title"),
    S(manifest_path, FIELD_TEXT, "1", "manifest"),
    S(command, FIELD_TEXT, "1", "command line"),
    S(job_id, FIELD_TEXT, "1", "job identifier of the batch system"),
    S(hostname, FIELD_TEXT, "1", "host of rank 0"),
    S(mpi, FIELD_TEXT, "1", "MPI library"),
    S(ranks, FIELD_INTEGER, "1", "MPI ranks"),
    S(start_time, FIELD_DOUBLE, "seconds since 1970-01-01T00:00:00Z", "start"),
    {0},
};

json_t *session_encode(const struct session *session)
{
    json_t *object = fields_encode(session_fields, session);
    if (session->manifest_text)
        json_object_set_new(object, "manifest_text", json_string(session->manifest_text));
    return object;
}

enum status session_decode(const json_t *object, struct session *session, struct error *error)
{
    struct session decoded = {.manifest_text = NULL};
    enum status status = fields_decode(session_fields, object, &decoded, error);
    if (status != STATUS_OK)
        return status;
    const char *text = json_string_value(json_object_get(object, "manifest_text"));
    decoded.manifest_text = strdup(text ? text : "");
    if (!decoded.manifest_text)
        return error_set(error, STATUS_SYSTEM, "no memory for more results");
    *session = decoded;
    return STATUS_OK;
}

void session_clear(struct session *session)
{
    free(session->manifest_text);
    session->manifest_text = NULL;
    fields_clear(session_fields, session);
}
