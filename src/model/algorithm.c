#include "model/algorithm.h"

#include <string.h>

const char algorithm_searched[] = "search";

#define C(member, type) FIELD(struct algorithm, member, type, "1", "")
#define T(member)       FIELD_OF_SECONDS(struct algorithm, member, "")
const struct field algorithm_fields[] = {
    C(algorithm, FIELD_TEXT),
    C(algorithm_id, FIELD_TEXT),
    C(algorithm_launches, FIELD_TEXT),
    C(refused_algorithms, FIELD_TEXT),
    C(search_candidates, FIELD_INTEGER),
    T(search_time),
    C(search_noise, FIELD_DOUBLE),
    C(heuristic_algorithm, FIELD_TEXT),
    C(heuristic_id, FIELD_TEXT),
    T(heuristic_time),
    C(runner_up_algorithm, FIELD_TEXT),
    C(runner_up_id, FIELD_TEXT),
    T(runner_up_time),
    C(algorithm_origin, FIELD_TEXT),
    {0},
};

/* Offset of the record's member with this name. */
static size_t record_offset(const struct field *member)
{
    const struct field *field = record_fields;
    while (strcmp(field->name, member->name) != 0)
        ++field;
    return field->offset;
}

void algorithm_init(struct algorithm *algorithm)
{
    memset(algorithm, 0, sizeof *algorithm);
    fields_clear(algorithm_fields, algorithm);
}

bool algorithm_is_known(const struct algorithm *algorithm)
{
    return algorithm->algorithm[0] != '\0';
}

bool algorithm_of_record(const struct record *record, struct algorithm *algorithm)
{
    algorithm_init(algorithm);
    if (record->status != RECORD_MEASURED || !record->algorithm[0] || !record->algorithm_id[0] ||
        !record->algorithm_launches[0] || !record->algorithm_origin[0])
        return false;
    for (const struct field *field = algorithm_fields; field->name; ++field)
        memcpy((char *)algorithm + field->offset, (const char *)record + record_offset(field),
               field->size);
    return true;
}

void algorithm_into_record(const struct algorithm *algorithm, struct record *record)
{
    for (const struct field *field = algorithm_fields; field->name; ++field)
        memcpy((char *)record + record_offset(field), (const char *)algorithm + field->offset,
               field->size);
}
