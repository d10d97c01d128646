/* The search for the fastest algorithm, and which kernels it runs, on a scripted GPU
 * (scripted_vendor.h). */
#include "scripted_vendor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "worker/gpu/search.h"

enum { CANDIDATES = 12 };

static struct offer {
    double time;      /* s; 0: refused */
    uint64_t kernels; /* identity; 0: a different one for each candidate */
    double noise;     /* largest relative deviation of an iteration */
    double host;      /* s of the host for an iteration */
} offers[CANDIDATES];
static double graph_times[CANDIDATES]; /* s; 0: as in the stream */
static double hot_times[CANDIDATES];   /* s, struct search.hot_time */
static int slower_from;                /* iterations after this one take 6 % longer; 0: none */

struct offered_work {
    struct work base;
    int bound, binds, iterations;
};

static enum status offered_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    struct offered_work *o = (struct offered_work *)work;
    const struct offer *offer = &offers[o->bound];
    double off = offer->noise * sin(78.233 * ++o->iterations);
    off += slower_from > 0 && o->iterations > slower_from ? 0.06 : 0.0;
    clock_sleep(offer->host);
    double in_graph = graph_times[o->bound] > 0 ? graph_times[o->bound] : offer->time;
    return script_kernel("it", offer->time * (1.0 + off), in_graph, error);
}

static const struct work_ops offered_ops = {.iterate = offered_iterate};

static enum status offered_bind(struct gpu *gpu, struct work *work, int candidate,
                                struct error *error)
{
    struct offered_work *o = (struct offered_work *)work;
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
    return names[candidate];
}

static double *offered_hot_time(const struct work *work, int candidate)
{
    return &hot_times[candidate];
}

static enum status offered_identify(struct gpu *gpu, struct work *work, struct identity *identity,
                                    struct error *error)
{
    int bound = ((const struct offered_work *)work)->bound;
    uint64_t kernels = offers[bound].kernels ? offers[bound].kernels : 100 + (uint64_t)bound;
    *identity = (struct identity){kernels, kernels};
    return STATUS_OK;
}

struct search_case {
    int count, ordered;
    bool cold, replayed;
    const char *refused;
    const struct algorithm *offer;
};

/* Returns the name of the chosen candidate. *binds: number of bindings. */
static const char *search_for(struct search_case what, struct record *record, int *binds)
{
    struct offered_work work = {.base = {.ops = &offered_ops}, .bound = -1};
    const struct search search = {
        .work = &work.base,
        .count = what.count,
        .ordered = what.ordered,
        .bind = offered_bind,
        .name = offered_name,
        .hot_time = offered_hot_time,
        .refused = what.refused,
        .identify = offered_identify,
    };
    struct error error;
    int chosen = -1;
    struct config config;
    char text[WORKLOAD_TEXT];
    snprintf(text, sizeof text, "conv2d cache=%s launch=%s", what.cold ? "cold" : "hot",
             what.replayed ? "graph" : "stream");
    record_init(record);
    assert_ok(config_parse(text, &config, &failure));
    record_set_config(record, &config);
    record->offer = what.offer;
    enum status status = search_run(&search, &chosen, record, &error);
    assert_int_equal(status, chosen < 0 ? STATUS_UNSUPPORTED : STATUS_OK);
    if (chosen < 0) {
        assert_string_equal(error.text, "candidate 0 is refused");
        return NULL;
    }
    assert_null(record->offer);
    assert_int_equal(work.bound, chosen);
    /* A recalled algorithm is not timed. */
    bool searched = strcmp(record->algorithm_origin, "search") == 0;
    assert_true(searched == (work.base.pace.enqueue_time > 0));
    assert_true(searched == (record->wall_time_part[PART_SEARCH_RUN] > 0));
    assert_true(searched == (record->wall_time_part[PART_SEARCH_BUILD] >= 0));
    if (binds)
        *binds = work.binds;
    return offered_name(&work.base, chosen);
}

static void offers_are(size_t count, const double *times)
{
    memset(offers, 0, sizeof offers);
    memset(graph_times, 0, sizeof graph_times);
    memset(hot_times, 0, sizeof hot_times);
    slower_from = 0;
    for (size_t i = 0; i < count; ++i)
        offers[i].time = times[i];
}

#define SCRIPT_TEST(name) TEST_WITH(name, script_set_up, script_tear_down)

