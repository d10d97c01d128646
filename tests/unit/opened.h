/* Opens the program's device as the state of a test. */
#pragma once

#include "worker/device_ops.h"

static inline int open_device(void **state)
{
    struct device_state *opened;
    struct device device;
    struct error error;
    device_init(&device);
    if (device_ops.open(0, &opened, &device, &error))
        return -1;
    *state = opened;
    return 0;
}

static inline int close_device(void **state)
{
    device_ops.close(*state);
    return 0;
}

#define DEVICE_TEST(name) TEST_WITH(name, open_device, close_device)
