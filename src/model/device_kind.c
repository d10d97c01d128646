#include "model/device_kind.h"

#include <stddef.h>
#include <string.h>

const struct device_kind device_kinds[DEVICE_KINDS] = {
    {.name = "cuda",
     .worker = "roofsweep-worker-cuda",
     .noun = "GPU",
     .exclusive = true,
     .numbered = true,
     .has_counters = true,
     .accelerator = true,
     .clock_settles = true},
    {.name = "cpu",
     .worker = "roofsweep-worker-cpu",
     .noun = "CPU",
     .shares_memory = true,
     .stop = 0.02,
     .min_time = 0.2,
     .max_time = 2},
};

const char device_kind_help[] = "auto, cuda or cpu, instead of the manifest's device";

const struct device_kind *device_kind_find(const char *name)
{
    for (int i = 0; i < DEVICE_KINDS; ++i)
        if (strcmp(device_kinds[i].name, name) == 0)
            return &device_kinds[i];
    return NULL;
}

const struct device_kind *device_kind_chosen(int choice)
{
    return choice == DEVICE_AUTO ? NULL : &device_kinds[choice - 1];
}

void device_kind_words(const char *words[DEVICE_KINDS + 2])
{
    words[DEVICE_AUTO] = "auto";
    for (int i = 0; i < DEVICE_KINDS; ++i)
        words[1 + i] = device_kinds[i].name;
    words[1 + DEVICE_KINDS] = NULL;
}
