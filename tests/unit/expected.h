/* Results of references, for tests that compute them in a different way. */
#pragma once

#include "model/reference.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/lstm.h"

enum { SEED = 7 };

/* An input of the reference; the caller frees it. */
double *filled(const struct config *config, enum tensor tensor, int64_t count);
double *zeros(int64_t count);

/* The expectation with at most this many multiply-adds; the caller clears it. */
struct expectation expect(const struct config *config, double products);
/* All elements of one result tensor; the caller frees them. */
double *expect_all(const struct config *config, enum tensor tensor, int64_t size);

double sigmoid(double v);

/* Significands in bits of an arithmetic; 53: no rounding. */
struct arithmetic {
    int inputs, sums, result;
};

/* Rounds to the nearest value of `significand` bits, with an unlimited exponent. */
double rounded(double value, int significand);
double add_product(const struct arithmetic *how, double sum, double a, double b);

/* Computes y by its definition, product by product. */
void conv2d_plain(const struct conv2d *s, const struct arithmetic *how, const double *x,
                  const double *w, double *y);

/* Computes one direction of a layer by the cells' formulas, step by step. `input` is [T][N][width].
 * The other direction's elements of `output` [T][N][row] stay. */
void lstm_plain(const struct lstm *s, const struct arithmetic *how, int64_t layer,
                int64_t direction, const double *w, const double *input, double *output);
