#include "unit.h"

#include <math.h>

#include "base/units.h"

TEST(test_integer)
{
    static const struct {
        const char *text;
        int64_t value; /* -99: refused */
    } rows[] = {
        {"1", 1},
        {" 42\t", 42},
        {"-5", -5},
        {"007", 7},
        {"100", 100},
        {"-10", -10},
        {"", -99},
        {" ", -99},
        {"-", -99},
        {"--1", -99},
        {"- 1", -99},
        {"+1", -99},
        {"1.0", -99},
        {"1e2", -99},
        {"0x1", -99},
        {"1 2", -99},
        {"1a", -99},
        {"101", -99},
        {"-11", -99},
        {"99999999999999999999", -99},
        {"-99999999999999999999", -99},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        int64_t value = -99;
        enum status status = units_integer(rows[i].text, -10, 100, &value, &failure);
        if (value != rows[i].value || status != (value == -99 ? STATUS_USAGE : STATUS_OK))
            fail_msg("'%s': %lld, %s", rows[i].text, (long long)value, failure.text);
    }
    int64_t value;
    assert_ok(units_integer("9223372036854775807", INT64_MIN, INT64_MAX, &value, &failure));
    assert_true(value == INT64_MAX);
    assert_fails_with(units_integer("x", 1, 8, &value, &failure), STATUS_USAGE,
                      "'x' is not a whole number from 1 to 8");
}

TEST(test_duration)
{
    static const struct {
        const char *text;
        double seconds; /* NAN: refused */
    } rows[] = {
        {"120 s", 120},
        {"500 ms", 0.5},
        {"20 us", 20e-6},
        {"2 min", 120},
        {"1.5 h", 5400},
        {"3s", 3},
        {" 1e3  s ", 1000},
        {".5 s", 0.5},
        {"01:30:00", 5400},
        {" 100:00:01 ", 360001},
        {"00:00:00", NAN},
        {"1:30", 90},
        {"2-00", 172800},
        {"1-12:30", 131400},
        {"1-00:00:01", 86401},
        {"0-1:00", 3600},
        {"1-", NAN},
        {"1-00:00:00:00", NAN},
        {"1:00:00:00", NAN},
        {"90:00", 5400},
        {"1:60:00", NAN},
        {"1:1:1", NAN},
        {"1:00:00 h", NAN},
        {"1:00:0a", NAN},
        {"1ms", 1e-3},
        {"1000000000 s", 1e9},
        {"120", NAN},
        {"", NAN},
        {"s", NAN},
        {"0 s", NAN},
        {"-1 s", NAN},
        {"inf s", NAN},
        {"nan s", NAN},
        {"0x10 s", NAN},
        {"+0x10 s", NAN},
        {"1 us", 1e-6},
        {"0.9 us", NAN},
        {"1e-320 s", NAN},
        {"1 S", NAN},
        {"1 sec", NAN},
        {"1 s s", NAN},
        {"1 m", NAN},
        {"1e400 s", NAN},
        {"1e9 h", NAN},
        {"1 ks", NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double seconds = NAN;
        enum status status = units_duration(rows[i].text, &seconds, &failure);
        if (isnan(rows[i].seconds) ? status != STATUS_USAGE || !isnan(seconds)
                                   : fabs(seconds - rows[i].seconds) > 1e-12 * seconds)
            fail_msg("'%s': %g s, %s", rows[i].text, seconds, failure.text);
    }
}

TEST(test_fraction)
{
    static const struct {
        const char *text;
        double fraction; /* NAN: refused */
    } rows[] = {
        {"0.5 %", 0.005}, {"0.5", NAN},   {"99%", 0.99},  {" 1e-1 % ", 0.001}, {"0", NAN},
        {"1", NAN},       {"100 %", NAN}, {"-1 %", NAN},  {"%", NAN},          {"", NAN},
        {"0.5 % %", NAN}, {"nan", NAN},   {"0.5 s", NAN}, {"1e-320 %", NAN},   {"1e-6 %", 1e-8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double fraction = NAN;
        enum status status = units_fraction(rows[i].text, &fraction, &failure);
        if (isnan(rows[i].fraction) ? status != STATUS_USAGE || !isnan(fraction)
                                    : fabs(fraction - rows[i].fraction) > 1e-12)
            fail_msg("'%s': %g, %s", rows[i].text, fraction, failure.text);
    }
}

TEST(test_flag)
{
    int value = -1;
    assert_ok(units_flag("yes", &value, &failure));
    assert_int_equal(value, 1);
    assert_ok(units_flag("no", &value, &failure));
    assert_int_equal(value, 0);
    static const char *const refused[] = {"", "true", "Yes", "1", "yes ", "on"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i)
        assert_int_equal(units_flag(refused[i], &value, &failure), STATUS_USAGE);
    assert_int_equal(value, 0);
}

TEST(test_format)
{
    static const struct {
        double value;
        const char *unit, *text;
    } rows[] = {
        {4.68e12, "B/s", "4.680 TB/s"},
        {1.23e-3, "s", "1.230 ms"},
        {4.2e-6, "s", "4.200 us"},
        {3e-9, "s", "3.000 ns"},
        {2.5e-12, "s", "0.002500 ns"},
        {0, "B", "0.000 B"},
        {1, "s", "1.000 s"},
        {0.99995, "s", "1.000 s"},
        {0.9999, "s", "999.9 ms"},
        {999.94, "B", "999.9 B"},
        {999.96, "B", "1.000 kB"},
        {999999, "B", "1.000 MB"},
        {12345, "B", "12.35 kB"},
        {-1500, "B", "-1.500 kB"},
        {3.7e9, "FLOP", "3.700 GFLOP"},
        {107.479e12, "FLOP/s", "107.5 TFLOP/s"},
        {5e21, "B", "5000. EB"},
        {1e30, "B", "1.000e+12 EB"},
        {NAN, "s", "-"},
        {INFINITY, "s", "inf s"},
        {1, "a unit far too long for the text", "1.000 a unit far too lo"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[UNITS_TEXT];
        units_format(rows[i].value, rows[i].unit, text);
        assert_string_equal(text, rows[i].text);
    }
}
