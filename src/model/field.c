#include "model/field.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *const field_no_yes[] = {"no", "yes", NULL};

const char *const wall_part_name[PART_COUNT] = {
    [PART_PREPARE] = "prepare",       [PART_SEARCH_BUILD] = "search_build",
    [PART_SEARCH_RUN] = "search_run", [PART_SEARCH_VERIFY] = "search_verify",
    [PART_VERIFY] = "verify",         [PART_TIMING] = "timing",
    [PART_ENERGY] = "energy",         [PART_TRACE] = "trace",
    [PART_COUNTS] = "counts",
};

const char *const time_part_name[TIME_PART_COUNT] = {
    [TIME_GAPS] = "gaps",
    [TIME_FEW_BLOCKS] = "few_blocks",
    [TIME_IDLE_MULTIPROCESSORS] = "idle_multiprocessors",
    [TIME_ISSUING] = "issuing",
    [TIME_MEMORY_LATENCY] = "memory_latency",
    [TIME_MEMORY_QUEUES] = "memory_queues",
    [TIME_MATH_PIPE] = "math_pipe",
    [TIME_BARRIER] = "barrier",
    [TIME_DEPENDENCY] = "dependency",
    [TIME_INSTRUCTION_FETCH] = "instruction_fetch",
    [TIME_OTHER] = "other",
    [TIME_INSIDE_KERNELS] = "inside_kernels",
    [TIME_IDLE_THREADS] = "idle_threads",
    [TIME_OFF_PROCESSOR] = "off_processor",
    [TIME_AT_ROOF] = "at_roof",
};

static const void *member(const struct field *field, const void *structure)
{
    return (const char *)structure + field->offset;
}

const char *const health_name[HEALTH_COUNT] = {
#define ROW(of, name) name,
    HEALTH_LIST(ROW)
#undef ROW
};

size_t field_elements(const struct field *field)
{
    return field->size / sizeof(double);
}

const char *field_element_name(const struct field *field, size_t i)
{
    static const char *const *const names[] = {[FIELD_LEVELS] = memory_level_name,
                                               [FIELD_HEALTH] = health_name,
                                               [FIELD_PARTS] = wall_part_name,
                                               [FIELD_ACTIVITIES] = activity_name,
                                               [FIELD_TIME_PARTS] = time_part_name};
    return field->type == FIELD_PRECISIONS ? precision_info[i].name : names[field->type][i];
}

const char *word_text(const struct word *word, word_of *words)
{
    const char *known = words(word->index);
    return known ? known : word->other;
}

void word_set(struct word *word, word_of *words, const char *text)
{
    *word = (struct word){.index = *text ? WORD_OTHER : FIELD_MISSING};
    for (int64_t i = 0; words(i) && word->index == WORD_OTHER; ++i)
        if (strcmp(words(i), text) == 0)
            word->index = i;
    if (word->index == WORD_OTHER)
        utf8_copy(word->other, sizeof word->other, text, strlen(text));
}

bool word_equal(const struct word *a, const struct word *b)
{
    return a->index == b->index && strcmp(a->other, b->other) == 0;
}

void fields_clear(const struct field *table, void *structure)
{
    for (const struct field *field = table; field->name; ++field) {
        void *at = (char *)structure + field->offset;
        if (field->type == FIELD_TEXT) {
            *(char *)at = '\0';
        } else if (field->type == FIELD_OUTCOME) {
            outcome_set(at, OUTCOME_MISSING, NULL);
        } else if (field->type == FIELD_INTEGER || field->type == FIELD_FLAG) {
            *(int64_t *)at = FIELD_MISSING;
        } else if (field->type == FIELD_WORD) {
            *(struct word *)at = (struct word){.index = FIELD_MISSING};
        } else {
            for (size_t i = 0; i < field_elements(field); ++i)
                ((double *)at)[i] = NAN;
        }
    }
}

static json_t *encode_elements(const struct field *field, const double *values)
{
    json_t *object = json_object();
    for (size_t i = 0; i < field_elements(field); ++i)
        if (isfinite(values[i]))
            json_object_set_new(object, field_element_name(field, i), json_real(values[i]));
    if (json_object_size(object) > 0)
        return object;
    json_decref(object);
    return NULL;
}

json_t *text_encode(const char *text)
{
    if (!*text)
        return NULL;
    json_t *string = json_string(text);
    char *copy = string ? NULL : strdup(text);
    if (!copy)
        return string;
    for (char *c = copy; *c; ++c)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    string = json_string(copy);
    free(copy);
    return string;
}

bool field_is_missing(const struct field *field, const void *structure)
{
    const void *at = member(field, structure);
    bool missing = true;
    if (field->type == FIELD_TEXT)
        return *(const char *)at == '\0';
    if (field->type == FIELD_OUTCOME)
        return ((const struct outcome *)at)->code == OUTCOME_MISSING;
    if (field->type == FIELD_INTEGER || field->type == FIELD_FLAG)
        return *(const int64_t *)at == FIELD_MISSING;
    if (field->type == FIELD_WORD)
        return ((const struct word *)at)->index == FIELD_MISSING;
    for (size_t i = 0; i < field_elements(field); ++i)
        missing = missing && isnan(((const double *)at)[i]);
    return missing;
}

static json_t *encode_value(const struct field *field, const void *at)
{
    char text[OUTCOME_TEXT];
    switch (field->type) {
    case FIELD_TEXT:
        return text_encode(at);
    case FIELD_INTEGER:
        return json_integer(*(const int64_t *)at);
    case FIELD_FLAG:
        return json_string(field->flags[*(const int64_t *)at]);
    case FIELD_WORD:
        return text_encode(word_text(at, field->words));
    case FIELD_DOUBLE:
        return isfinite(*(const double *)at) ? json_real(*(const double *)at) : NULL;
    case FIELD_OUTCOME:
        outcome_format(at, field->flags, text);
        return text_encode(text);
    default: /* arrays */
        return encode_elements(field, at);
    }
}

