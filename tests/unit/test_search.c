/* The search for the fastest algorithm, on a scripted H200 (scripted_cuda.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/choice.h"
#include "scripted_bench.h"
#include "worker/cuda/gpu/check.h"
#include "worker/gpu/search.h"

enum { CANDIDATES = 12 };

/* What a library offers: times, kernels, and what it refuses. */
static struct offer {
    double time;      /* s; 0: refused */
    uint64_t kernels; /* 0: as many kinds as candidates */
    double noise;     /* each iteration is off by up to so much */
} offers[CANDIDATES];

static const char *refused;

struct offered_work {
    struct work base;
    int bound, binds, iterations;
};

static enum status offered_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    struct offered_work *o = (struct offered_work *)work;
    const struct offer *offer = &offers[o->bound];
    double off = offer->noise * sin(12.9898 * ++o->iterations);
    return CUDA(kernel_delay(offer->time * (1.0 + off), gpu->stream));
}

static const struct work_ops offered_ops = {.iterate = offered_iterate};

static enum status offered_bind(struct gpu *gpu, struct work *work, int candidate,
                                struct error *error)
{
    struct offered_work *o = (struct offered_work *)work;
    (void)gpu;
    if (offers[candidate].time == 0.0)
        return error_set(error, STATUS_UNSUPPORTED, "candidate %d is refused", candidate);
    o->bound = candidate;
    ++o->binds;
    return STATUS_OK;
}

static const char *offered_name(const struct work *work, int candidate)
{
    static const char *const names[CANDIDATES] = {"a", "b", "c", "d", "e", "f",
                                                  "g", "h", "i", "j", "k", "l"};
    (void)work;
    return names[candidate];
}

static enum status offered_identify(struct gpu *gpu, struct work *work, struct identity *identity,
                                    struct error *error)
{
    int bound = ((const struct offered_work *)work)->bound;
    uint64_t kernels = offers[bound].kernels ? offers[bound].kernels : 100 + (uint64_t)bound;
    (void)gpu, (void)error;
    *identity = (struct identity){kernels, kernels};
    return STATUS_OK;
}

/* The chosen candidate's name. */
static const char *search_for(int count, int ordered, bool cold, struct record *record)
{
    struct offered_work work = {.base = {.ops = &offered_ops}, .bound = -1};
    const struct search search = {
        .gpu = &bench.gpu,
        .work = &work.base,
        .cold = cold,
        .count = count,
        .ordered = ordered,
        .bind = offered_bind,
        .name = offered_name,
        .refused = refused,
        .identify = offered_identify,
    };
    struct error error;
    int chosen = -1;
    record_init(record);
    assert_int_equal(search_run(&search, &chosen, record, &error), STATUS_OK);
    assert_int_equal(work.bound, chosen);
    return offered_name(&work.base, chosen);
}

static void offers_are(size_t count, const double *times)
{
    memset(offers, 0, sizeof offers);
    for (size_t i = 0; i < count; ++i)
        offers[i].time = times[i];
}

static void the_fastest_wins_wherever_it_stands(void **state)
{
    (void)state;
    for (int cold = 0; cold < 2; ++cold)
        for (int fastest = 0; fastest < CANDIDATES; ++fastest) {
            double times[CANDIDATES];
            struct record record;
            for (int i = 0; i < CANDIDATES; ++i)
                times[i] = 50e-6 + 2e-6 * ((i + 5) % CANDIDATES);
            times[fastest] = 45e-6;
            offers_are(CANDIDATES, times);
            assert_string_equal(search_for(CANDIDATES, 0, cold, &record),
                                offered_name(NULL, fastest));
            assert_near(record.search_time, 45e-6);
            assert_int_equal(record.search_candidates, CANDIDATES);
            assert_string_equal(record.heuristic_algorithm, "a");
            record_clear(&record);
        }
}

/* The library's own choice is 2 % slower: it stays where times differ by more than that from run to
 * run, and not where they do not. */
