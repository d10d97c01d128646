/* What the reference of a configuration gives, for tests that compute the same in another way. For
 * tests only. */
#pragma once

#include "model/reference.h"

enum { SEED = 7 };

/* An input as the reference has it; the caller frees it. */
double *filled(const struct config *config, enum tensor tensor, int64_t count);
double *zeros(int64_t count);

/* All elements of the result, with these many multiply-adds at most; to be cleared. */
struct expectation expect(const struct config *config, double products);
/* Of one result tensor, by its index; the caller frees it. */
double *expect_all(const struct config *config, enum tensor tensor, int64_t size);

double sigmoid(double v);