json_t *fields_encode(const struct field *table, const void *structure)
{
    json_t *object = json_object();
    for (const struct field *field = table; field->name; ++field) {
        json_t *value = field_is_missing(field, structure)
                            ? NULL
                            : encode_value(field, member(field, structure));
        if (value) /* infinity has no JSON */
            json_object_set_new(object, field->name, value);
    }
    return object;
}

static bool decode_flag(const struct field *field, struct json_text value, int64_t *at)
{
    for (*at = 0; field->flags[*at]; ++*at)
        if (json_text_is(value, field->flags[*at]))
            return true;
    return false;
}

static bool decode_elements(const struct field *field, struct json_text value, double *at)
{
    struct json_reader reader = json_reader_object(value);
    struct json_text name, element;
    const size_t count = field_elements(field);
    while (json_reader_next(&reader, &name, &element)) {
        size_t i = 0;
        while (i < count && !json_text_is(name, field_element_name(field, i)))
            ++i;
        if (i < count && !json_text_number(element, &at[i]))
            return false;
    }
    return !reader.broken;
}

static bool decode_value(const struct field *field, struct json_text value, void *at)
{
    char text[OUTCOME_TEXT];
    switch (field->type) {
    case FIELD_TEXT:
        return json_text_string(value, at, field->size);
    case FIELD_INTEGER:
        return json_text_integer(value, at) && *(int64_t *)at != FIELD_MISSING;
    case FIELD_FLAG:
        return decode_flag(field, value, at);
    case FIELD_WORD:
        if (!json_text_string(value, text, sizeof text))
            return false;
        word_set(at, field->words, text);
        return true;
    case FIELD_DOUBLE:
        return json_text_number(value, at);
    case FIELD_OUTCOME:
        return json_text_string(value, text, sizeof text) && outcome_parse(text, field->flags, at);
    default: /* arrays */
        return decode_elements(field, value, at);
    }
}

static const struct field *find_field(const struct field *from, const struct field *end,
                                      struct json_text name)
{
    for (; from != end && from->name; ++from)
        if (json_text_is(name, from->name))
            return from;
    return NULL;
}

enum status field_decode(const struct field *table, const struct field **next,
                         struct json_text name, struct json_text value, void *structure,
                         struct error *error)
{
    const struct field *field = find_field(*next, NULL, name);
    if (!field)
        field = find_field(table, *next, name);
    if (!field)
        return STATUS_OK;
    *next = field + 1;
    return decode_value(field, value, (char *)structure + field->offset)
               ? STATUS_OK
               : error_set(error, STATUS_SYSTEM, "'%s' has a value of the wrong type", field->name);
}

enum status fields_decode(const struct field *table, struct json_text object, void *structure,
                          struct error *error)
{
    struct json_reader reader = json_reader_object(object);
    const struct field *next = table;
    struct json_text name, value;
    fields_clear(table, structure);
    while (json_reader_next(&reader, &name, &value))
        TRY(field_decode(table, &next, name, value, structure, error));
    return reader.broken ? error_set(error, STATUS_SYSTEM, "not a JSON object") : STATUS_OK;
}

/* Bounds of quantities of one device, a thousand times beyond today's. The first row is for unknown
 * units. */
static const struct bounds {
    const char *units;
    double least, most;
} bounds[] = {
    {"1", 0, 1e24}, /* FLOPs of an iteration are the largest count */
    {"s", 0, FIELD_SECONDS_MAX},
    {"seconds since 1970-01-01T00:00:00Z", 0, 253402300800}, /* the year 10000 */
    {"byte", 0, 1e21},
    {"byte s-1", 0, 1e18},
    {"s-1", 0, 1e21}, /* clocks, which some drivers report as 0; FLOPs in a second */
    {"J", 0, 1e12},
    {"W", 0, 1e7},
    {"K", 0, 1e4},
};

enum status field_check_number(const struct field *field, double value, struct error *error)
{
    const double exact = 0x1p53; /* largest count that a double holds exactly */
    size_t row = sizeof bounds / sizeof *bounds - 1;
    while (row > 0 && strcmp(bounds[row].units, field->units) != 0)
        --row;
    const double least = field->least > 0 ? field->least : bounds[row].least;
    const double most = field->most > 0                ? field->most
                        : field->type == FIELD_INTEGER ? exact
                                                       : bounds[row].most;
    if (isnan(value) || (value >= least && value <= most))
        return STATUS_OK;
    return error_set(error, STATUS_SYSTEM,
                     "'%s' is %g, which nobody can have measured; it is %s %g", field->name, value,
                     value < least ? "never below" : "at most", value < least ? least : most);
}

static enum status check_value(const struct field *field, const void *at, struct error *error)
{
    if (field->type == FIELD_INTEGER && *(const int64_t *)at != FIELD_MISSING)
        return field_check_number(field, (double)*(const int64_t *)at, error);
    if (field->type < FIELD_DOUBLE || field->type > FIELD_TIME_PARTS)
        return STATUS_OK;
    for (size_t i = 0; i < field_elements(field); ++i)
        TRY(field_check_number(field, ((const double *)at)[i], error));
    return STATUS_OK;
}

enum status fields_check(const struct field *table, const void *structure, struct error *error)
{
    for (const struct field *field = table; field->name; ++field)
        TRY(check_value(field, member(field, structure), error));
    return STATUS_OK;
}
