#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "in_turn.h"
#include "expected.h"

double *filled(const struct config *config, enum tensor tensor, int64_t count)
{
    struct fill fill = config_fill(config, SEED, tensor);
    double *data = malloc((size_t)count * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < count; ++i)
        data[i] = fill_value(fill, (uint64_t)i);
    return data;
}

struct expectation expect(const struct config *config, double products)
{
    const struct reference_request request = {config,    SEED,         products, 1,
                                              INT64_MAX, loop_in_turn, NULL,     NULL};
    struct expectation expectation = {.count = 0};
    struct error error;
    assert_ok(config->workload->reference(&request, &expectation, &error), &error);
    return expectation;
}

double *expect_all(const struct config *config, enum tensor tensor, int64_t size)
{
    struct expectation expectation = expect(config, INFINITY);
    struct slice *slice = expectation.slices;
    while (slice < expectation.slices + expectation.count && slice->tensor != tensor)
        ++slice;
    assert_true(slice < expectation.slices + expectation.count);
    double *expected = slice->expected;
    assert_int_equal(slice->count, size);
    for (int64_t i = 0; i < size; ++i)
        assert_int_equal(slice->offsets[i], i);
    slice->expected = NULL;
    expectation_clear(&expectation);
    return expected;
}

double *zeros(int64_t count)
{
    double *data = calloc((size_t)count, sizeof *data);
    assert_non_null(data);
    return data;
}

double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}
