#include "results/sampling.h"

#include <math.h>

struct sampling sampling_derive(const struct record *record)
{
    const double visible = 0.02;
    bool known = record->sample_iterations > 0;
    double sample = known ? record->time_median * (double)record->sample_iterations : NAN;
    double share = record->timer_overhead / sample;
    return (struct sampling){
        .uncertainty =
            (record->time_median_high - record->time_median_low) / 2 / record->time_median,
        .timer_share = share,
        .timer_visible = isnan(share) ? FIELD_MISSING : share > visible,
        .idle_share = record->idle_power * record->energy_time / record->energy,
    };
}

static const struct {
    char mark;
    const char *text;
} meanings[] = {
    {'n', "noisy, the median is known to no better than 5 %"},
    {'h', "the device waited for the host"},
    {'b', "the samples have two modes"},
    {'t', "more than 2 % of a sample is the timer's own time"},
};

void sampling_marks(const struct record *record, char marks[SAMPLING_MARKS])
{
    const double noisy = 0.05;
    const struct sampling sampling = sampling_derive(record);
    const int64_t set[] = {sampling.uncertainty > noisy, record->host_paced, record->bimodal,
                           sampling.timer_visible};
    size_t used = 0;
    for (size_t i = 0; i < sizeof set / sizeof *set; ++i)
        if (set[i] == 1)
            marks[used++] = meanings[i].mark;
    marks[used] = '\0';
}

const char *sampling_mark_text(char mark)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; ++i)
        if (meanings[i].mark == mark)
            return meanings[i].text;
    return NULL;
}
