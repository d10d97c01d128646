/* Why CUPTI refuses to count, and what to do about it. */
#ifndef ROOFSWEEP_REFUSAL_H
#define ROOFSWEEP_REFUSAL_H

#include <cupti_result.h>

#include "model/outcome.h"

/* COUNTED_REFUSED with the cause and the way out; with the call and CUPTI's own name of a code that is in
 * no table. */
void refusal_set(CUptiResult code, const char *call, struct outcome *outcome);

#endif
