/* A configuration by its text, "matmul m=4 n=4". For tests only. */
#ifndef ROOFSWEEP_TEST_PARSED_H
#define ROOFSWEEP_TEST_PARSED_H

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

#endif
