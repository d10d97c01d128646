/* Arrays that grow item by item. The capacity is the smallest power of two that is at least the
 * number of items. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

/* Makes room for one more item in an array of `count` items. Returns the array, which may have
 * moved; NULL: no memory, and `items` stays valid. */
static inline void *array_grow(void *items, size_t count, size_t size)
{
    if (count & (count - 1))
        return items;
    size_t capacity = count ? 2 * count : 1;
    return capacity > SIZE_MAX / size ? NULL : realloc(items, capacity * size);
}
