#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tuned.h"

#include "scripted_bench.h"
#include "scripted_cuda.h"
#include "worker/cuda/gpu/check.h"

bool found[ROOF_KINDS];

struct roof_request everything(void)
{
    struct roof_request request;
    memset(&request, 1, sizeof request);
    memset(request.later, 0, sizeof request.later); /* none */
    return request;
}

void tune(const struct roof_request *request, bool prove)
{
    struct error error;
    bench_release_roofs();
    assert_int_equal(bench_tune(request, prove, found, &error), STATUS_OK);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

void tune_more(const struct roof_request *request, bool prove)
{
    struct error error;
    assert_int_equal(bench_tune(request, prove, found, &error), STATUS_OK);
}

void tune_all(bool prove)
{
    const struct roof_request request = everything();
    tune(&request, prove);
}

int kind_of(const char *name)
{
    int kind = roof_kind_find(name);
    assert_true(kind >= 0);
    return kind;
}

enum status measure_at(int kind, double start, struct roof *roof, struct error *error)
{
    const struct roof_order order = {.start = start};
    roof_init(roof, kind, ROOF_ALONE);
    return roofs_measure(bench.roofs, kind, &order, roof, error);
}

struct roof measure(const char *name)
{
    struct roof roof;
    struct error error;
    assert_int_equal(measure_at(kind_of(name), 0.0, &roof, &error), STATUS_OK);
    return roof;
}

const char *refusal(const char *name, enum status expected)
{
    static struct error error;
    struct roof roof, untouched;
    roof_init(&untouched, kind_of(name), ROOF_ALONE);
    assert_true(found[kind_of(name)]);
    assert_int_equal(measure_at(kind_of(name), 0.0, &roof, &error), expected);
    assert_memory_equal(&roof, &untouched, sizeof roof);
    return error.text;
}

bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

bool h200_has(int kind)
{
    const char *name = roof_kinds[kind].name;
    return script.rate[kind] > 0.0 ? strcmp(name, "device to device") != 0
                                   : roof_kinds[kind].measure == ROOF_TIME;
}
