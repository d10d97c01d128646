/* A configuration by its text, "matmul m=4 n=4". For tests only. */
#pragma once

#include "unit.h"
#include "model/workload.h"

/* It is a possible one, or the test has failed. */
static inline struct config parse(const char *text)
{
    struct config config;
    struct error error;
    if (config_parse(text, &config, &error) || config_check(&config, &error))
        fail_msg("%s: %s", text, error.text);
    return config;
}