SCRIPT_TEST(the_fastest_wins_wherever_it_stands)
{
    for (int cold = 0; cold < 2; ++cold)
        for (int fastest = 0; fastest < CANDIDATES; ++fastest) {
            double times[CANDIDATES];
            struct record record;
            for (int i = 0; i < CANDIDATES; ++i)
                times[i] = 50e-6 + 2e-6 * ((i + 5) % CANDIDATES);
            times[fastest] = 45e-6;
            offers_are(CANDIDATES, times);
            assert_string_equal(
                search_for((struct search_case){.count = CANDIDATES, .cold = cold}, &record, NULL),
                offered_name(NULL, fastest));
            assert_near(record.search_time, 45e-6);
            assert_int_equal(record.search_candidates, CANDIDATES);
            assert_string_equal(record.heuristic_algorithm, "a");
            record_clear(&record);
        }
}

/* Each candidate has three long iterations, and each of several finalists seven more. A finalist
 * that is slower each time leaves after three of them, unless it is the library's own choice. */
SCRIPT_TEST(long_iterations_are_few)
{
    static const struct {
        int count, ordered;
        double times[2], busy; /* s */
    } cases[] = {
        {1, 1, {5e-3}, 3 * 5e-3},
        {2, 2, {5e-3, 5e-3}, 2 * (3 + 7) * 5e-3},
        {2, 2, {5e-3, 5.5e-3}, (3 + 7) * 5e-3 + (3 + 3) * 5.5e-3},
        {2, 0, {5.5e-3, 5e-3}, (3 + 7) * (5e-3 + 5.5e-3)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const int count = cases[i].count;
        struct record record;
        script_reset();
        offers_are((size_t)count, cases[i].times);
        search_for((struct search_case){.count = count, .ordered = cases[i].ordered}, &record,
                   NULL);
        assert_near(script.busy, cases[i].busy);
        assert_near(record.search_time, 5e-3);
        record_clear(&record);
    }
}

/* The clock falls after three rounds, so later rounds of the fastest are longer than all of the
 * beaten one's. */
SCRIPT_TEST(a_beaten_finalist_stays_beaten)
{
    static const double times[] = {5e-3, 5.1e-3};
    for (int ordered = 0; ordered <= 2; ordered += 2) {
        struct record record;
        offers_are(2, times);
        slower_from = 2 * (3 + 3);
        assert_string_equal(
            search_for((struct search_case){.count = 2, .ordered = ordered}, &record, NULL), "a");
        assert_near(record.search_time, 1.06 * times[0]);
        record_clear(&record);
    }
}

/* The timer's time does not make a candidate hopeless. */
SCRIPT_TEST(short_candidates_are_finalists)
{
    static const double times[] = {6e-6, 5.5e-6};
    struct record record;
    offers_are(2, times);
    script.event_time = 6e-6;
    assert_string_equal(search_for((struct search_case){.count = 2, .ordered = 2}, &record, NULL),
                        "b");
    assert_near(record.runner_up_time, times[0]);
    record_clear(&record);
}

/* A host that needs 0.2 ms for an iteration does not decide, and does not make the search long. */
SCRIPT_TEST(a_slow_call_may_win)
{
    static const double times[] = {6.5e-6, 7e-6};
    struct record record;
    offers_are(2, times);
    offers[0].host = 200e-6;
    script.event_time = 2e-6;
    const double begin = clock_monotonic();
    assert_string_equal(search_for((struct search_case){.count = 2, .ordered = 2}, &record, NULL),
                        "a");
    assert_near(record.search_time, times[0]);
    assert_near(record.runner_up_time, times[1]);
    assert_true(clock_monotonic() - begin < 25e-3);
    record_clear(&record);
}

/* The library's own choice is 2 % slower. It wins only if the noise is larger than that. */
SCRIPT_TEST(the_first_choice_stays_within_the_noise)
{
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
        assert_string_equal(search_for((struct search_case){.count = 3}, &record, NULL),
                            cases[i].chosen);
        bool stays = record.heuristic_time <= (1.0 + record.search_noise) * record.search_time;
        assert_int_equal(stays, strcmp(cases[i].chosen, "a") == 0);
        record_clear(&record);
    }
}

