#include "model/algorithm.h"

#include <string.h>

const char algorithm_searched[] = "search";

#define C(member, type, units, long_name) FIELD(struct algorithm, member, type, units, long_name)
#define T(member, long_name)              FIELD_OF_SECONDS(struct algorithm, member, long_name)
const struct field algorithm_fields[] = {
    C(algorithm, FIELD_TEXT, "1", ""),
    C(algorithm_id, FIELD_TEXT, "1", ""),
    C(algorithm_launches, FIELD_TEXT, "1", ""),
    C(layout_chosen, FIELD_TEXT, "1", ""),
    T(layout_other_time, ""),
    C(refused_algorithms, FIELD_TEXT, "1", ""),
    C(search_candidates, FIELD_INTEGER, "1", ""),
    T(search_time, ""),
    C(search_noise, FIELD_DOUBLE, "1", ""),
    C(heuristic_algorithm, FIELD_TEXT, "1", ""),
    C(heuristic_id, FIELD_TEXT, "1", ""),
    T(heuristic_time, ""),
    C(runner_up_algorithm, FIELD_TEXT, "1", ""),
    C(runner_up_id, FIELD_TEXT, "1", ""),
    T(runner_up_time, ""),
    C(algorithm_origin, FIELD_TEXT, "1", ""),
    {0},
};

/* By the names, which both tables share. */
static const struct field *record_field(const char *name)
{
    const struct field *field = record_fields;
    while (field->name && strcmp(field->name, name) != 0)
        ++field;
    return field->name ? field : NULL;
}

/* Members of the same name have the same type and size; tests/unit/test_algorithm_cache.c sees to
 * it. */
static void copy(const void *from, size_t from_offset, void *to, size_t to_offset, size_t size)
{
    memcpy((char *)to + to_offset, (const char *)from + from_offset, size);
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
        !record->algorithm_launches[0] || strcmp(record->algorithm_origin, algorithm_searched) != 0)
        return false;
    for (const struct field *field = algorithm_fields; field->name; ++field)
        copy(record, record_field(field->name)->offset, algorithm, field->offset, field->size);
    return true;
}

void algorithm_into_record(const struct algorithm *algorithm, struct record *record)
{
    for (const struct field *field = algorithm_fields; field->name; ++field)
        if (field->type != FIELD_TEXT || *((const char *)algorithm + field->offset))
            copy(algorithm, field->offset, record, record_field(field->name)->offset, field->size);
}
