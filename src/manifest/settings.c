#include "manifest/settings.h"

#include <string.h>

#include "base/units.h"
#include "base/text.h"
#include "model/device_kind.h"

const char *const settings_groups[] = {"sweep", "measure", "peaks", NULL};
enum { SWEEP, MEASURE, PEAKS }; /* indices into it */

static const char *const distribute_words[] = {"split", "replicate", NULL};
static const char *const cache_words[] = {"hot", "cold", "both", NULL};
static const char *const cache_axes[] = {"hot", "cold", "hot, cold"}; /* what each stands for */

struct setting {
    int group;
    const char *key;
    enum status (*parse)(const struct setting *setting, const char *text, void *target,
                         struct error *error);
    size_t offset, size; /* of the target in struct settings */
    int64_t minimum, maximum;
    const char *const *words;
};

/* Settings are of type bool, int, an enum, int64_t or uint64_t. */
static void integer_store(void *target, size_t size, int64_t value)
{
    bool flag = value != 0;
    int number = (int)value;
    memcpy(target,
           size == sizeof flag     ? (void *)&flag
           : size == sizeof number ? (void *)&number
                                   : (void *)&value,
           size);
}

static enum status parse_text(const struct setting *setting, const char *text, void *target,
                              struct error *error)
{
    (void)setting;
    char **string = target;
    *string = strdup(text);
    return *string ? STATUS_OK : error_set(error, STATUS_SYSTEM, "out of memory");
}

static enum status parse_word(const struct setting *setting, const char *text, void *target,
                              struct error *error)
{
    int index;
    enum status status = words_parse(setting->words, text, &index, error);
    if (status == STATUS_OK)
        integer_store(target, setting->size, index);
    return status;
}

static enum status parse_device(const struct setting *setting, const char *text, void *target,
                                struct error *error)
{
    const char *words[DEVICE_KINDS + 2];
    (void)setting;
    device_kind_words(words);
    return words_parse(words, text, target, error);
}

static enum status parse_integer(const struct setting *setting, const char *text, void *target,
                                 struct error *error)
{
    int64_t value;
    enum status status = units_integer(text, setting->minimum, setting->maximum, &value, error);
    if (status == STATUS_OK)
        integer_store(target, setting->size, value);
    return status;
}

static enum status parse_limit(const struct setting *setting, const char *text, void *target,
                               struct error *error)
{
    if (strcmp(text, "never") != 0) {
        enum status status = parse_integer(setting, text, target, error);
        return status ? error_set(error, status, "'%.60s' is neither never nor a number from %lld",
                                  text, (long long)setting->minimum)
                      : STATUS_OK;
    }
    integer_store(target, setting->size, -1);
    return STATUS_OK;
}

static enum status parse_flag(const struct setting *setting, const char *text, void *target,
                              struct error *error)
{
    int flag;
    enum status status = units_flag(text, &flag, error);
    if (status == STATUS_OK)
        integer_store(target, setting->size, flag);
    return status;
}

static enum status parse_duration(const struct setting *setting, const char *text, void *target,
                                  struct error *error)
{
    (void)setting;
    return units_duration(text, target, error);
}

static enum status parse_fraction(const struct setting *setting, const char *text, void *target,
                                  struct error *error)
{
    (void)setting;
    return units_fraction(text, target, error);
}

/* Reads a list of words. words[0] must stand alone and means all the others. flags[i] is of words[i
 * + 1]. / */
static enum status set_parse(const char *const *words, size_t count, const char *text, bool *flags,
                             struct error *error)
{
    bool parsed[LEVEL_COUNT + PRECISION_COUNT] = {false};
    bool all = strcmp(text, words[0]) == 0;
    for (;; ++text) {
        char item[WORDS_ITEM];
        int index = 0;
        enum status status = words_next(&text, ",", item, error);
        if (status == STATUS_OK)
            status = words_parse(words, item, &index, error);
        if (status == STATUS_OK && index == 0 && !all)
            status = error_set(error, STATUS_USAGE, "'%s' stands alone or not at all", words[0]);
        if (status == STATUS_OK && index > 0 && parsed[index - 1])
            status = error_set(error, STATUS_USAGE, "%s comes twice", item);
        if (status)
            return status;
        if (index > 0)
            parsed[index - 1] = true;
        if (*text == '\0')
            break;
    }
    for (size_t i = 0; i < count; ++i)
        flags[i] = all || parsed[i];
    return STATUS_OK;
}

static enum status parse_levels(const struct setting *setting, const char *text, void *target,
                                struct error *error)
{
    const char *words[LEVEL_COUNT + 2] = {"all"};
    (void)setting;
    for (int i = 0; i < LEVEL_COUNT; ++i)
        words[i + 1] = memory_level_name[i];
    return set_parse(words, LEVEL_COUNT, text, target, error);
}

