#include "manifest/settings.h"

#include <string.h>

#include "base/units.h"
#include "base/text.h"
#include "model/device_kind.h"

const char *const settings_groups[] = {"sweep", "measure", "peaks", NULL};
enum { SWEEP, MEASURE, PEAKS }; /* indices into settings_groups */

static const char *const distribute_words[] = {"split", "replicate", NULL};
static const char *const cache_words[] = {"hot", "cold", "both", NULL};
static const char *const cache_axes[] = {"hot", "cold", "hot, cold"}; /* by word */

struct setting {
    int group;
    const char *key;
    enum { TEXT, WORD, DEVICE, INTEGER, FLAG, DURATION, FRACTION, SET } kind;
    size_t offset, size;      /* byte; place of the target in struct settings */
    int64_t minimum, maximum; /* SET: `maximum` is the number of words */
    const char *const *words; /* first word of a WORD or SET */
    size_t stride;            /* SET: byte from one word to the next */
    const char *all;          /* SET: the word that stands for all words */
};

/* Targets are bool, int, an enum, int64_t or uint64_t. */
static void integer_store(const struct setting *setting, int64_t value, void *target)
{
    bool flag = value != 0;
    int number = (int)value;
    memcpy(target,
           setting->size == sizeof flag     ? (void *)&flag
           : setting->size == sizeof number ? (void *)&number
                                            : (void *)&value,
           setting->size);
}

static enum status set_parse(const struct setting *setting, const char *text, bool *flags,
                             struct error *error)
{
    const char *words[LEVEL_COUNT + PRECISION_COUNT + 2] = {setting->all};
    bool parsed[LEVEL_COUNT + PRECISION_COUNT] = {false};
    bool all = strcmp(text, setting->all) == 0;
    for (int64_t i = 0; i < setting->maximum; ++i)
        words[i + 1] =
            *(const char *const *)((const char *)setting->words + (size_t)i * setting->stride);
    for (;; ++text) {
        char item[WORDS_ITEM];
        int index = 0;
        TRY(words_next(&text, ",", item, error));
        TRY(words_parse(words, item, &index, error));
        if (index == 0 && !all)
            return error_set(error, STATUS_USAGE, "'%s' stands alone or not at all", words[0]);
        if (index > 0 && parsed[index - 1])
            return error_set(error, STATUS_USAGE, "%s comes twice", item);
        if (index > 0)
            parsed[index - 1] = true;
        if (*text == '\0')
            break;
    }
    for (int64_t i = 0; i < setting->maximum; ++i)
        flags[i] = all || parsed[i];
    return STATUS_OK;
}

static enum status setting_parse(const struct setting *setting, const char *text, void *target,
                                 struct error *error)
{
    const char *devices[DEVICE_KINDS + 2];
    int64_t wide = 0;
    int index = 0;
    switch (setting->kind) {
    case TEXT:
        *(char **)target = strdup(text);
        return *(char **)target ? STATUS_OK : error_set(error, STATUS_SYSTEM, "out of memory");
    case DEVICE:
        device_kind_words(devices);
        return words_parse(devices, text, target, error);
    case DURATION:
        return units_duration(text, target, error);
    case FRACTION:
        return units_fraction(text, target, error);
    case SET:
        return set_parse(setting, text, target, error);
    case WORD:
        TRY(words_parse(setting->words, text, &index, error));
        wide = index;
        break;
    case FLAG:
        TRY(units_flag(text, &index, error));
        wide = index;
        break;
    case INTEGER:
    default:
        TRY(units_integer(text, setting->minimum, setting->maximum, &wide, error));
    }
    integer_store(setting, wide, target);
    return STATUS_OK;
}

#define AT(member)                                                                                 \
    .offset = offsetof(struct settings, member), .size = sizeof(((struct settings *)0)->member)

