/* `layout = auto` on a made-up device: which layout is kept, what the record says, and that every
 * other work is released. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/algorithm.h"
#include "parsed.h"
#include "worker/layout.h"

enum { NHWC, NCHW };

struct work {
    int layout;
};

struct device_state {
    double time[2], noise[2]; /* by layout */
    bool searches;            /* prepare reports time and noise */
    enum status refusal[2];   /* of prepare */
    enum status failure;      /* of time */
    const char *kernels;      /* algorithm_id; NULL: unknown */
    int works, prepared;      /* number of existing works; number of all works so far */
};

static int layout_of(const struct config *config)
{
    return (int)config_value(config, "layout").first;
}

static enum status made_up_prepare(struct device_state *state, const struct config *config,
                                   uint64_t seed, struct work **work, struct record *record,
                                   struct error *error)
{
    const int layout = layout_of(config);
    record->offer = NULL;
    record_add_part(record, PART_SEARCH_RUN, 1.0);
    if (state->refusal[layout])
        return error_set(error, state->refusal[layout], "not in layout %d", layout);
    *work = malloc(sizeof **work);
    (*work)->layout = layout;
    strcpy(record->algorithm_id, state->kernels ? state->kernels : "");
    if (state->searches) {
        record->search_time = state->time[layout];
        record->search_noise = state->noise[layout];
    }
    ++state->works;
    ++state->prepared;
    return STATUS_OK;
}

/* The first iteration takes longer, and the last is the fastest. */
static enum status made_up_time(struct device_state *state, struct work *work, bool cold,
                                int samples, double *seconds, struct record *record,
                                struct error *error)
{
    assert_true(!state->searches && !record && !cold);
    for (int i = 0; i < samples; ++i)
        seconds[i] = state->time[work->layout] * (i == 0 ? 9 : i == samples - 1 ? 1 : 2);
    return state->failure ? error_set(error, state->failure, "it does not run") : STATUS_OK;
}

static void made_up_release(struct device_state *state, struct work *work)
{
    state->works -= work != NULL;
    free(work);
}

static const struct device_ops device = {
    .prepare = made_up_prepare, .time = made_up_time, .release = made_up_release};

static enum status prepare(struct device_state *state, const char *text,
                           const struct algorithm *offer, struct record *record,
                           struct error *error)
{
    const struct config config = parse(text);
    struct work *work = NULL;
    record_init(record);
    record_set_config(record, &config);
    record->offer = offer;
    enum status status = layout_prepare(&device, state, &config, 1, &work, record, error);
    assert_int_equal(state->works, work != NULL);
    assert_int_equal(status == STATUS_OK, work != NULL);
    if (work && record->layout_chosen[0])
        assert_string_equal(record->layout_chosen, work->layout == NHWC ? "nhwc" : "nchw");
    device.release(state, work);
    return status;
}

static const char automatic[] = "conv2d layout=auto";

static void check_kept(struct device_state *state, const char *layout, double time, double other)
{
    struct record record;
    struct error error;
    assert_int_equal(prepare(state, automatic, NULL, &record, &error), STATUS_OK);
    assert_string_equal(record.layout_chosen, layout);
    assert_true(record.search_time == time);
    assert_true(record.layout_other_time == other ||
                (isnan(other) && isnan(record.layout_other_time)));
    assert_non_null(strstr(record.configuration, " layout=auto"));
    record_clear(&record);
}

TEST(the_faster_layout_is_kept)
{
    check_kept(&(struct device_state){.time = {2, 3}}, "nhwc", 2, 3);
    check_kept(&(struct device_state){.time = {3, 2}}, "nchw", 2, 3);
    check_kept(&(struct device_state){.time = {3, 2}, .searches = true}, "nchw", 2, 3);
}

/* The second layout wins only by more than the noise of the searches. */
TEST(noise_keeps_the_first_layout)
{
    struct device_state noisy = {.time = {1.0, 0.96}, .noise = {0.01, 0.05}, .searches = true};
    check_kept(&noisy, "nhwc", 1.0, 0.96);
    noisy.noise[1] = 0.02;
    check_kept(&noisy, "nchw", 0.96, 1.0);
}

