/* When ranks count what they have timed: a full batch, and which rank of a host at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dispatcher_bench.h"

enum { ROWS_MOST = 64, BATCHES_MOST = 64 };
static const char forty[] = "[conv2d grid]\nbatch = 1:40:+1\n";
static const char twenty[] = "[conv2d grid]\nbatch = 1:20:+1\n";
static const char twenty_each[] =
    "[sweep]\ndistribute = replicate\n[conv2d grid]\nbatch = 1:20:+1\n";
static const char hundred[] = "[conv2d grid]\nbatch = 1:100:+1\n";
static const double row_time = 0.4, collection_time = 0.6; /* s */

/* A rank as it is played. */
struct player {
    double until; /* s, when it has something to say; INFINITY: it has nothing to do */
    bool counting;
    char texts[ROWS_MOST][WORKLOAD_TEXT]; /* timed, and last what is being timed */
    size_t count;
    size_t batches[BATCHES_MOST], batch_count; /* rows of each collection */
};

/* A sweep as it was played. */
struct played {
    struct player players[BENCH_RANKS];
    size_t left;  /* rows that nobody was given */
    size_t early; /* collections that began while there were such rows */
    size_t meets; /* of them, while another rank counted */
    size_t rows;
};

static bool others_count(const struct played *played, const struct player *player)
{
    for (int rank = 0; rank < BENCH_RANKS; ++rank)
        if (&played->players[rank] != player && played->players[rank].counting)
            return true;
    return false;
}

/* What rank 0 has told it. */
static void player_hears(struct bench *bench, struct played *played, int rank, double now)
{
    struct player *player = &played->players[rank];
    if (!isinf(player->until))
        return;
    if (work_that_waits(bench, rank, true, player->texts[player->count])) {
        ++player->count;
        --played->left;
        player->until = now + row_time;
    } else if (is_told_to_count(bench, rank)) {
        played->early += played->left > 0;
        played->meets += played->left > 0 && others_count(played, player);
        player->counting = true;
        player->batches[player->batch_count++] = player->count;
        player->until = now + collection_time;
    }
}

static void player_speaks(struct bench *bench, struct played *played, int rank)
{
    struct player *player = &played->players[rank];
    player->until = INFINITY;
    if (!player->counting) {
        arrive(bench, rank, MESSAGE_TIMED, player->texts[player->count - 1]);
        return;
    }
    player->counting = false;
    played->rows += player->count;
    for (size_t i = 0; i < player->count; ++i)
        record_arrives(bench, rank, player->texts[i]);
    player->count = 0;
}

static int next_to_speak(const struct played *played)
{
    int next = 0;
    for (int rank = 1; rank < BENCH_RANKS; ++rank)
        if (played->players[rank].until < played->players[next].until)
            next = rank;
    return next;
}

/* All rows take as long, and so do all collections. */
static struct played play(struct bench *bench, size_t rows)
{
    static struct played played;
    double now = BENCH_BEGIN;
    played = (struct played){.left = rows};
    for (int rank = 0; rank < BENCH_RANKS; ++rank)
        played.players[rank].until = INFINITY;
    for (;;) {
        for (int rank = 0; rank < bench->ranks; ++rank)
            player_hears(bench, &played, rank, now);
        int next = next_to_speak(&played);
        if (isinf(played.players[next].until))
            break;
        now = played.players[next].until;
        bench_time(bench, now);
        player_speaks(bench, &played, next);
    }
    return played;
}

static void bench_of(struct bench *bench, int ranks, const char *manifest, int together)
{
    *bench = bench_make(ranks, manifest);
    bench_begin_counting(bench, together);
}

static void bench_of_hosts(struct bench *bench, int ranks, const char *manifest, int together)
{
    *bench = bench_make(ranks, manifest);
    for (int rank = 0; rank < ranks; ++rank)
        snprintf(bench->devices[rank].hostname, sizeof bench->devices[rank].hostname, "node%d",
                 rank);
    bench_begin_counting(bench, together);
}

/* Each collection costs a fixed time: what fits one is not taken apart, whoever shares the host or the rows. */
static void what_fits_a_batch_is_counted_once(void **state)
{
    (void)state;
    static const struct {
        int ranks;
        bool hosts;
        const char *manifest;
        size_t rows;
    } sweeps[] = {{1, false, twenty, 20},
                  {2, false, forty, 40},
                  {2, true, forty, 40},
                  {2, false, twenty_each, 40},
                  {2, true, twenty_each, 40}};
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; ++i) {
        struct bench bench;
        (sweeps[i].hosts ? bench_of_hosts : bench_of)(&bench, sweeps[i].ranks, sweeps[i].manifest,
                                                      100);
        struct played played = play(&bench, sweeps[i].rows);
        for (int rank = 0; rank < sweeps[i].ranks; ++rank)
            assert_int_equal(played.players[rank].batch_count, 1);
        assert_int_equal(played.rows, sweeps[i].rows);
        assert_each_once(&bench, sweeps[i].rows);
    }
}

/* Full ones, and what is left. */
static void assert_full_batches(const struct player *player, size_t full, size_t rest)
{
    assert_true(player->batch_count >= 2);
    for (size_t i = 0; i + 1 < player->batch_count; ++i)
        assert_int_equal(player->batches[i], full);
    assert_int_equal(player->batches[player->batch_count - 1], rest);
}