/* Only candidates near the fastest are timed in graphs. With a cold cache no graphs are timed. */
SCRIPT_TEST(the_fastest_in_a_graph_is_replayed)
{
    static const double times[] = {50e-6, 52e-6, 90e-6};
    for (int cold = 0; cold < 2; ++cold) {
        struct record record;
        offers_are(3, times);
        graph_times[0] = 49e-6;
        graph_times[1] = 45e-6;
        graph_times[2] = 10e-6; /* hopeless in the stream */
        const struct search_case what = {.count = 3, .cold = cold, .replayed = true};
        assert_string_equal(search_for(what, &record, NULL), cold ? "a" : "b");
        assert_near(record.search_time, cold ? 50e-6 : 45e-6);
        assert_near(record.runner_up_time, cold ? 52e-6 : 49e-6);
        record_clear(&record);
    }
}

/* Candidates before `ordered` are not the library's own choice. They lend their names to equal
 * kernels in the library's order. */
SCRIPT_TEST(names_follow_kernels_and_order)
{
    static const struct {
        int count, ordered;
        double us[5];                           /* times, us; 0: refused */
        uint64_t kernels[5];                    /* identity, as in struct offer */
        bool bad_refused;                       /* kernels 0xbad were refused */
        const char *chosen, *first, *runner_up; /* chosen NULL: none; runner_up NULL: any */
        double first_us, runner_up_us;          /* 0: missing */
        int candidates;
    } cases[] = {
        /* Without an order there is no first choice. */
        {3, 3, {50.1, 50, 80}, {0}, false, "b", "", "a", 0, 50.1, 3},
        /* Equal kernels under three names are one entry. */
        {4, 0, {50, 50, 50, 53}, {0xabc, 0xabc, 0xabc}, false, "a", "a", "d", 50, 53, 2},
        {5, 2, {50, 70, 70, 50.1, 60}, {0, 0xabc, 0xabc}, false, "a", "b", NULL, 70, 0, 4},
        /* A refused candidate is not the library's own choice. */
        {4, 0, {0, 60, 0, 50}, {0}, false, "d", "b", "b", 60, 60, 2},
        /* Refused kernels are not chosen under another name. */
        {4, 0, {50, 40, 45, 40}, {0, 0xbad, 0, 0xbad}, true, "c", "a", "a", 50, 50, 2},
        /* A single candidate has no runner-up. */
        {1, 0, {3000}, {0}, false, "a", "a", "", 3000, 0, 1},
        {3, 0, {0}, {0}, false, NULL, "", "", 0, 0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        for (int j = 0; j < 5; ++j)
            offers[j] = (struct offer){1e-6 * cases[i].us[j], cases[i].kernels[j], 0, 0};
        const struct search_case what = {
            .count = cases[i].count,
            .ordered = cases[i].ordered,
            .refused = cases[i].bad_refused ? "0000000000000001 0000000000000bad " : NULL};
        const char *chosen = search_for(what, &record, NULL);
        if (!cases[i].chosen) {
            assert_null(chosen);
            assert_int_equal(record.search_candidates, FIELD_MISSING);
            continue;
        }
        assert_string_equal(chosen, cases[i].chosen);
        assert_string_equal(record.heuristic_algorithm, cases[i].first);
        if (cases[i].runner_up)
            assert_string_equal(record.runner_up_algorithm, cases[i].runner_up);
        if (cases[i].first_us > 0.0)
            assert_near(record.heuristic_time, 1e-6 * cases[i].first_us);
        else
            assert_true(isnan(record.heuristic_time));
        if (cases[i].runner_up_us > 0.0)
            assert_near(record.runner_up_time, 1e-6 * cases[i].runner_up_us);
        assert_int_equal(record.search_candidates, cases[i].candidates);
        if (i == 1) {
            assert_string_equal(record.algorithm_id, "0000000000000abc");
            assert_string_equal(record.heuristic_id, "0000000000000abc");
            assert_string_equal(record.runner_up_id, "0000000000000067");
        }
        record_clear(&record);
    }
}

/* The library's own first choice is always timed. */
SCRIPT_TEST(candidates_slow_with_a_hot_cache_are_skipped_with_a_cold_one)
{
    static const double times[] = {50e-6, 60e-6, 4e-4, 9e-4, 52e-6};
    struct record record;
    int binds[2];
    offers_are(5, times);
    for (int cold = 0; cold < 2; ++cold) {
        const struct search_case what = {.count = 5, .ordered = 2, .cold = cold};
        assert_string_equal(search_for(what, &record, &binds[cold]), "a");
        assert_string_equal(record.heuristic_algorithm, "c");
        assert_int_equal(record.search_candidates, 5 - cold);
        record_clear(&record);
    }
    assert_int_equal(binds[1], binds[0] - 1);
}

/* Each refused algorithm is added to the list and to the record. A recalled algorithm drops earlier
 * refusals. */
SCRIPT_TEST(refused_algorithms_are_listed)
{
    char list[SEARCH_REFUSED] = "";
    struct record record;
    record_init(&record);
    assert_int_equal(search_refuse(list, false, &record, &failure), STATUS_UNSUPPORTED);
    strcpy(record.algorithm_id, "0000000000000001");
    strcpy(record.algorithm, "a");
    assert_ok(search_refuse(list, false, &record, &failure));
    strcpy(record.algorithm_id, "0000000000000bad");
    strcpy(record.algorithm, "b");
    assert_ok(search_refuse(list, false, &record, &failure));
    assert_string_equal(list, "0000000000000001 0000000000000bad ");
    assert_string_equal(record.refused_algorithms, "a; b");
    assert_ok(search_refuse(list, true, &record, &failure));
    assert_string_equal(record.refused_algorithms, "b");
    while (search_refuse(list, false, &record, &failure) == STATUS_OK)
        assert_true(strlen(list) < sizeof list);
    assert_string_equal(failure.text, "no other algorithm is tried");
    record_clear(&record);
}

/* ---- an earlier algorithm ---- */

static struct algorithm algorithm_of(int count)
{
    struct record record;
    struct algorithm algorithm;
    strcpy(record.algorithm, search_for((struct search_case){.count = count}, &record, NULL));
    record.status = RECORD_MEASURED;
    assert_string_equal(record.algorithm_origin, "search");
    assert_true(algorithm_of_record(&record, &algorithm));
    record_clear(&record);
    return algorithm;
}

SCRIPT_TEST(an_earlier_algorithm_is_bound_without_a_search)
{
    static const double times[] = {50e-6, 70e-6, 60e-6};
    struct record record;
    int binds;
    offers_are(3, times);
    struct algorithm algorithm = algorithm_of(3);
    strcpy(algorithm.algorithm_origin, "file of 2026-11-22");
    assert_string_equal(
        search_for((struct search_case){.count = 3, .offer = &algorithm}, &record, &binds), "a");
    assert_int_equal(binds, 1);
    assert_string_equal(record.algorithm_origin, "file of 2026-11-22");
    assert_int_equal(record.search_candidates, 3);
    assert_near(record.search_time, 50e-6);
    assert_string_equal(record.runner_up_algorithm, "c");
    assert_near(record.runner_up_time, 60e-6);
    assert_string_equal(record.heuristic_algorithm, "a");
    record_clear(&record);
}

/* Other kernels or grids under the name, an unknown name, or a refusal lead to a search. */
SCRIPT_TEST(an_offer_that_does_not_match_leads_to_a_search)
{
    static const double times[] = {50e-6, 70e-6, 60e-6}, refusal[] = {0, 70e-6, 60e-6};
    static const struct {
        const char *id, *launches, *algorithm; /* NULL: unchanged */
        bool refused;
        const char *chosen;
    } cases[] = {{"00000000000000ff", NULL, NULL, false, "a"},
                 {NULL, "00000000000000ff", NULL, false, "a"},
                 {NULL, NULL, "of another version", false, "a"},
                 {NULL, NULL, NULL, true, "c"}};
    offers_are(3, times);
    const struct algorithm algorithm = algorithm_of(3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct algorithm offer = algorithm;
        struct record record;
        if (cases[i].id)
            strcpy(offer.algorithm_id, cases[i].id);
        if (cases[i].launches)
            strcpy(offer.algorithm_launches, cases[i].launches);
        if (cases[i].algorithm)
            strcpy(offer.algorithm, cases[i].algorithm);
        offers_are(3, cases[i].refused ? refusal : times);
        assert_string_equal(
            search_for((struct search_case){.count = 3, .offer = &offer}, &record, NULL),
            cases[i].chosen);
        assert_string_equal(record.algorithm_origin, "search");
        record_clear(&record);
    }
}

/* ---- kernels ---- */

static enum status kernels_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    for (const char *const *name = *(const char *const **)(work + 1); *name; ++name)
        TRY(script_kernel(*name, 1e-6, 1e-6, error));
    return STATUS_OK;
}

