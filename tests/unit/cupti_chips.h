/* The chips that CUPTI knows. CUPTI's header for them needs C++, and the tests are C. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The names belong to CUPTI. After a failure *count is 0. */
void cupti_chips(const char *const **chips, size_t *count);

#ifdef __cplusplus
}
#endif
