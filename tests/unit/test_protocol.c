/* Requests and replies between ranks and workers. */

#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/protocol.h"

/* Decoded copies of an encoded request and an encoded reply. */
static struct request passed(const struct request *request)
{
    struct request copy;
    struct error error;
    char *line = request_encode(request);
    assert_null(strchr(line, '\n'));
    if (request_decode(line, &copy, &error))
        fail_msg("%s: %s", line, error.text);
    free(line);
    assert_int_equal(copy.op, request->op);
    return copy;
}

static void pass_on(const struct reply *reply, struct reply *copy)
{
    struct error error;
    char *line = reply_encode(reply);
    assert_null(strchr(line, '\n'));
    if (reply_decode(line, copy, &error))
        fail_msg("%s: %s", line, error.text);
    free(line);
    assert_int_equal(copy->kind, reply->kind);
}

TEST(request_round_trips)
{
    struct request copy, request = request_default(REQUEST_MEASURE);
    struct error error;
    assert_int_equal(config_parse("lstm batch=3", &request.config, &error), STATUS_OK);
    request.measure = (struct measure_settings){.warmup = 2,
                                                .stop = 0.005,
                                                .min_time = 1,
                                                .max_time = 9,
                                                .counters = COUNTERS_OFF,
                                                .kernels = true,
                                                .verify = false,
                                                .energy = true,
                                                .repeat = 7};
    request.seed = UINT64_MAX - 1;
    request.count_later = true;
    copy = passed(&request);
    assert_memory_equal(&copy.config, &request.config, sizeof copy.config);
    assert_int_equal(copy.measure.warmup, 2);
    assert_int_equal(copy.measure.iterations, 0);
    assert_true(copy.measure.stop == 0.005 && copy.measure.min_time == 1);
    assert_int_equal(copy.measure.counters, COUNTERS_OFF);
    assert_true(copy.measure.kernels);
    assert_false(copy.measure.verify);
    assert_true(copy.measure.energy);
    assert_int_equal(copy.measure.repeat, 7);
    assert_true(copy.seed == UINT64_MAX - 1);
    assert_true(copy.count_later);
}

TEST(roofs_round_trip)
{
    struct request copy, request = request_default(REQUEST_ROOFS);
    request.peaks.memory[LEVEL_L2] = false;
    request.peaks.compute[PRECISION_FP64] = false;
    request.peaks.launch = false;
    request.peaks.transfer = false;
    request.peaks.energy = true;
    request.prove = false;
    copy = passed(&request);
    assert_memory_equal(&copy.peaks, &request.peaks, sizeof copy.peaks);
    assert_false(copy.prove);
}

TEST(roof_round_trips)
{
    struct request copy, request = request_default(REQUEST_ROOF);
    request.kind = ROOF_DRAM_READ;
    request.condition = ROOF_TOGETHER;
    request.start = 1735689600.125;
    request.only_sustained = request.peaks.energy = true;
    copy = passed(&request);
    assert_int_equal(copy.kind, request.kind);
    assert_int_equal(copy.condition, ROOF_TOGETHER);
    assert_true(copy.start == 1735689600.125);
    assert_true(copy.sustained && copy.only_sustained && copy.peaks.energy);

    struct reply reply, other;
    reply_init(&reply);
    reply_init(&other);
    reply.kind = REPLY_ROOFS;
    reply.found[ROOF_FP8_TENSOR_LIBRARY] = true;
    pass_on(&reply, &other);
    assert_memory_equal(other.found, reply.found, sizeof reply.found);

    reply.kind = REPLY_ROOF;
    roof_init(&reply.roof, (int)request.kind, ROOF_TOGETHER);
    double seconds[] = {0.5};
    roof_set_samples(&reply.roof, 1e9, seconds, 1);
    pass_on(&reply, &other);
    assert_int_equal(other.roof.kind.index, ROOF_DRAM_READ);
    assert_int_equal(other.roof.condition, ROOF_TOGETHER);
    assert_true(other.roof.bandwidth == 2e9 && isnan(other.roof.performance));
    reply_clear(&other);
    reply_clear(&reply);
}

TEST(links_round_trip)
{
    const double seconds[] = {3, 1, 2};
    struct request copy, request = request_default(REQUEST_LINKS);
    struct reply reply, other;
    struct error error;
    request.link = LINK_ALL_GATHER;
    strcpy(request.devices, "GPU-1,GPU-2");
    copy = passed(&request);
    assert_int_equal(copy.link, LINK_ALL_GATHER);
    assert_string_equal(copy.devices, request.devices);

    reply_init(&reply);
    reply_init(&other);
    reply.kind = REPLY_DEVICE;
    strcpy(reply.device.uuid, "all");
    struct link link = {.operation = LINK_ALL_REDUCE, .devices = 4, .bytes = 8, .nccl = 22803};
    strcpy(link.from, "GPU-1");
    strcpy(link.to, "GPU-2");
    link.peer_access = FIELD_MISSING;
    assert_int_equal(link_set_samples(&link, seconds, 3, &error), STATUS_OK);
    assert_true(link.time == 2 && link.spread == 1 && link.bandwidth == 6); /* 8 / 2 * 2 * 3 / 4 */
    for (int i = 0; i <= LINKS_MAX; ++i)                                    /* one too many */
        device_add_link(&reply.device, &link);
    pass_on(&reply, &other);
    assert_int_equal(other.device.link_count, LINKS_MAX);
    assert_memory_equal(&other.device.links[LINKS_MAX - 1], &link, sizeof link);
    reply_clear(&other);
    reply_clear(&reply);
}

