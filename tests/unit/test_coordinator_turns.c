/* When ranks count what they have timed: how much towards the end of a sweep, and which of a node at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "stage.h"

enum { ROWS_MOST = 64, BATCHES_MOST = 64 };
static const char forty[] = "[conv2d grid]\nbatch = 1:40:+1\n";
static const char twenty[] = "[conv2d grid]\nbatch = 1:20:+1\n";
static const char twenty_each[] =
    "[sweep]\ndistribute = replicate\n[conv2d grid]\nbatch = 1:20:+1\n";
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
    struct player players[STAGE_RANKS];
    size_t left;        /* rows that nobody was given */
    bool at_once;       /* two counted at a time */
    bool at_once_early; /* while there were rows that nobody had */
    size_t rows;
};

static bool others_count(const struct played *played, const struct player *player)
{
    for (int rank = 0; rank < STAGE_RANKS; ++rank)
        if (&played->players[rank] != player && played->players[rank].counting)
            return true;
    return false;
}

/* What rank 0 has told it. */
static void player_hears(struct stage *stage, struct played *played, int rank, double now)
{
    struct player *player = &played->players[rank];
    if (!isinf(player->until))
        return;
    if (work_that_waits(stage, rank, true, player->texts[player->count])) {
        ++player->count;
        --played->left;
        player->until = now + row_time;
    } else if (is_told_to_count(stage, rank)) {
        played->at_once |= others_count(played, player);
        played->at_once_early |= others_count(played, player) && played->left > 0;
        player->counting = true;
        player->batches[player->batch_count++] = player->count;
        player->until = now + collection_time;
    }
}

static void player_speaks(struct stage *stage, struct played *played, int rank)
{
    struct player *player = &played->players[rank];
    player->until = INFINITY;
    if (!player->counting) {
        arrive(stage, rank, LETTER_TIMED, player->texts[player->count - 1]);
        return;
    }
    player->counting = false;
    played->rows += player->count;
    for (size_t i = 0; i < player->count; ++i)
        record_arrives(stage, rank, player->texts[i]);
    player->count = 0;
}

static int next_to_speak(const struct played *played)
{
    int next = 0;
    for (int rank = 1; rank < STAGE_RANKS; ++rank)
        if (played->players[rank].until < played->players[next].until)
            next = rank;
    return next;
}

/* All rows take as long, and so do all collections. */
static struct played play(struct stage *stage, size_t rows)
{
    static struct played played;
    double now = STAGE_BEGIN;
    played = (struct played){.left = rows};
    for (int rank = 0; rank < STAGE_RANKS; ++rank)
        played.players[rank].until = INFINITY;
    for (;;) {
        for (int rank = 0; rank < stage->ranks; ++rank)
            player_hears(stage, &played, rank, now);
        int next = next_to_speak(&played);
        if (isinf(played.players[next].until))
            break;
        now = played.players[next].until;
        coordinator_watch(stage->coordinator, now);
        player_speaks(stage, &played, next);
    }
    return played;
}

static void stage_of(struct stage *stage, int ranks, const char *manifest, int together)
{
    *stage = stage_make(ranks, manifest);
    stage_begin_counting(stage, together);
}

static void stage_of_hosts(struct stage *stage, int ranks, const char *manifest, int together)
{
    *stage = stage_make(ranks, manifest);
    for (int rank = 0; rank < ranks; ++rank)
        snprintf(stage->devices[rank].hostname, sizeof stage->devices[rank].hostname, "node%d",
                 rank);
    stage_begin_counting(stage, together);
}

/* Smaller and smaller, and none but the last is of less than two seconds of timings. */
static void assert_shrinking(const struct player *player)
{
    const double least = 2;
    assert_true(player->batch_count >= 2);
    for (size_t i = 1; i < player->batch_count; ++i) {
        assert_true(player->batches[i] <= player->batches[i - 1]);
        assert_true((double)player->batches[i - 1] * row_time > least - 1e-6);
    }
    assert_true(2 * player->batches[player->batch_count - 1] <= player->batches[0]);
}

static void batches_shrink_towards_the_end(void **state)
{
    (void)state;
    struct stage stage;
    stage_of(&stage, 2, forty, 100);
    struct played played = play(&stage, 40);
    assert_shrinking(&played.players[0]);
    assert_shrinking(&played.players[1]);
    assert_int_equal(played.rows, 40);
    assert_each_once(&stage, 40);
}

/* Each has rows of its own to come. */
static void so_they_do_when_all_ranks_measure_all(void **state)
{
    (void)state;
    struct stage stage;
    stage_of(&stage, 2, twenty_each, 100);
    struct played played = play(&stage, 40);
    assert_shrinking(&played.players[0]);
    assert_shrinking(&played.players[1]);
    assert_false(played.at_once_early);
    assert_int_equal(played.rows, 40);
    assert_each_once(&stage, 40);
}

static void ranks_of_a_host_count_in_turns(void **state)
{
    (void)state;
    struct stage stage;
    stage_of(&stage, 3, forty, 100);
    struct played played = play(&stage, 40);
    assert_false(played.at_once_early);
    assert_each_once(&stage, 40);
}