static const struct work_ops kernels_ops = {.iterate = kernels_iterate};

/* Lists the kernels of work that launches `names`, up to a NULL. One iteration is captured and not
 * run. */
static struct kernel_list kernels_of(const char *const *names, struct identity *identity)
{
    struct {
        struct work base;
        const char *const *names;
    } work = {{.ops = &kernels_ops}, names};
    struct kernel_list list = {.count = 0};
    assert_ok(identity_find(NULL, &work.base, identity, &list, &failure));
    assert_true(script.busy == 0.0);
    return list;
}

/* The identity follows from the names of the kernels, in any order. */
SCRIPT_TEST(an_algorithm_is_known_by_its_kernels)
{
    static const char *const iterations[][4] = {{"gemm", "add"}, {"add", "gemm"}, {"gemm", "sub"}};
    struct identity found[3];
    for (int i = 0; i < 3; ++i)
        assert_int_equal(kernels_of(iterations[i], &found[i]).count, 2);
    assert_true(found[0].kernels && found[0].launches);
    assert_memory_equal(&found[0], &found[1], sizeof *found);
    assert_true(found[0].kernels != found[2].kernels && found[0].launches != found[2].launches);
}

/* Symbols as the driver has them. Generic kernels are left out. */
SCRIPT_TEST(names_are_short)
{
    static const struct {
        const char *symbol, *text;
    } cases[] = {
        {"nvjet_sm90_hsh_64x8_64x16_1x2_h_bz_NNT", "nvjet_sm90_hsh_64x8_64x16_1x2_h_bz_NNT"},
        {"_Z24RNN_blockPersist_fp_LSTMI6__halfS0_fLi32EEvPKT_PS1_", "RNN_blockPersist_fp_LSTM"},
        {"void RNN_blockPersist_bp_LSTM_FMA<float, float, float, 32>(args<float>)",
         "RNN_blockPersist_bp_LSTM_FMA"},
        {"_ZN7cutlass7Kernel2I31cutlass_80_simt_sgemm_128x32_8xEEvNT_6ParamsE",
         "cutlass_80_simt_sgemm_128x32_8x"},
        {"void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_nn_align1>(P)",
         "cutlass_80_simt_sgemm_64x64_8x5_nn_align1"},
        {"_Z20LSTM_elementWise_bp1IfffEvii", ""},
        {"void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::P)", ""},
        {"void elemWiseRNNcell<__half, __half, float, (cudnnRNNMode_t)3>(int, int)", ""},
        {"void persistRNN_addBias<float>(float*, float const*)", ""},
        {"void LSTM_dgrad_combine_dh_di<float>(float*)", ""},
        {"RNN_init_128x4(uint4*, int, unsigned int)", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const char *const names[] = {cases[i].symbol, NULL};
        struct identity unused;
        const struct kernel_list list = kernels_of(names, &unused);
        char text[128];
        kernel_list_format(&list, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

SCRIPT_TEST(the_most_launched_is_first)
{
    const char *names[34] = {"gemm_b", "gemm_a"};
    struct identity unused;
    char text[64];
    for (int i = 2; i < 33; ++i)
        names[i] = i < 17 ? "gemm_c" : "GENERIC_elementWise_bp2";
    const struct kernel_list list = kernels_of(names, &unused);
    kernel_list_format(&list, text, sizeof text);
    assert_string_equal(text, "gemm_c, gemm_a, gemm_b");
    kernel_list_format(&list, text, 20); /* the dots count, too */
    assert_string_equal(text, "gemm_c, gemm_a, ...");
    kernel_list_format(&list, text, 11);
    assert_string_equal(text, "");
}

/* Names are cut, and kernels beyond KERNEL_LIST_MAX are dropped. */
SCRIPT_TEST(a_list_has_its_bounds)
{
    enum { KERNELS = KERNEL_LIST_MAX + 3 };
    char name[KERNELS][KERNEL_LIST_NAME + 20], text[4 * KERNEL_LIST_NAME];
    const char *names[KERNELS + 1] = {NULL};
    struct identity unused;
    for (int i = 0; i < KERNELS; ++i) {
        memset(name[i], 'x', sizeof name[i]);
        name[i][0] = (char)('a' + i);
        name[i][sizeof name[i] - 1] = '\0';
        names[i] = name[i];
    }
    const struct kernel_list list = kernels_of(names, &unused);
    assert_int_equal(list.count, KERNEL_LIST_MAX);
    kernel_list_format(&list, text, sizeof text);
    assert_int_equal(strlen(text), 3 * (KERNEL_LIST_NAME - 1) + 4 + 5);
}
