/* Plans of a convolution's graph on a scripted cuDNN: those that its heuristics propose, and one by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "scripted_backend.h"
#include "scripted_bench.h"
#include "worker/cuda/workloads/conv2d_graph.h"

static struct plan_shelf *shelf; /* of the request; NULL in most tests */

/* `only`: as in the request. */
static enum status make(const char *only, struct conv2d_graph **graph, struct error *error)
{
    struct config config;
    assert_int_equal(config_parse("conv2d precision=fp16", &config, error), STATUS_OK);
    const struct conv2d shape = conv2d_from(&config);
    const struct conv2d_graph_request request = {
        .operation = {.shape = &shape,
                      .data = CUDNN_DATA_HALF,
                      .result = CUDNN_DATA_HALF,
                      .compute = CUDNN_DATA_FLOAT},
        .tensor = true,
        .only = only,
        .shelf = shelf,
        .workspace_limit = 1 << 20,
    };
    scripted_backend = (struct scripted_backend){.engines = 3, .alive = scripted_backend.alive};
    return conv2d_graph_create(&request, graph, error);
}

static void heuristics_propose_plans(void **state)
{
    (void)state;
    struct conv2d_graph *graph = NULL;
    struct error error;
    assert_int_equal(make(NULL, &graph, &error), STATUS_OK);
    assert_int_equal(conv2d_graph_plans(graph), 3);
    assert_string_equal(conv2d_graph_plan(graph, 1)->name, "engine-2");
    assert_true(scripted_backend.heuristics > 0);
    conv2d_graph_destroy(graph);
    assert_int_equal(scripted_backend.alive, 0);
}

/* No heuristic is asked, and the plan has the name that it was made from. */
static void a_name_makes_its_plan(void **state)
{
    (void)state;
    static const char *const names[] = {"engine-2", "engine-38 k2=5", "engine-73 k2=4 k13=1 k18=0",
                                        "engine-0 k1=-3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        struct conv2d_graph *graph = NULL;
        struct error error;
        assert_int_equal(make(names[i], &graph, &error), STATUS_OK);
        assert_int_equal(conv2d_graph_plans(graph), 1);
        assert_string_equal(conv2d_graph_plan(graph, 0)->name, names[i]);
        assert_int_equal(conv2d_graph_build(graph, 0, &error), STATUS_OK);
        assert_int_equal(scripted_backend.heuristics, 0);
        conv2d_graph_destroy(graph);
        assert_int_equal(scripted_backend.alive, 0);
    }
}

/* Of another version, or of a file that somebody has edited: the search is made then. */
static void what_is_no_name_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"",           "algo-1",       "engine-",
                                        "engine-2 x", "engine-2 k2=", "engine-2 k2=5, k13=1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        struct conv2d_graph *graph = NULL;
        struct error error;
        assert_int_equal(make(names[i], &graph, &error), STATUS_UNSUPPORTED);
        assert_null(graph);
        assert_int_equal(scripted_backend.alive, 0);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, bench_set_up, bench_tear_down)

/* A plan that was named stays until the shelf is full; then all that are on it go. Those of a search go at
 * once. */
static void plans_are_destroyed_many_at_a_time(void **state)
{
    (void)state;
    struct conv2d_graph *graph = NULL;
    struct error error;
    shelf = plan_shelf_create();
    assert_non_null(shelf);
    assert_int_equal(make(NULL, &graph, &error), STATUS_OK);
    conv2d_graph_destroy(graph);
    assert_int_equal(scripted_backend.alive, 0);
    int last = 0;
    for (int i = 0; i < PLAN_SHELF_MOST; ++i) {
        assert_int_equal(make("engine-2", &graph, &error), STATUS_OK);
        assert_int_equal(conv2d_graph_build(graph, 0, &error), STATUS_OK);
        conv2d_graph_destroy(graph);
        assert_true(scripted_backend.alive > last);
        last = scripted_backend.alive;
    }
    assert_int_equal(make("engine-2", &graph, &error), STATUS_OK);
    const int each = scripted_backend.alive - last;
    conv2d_graph_destroy(graph);
    assert_int_equal(scripted_backend.alive, each);
    plan_shelf_destroy(shelf);
    shelf = NULL;
    assert_int_equal(scripted_backend.alive, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(heuristics_propose_plans),
        TEST(a_name_makes_its_plan),
        TEST(what_is_no_name_is_refused),
        TEST(plans_are_destroyed_many_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