/* Up to the end of the sweep. */
static void a_rank_without_neighbours_fills_its_batches(void **state)
{
    (void)state;
    struct bench bench;
    bench_of(&bench, 1, twenty, 8);
    struct played played = play(&bench, 20);
    assert_full_batches(&played.players[0], 8, 4);
    assert_each_once(&bench, 20);
    bench_of_hosts(&bench, 2, forty, 8);
    played = play(&bench, 40);
    assert_full_batches(&played.players[0], 8, 4);
    assert_full_batches(&played.players[1], 8, 4);
    assert_true(played.meets > 0);
    assert_each_once(&bench, 40);
}

/* Of three that began together one counts early, and the other two meet once. */
static void ranks_of_a_host_come_apart(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 3; ++ranks) {
        struct bench bench;
        bench_of(&bench, ranks, hundred, 16);
        struct played played = play(&bench, 100);
        assert_true(played.early >= 4);
        assert_int_equal(played.meets, ranks - 2);
        for (int rank = 0; rank < ranks; ++rank)
            for (size_t i = 0; i + 1 < played.players[rank].batch_count; ++i)
                assert_in_range(played.players[rank].batches[i], 14, 16);
        assert_each_once(&bench, 100);
    }
}

static void rank_counts(struct bench *bench, int rank, size_t count, char texts[][WORKLOAD_TEXT])
{
    assert_true(is_told_to_count(bench, rank));
    for (size_t i = 0; i < count; ++i)
        record_arrives(bench, rank, texts[i]);
}

/* A batch that is nearly full is counted while nobody else of the host counts: so ranks that began at the same
 * moment do not go on counting at the same moment. A full one is counted in any case. */
static void a_full_batch_waits_for_nobody(void **state)
{
    (void)state;
    char texts[2][8][WORKLOAD_TEXT];
    struct bench bench;
    bench_of(&bench, 2, forty, 8);
    for (int i = 0; i < 7; ++i)
        for (int rank = 0; rank < 2; ++rank)
            rank_times(&bench, rank, texts[rank][i]);
    assert_false(is_told_to_count(&bench, 1)); /* rank 0 counts */
    rank_times(&bench, 1, texts[1][7]);
    rank_counts(&bench, 1, 8, texts[1]);
    rank_counts(&bench, 0, 7, texts[0]);
    bench_clear(&bench);
}

static void ten_seconds_wait_for_nobody(void **state)
{
    (void)state;
    char texts[2][3][WORKLOAD_TEXT];
    struct bench bench;
    bench_of(&bench, 2, forty, 100);
    for (int i = 0; i < 2; ++i) {
        for (int rank = 0; rank < 2; ++rank)
            assert_true(work_that_waits(&bench, rank, true, texts[rank][i]));
        bench_time(&bench, BENCH_BEGIN + 4.5 * (i + 1));
        for (int rank = 0; rank < 2; ++rank)
            arrive(&bench, rank, MESSAGE_TIMED, texts[rank][i]);
    }
    assert_false(is_told_to_count(&bench, 1)); /* 9 s, and rank 0 counts */
    assert_true(work_that_waits(&bench, 1, true, texts[1][2]));
    bench_time(&bench, BENCH_BEGIN + 10.5);
    arrive(&bench, 1, MESSAGE_TIMED, texts[1][2]);
    rank_counts(&bench, 1, 3, texts[1]);
    rank_counts(&bench, 0, 2, texts[0]);
    bench_clear(&bench);
}

/* One that is lost is no neighbour: nobody comes apart from it. */
static void a_lost_rank_is_no_reason_to_count(void **state)
{
    (void)state;
    char text[WORKLOAD_TEXT];
    struct bench bench;
    bench_of(&bench, 2, forty, 8);
    arrive(&bench, 0, MESSAGE_DEVICE_LOST, "fell off the bus");
    for (int i = 0; i < 8; ++i) {
        assert_false(is_told_to_count(&bench, 1));
        rank_times(&bench, 1, text);
    }
    assert_true(is_told_to_count(&bench, 1));
    bench_clear(&bench);
}

/* One that is lost over its counts keeps nobody else from counting. */
static void a_lost_rank_has_no_turn(void **state)
{
    (void)state;
    char texts[2][8][WORKLOAD_TEXT], more[WORKLOAD_TEXT];
    struct bench bench;
    bench_of(&bench, 3, forty, 8);
    for (int i = 0; i < 7; ++i)
        for (int rank = 0; rank < 2; ++rank)
            rank_times(&bench, rank, texts[rank][i]);
    assert_true(is_told_to_count(&bench, 0));
    arrive(&bench, 0, MESSAGE_DEVICE_LOST, "fell off the bus");
    for (int i = 0; i < 7; ++i)
        rank_times(&bench, 2, more);
    assert_true(is_told_to_count(&bench, 2));
    bench_clear(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_a_batch_is_counted_once),
        cmocka_unit_test(a_rank_without_neighbours_fills_its_batches),
        cmocka_unit_test(ranks_of_a_host_come_apart),
        cmocka_unit_test(a_full_batch_waits_for_nobody),
        cmocka_unit_test(ten_seconds_wait_for_nobody),
        cmocka_unit_test(a_lost_rank_is_no_reason_to_count),
        cmocka_unit_test(a_lost_rank_has_no_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
