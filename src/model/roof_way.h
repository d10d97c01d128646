/* The fastest way to do a kind of roof, as one device has found it: another one of the same model
 * tries it first, and looks for others only if it is not as fast there. Plain data; all zero is no
 * way. */
#ifndef ROOFSWEEP_ROOF_WAY_H
#define ROOFSWEEP_ROOF_WAY_H

#include <jansson.h>

#include "base/status.h"
#include "model/roof_kind.h"

/* An object with a member for each way that there is: "dram read": [3, 4.1e12]. */
json_t *roof_ways_encode(const struct roof_way ways[ROOF_KINDS]);
/* NULL: no ways. STATUS_USAGE, and no ways, for what is none of them. */
enum status roof_ways_decode(const json_t *json, struct roof_way ways[ROOF_KINDS],
                             struct error *error);

bool roof_ways_any(const struct roof_way ways[ROOF_KINDS]);

#endif
