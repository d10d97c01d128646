/* Results of references, for tests that compute them in another way. For tests only. */
#pragma once

#include "model/reference.h"

enum { SEED = 7 };

/* An input of the reference; the caller frees it. */
double *filled(const struct config *config, enum tensor tensor, int64_t count);
double *zeros(int64_t count);

/* The expectation with at most this many multiply-adds; the caller clears it. */
struct expectation expect(const struct config *config, double products);
/* All elements of one result tensor; the caller frees them. */
double *expect_all(const struct config *config, enum tensor tensor, int64_t size);

double sigmoid(double v);
