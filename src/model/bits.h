/* Hash of a result's bits, alike on CPUs and GPUs: the sum of bits_mix() over all words of 8 bytes,
 * in any order. bits_mix() maps different words at one index to different values, so a change
 * within one word always changes the sum. */
#pragma once

#include <stddef.h>
#include <string.h>

#include "model/fill.h"

FILL_FUNCTION uint64_t bits_mix(uint64_t word, enum tensor tensor, size_t index)
{
    return fill_mix(word + (((uint64_t)tensor << 56) + index + 1) * 0x9e3779b97f4a7c15u);
}

/* Returns the bytes behind the last whole word, as a word. */
FILL_FUNCTION uint64_t bits_rest(const void *data, size_t bytes)
{
    uint64_t rest = 0;
    memcpy(&rest, (const char *)data + bytes / sizeof rest * sizeof rest, bytes % sizeof rest);
    return rest;
}
