/* Runs a loop of a reference on one thread. */
#pragma once

#include "model/reference.h"

static inline void loop_in_turn(int64_t count, reference_task *task, void *context)
{
    for (int64_t i = 0; i < count; ++i)
        task(context, i);
}