/* clang-format off */
static const struct setting table[] = {
    {SWEEP, "title", TEXT, AT(sweep.title)},
    {SWEEP, "output", TEXT, AT(sweep.output)},
    {SWEEP, "device", DEVICE, AT(sweep.device)},
    {SWEEP, "distribute", WORD, AT(sweep.replicate), .words = distribute_words},
    {SWEEP, "timeout", DURATION, AT(sweep.timeout)},
    {SWEEP, "retries", INTEGER, AT(sweep.retries), .maximum = 100},
    {SWEEP, "max_configurations", INTEGER, AT(sweep.max_configurations), .minimum = 1,
     .maximum = 1000000000},
    {SWEEP, "seed", INTEGER, AT(sweep.seed), .maximum = INT64_MAX},
    {MEASURE, "warmup", INTEGER, AT(measure.warmup), .maximum = WARMUP_MAX},
    {MEASURE, "iterations", INTEGER, AT(measure.iterations), .minimum = 1,
     .maximum = ITERATIONS_MAX},
    {MEASURE, "stop", FRACTION, AT(measure.stop)},
    {MEASURE, "min_time", DURATION, AT(measure.min_time)},
    {MEASURE, "max_time", DURATION, AT(measure.max_time)},
    {MEASURE, "repeat", INTEGER, AT(measure.repeat), .minimum = 1, .maximum = REPEAT_MAX},
    {MEASURE, "rounds", INTEGER, AT(sweep.rounds), .minimum = 1, .maximum = ROUNDS_MAX},
    {MEASURE, "cache", WORD, AT(cache), .words = cache_words},
    {MEASURE, "counters", WORD, AT(measure.counters), .words = counters_words},
    {MEASURE, "count_together", INTEGER, AT(measure.count_together), .minimum = 1,
     .maximum = COUNT_TOGETHER_MAX},
    {MEASURE, "kernels", FLAG, AT(measure.kernels)},
    {MEASURE, "verify", FLAG, AT(measure.verify)},
    {MEASURE, "energy", FLAG, AT(measure.energy)},
    {PEAKS, "memory", SET, AT(peaks.memory), .maximum = LEVEL_COUNT, .words = memory_level_name,
     .stride = sizeof(char *), .all = "all"},
    {PEAKS, "compute", SET, AT(peaks.compute), .maximum = PRECISION_COUNT,
     .words = &precision_info[0].name, .stride = sizeof *precision_info, .all = "auto"},
    {PEAKS, "launch", FLAG, AT(peaks.launch)},
    {PEAKS, "transfer", FLAG, AT(peaks.transfer)},
    {PEAKS, "links", FLAG, AT(peaks.links)},
    {PEAKS, "energy", FLAG, AT(peaks.energy)},
    {PEAKS, "condition", SET, AT(peaks.condition), .maximum = 2, .words = roof_condition_name,
     .stride = sizeof(char *), .all = "both"},
    {PEAKS, "reuse", TEXT, AT(reuse)},
};
/* clang-format on */
enum { SETTINGS = sizeof table / sizeof *table };
_Static_assert((int)SETTINGS <= (int)SETTINGS_MAX, "struct settings has too few lines");

struct settings settings_default(void)
{
    return (struct settings){
        .sweep = {.timeout = 120,
                  .retries = 1,
                  .rounds = 1,
                  .max_configurations = 100000,
                  .seed = SEED_DEFAULT},
        .measure = measure_default,
        .peaks = roof_request_all(),
    };
}

const char *settings_cache(const struct settings *settings)
{
    return cache_axes[settings->cache];
}

enum status settings_take(struct settings *settings, int group, const struct ini_line *line,
                          struct error *error)
{
    const char *keys[SETTINGS + 1] = {NULL};
    size_t count = 0;
    for (int i = 0; i < SETTINGS; ++i) {
        const struct setting *setting = &table[i];
        if (setting->group != group)
            continue;
        keys[count++] = setting->key;
        if (strcmp(setting->key, line->key) != 0)
            continue;
        TRY(ini_line_first(line, &settings->lines[i], error));
        enum status status =
            setting_parse(setting, line->value, (char *)settings + setting->offset, error);
        return error_prefix(error, status, "%s", setting->key);
    }
    return ini_line_unknown(line, keys, settings_group_of(line->key), error);
}

/* Index of a key; the first index if two groups have the key; -1: none. */
static int setting_find(const char *key)
{
    for (int i = 0; i < SETTINGS; ++i)
        if (strcmp(table[i].key, key) == 0)
            return i;
    return -1;
}

const char *settings_group_of(const char *key)
{
    int found = setting_find(key);
    return found < 0 ? NULL : settings_groups[table[found].group];
}

void settings_keys(const char *keys[SETTINGS_MAX], const char *groups[SETTINGS_MAX])
{
    for (int i = 0; i < SETTINGS; ++i) {
        keys[i] = table[i].key;
        groups[i] = settings_groups[table[i].group];
    }
}

bool settings_exclude(const char *key, const char *other)
{
    static const char *const fixed = "iterations";
    static const char *const adaptive[] = {"stop", "min_time", "max_time", NULL};
    return (strcmp(key, fixed) == 0 && words_find(adaptive, other) >= 0) ||
           (strcmp(other, fixed) == 0 && words_find(adaptive, key) >= 0);
}

int settings_line(const struct settings *settings, const char *key)
{
    return settings->lines[setting_find(key)];
}

enum status settings_finish(struct settings *settings, const char *path, struct error *error)
{
    struct measure_settings *measure = &settings->measure;
    int stop = settings_line(settings, "stop"), iterations = settings_line(settings, "iterations");
    int min_time = settings_line(settings, "min_time"),
        max_time = settings_line(settings, "max_time");
    if (stop && iterations)
        return error_set(
            error, STATUS_USAGE,
            "%s:%d: iterations (line %d) and stop (line %d) exclude each other: allowed "
            "is a fixed number or the adaptive rule",
            path, stop > iterations ? stop : iterations, iterations, stop);
    if (!stop && (min_time || max_time))
        return error_set(error, STATUS_USAGE, "%s:%d: %s has no effect without stop", path,
                         min_time ? min_time : max_time, min_time ? "min_time" : "max_time");
    if (stop && measure->min_time > measure->max_time)
        return error_set(
            error, STATUS_USAGE, "%s:%d: min_time (%g s) is longer than max_time (%g s)", path,
            min_time > max_time ? min_time : max_time, measure->min_time, measure->max_time);
    if (measure->kernels && measure->counters == COUNTERS_OFF)
        return error_set(error, STATUS_USAGE,
                         "%s:%d: kernels = yes has no effect with counters = off", path,
                         settings_line(settings, "kernels"));
    measure->by_kind = !stop && !iterations;
    if (stop)
        measure->iterations = 0;
    else
        measure->min_time = measure->max_time = 0;
    return STATUS_OK;
}