TEST(short_requests_take_defaults)
{
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

TEST(invalid_requests_are_refused)
{
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

/* An ignored mistake would measure something else. */
TEST(mistakes_are_explained)
{
    static const struct {
        const char *line, *key, *allowed;
    } rows[] = {
        {"{'op':'roof','name':'dram read','condition':'togther'}", "condition: 'togther'",
         "did you mean 'together'? allowed: alone, together"},
        {"{'op':'roof','name':'dram read','conditon':'alone'}", "no key 'conditon'",
         "did you mean 'condition'? allowed: op, name, condition, start"},
        {"{'op':'roof','name':'dram raed'}", "name: 'dram raed'", "did you mean 'dram read'?"},
        {"{'op':'roof','name':7}", "name: 7", "a word"},
        {"{'op':'roof'}", "op roof needs the \"name\"", "dram read"},
        {"{'op':'roof','name':'dram read','start':'now'}", "start: \"now\"", "a number from 0"},
        {"{'op':'tune','memory':['dram','l4']}", "memory: 'l4'", "allowed: dram, l3, l2, l1"},
        {"{'op':'tune','memory':'dram'}", "memory: \"dram\"", "a list of words"},
        {"{'op':'roofs','compute':['fp32',5]}", "compute: 5", "a word"},
        {"{'op':'tune','prove':1}", "prove: 1", "true, false"},
        {"{'op':'tune','iterations':20}", "no key 'iterations'", "allowed: op, memory"},
        {"{'op':'devices','index':0}", "no key 'index'", "allowed: op"},
        {"{'op':'describe','counters':'of'}", "counters: 'of'", "allowed: auto, require, off"},
        {"{'op':'describe','index':-1}", "index: -1", "a whole number from 0"},
        {"{'op':'describe','index':0.5}", "index: 0.5", "a whole number from 0"},
        {"{'op':'measure','configuration':'conv2d','iterations':'20'}", "iterations: \"20\"",
         "a whole number from 0 to 1000000"},
        {"{'op':'measure','configuration':'conv2d','warmup':99999999999}", "warmup: 99999999999",
         "to 1000000"},
        {"{'op':'measure','configuration':'conv2d','algorithm':'a'}", "algorithm: ", "an object"},
        {"{'op':'measure','configuration':'conv2d','algorithm':{'search_time':-1}}",
         "algorithm: ", "search_time"},
        {"{'op':'measure','configuration':'conv2d','seed':1.5}", "seed: 1.5", "a whole number"},
        {"{'op':'measure','configuration':'conv2d','verify':'yes'}", "verify: \"yes\"",
         "true, false"},
        {"{'op':'measure','configuration':'conv2d','stop':-0.1}", "stop: -0.1", "a number from 0"},
        {"{'op':'measure','configuration':'conv2d bach=16'}", "configuration: 'bach'",
         "no parameter of conv2d"},
        {"{'op':'measure','configuration':null}", "configuration: null", "conv2d batch=16"},
        {"{'op':'measur','configuration':'conv2d'}", "unknown op 'measur'", "mean 'measure'?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct request request = request_default(REQUEST_DEVICES), before = request;
        struct error error = {""};
        char line[200];
        snprintf(line, sizeof line, "%s", rows[i].line);
        for (char *c = line; *c; ++c)
            *c = *c == '\'' ? '"' : *c;
        assert_int_equal(request_decode(line, &request, &error), STATUS_USAGE);
        if (!strstr(error.text, rows[i].key) || !strstr(error.text, rows[i].allowed))
            fail_msg("%s: '%s' does not say '%s' and '%s'", line, error.text, rows[i].key,
                     rows[i].allowed);
        assert_memory_equal(&request, &before, sizeof before);
    }
}

/* Every encoded key can be decoded. */
TEST(every_request_round_trips)
{
    for (int op = REQUEST_DEVICES; op <= REQUEST_MEASURE; ++op) {
        struct request copy, request = request_default((enum request_op)op);
        struct error error;
        assert_int_equal(config_parse("conv2d batch=3", &request.config, &error), STATUS_OK);
        request.kind = roof_kind_find("launch gap");
        strcpy(request.algorithm.algorithm, "engine-38 k2=5");
        request.algorithm.search_time = 1.25e-5;
        char *line = request_encode(&request);
        if (request_decode(line, &copy, &error))
            fail_msg("%s: %s", line, error.text);
        char *again = request_encode(&copy);
        assert_string_equal(line, again);
        if (op == REQUEST_MEASURE) {
            assert_string_equal(copy.algorithm.algorithm, "engine-38 k2=5");
            assert_true(copy.algorithm.search_time == 1.25e-5);
            assert_true(isnan(copy.algorithm.runner_up_time));
        }
        free(again);
        free(line);
    }
}

TEST(wrong_replies_are_refused)
{
    static const char *const lines[] = {"{\"reply\":\"tale\"}",
                                        "{\"reply\":5}",
                                        "{}",
                                        "{\"reply\":\"devices\"}",
                                        "{\"reply\":\"devices\",\"count\":\"8\"}",
                                        "{\"reply\":\"roofs\",\"roofs\":true}",
                                        "{\"reply\":\"record\",\"record\":{}}",
                                        "{\"reply\":\"roof\",\"roof\":{\"bandwidth\":\"much\"}}",
                                        "{\"reply\":\"roof\",\"roof\":{\"bandwidth\":-1e308}}",
                                        "{\"reply\":\"roof\",\"roof\":{\"name\":\"dram read\"}}",
                                        "{\"reply\":\"device\",\"device\":{}}",
                                        "{\"reply\":\"device\",\"device\":{\"uuid\":\"u\","
                                        "\"memory\":-1}}",
                                        "{\"reply\":\"device\",\"device\":{\"uuid\":\"u\","
                                        "\"roofs\":[{\"name\":\"dram read\"}]}}",
                                        "{\"reply\":\"record\",\"record\":{\"status\":\"failed\"}}",
                                        "{\"reply\":\"record\",\"record\":{\"status\":\"measured\","
                                        "\"time_median\":-1e308}}",
                                        "{\"reply\":\"record\",\"record\":{\"status\":\"measured\","
                                        "\"time_median\":1e999}}",
                                        "{\"reply\":\"record\",\"record\":{\"status\":\"measured\","
                                        "\"time_median\":NaN}}"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
        struct reply reply;
        struct error error = {""};
        reply_init(&reply);
        assert_int_equal(reply_decode(lines[i], &reply, &error), STATUS_SYSTEM);
        assert_true(error.text[0]);
        reply_clear(&reply);
    }
}

/* The record's text keeps unknown members, which a newer worker may send. */
TEST(a_record_keeps_its_text)
{
    struct reply reply;
    struct error error;
    reply_init(&reply);
    assert_int_equal(reply_decode("{\"reply\":\"record\",\"record\":{\"status\":\"failed\","
                                  "\"configuration\":\"?\",\"mood\":7}}",
                                  &reply, &error),
                     STATUS_OK);
    assert_int_equal(reply.record.status, RECORD_FAILED);
    assert_string_equal(reply.record_text,
                        "{\"status\":\"failed\",\"configuration\":\"?\",\"mood\":7}");
    reply_clear(&reply);
    assert_null(reply.record_text);
}

TEST(replies_round_trip)
{
    struct reply reply, copy;
    struct error error;
    reply_init(&reply);
    reply_init(&copy);
    reply.kind = REPLY_ERROR;
    reply.status = error_set(&reply.error, STATUS_DEVICE, "it is \"gone\"\n");
    pass_on(&reply, &copy);
    assert_int_equal(copy.status, STATUS_DEVICE);
    assert_string_equal(copy.error.text, "it is \"gone\"\n");

    /* Drivers may return texts that are empty or not UTF-8. */
    reply.status = error_set(&reply.error, STATUS_FAILED, "caf\xe9");
    pass_on(&reply, &copy);
    assert_string_equal(copy.error.text, "caf?");
    assert_int_equal(reply_decode("{\"reply\":\"error\",\"text\":\"\"}", &copy, &error), STATUS_OK);
    assert_string_equal(copy.error.text, "no reason given");

    reply.kind = REPLY_RECORD;
    strcpy(reply.record.configuration, "conv2d batch=16");
    reply.record.status = RECORD_MEASURED;
    reply.record.time_median = 0.25;
    pass_on(&reply, &copy);
    assert_true(copy.record.time_median == 0.25);

    reply.kind = REPLY_TIMED;
    strcpy(reply.configuration, "conv2d batch=16");
    pass_on(&reply, &copy);
    assert_string_equal(copy.configuration, "conv2d batch=16");
    assert_int_equal(reply_decode("{\"reply\":\"timed\"}", &copy, &error), STATUS_SYSTEM);

    assert_int_not_equal(reply_decode("{\"reply\":\"tale\"}", &copy, &error), STATUS_OK);
    reply_clear(&copy);
    reply_clear(&reply);
}