TEST(a_layout_that_is_refused_does_not_count)
{
    check_kept(&(struct device_state){.time = {2, 3}, .refusal = {STATUS_UNSUPPORTED, 0}}, "nchw",
               3, NAN);
    check_kept(&(struct device_state){.time = {3, 2}, .refusal = {0, STATUS_FAILED}}, "nhwc", 3,
               NAN);
    /* fp8 has no nchw: only nhwc is prepared. */
    struct device_state state8 = {.time = {2, 1}};
    struct record record;
    struct error error;
    assert_int_equal(prepare(&state8, "conv2d layout=auto precision=fp8", NULL, &record, &error),
                     0);
    assert_int_equal(state8.prepared, 1);
    assert_string_equal(record.layout_chosen, "nhwc");
}

TEST(the_last_refusal_is_the_error)
{
    struct device_state refusing = {.refusal = {STATUS_UNSUPPORTED, STATUS_FAILED}};
    struct record record;
    struct error error;
    assert_int_equal(prepare(&refusing, automatic, NULL, &record, &error), STATUS_FAILED);
    assert_string_equal(error.text, "not in layout 1");
    assert_string_equal(record.layout_chosen, "");
    struct device_state stuck = {.time = {1, 1}, .failure = STATUS_FAILED};
    assert_int_equal(prepare(&stuck, automatic, NULL, &record, &error), STATUS_FAILED);
    assert_string_equal(error.text, "it does not run");
    assert_int_equal(stuck.prepared, 2);
}

TEST(a_lost_device_ends_it)
{
    struct device_state lost = {.refusal = {STATUS_DEVICE, 0}};
    struct record record;
    struct error error;
    assert_int_equal(prepare(&lost, automatic, NULL, &record, &error), STATUS_DEVICE);
    assert_int_equal(lost.prepared, 0);
}

/* The record has the wall time of both searches. */
TEST(both_searches_are_paid)
{
    for (int fast = 0; fast < 2; ++fast) {
        struct device_state searching = {.time = {2, fast ? 1 : 3}, .searches = true};
        struct record record;
        struct error error;
        assert_int_equal(prepare(&searching, automatic, NULL, &record, &error), STATUS_OK);
        assert_true(record.wall_time_part[PART_SEARCH_RUN] == 2);
    }
}

TEST(named_layouts_are_prepared_once)
{
    struct device_state once = {.time = {1, 2}};
    struct record record;
    struct error error;
    assert_int_equal(prepare(&once, "pool layout=nchw", NULL, &record, &error), STATUS_OK);
    assert_int_equal(once.prepared, 1);
    assert_string_equal(record.layout_chosen, "nchw");
    assert_true(isnan(record.search_time) && isnan(record.layout_other_time));
}

/* If the device still runs the kernels of an offered algorithm, its layout is kept. */
TEST(the_offered_layout_is_kept)
{
    struct algorithm offer;
    algorithm_init(&offer);
    strcpy(offer.algorithm_id, "k");
    strcpy(offer.layout_chosen, "nchw");
    offer.layout_other_time = 7;
    struct device_state same = {.time = {1, 2}, .searches = true, .kernels = "k"};
    struct device_state others = {.time = {1, 2}, .searches = true, .kernels = "other"};
    struct record record;
    struct error error;
    assert_int_equal(prepare(&same, automatic, &offer, &record, &error), STATUS_OK);
    assert_int_equal(same.prepared, 1);
    assert_string_equal(record.layout_chosen, "nchw");
    assert_true(record.layout_other_time == 7);
    assert_int_equal(prepare(&others, automatic, &offer, &record, &error), STATUS_OK);
    assert_int_equal(others.prepared, 2);
    assert_string_equal(record.layout_chosen, "nhwc");
    assert_true(record.layout_other_time == 2);
}