static enum status parse_precisions(const struct setting *setting, const char *text, void *target,
                                    struct error *error)
{
    const char *words[PRECISION_COUNT + 2] = {"auto"};
    (void)setting;
    for (int i = 0; i < PRECISION_COUNT; ++i)
        words[i + 1] = precision_info[i].name;
    return set_parse(words, PRECISION_COUNT, text, target, error);
}

static enum status parse_conditions(const struct setting *setting, const char *text, void *target,
                                    struct error *error)
{
    const char *const words[] = {"both", roof_condition_name[ROOF_ALONE],
                                 roof_condition_name[ROOF_TOGETHER], NULL};
    (void)setting;
    return set_parse(words, 2, text, target, error);
}

#define AT(member) offsetof(struct settings, member), sizeof(((struct settings *)0)->member)

/* clang-format off */
static const struct setting table[] = {
    {SWEEP, "title", parse_text, AT(sweep.title), 0, 0, NULL},
    {SWEEP, "output", parse_text, AT(sweep.output), 0, 0, NULL},
    {SWEEP, "device", parse_device, AT(sweep.device), 0, 0, NULL},
    {SWEEP, "distribute", parse_word, AT(sweep.replicate), 0, 0, distribute_words},
    {SWEEP, "timeout", parse_duration, AT(sweep.timeout), 0, 0, NULL},
    {SWEEP, "retries", parse_integer, AT(sweep.retries), 0, 100, NULL},
    {SWEEP, "overwrite", parse_flag, AT(sweep.overwrite), 0, 0, NULL},
    {SWEEP, "max_failures", parse_limit, AT(sweep.max_failures), 1, INT64_MAX, NULL},
    {SWEEP, "max_configurations", parse_integer, AT(sweep.max_configurations), 1, 1000000000, NULL},
    {SWEEP, "algorithms", parse_text, AT(sweep.algorithms), 0, 0, NULL},
    {SWEEP, "seed", parse_integer, AT(sweep.seed), 0, INT64_MAX, NULL},
    {MEASURE, "warmup", parse_integer, AT(measure.warmup), 0, WARMUP_MAX, NULL},
    {MEASURE, "iterations", parse_integer, AT(measure.iterations), 1, ITERATIONS_MAX, NULL},
    {MEASURE, "stop", parse_fraction, AT(measure.stop), 0, 0, NULL},
    {MEASURE, "min_time", parse_duration, AT(measure.min_time), 0, 0, NULL},
    {MEASURE, "max_time", parse_duration, AT(measure.max_time), 0, 0, NULL},
    {MEASURE, "cache", parse_word, AT(cache), 0, 0, cache_words},
    {MEASURE, "counters", parse_word, AT(measure.counters), 0, 0, counters_words},
    {MEASURE, "count_together", parse_integer, AT(measure.count_together), 1, COUNT_TOGETHER_MAX,
     NULL},
    {MEASURE, "kernels", parse_flag, AT(measure.kernels), 0, 0, NULL},
    {MEASURE, "verify", parse_flag, AT(measure.verify), 0, 0, NULL},
    {MEASURE, "energy", parse_flag, AT(measure.energy), 0, 0, NULL},
    {PEAKS, "memory", parse_levels, AT(peaks.memory), 0, 0, NULL},
    {PEAKS, "compute", parse_precisions, AT(peaks.compute), 0, 0, NULL},
    {PEAKS, "launch", parse_flag, AT(peaks.launch), 0, 0, NULL},
    {PEAKS, "transfer", parse_flag, AT(peaks.transfer), 0, 0, NULL},
    {PEAKS, "condition", parse_conditions, AT(peaks.condition), 0, 0, NULL},
    {PEAKS, "reuse", parse_text, AT(reuse), 0, 0, NULL},
};
/* clang-format on */
enum { SETTINGS = sizeof table / sizeof *table };
_Static_assert((int)SETTINGS <= (int)SETTINGS_MAX, "struct settings has too few lines");

struct settings settings_default(void)
{
    return (struct settings){
        .sweep = {.timeout = 120,
                  .retries = 1,
                  .max_failures = -1,
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
        enum status status = ini_line_first(line, &settings->lines[i], error);
        if (status)
            return status;
        status = setting->parse(setting, line->value, (char *)settings + setting->offset, error);
        if (status)
            error_prefix(error, "%s", setting->key);
        return status;
    }
    return ini_line_unknown(line, keys, settings_group_of(line->key), error);
}

/* Keys are unique over the groups. */
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

/* Line of a key, 0 if the manifest does not have it. */
static int line_of(const struct settings *settings, const char *key)
{
    return settings->lines[setting_find(key)];
}

enum status settings_finish(struct settings *settings, const char *path, struct error *error)
{
    struct measure_settings *measure = &settings->measure;
    int stop = line_of(settings, "stop"), iterations = line_of(settings, "iterations");
    int min_time = line_of(settings, "min_time"), max_time = line_of(settings, "max_time");
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
                         line_of(settings, "kernels"));
    if (stop)
        measure->iterations = 0;
    else
        measure->min_time = measure->max_time = 0;
    return STATUS_OK;
}
