/* What ranks and workers say to each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/protocol.h"

static void request_round_trips(void **state)
{
    (void)state;
    struct request copy, request = request_default(REQUEST_MEASURE);
    struct error error;
    strcpy(request.configuration, "lstm batch=3");
    request.measure = (struct measure_settings){.warmup = 2,
                                                .stop = 0.005,
                                                .min_time = 1,
                                                .max_time = 9,
                                                .counters = COUNTERS_OFF,
                                                .kernels = true,
                                                .verify = false};
    request.seed = UINT64_MAX - 1;
    char *line = request_encode(&request);
    assert_null(strchr(line, '\n'));
    assert_int_equal(request_decode(line, &copy, &error), STATUS_OK);
    free(line);
    assert_int_equal(copy.op, REQUEST_MEASURE);
    assert_string_equal(copy.configuration, "lstm batch=3");
    assert_int_equal(copy.measure.warmup, 2);
    assert_int_equal(copy.measure.iterations, 0);
    assert_true(copy.measure.stop == 0.005 && copy.measure.min_time == 1);
    assert_int_equal(copy.measure.counters, COUNTERS_OFF);
    assert_true(copy.measure.kernels);
    assert_false(copy.measure.verify);
    assert_true(copy.seed == UINT64_MAX - 1);
}

static void roofs_round_trip(void **state)
{
    (void)state;
    struct request copy, request = request_default(REQUEST_ROOFS);
    struct error error;
    request.peaks.memory[LEVEL_L2] = false;
    request.peaks.compute[PRECISION_FP64] = false;
    request.peaks.launch = false;
    request.peaks.transfer = false;
    request.prove = false;
    char *line = request_encode(&request);
    assert_int_equal(request_decode(line, &copy, &error), STATUS_OK);
    free(line);
    assert_memory_equal(&copy.peaks, &request.peaks, sizeof copy.peaks);
    assert_false(copy.prove);
}

static void release_round_trips(void **state)
{
    (void)state;
    struct request copy, request = request_default(REQUEST_RELEASE);
    struct error error;
    char *line = request_encode(&request);
    assert_int_equal(request_decode(line, &copy, &error), STATUS_OK);
    free(line);
    assert_int_equal(copy.op, REQUEST_RELEASE);
}

static void roof_round_trips(void **state)
{
    (void)state;
    struct request copy, request = request_default(REQUEST_ROOF);
    struct error error;
    request.kind = ROOF_DRAM_READ;
    request.condition = ROOF_TOGETHER;
    request.start = 1735689600.125;
    char *line = request_encode(&request);
    assert_int_equal(request_decode(line, &copy, &error), STATUS_OK);
    free(line);
    assert_int_equal(copy.kind, request.kind);
    assert_int_equal(copy.condition, ROOF_TOGETHER);
    assert_true(copy.start == 1735689600.125);

    struct reply reply, other;
    reply_init(&reply);
    reply_init(&other);
    reply.kind = REPLY_ROOFS;
    reply.found[ROOF_FP8_TENSOR_LIBRARY] = true;
    line = reply_encode(&reply);
    assert_int_equal(reply_decode(line, &other, &error), STATUS_OK);
    free(line);
    assert_memory_equal(other.found, reply.found, sizeof reply.found);

    reply.kind = REPLY_ROOF;
    roof_init(&reply.roof, (int)request.kind, ROOF_TOGETHER);
    double seconds[] = {0.5};
    roof_set_samples(&reply.roof, 1e9, seconds, 1);
    line = reply_encode(&reply);
    assert_int_equal(reply_decode(line, &other, &error), STATUS_OK);
    free(line);
    assert_int_equal(other.roof.kind.index, ROOF_DRAM_READ);
    assert_int_equal(other.roof.condition, ROOF_TOGETHER);
    assert_true(other.roof.bandwidth == 2e9 && isnan(other.roof.performance));
    reply_clear(&other);
    reply_clear(&reply);
}

static void short_requests_take_defaults(void **state)
{
    (void)state;
    struct request request;
    struct error error;
    const char *line = "{\"op\":\"measure\",\"configuration\":\"conv2d\"}\n";
    assert_int_equal(request_decode(line, &request, &error), STATUS_OK);
    assert_int_equal(request.measure.warmup, 5);
    assert_int_equal(request.measure.iterations, 20);
    assert_true(request.measure.verify);
    assert_int_equal(request_decode("{\"op\":\"describe\"}", &request, &error), STATUS_OK);
    assert_int_equal(request.index, 0);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {"",
                                        "\n",
                                        "[]",
                                        "{\"op\":\"dance\"}",
                                        "{}",
                                        "{\"op\":",
                                        "null",
                                        "{\"op\":\"measure\"}",
                                        "{\"op\":\"roof\"}",
                                        "{\"op\":\"roof\",\"name\":\"slate\"}",
                                        "5\n",
                                        "{\"op\":\"a\",\"op\":\"b\"}"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
        struct request request;
        struct error error = {""};
        assert_int_not_equal(request_decode(lines[i], &request, &error), STATUS_OK);
        assert_true(error.text[0]);
    }
}

static void replies_round_trip(void **state)
{
    (void)state;
    struct reply reply, copy;
    struct error error;
    reply_init(&reply);
    reply_init(&copy);
    reply.kind = REPLY_ERROR;
    reply.status = error_set(&reply.error, STATUS_DEVICE, "it is \"gone\"\n");
    char *line = reply_encode(&reply);
    assert_null(strchr(line, '\n'));
    assert_int_equal(reply_decode(line, &copy, &error), STATUS_OK);
    free(line);
    assert_int_equal(copy.kind, REPLY_ERROR);
    assert_int_equal(copy.status, STATUS_DEVICE);
    assert_string_equal(copy.error.text, "it is \"gone\"\n");

    /* What a driver says may be no UTF-8, or nothing. */
    reply.status = error_set(&reply.error, STATUS_FAILED, "caf\xe9");
    line = reply_encode(&reply);
    assert_int_equal(reply_decode(line, &copy, &error), STATUS_OK);
    free(line);
    assert_string_equal(copy.error.text, "caf?");
    assert_int_equal(reply_decode("{\"reply\":\"error\",\"text\":\"\"}", &copy, &error), STATUS_OK);
    assert_string_equal(copy.error.text, "no reason given");

    reply.kind = REPLY_RECORD;
    reply.record.status = RECORD_MEASURED;
    reply.record.time_median = 0.25;
    line = reply_encode(&reply);
    assert_int_equal(reply_decode(line, &copy, &error), STATUS_OK);
    free(line);
    assert_true(copy.record.time_median == 0.25);
    assert_int_not_equal(reply_decode("{\"reply\":\"tale\"}", &copy, &error), STATUS_OK);
    reply_clear(&copy);
    reply_clear(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_round_trips),          cmocka_unit_test(roofs_round_trip),
        cmocka_unit_test(release_round_trips),          cmocka_unit_test(roof_round_trips),
        cmocka_unit_test(short_requests_take_defaults), cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(replies_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
