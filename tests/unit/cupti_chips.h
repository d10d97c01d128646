/* The chips that CUPTI knows; in C for cupti_profiler_host.h, which is C++. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lists the names, which belong to CUPTI; no chips after a failure. */
void cupti_chips(const char *const **chips, size_t *count);

#ifdef __cplusplus
}
#endif
