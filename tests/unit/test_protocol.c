#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/protocol.h"

static void pass_on(const struct reply *reply, struct reply *copy)
{
    char *line = reply_encode(reply);
    assert_null(strchr(line, '\n'));
    if (reply_decode(line, copy, &failure))
        fail_msg("%s: %s", line, failure.text);
    free(line);
    assert_int_equal(copy->kind, reply->kind);
}

/* Writes `text` with double quotes in place of single quotes. */
static void quoted(const char *text, char line[640])
{
    snprintf(line, 640, "%s", text);
    for (char *c = line; *c; ++c)
        *c = *c == '\'' ? '"' : *c;
}

/* Every key differs from its default, so that the test finds keys that are not encoded or decoded.
 */
TEST(requests_are_their_lines)
{
    static const char *const lines[] = {
        "{'op':'devices'}",
        "{'op':'release'}",
        "{'op':'count'}",
        "{'op':'describe','index':3,'counters':'off'}",
        "{'op':'tune','memory':['dram','l1'],'compute':['fp32'],'launch':false,'transfer':false,"
        "'prove':false}",
        "{'op':'tune','memory':[],'compute':['fp64','int8'],'launch':false,'transfer':false,"
        "'prove':false}",
        "{'op':'roof','name':'launch gap','condition':'together','start':1735689600.125,"
        "'sustained':false,'only_sustained':true,'energy':true,'keep_busy':true}",
        "{'op':'links','devices':'GPU-1,GPU-2','members':0,'place':0}",
        "{'op':'links','devices':'GPU-1','members':4,'place':1,'id':'07ff','peers':'3,-1,0'}",
        "{'op':'measure','configuration':'softmax cache=cold columns=7 implementation=plain "
        "pass=backward precision=fp64 rows=3','seed':-2,'warmup':2,'iterations':0,'stop':0.25,"
        "'min_time':1.0,'max_time':9.0,'repeat':7,'counters':'causes','kernels':true,"
        "'verify':false,'energy':true,'count_later':true,'algorithm':{'algorithm':"
        "'engine-38 k2=5','search_time':0.5},'folder':'/home/me','timeout':120.5,'row':'stem x'}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
        struct request request;
        char line[640];
        quoted(lines[i], line);
        assert_ok(request_decode(line, &request, &failure));
        char *again = request_encode(&request);
        assert_string_equal(again, line);
        free(again);
    }
}

TEST(roofs_round_trip)
{
    struct reply reply, other;
    reply_init(&reply);
    reply_init(&other);
    reply.kind = REPLY_ROOFS;
    reply.found[ROOF_FP8_TENSOR_LIBRARY] = true;
    pass_on(&reply, &other);
    assert_memory_equal(other.found, reply.found, sizeof reply.found);

    reply.kind = REPLY_ROOF;
    roof_init(&reply.roof, ROOF_DRAM_READ, ROOF_TOGETHER);
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
    double seconds[LINK_SAMPLES] = {3, 1, 2, 2, 2};
    struct reply reply, other;
    reply_init(&reply);
    reply_init(&other);
    reply.kind = REPLY_LINKS;
    strcpy(reply.id, "07ff");
    struct link link = {.operation = LINK_ALL_REDUCE, .devices = 4, .nccl = 22803};
    strcpy(link.from, "GPU-1");
    strcpy(link.to, "GPU-2");
    link.peer_access = FIELD_MISSING;
    for (int i = 0; i < 500; ++i)
        assert_ok(link_list_measured(&reply.links, &link, 8, seconds, &failure));
    assert_true(link.time == 2 && link.bandwidth == 6); /* 8 / 2 * 2 * 3 / 4 */
    pass_on(&reply, &other);
    assert_string_equal(other.id, "07ff");
    assert_int_equal(other.links.count, 500);
    assert_memory_equal(&other.links.links[499], &link, sizeof link);
    reply_clear(&other);
    reply_clear(&reply);
}

TEST(short_requests_take_defaults)
{
    struct request request;
    const char *line = "{\"op\":\"measure\",\"configuration\":\"conv2d\"}\n";
    assert_ok(request_decode(line, &request, &failure));
    assert_int_equal(request.measure.warmup, 5);
    assert_int_equal(request.measure.iterations, 20);
    assert_true(request.measure.verify);
    assert_ok(request_decode("{\"op\":\"describe\"}", &request, &failure));
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
        {"{'op':'tune','compute':['fp32',5]}", "compute: 5", "a word"},
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
        char line[640];
        quoted(rows[i].line, line);
        assert_int_equal(request_decode(line, &request, &error), STATUS_USAGE);
        if (!strstr(error.text, rows[i].key) || !strstr(error.text, rows[i].allowed))
            fail_msg("%s: '%s' does not say '%s' and '%s'", line, error.text, rows[i].key,
                     rows[i].allowed);
        assert_memory_equal(&request, &before, sizeof before);
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
    reply_init(&reply);
    assert_ok(reply_decode("{\"reply\":\"record\",\"record\":{\"status\":\"failed\","
                           "\"configuration\":\"?\",\"mood\":7}}",
                           &reply, &failure));
    assert_int_equal(reply.record.status, RECORD_FAILED);
    assert_string_equal(reply.record_text,
                        "{\"status\":\"failed\",\"configuration\":\"?\",\"mood\":7}");
    reply_clear(&reply);
    assert_null(reply.record_text);
}

TEST(replies_round_trip)
{
    struct reply reply, copy;
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
    assert_ok(reply_decode("{\"reply\":\"error\",\"text\":\"\"}", &copy, &failure));
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
    assert_int_equal(reply_decode("{\"reply\":\"timed\"}", &copy, &failure), STATUS_SYSTEM);
    reply_clear(&copy);
    reply_clear(&reply);
}
