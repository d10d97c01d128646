/* Batches of rows that are counted together, in simulated sweeps with a simulated clock. */

#include "unit.h"

#include <math.h>

#include "ranks/resume.h"
#include "dispatcher_bench.h"

enum { ROWS_MOST = 64, BATCHES_MOST = 64 };
static const char forty[] = "[conv2d grid]\nbatch = 1:40:+1\n";
static const char twenty[] = "[conv2d grid]\nbatch = 1:20:+1\n";
static const char twenty_each[] =
    "[sweep]\ndistribute = replicate\n[conv2d grid]\nbatch = 1:20:+1\n";
static const char hundred[] = "[conv2d grid]\nbatch = 1:100:+1\n";
static const double row_time = 0.4, collection_time = 0.6; /* s */

struct player {
    double until; /* s, next message; INFINITY: idle */
    bool counting;
    char texts[ROWS_MOST][WORKLOAD_TEXT]; /* timed rows, then the row being timed */
    size_t count;
    size_t batches[BATCHES_MOST], batch_count; /* rows of each collection */
};

struct played {
    struct player players[BENCH_RANKS];
    size_t left;  /* rows that are not assigned */
    size_t early; /* collections that began with rows left */
    size_t meets; /* early collections that began while another rank counted */
    size_t rows;
};

static bool others_count(const struct played *played, const struct player *player)
{
    for (int rank = 0; rank < BENCH_RANKS; ++rank)
        if (&played->players[rank] != player && played->players[rank].counting)
            return true;
    return false;
}

static void player_receive(struct bench *bench, struct played *played, int rank, double now)
{
    struct player *player = &played->players[rank];
    struct request request;
    if (!isinf(player->until))
        return;
    if (work_taken(bench, rank, &request)) {
        assert_true(request.count_later);
        config_format(&request.config, player->texts[player->count++]);
        --played->left;
        player->until = now + row_time;
    } else if (count_ordered(bench, rank)) {
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

/* All rows take the same time, and so do all collections. At the end each row is in the journal
 * once. */
static struct played play(const struct bench_settings *settings, size_t rows)
{
    static struct played played;
    struct bench bench;
    double now = BENCH_BEGIN;
    played = (struct played){.left = rows};
    bench_start(&bench, settings);
    all_devices_arrive(&bench);
    for (int rank = 0; rank < BENCH_RANKS; ++rank)
        played.players[rank].until = INFINITY;
    for (;;) {
        for (int rank = 0; rank < settings->ranks; ++rank)
            player_receive(&bench, &played, rank, now);
        int next = next_to_speak(&played);
        if (isinf(played.players[next].until))
            break;
        now = played.players[next].until;
        bench_time(&bench, now);
        player_speaks(&bench, &played, next);
    }
    assert_int_equal(played.rows, rows);
    assert_ok(bench_end(&bench, &failure));
    struct results *found = bench_rows(&bench);
    assert_int_equal(found->row_count, rows);
    assert_int_equal(resume_missing(bench.plan, found, NULL, 0, 1), 0);
    results_destroy(found);
    bench_clear(&bench);
    return played;
}

/* Each collection has a fixed cost, so rows that fit a batch are counted in one collection, with
 * and without neighbours. */
TEST(rows_that_fit_a_batch_are_counted_once)
{
    static const struct {
        struct bench_settings settings;
        size_t rows;
    } sweeps[] = {{{.ranks = 1, .manifest = twenty, .together = 100}, 20},
                  {{.ranks = 2, .manifest = forty, .together = 100}, 40},
                  {{.ranks = 2, .manifest = forty, .together = 100, .hosts = true}, 40},
                  {{.ranks = 2, .manifest = twenty_each, .together = 100}, 40},
                  {{.ranks = 2, .manifest = twenty_each, .together = 100, .hosts = true}, 40}};
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; ++i) {
        struct played played = play(&sweeps[i].settings, sweeps[i].rows);
        for (int rank = 0; rank < sweeps[i].settings.ranks; ++rank)
            assert_int_equal(played.players[rank].batch_count, 1);
    }
}

/* All batches are full, except the last one, which has the remaining rows. */
static void assert_full_batches(const struct player *player, size_t full, size_t rest)
{
    assert_true(player->batch_count >= 2);
    for (size_t i = 0; i + 1 < player->batch_count; ++i)
        assert_int_equal(player->batches[i], full);
    assert_int_equal(player->batches[player->batch_count - 1], rest);
}

TEST(a_rank_without_neighbours_fills_its_batches)
{
    struct played played =
        play(&(struct bench_settings){.ranks = 1, .manifest = twenty, .together = 8}, 20);
    assert_full_batches(&played.players[0], 8, 4);
    played = play(
        &(struct bench_settings){.ranks = 2, .manifest = forty, .together = 8, .hosts = true}, 40);
    assert_full_batches(&played.players[0], 8, 4);
    assert_full_batches(&played.players[1], 8, 4);
    assert_true(played.meets > 0);
}

/* If three ranks begin together, one counts early and the other two collide once. */
TEST(ranks_of_a_host_drift_apart)
{
    for (int ranks = 2; ranks <= 3; ++ranks) {
        struct played played = play(
            &(struct bench_settings){.ranks = ranks, .manifest = hundred, .together = 16}, 100);
        assert_true(played.early >= 4);
        assert_int_equal(played.meets, ranks - 2);
        for (int rank = 0; rank < ranks; ++rank)
            for (size_t i = 0; i + 1 < played.players[rank].batch_count; ++i)
                assert_in_range(played.players[rank].batches[i], 14, 16);
    }
}