static void ranks_of_other_hosts_count_when_they_like(void **state)
{
    (void)state;
    struct stage stage;
    stage_of_hosts(&stage, 2, forty, 100);
    struct played played = play(&stage, 40);
    assert_shrinking(&played.players[0]);
    assert_true(played.at_once_early);
    assert_each_once(&stage, 40);
}

/* Nobody waits for it, at its host or for its rows: more collections would only cost more. */
static void a_rank_by_itself_counts_once(void **state)
{
    (void)state;
    struct stage stage;
    stage_of(&stage, 1, twenty, 100);
    struct played played = play(&stage, 20);
    assert_int_equal(played.players[0].batch_count, 1);
    assert_each_once(&stage, 20);
    stage_of_hosts(&stage, 2, twenty_each, 100);
    played = play(&stage, 40);
    assert_int_equal(played.players[0].batch_count, 1);
    assert_int_equal(played.players[1].batch_count, 1);
    assert_each_once(&stage, 40);
}

/* The first row of each rank tells nothing, and nothing is told of a program. */
static void nothing_is_counted_early_by_guess(void **state)
{
    (void)state;
    struct stage stage;
    stage_of(&stage, 2, "[conv2d grid]\nbatch = 1, 2, 4, 8, 16\n", 100);
    char texts[2][WORKLOAD_TEXT];
    for (int rank = 0; rank < 2; ++rank)
        assert_true(work_that_waits(&stage, rank, true, texts[rank]));
    coordinator_watch(stage.coordinator, STAGE_BEGIN + 6);
    for (int rank = 0; rank < 2; ++rank) {
        arrive(&stage, rank, LETTER_TIMED, texts[rank]);
        assert_false(is_told_to_count(&stage, rank));
        assert_true(work_that_waits(&stage, rank, true, texts[rank]));
    }
    stage_clear(&stage);
}

static void rank_counts(struct stage *stage, int rank, size_t count, char texts[][WORKLOAD_TEXT])
{
    assert_true(is_told_to_count(stage, rank));
    for (size_t i = 0; i < count; ++i)
        record_arrives(stage, rank, texts[i]);
}

/* A batch that is nearly full is counted while nobody else of the host counts: so ranks that began at the same
 * moment do not go on counting at the same moment. A full one is counted in any case. */
static void a_full_batch_waits_for_nobody(void **state)
{
    (void)state;
    char texts[2][8][WORKLOAD_TEXT];
    struct stage stage;
    stage_of(&stage, 2, forty, 8);
    for (int i = 0; i < 7; ++i)
        for (int rank = 0; rank < 2; ++rank)
            rank_times(&stage, rank, texts[rank][i]);
    assert_false(is_told_to_count(&stage, 1)); /* rank 0 counts */
    rank_times(&stage, 1, texts[1][7]);
    rank_counts(&stage, 1, 8, texts[1]);
    rank_counts(&stage, 0, 7, texts[0]);
    stage_clear(&stage);
}

static void ten_seconds_wait_for_nobody(void **state)
{
    (void)state;
    char texts[2][3][WORKLOAD_TEXT];
    struct stage stage;
    stage_of(&stage, 2, forty, 100);
    for (int i = 0; i < 2; ++i) {
        for (int rank = 0; rank < 2; ++rank)
            assert_true(work_that_waits(&stage, rank, true, texts[rank][i]));
        coordinator_watch(stage.coordinator, STAGE_BEGIN + 4.5 * (i + 1));
        for (int rank = 0; rank < 2; ++rank)
            arrive(&stage, rank, LETTER_TIMED, texts[rank][i]);
    }
    assert_false(is_told_to_count(&stage, 1)); /* 9 s, and rank 0 counts */
    assert_true(work_that_waits(&stage, 1, true, texts[1][2]));
    coordinator_watch(stage.coordinator, STAGE_BEGIN + 10.5);
    arrive(&stage, 1, LETTER_TIMED, texts[1][2]);
    rank_counts(&stage, 1, 3, texts[1]);
    rank_counts(&stage, 0, 2, texts[0]);
    stage_clear(&stage);
}

/* One that is lost over its counts keeps nobody else from counting. */
static void a_lost_rank_has_no_turn(void **state)
{
    (void)state;
    char texts[2][8][WORKLOAD_TEXT], more[WORKLOAD_TEXT];
    struct stage stage;
    stage_of(&stage, 3, forty, 8);
    for (int i = 0; i < 7; ++i)
        for (int rank = 0; rank < 2; ++rank)
            rank_times(&stage, rank, texts[rank][i]);
    assert_true(is_told_to_count(&stage, 0));
    arrive(&stage, 0, LETTER_LOST, "fell off the bus");
    for (int i = 0; i < 7; ++i)
        rank_times(&stage, 2, more);
    assert_true(is_told_to_count(&stage, 2));
    stage_clear(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_shrink_towards_the_end),
        cmocka_unit_test(so_they_do_when_all_ranks_measure_all),
        cmocka_unit_test(ranks_of_a_host_count_in_turns),
        cmocka_unit_test(ranks_of_other_hosts_count_when_they_like),
        cmocka_unit_test(a_rank_by_itself_counts_once),
        cmocka_unit_test(nothing_is_counted_early_by_guess),
        cmocka_unit_test(a_full_batch_waits_for_nobody),
        cmocka_unit_test(ten_seconds_wait_for_nobody),
        cmocka_unit_test(a_lost_rank_has_no_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
