/* Parses the text of a configuration, such as "matmul m=4 n=4". */
#pragma once

#include "unit.h"
#include "model/workload.h"

static inline struct config parse_any(const char *text)
{
    struct config config;
    if (config_parse(text, &config, &failure))
        fail_msg("%s: %s", text, failure.text);
    return config;
}

/* The configuration must be possible. */
static inline struct config parse(const char *text)
{
    const struct config config = parse_any(text);
    if (config_check(&config, &failure))
        fail_msg("%s: %s", text, failure.text);
    return config;
}
