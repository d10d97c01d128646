/* Arrays that grow item by item. The capacity is the smallest power of two that is at least the
 * number of items. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more item in the array `items` of `count` items; the array may move. False: no
 * memory, and the array stays. */
#define ARRAY_GROW(items, count) array_grow(&(items), count, sizeof *(items))

/* Appends an item, and increments `count`. False: as ARRAY_GROW. */
#define ARRAY_ADD(items, count, ...)                                                               \
    (ARRAY_GROW(items, count) && ((items)[(count)++] = (__VA_ARGS__), true))

/* `array`: address of the pointer to the items. */
static inline bool array_grow(void *array, size_t count, size_t size)
{
    void *items, *grown = NULL;
    if (count & (count - 1))
        return true;
    size_t capacity = count ? 2 * count : 1;
    memcpy(&items, array, sizeof items);
    if (capacity <= SIZE_MAX / size)
        grown = realloc(items, capacity * size);
    if (grown)
        memcpy(array, &grown, sizeof grown);
    return grown;
}
