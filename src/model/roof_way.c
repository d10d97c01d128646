#include "model/roof_way.h"

#include <limits.h>
#include <math.h>
#include <string.h>

json_t *roof_ways_encode(const struct roof_way ways[ROOF_KINDS])
{
    json_t *object = json_object();
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (ways[kind].rate > 0)
            json_object_set_new(object, roof_kinds[kind].name,
                                json_pack("[i, f]", ways[kind].number, ways[kind].rate));
    return object;
}

static bool way_decode(const json_t *json, struct roof_way *way)
{
    const json_t *number = json_array_get(json, 0), *rate = json_array_get(json, 1);
    json_int_t value = json_integer_value(number);
    if (json_array_size(json) != 2 || !json_is_integer(number) || !json_is_number(rate))
        return false;
    *way = (struct roof_way){(int)value, json_number_value(rate)};
    return value >= 0 && value <= INT_MAX && isfinite(way->rate) && way->rate > 0;
}

static bool member_decode(const char *name, const json_t *json, struct roof_way ways[ROOF_KINDS])
{
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (strcmp(roof_kinds[kind].name, name) == 0)
            return way_decode(json, &ways[kind]);
    return false;
}

enum status roof_ways_decode(const json_t *json, struct roof_way ways[ROOF_KINDS],
                             struct error *error)
{
    const char *name;
    json_t *way;
    const size_t size = ROOF_KINDS * sizeof *ways;
    memset(ways, 0, size);
    if (json && !json_is_object(json))
        return error_set(error, STATUS_USAGE, "ways of roofs are no object");
    json_object_foreach((json_t *)json, name, way) if (!member_decode(name, way, ways))
    {
        memset(ways, 0, size);
        return error_set(error, STATUS_USAGE,
                         "'%.40s' is no roof, or its way is not [number, rate]", name);
    }
    return STATUS_OK;
}

bool roof_ways_any(const struct roof_way ways[ROOF_KINDS])
{
    bool any = false;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        any |= ways[kind].rate > 0;
    return any;
}
