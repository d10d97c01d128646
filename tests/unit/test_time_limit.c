/* End of a run, and the report of remaining rows. */

#include "unit.h"

#include <math.h>
#include <string.h>

#include "ranks/time_limit.h"

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-9 * fmax(1, fabs(expected))))
        fail_msg("%g instead of %g", value, expected);
}

/* The program began 10 s ago. */
static const struct time_limit_clock now = {.start = 1000, .now = 1010, .epoch = 1800000000};

TEST(the_earlier_limit_holds)
{
    static const struct {
        double option;
        const char *job_end;
        double end, whole;
        const char *text;
    } rows[] = {
        {0, NULL, INFINITY, INFINITY, ""},
        {60, NULL, 1060, 60, "--time-limit 60 s"},
        {0, "1800000100", 1110, 110, "SLURM_JOB_END_TIME 2027-01-15T08:01:40Z"},
        {60, "1800000100", 1060, 60, "--time-limit 60 s"},
        {600, "1800000100", 1110, 110, "SLURM_JOB_END_TIME 2027-01-15T08:01:40Z"},
        {INFINITY, "1800000100", INFINITY, INFINITY, ""},
        {0, "1799999000", 10, 0, "SLURM_JOB_END_TIME 2027-01-15T07:43:20Z"}, /* over */
        {60, "NONE", 1060, 60, "--time-limit 60 s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct time_limit limit = time_limit_create(rows[i].option, rows[i].job_end, &now);
        assert_true(limit.end == rows[i].end && limit.whole == rows[i].whole);
        assert_string_equal(limit.text, rows[i].text);
    }
}

TEST(invalid_ends_of_a_job_are_ignored)
{
    static const char *const texts[] = {"", "Unknown", "-1", "1800000000x", "1e300", "inf", " 7"};
    double epoch = 7;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i)
        assert_false(time_limit_job_end(texts[i], &epoch));
    assert_false(time_limit_job_end(NULL, &epoch));
    assert_true(epoch == 7);
    assert_true(time_limit_job_end("1800000000", &epoch) && epoch == 1800000000);
}

TEST(time_for_the_file_is_reserved)
{
    struct time_limit limit = {.end = 2000, .whole = 100};
    assert_near(time_limit_left(&limit, 1900, 0), 90);
    assert_near(time_limit_left(&limit, 1900, 1000), 88);
    limit.whole = 3;
    assert_near(time_limit_left(&limit, 1900, 0), 99);
    limit.whole = 3600;
    assert_near(time_limit_left(&limit, 1900, 0), 70);
    limit = time_limit_none();
    assert_true(isinf(time_limit_left(&limit, 1e9, 1)));
}

TEST(remaining_rows_are_reported)
{
    const struct time_limit limit = time_limit_create(60, NULL, &now);
    char text[LEFT_OVER_TEXT];
    struct left_over left_over = {.left = 7.5, .rows_time = 40};
    left_over_add(&left_over, (struct estimate){12, true});
    left_over_add(&left_over, (struct estimate){9, true});
    left_over_add(&left_over, (struct estimate){39, false}); /* assumed, not measured */
    assert_false(left_over_is_permanent(&left_over));
    left_over_format(&left_over, &limit, 8, text);
    assert_string_equal(text,
                        "3 of 8 configurations are left for lack of time (--time-limit 60 s): "
                        "7.50 s remain for rows, and the shortest of them may take 9.00 s; go on "
                        "with --resume");
    left_over_add(&left_over, (struct estimate){100, true});
    assert_false(left_over_is_permanent(&left_over));
    left_over_format(&left_over, &limit, 8, text);
    assert_says(text, "4 of 8 configurations");
    assert_says(text, "1 of them may take up to 100 s, more than any run with this limit has "
                      "for a row (40.0 s): give it a longer one; go on with --resume");

    left_over = (struct left_over){.left = -1, .rows_time = 40};
    left_over_add(&left_over, (struct estimate){100, false});
    assert_true(left_over_is_permanent(&left_over));
    left_over_format(&left_over, &limit, 8, text);
    assert_null(strstr(text, "--resume"));

    left_over = (struct left_over){.left = -1, .rows_time = NAN}; /* before all roofs */
    left_over_format(&left_over, &limit, 0, text);
    assert_says(text, "before all roofs were measured");
    left_over_add(&left_over, (struct estimate){100, true});
    assert_false(left_over_is_permanent(&left_over));
    left_over_format(&left_over, &limit, 8, text);
    assert_says(text, "only the time to write the file remains");
}
