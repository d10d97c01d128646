
#include "unit.h"
#include "ranks/progress.h"

TEST(lines)
{
    static const struct {
        size_t total, left, timed, failed;
        double seconds;
        const char *text;
    } rows[] = {
        {48, 48, 0, 0, -1, "[....................] 0/48, 0 failed, -:-- left"},
        {48, 36, 0, 1, 35.2, "[#####...............] 12/48, 1 failed, 0:35 left"},
        {48, 36, 6, 1, 35.2, "[#####++.............] 12/48, 6 timed, 1 failed, 0:35 left"},
        {48, 48, 48, 0, 0, "[++++++++++++++++++++] 0/48, 48 timed, 0 failed, 0:00 left"},
        {48, 0, 0, 0, 0, "[####################] 48/48, 0 failed, 0:00 left"},
        {100000, 99999, 0, 0, 7322, "[....................] 1/100000, 0 failed, 2:02:02 left"},
        {0, 0, 0, 0, 0, "[####################] 0/0, 0 failed, 0:00 left"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[PROGRESS_TEXT];
        const struct progress_left left = {.count = rows[i].left, .timed = rows[i].timed};
        progress_format(rows[i].total, left, rows[i].failed, rows[i].seconds, text);
        assert_string_equal(text, rows[i].text);
    }
    char text[PROGRESS_TEXT];
    progress_format(48, (struct progress_left){20, 0, 2, 3}, 0, 9, text);
    assert_string_equal(text, "[###########.........] 28/48, round 2 of 3, 0 failed, 0:09 left");
}