static void the_first_choice_stays_within_the_noise(void **state)
{
    (void)state;
    static const double times[] = {51e-6, 50e-6, 80e-6};
    const struct {
        double noise;
        const char *chosen;
    } cases[] = {{0.0, "b"}, {0.001, "b"}, {0.2, "a"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        offers_are(3, times);
        for (int j = 0; j < 3; ++j)
            offers[j].noise = cases[i].noise;
        assert_string_equal(search_for(3, 0, false, &record), cases[i].chosen);
        bool stays = record.heuristic_time <= (1.0 + record.search_noise) * record.search_time;
        assert_int_equal(stays, strcmp(cases[i].chosen, "a") == 0);
        record_clear(&record);
    }
}

static void an_unordered_library_has_no_first_choice(void **state)
{
    (void)state;
    static const double times[] = {50.1e-6, 50e-6, 80e-6};
    struct record record;
    offers_are(3, times);
    assert_string_equal(search_for(3, 3, false, &record), "b");
    assert_string_equal(record.heuristic_algorithm, "");
    assert_true(isnan(record.heuristic_time));
    assert_string_equal(record.runner_up_algorithm, "a");
    assert_near(record.runner_up_time, 50.1e-6);
    record_clear(&record);
}

/* The same kernels under three names: they are timed once, and none of them is the runner-up. */
static void kernels_tell_algorithms_apart(void **state)
{
    (void)state;
    static const double times[] = {50e-6, 50e-6, 50e-6, 53e-6};
    struct record record;
    offers_are(4, times);
    offers[0].kernels = offers[1].kernels = offers[2].kernels = 0xabc;
    assert_string_equal(search_for(4, 0, false, &record), "a");
    assert_int_equal(record.search_candidates, 2);
    assert_string_equal(record.algorithm_id, "0000000000000abc");
    assert_string_equal(record.heuristic_id, "0000000000000abc");
    assert_string_equal(record.runner_up_algorithm, "d");
    assert_string_equal(record.runner_up_id, "0000000000000067");
    assert_near(record.runner_up_time, 53e-6);
    record_clear(&record);
}

/* Candidates that stand before the library's own order lend their name to the same kernels in it. */
static void the_library_s_order_may_begin_later(void **state)
{
    (void)state;
    static const double times[] = {50e-6, 70e-6, 70e-6, 50e-6, 60e-6};
    struct record record;
    offers_are(5, times);
    offers[1].kernels = offers[2].kernels = 0xabc;
    assert_string_equal(search_for(5, 2, false, &record), "a");
    assert_string_equal(record.heuristic_algorithm, "b");
    assert_near(record.heuristic_time, 70e-6);
    record_clear(&record);
}

/* What the library refuses first is not its choice. */
static void refusals_are_passed_over(void **state)
{
    (void)state;
    static const double times[] = {0.0, 60e-6, 0.0, 50e-6};
    struct record record;
    offers_are(4, times);
    assert_string_equal(search_for(4, 0, false, &record), "d");
    assert_string_equal(record.heuristic_algorithm, "b");
    assert_near(record.heuristic_time, 60e-6);
    assert_int_equal(record.search_candidates, 2);
    record_clear(&record);
}

static void all_refused_is_the_first_refusal(void **state)
{
    (void)state;
    struct offered_work work = {.base = {.ops = &offered_ops}, .bound = -1};
    const struct search search = {
        .gpu = &bench.gpu,
        .work = &work.base,
        .count = 3,
        .bind = offered_bind,
        .name = offered_name,
        .identify = offered_identify,
    };
    struct record record;
    struct error error;
    int chosen = -1;
    record_init(&record);
    memset(offers, 0, sizeof offers);
    assert_int_equal(search_run(&search, &chosen, &record, &error), STATUS_UNSUPPORTED);
    assert_string_equal(error.text, "candidate 0 is refused");
    assert_int_equal(chosen, -1);
    assert_int_equal(record.search_candidates, FIELD_MISSING);
    record_clear(&record);
}

/* What verification refused is not chosen, under whatever name. */
static void wrong_kernels_are_left_out(void **state)
{
    (void)state;
    static const double times[] = {50e-6, 40e-6, 45e-6, 40e-6};
    struct record record;
    offers_are(4, times);
    offers[1].kernels = offers[3].kernels = 0xbad;
    refused = "0000000000000001 0000000000000bad ";
    assert_string_equal(search_for(4, 0, false, &record), "c");
    assert_int_equal(record.search_candidates, 2);
    refused = NULL;
    assert_string_equal(search_for(4, 0, false, &record), "b");
    record_clear(&record);
}

/* Each is added to the list and told; an earlier choice's refusals are told no more. */
static void what_is_refused_is_told(void **state)
{
    (void)state;
    char list[SEARCH_REFUSED] = "";
    struct record record;
    struct error error;
    record_init(&record);
    assert_int_equal(search_refuse(list, false, &record, &error), STATUS_UNSUPPORTED);
    strcpy(record.algorithm_id, "0000000000000001");
    strcpy(record.algorithm, "a");
    assert_int_equal(search_refuse(list, false, &record, &error), STATUS_OK);
    strcpy(record.algorithm_id, "0000000000000bad");
    strcpy(record.algorithm, "b");
    assert_int_equal(search_refuse(list, false, &record, &error), STATUS_OK);
    assert_string_equal(list, "0000000000000001 0000000000000bad ");
    assert_string_equal(record.refused_algorithms, "a; b");
    assert_int_equal(search_refuse(list, true, &record, &error), STATUS_OK);
    assert_string_equal(record.refused_algorithms, "b");
    while (search_refuse(list, false, &record, &error) == STATUS_OK)
        assert_true(strlen(list) < sizeof list);
    assert_string_equal(error.text, "no other algorithm is tried");
    record_clear(&record);
}

/* One alone needs no second, and has none. */
static void one_candidate_is_chosen(void **state)
{
    (void)state;
    static const double times[] = {3e-3};
    struct record record;
    offers_are(1, times);
    assert_string_equal(search_for(1, 0, false, &record), "a");
    assert_string_equal(record.runner_up_algorithm, "");
    assert_true(isnan(record.runner_up_time));
    assert_near(record.search_time, 3e-3);
    record_clear(&record);
}

/* ---- an earlier choice ---- */

static struct choice choice_of(int count)
{
    struct record record;
    struct choice choice;
    strcpy(record.algorithm, search_for(count, 0, false, &record));
    record.status = RECORD_MEASURED;
    assert_string_equal(record.algorithm_origin, "search");
    assert_true(choice_of_record(&record, &choice));
    record_clear(&record);
    return choice;
}

/* As search_for, with this on offer; *binds: how often a candidate was bound. */
static const char *recall(const struct choice *offer, int count, struct record *record, int *binds)
{
    struct offered_work work = {.base = {.ops = &offered_ops}, .bound = -1};
    const struct search search = {
        .gpu = &bench.gpu,
        .work = &work.base,
        .count = count,
        .bind = offered_bind,
        .name = offered_name,
        .identify = offered_identify,
    };
    struct error error;
    int chosen = -1;
    record_init(record);
    record->offer = offer;
    assert_int_equal(search_run(&search, &chosen, record, &error), STATUS_OK);
    assert_null(record->offer);
    assert_int_equal(work.bound, chosen);
    /* Only a search times what it binds. */
    bool searched = strcmp(record->algorithm_origin, "search") == 0;
    assert_true(searched == (work.base.pace.enqueue_time > 0));
    *binds = work.binds;
    return offered_name(&work.base, chosen);
}

static void an_earlier_choice_is_bound_without_a_search(void **state)
{
    (void)state;
    static const double times[] = {50e-6, 70e-6, 60e-6};
    struct record record;
    int binds;
    offers_are(3, times);
    struct choice choice = choice_of(3);
    strcpy(choice.algorithm_origin, "file of 2026-11-22");
    assert_string_equal(recall(&choice, 3, &record, &binds), "a");
    assert_int_equal(binds, 1);
    assert_string_equal(record.algorithm_origin, "file of 2026-11-22");
    assert_int_equal(record.search_candidates, 3);
    assert_near(record.search_time, 50e-6);
    assert_string_equal(record.runner_up_algorithm, "c");
    assert_near(record.runner_up_time, 60e-6);
    assert_string_equal(record.heuristic_algorithm, "a");
    struct choice again;
    record.status = RECORD_MEASURED;
    assert_false(choice_of_record(&record, &again)); /* it is not this row's own */
    record_clear(&record);
}

/* Other kernels under its name, a refusal, or no such name: the search is made, and says so. */
static void a_choice_that_cannot_be_had_is_searched_anew(void **state)
{
    (void)state;
    static const double times[] = {50e-6, 70e-6, 60e-6}, refusal[] = {0, 70e-6, 60e-6};
    struct record record;
    int binds;
    offers_are(3, times);
    struct choice choice = choice_of(3), other = choice;
    strcpy(other.algorithm_id, "00000000000000ff");
    assert_string_equal(recall(&other, 3, &record, &binds), "a");
    assert_string_equal(record.algorithm_origin, "search");
    assert_true(binds > 3);
    record_clear(&record);

    other = choice;
    strcpy(other.algorithm_launches, "00000000000000ff");
    recall(&other, 3, &record, &binds);
    assert_string_equal(record.algorithm_origin, "search");
    record_clear(&record);

    strcpy(other.algorithm, "of another version");
    recall(&other, 3, &record, &binds);
    assert_string_equal(record.algorithm_origin, "search");
    record_clear(&record);

    offers_are(3, refusal);
    assert_string_equal(recall(&choice, 3, &record, &binds), "c");
    assert_string_equal(record.algorithm_origin, "search");
    assert_near(record.search_time, 60e-6);
    record_clear(&record);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_fastest_wins_wherever_it_stands),
        TEST(the_first_choice_stays_within_the_noise),
        TEST(an_unordered_library_has_no_first_choice),
        TEST(kernels_tell_algorithms_apart),
        TEST(the_library_s_order_may_begin_later),
        TEST(refusals_are_passed_over),
        TEST(all_refused_is_the_first_refusal),
        TEST(wrong_kernels_are_left_out),
        TEST(what_is_refused_is_told),
        TEST(one_candidate_is_chosen),
        TEST(an_earlier_choice_is_bound_without_a_search),
        TEST(a_choice_that_cannot_be_had_is_searched_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
