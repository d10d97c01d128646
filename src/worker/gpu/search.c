#include "worker/gpu/search.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/stats.h"
#include "model/algorithm.h"
#include "worker/gpu/graph.h"
#include "worker/gpu/timing.h"

/* ---- which kernels a piece of work runs ---- */

/* Of the C++ library, which this program links for CUPTI's metrics. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* Kernels of CUTLASS have one name, and are told apart by their argument. */
static const char *const wrappers[] = {"cutlass::Kernel2<", "cutlass::Kernel<",
                                       "cutlass::device_kernel<"};
static const char *const generic_kernels[] = {
    "lementWise",   "elementwise", "elemWise",    "addBias", "_combine_",
    "splitKreduce", "init",        "scal_kernel", "memset",  "convert"};

static const char *inner(const char *name)
{
    static const char result[] = "void ";
    if (strncmp(name, result, strlen(result)) == 0)
        name += strlen(result);
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; ++i)
        if (strncmp(name, wrappers[i], strlen(wrappers[i])) == 0)
            return name + strlen(wrappers[i]);
    return name;
}

static void name_shorten(const char *symbol, char short_name[KERNEL_LIST_NAME])
{
    int failed;
    char *demangled = __cxa_demangle(symbol, NULL, NULL, &failed);
    const char *name = inner(failed ? symbol : demangled);
    snprintf(short_name, KERNEL_LIST_NAME, "%.*s", (int)strcspn(name, "<>(,"), name);
    free(demangled);
}

void kernel_list_add(struct kernel_list *list, const char *symbol)
{
    char name[KERNEL_LIST_NAME];
    int i = 0;
    name_shorten(symbol, name);
    while (i < list->count && strcmp(list->kernels[i].name, name) != 0)
        ++i;
    if (i == KERNEL_LIST_MAX)
        return;
    if (i == list->count) {
        snprintf(list->kernels[i].name, sizeof list->kernels[i].name, "%s", name);
        list->kernels[list->count++].launches = 0;
    }
    ++list->kernels[i].launches;
}

/* The most launched first, then by name. */
static int by_launches(const void *a, const void *b)
{
    const struct listed_kernel *first = a, *second = b;
    int more = second->launches - first->launches;
    return more ? more : strcmp(first->name, second->name);
}

void kernel_list_format(const struct kernel_list *list, char *text, size_t size)
{
    static const char more[] = ", ...";
    struct kernel_list sorted = *list;
    size_t used = 0;
    text[0] = '\0';
    qsort(sorted.kernels, (size_t)sorted.count, sizeof *sorted.kernels, by_launches);
    for (int i = 0; i < sorted.count; ++i) {
        const char *name = sorted.kernels[i].name, *before = used ? ", " : "";
        bool told = true;
        for (size_t j = 0; told && j < sizeof generic_kernels / sizeof *generic_kernels; ++j)
            told = !strstr(name, generic_kernels[j]);
        if (told && used + strlen(before) + strlen(name) + sizeof more > size) {
            snprintf(text + used, size - used, "%s", used ? more : "");
            return;
        }
        if (told)
            used += (size_t)snprintf(text + used, size - used, "%s%s", before, name);
    }
}

/* What gets one iteration's kernels. */
struct kernels_seen {
    struct identity *identity;
    struct kernel_list *list;
};

/* Sums, because a graph has no order of its nodes. */
static void kernel_see(const struct graph_kernel *kernel, void *argument)
{
    struct kernels_seen *seen = argument;
    uint64_t hash = XXH3_64bits(kernel->name, strlen(kernel->name));
    seen->identity->kernels += hash;
    seen->identity->launches += XXH3_64bits_withSeed(kernel->launch, sizeof kernel->launch, hash);
    if (seen->list)
        kernel_list_add(seen->list, kernel->name);
}

enum status identity_find(struct gpu *gpu, struct work *work, struct identity *identity,
                          struct kernel_list *list, struct error *error)
{
    struct kernels_seen seen = {identity, list};
    bool known = false;
    *identity = (struct identity){0, 0};
    TRY(graph_kernels(gpu, work, kernel_see, &seen, &known, error));
    if (!known)
        *identity = (struct identity){0, 0};
    return STATUS_OK;
}

enum { IDENTITY_TEXT = 17 };
/* 16 hexadecimal digits; "" if it is not known. */
static void hash_format(uint64_t hash, char text[IDENTITY_TEXT])
{
    text[0] = '\0';
    if (hash)
        snprintf(text, IDENTITY_TEXT, "%016" PRIx64, hash);
}

/* ---- candidates ---- */

enum { ROUNDS = 7, FINALISTS = 5 };
static const double finalist_margin = 0.15; /* over the fastest of the brief times */

/* A candidate that the library took and whose kernels no earlier one runs. */
struct entry {
    int candidate;
    struct identity identity;
    double time;           /* s: the median of all that was timed last */
    double least;          /* s: it takes no less */
    double rounds[ROUNDS]; /* s; of finalists */
    double noise;          /* of finalists */
    struct pace pace;      /* work.h, of this candidate */
    bool first;            /* the library's own first choice runs these kernels */
};

/* What one search knows. */
struct field_of_entries {
    const struct search *search;
    bool cold, replayed;   /* of the record's configuration */
    struct entry *entries; /* owned, room for all candidates */
    int count;
    int bound;  /* candidate */
    double ran; /* s, that candidates were run to time them */
};

/* The library's own first choice. NULL: all of its order was refused. */
static struct entry *first_find(const struct field_of_entries *field)
{
    for (int i = 0; i < field->count; ++i)
        if (field->entries[i].first)
            return &field->entries[i];
    return NULL;
}

static enum status median_time(const struct field_of_entries *field, int samples, double *seconds,
                               double *median, struct error *error)
{
    const struct search *search = field->search;
    struct stats stats;
    TRY(timing_compare(search->gpu, search->work, field->cold, samples, seconds, error));
    TRY(stats_compute(seconds + 1, (size_t)samples - 1, &stats, error));
    *median = stats.median;
    return STATUS_OK;
}

/* Beyond the finalists by more than the noise of one sample. */
static bool is_hopeless(double time, double best_time)
{
    const double noise = 0.1, least = 5e-5; /* s */
    return time > (1.0 + finalist_margin + noise) * best_time + least;
}

/* A candidate whose warm-up takes far longer than the best time so far cannot win. The warm-up is
 * then taken as its time, so that a slow candidate costs little. The first iteration loads code. */
static enum status brief_time(const struct field_of_entries *field, double best_time,
                              struct entry *entry, struct error *error)
{
    const struct search *search = field->search;
    enum { WARMUP = 1, SAMPLES = 4 };
    const double slow_factor = 10.0, slow_least = 5e-3; /* s: code that is loaded takes less */
    double seconds[SAMPLES];
    TRY(timing_run(search->gpu, search->work, field->cold, WARMUP, seconds, NULL, error));
    entry->time = seconds[0];
    entry->least = entry->time - slow_least;
    if (entry->time > slow_factor * best_time + slow_least)
        return STATUS_OK;
    TRY(timing_run(search->gpu, search->work, field->cold, WARMUP, seconds, NULL, error));
    entry->time = entry->least = fmin(entry->time, seconds[0]);
    if (is_hopeless(entry->time, best_time))
        return STATUS_OK;
    return median_time(field, SAMPLES, seconds, &entry->time, error);
}

static enum status candidate_bind(struct field_of_entries *field, int candidate,
                                  struct error *error)
{
    const struct search *search = field->search;
    if (candidate == field->bound)
        return STATUS_OK;
    field->bound = -1;
    TRY(search->bind(search->gpu, search->work, candidate, error));
    field->bound = candidate;
    return STATUS_OK;
}

/* Binds it, and learns which kernels it runs. */
static enum status candidate_identify(struct field_of_entries *field, int candidate,
                                      struct identity *identity, struct error *error)
{
    const struct search *search = field->search;
    TRY(candidate_bind(field, candidate, error));
    return search->identify ? search->identify(search->gpu, search->work, identity, error)
                            : identity_find(search->gpu, search->work, identity, NULL, error);
}

/* The estimate of what it takes to enqueue is another one for each candidate. */
static enum status entry_add(struct field_of_entries *field, int candidate, double *best_time,
                             struct error *error)
{
    const struct search *search = field->search;
    struct entry entry = {.candidate = candidate};
    char id[IDENTITY_TEXT];
    double *hot = search->hot_time ? search->hot_time(search->work, candidate) : NULL;
    const bool first = candidate >= search->ordered && !first_find(field);
    if (field->cold && hot && is_hopeless(*hot, *best_time) && !first)
        return error_set(error, STATUS_UNSUPPORTED, "it takes longer with a hot cache");
    TRY(candidate_identify(field, candidate, &entry.identity, error));
    hash_format(entry.identity.kernels, id);
    if (search->refused && id[0] && strstr(search->refused, id))
        return error_set(error, STATUS_UNSUPPORTED, "its results are wrong");
    struct entry *same = NULL;
    for (int i = 0; entry.identity.launches && !same && i < field->count; ++i)
        if (field->entries[i].identity.launches == entry.identity.launches)
            same = &field->entries[i];
    if (!same) {
        search->work->pace = (struct pace){0};
        double begin = clock_monotonic();
        TRY(brief_time(field, *best_time, &entry, error));
        field->ran += clock_monotonic() - begin;
        entry.pace = search->work->pace;
        *best_time = fmin(*best_time, entry.time);
        same = &field->entries[field->count++];
        *same = entry;
    }
    if (!field->cold && hot)
        *hot = same->least;
    same->first |= first;
    return STATUS_OK;
}

static enum status entries_find(struct field_of_entries *field, struct error *error)
{
    double best_time = INFINITY;
    enum status refusal = STATUS_OK;
    struct error attempt;
    for (int i = 0; i < field->search->count; ++i) {
        enum status status = entry_add(field, i, &best_time, &attempt);
        if (status && !refusal) {
            refusal = status;
            *error = attempt;
        }
        if (status == STATUS_DEVICE) {
            *error = attempt;
            return status;
        }
    }
    return field->count > 0 ? STATUS_OK : refusal;
}

/* ---- the final ---- */

static int by_time(const void *a, const void *b)
{
    double first = ((const struct entry *)a)->time, second = ((const struct entry *)b)->time;
    return (first > second) - (first < second);
}

static int by_value(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

/* Long work is timed less often: its noise is smaller. The first sample brings its own data into
 * the caches. */
static enum status round_time(struct field_of_entries *field, struct entry *entry, int round,
                              struct error *error)
{
    const struct search *search = field->search;
    const double enough = 5e-4; /* s */
    enum { MOST = 3 };
    double seconds[1 + MOST];
    int samples = 1 + (int)fmax(1.0, fmin(MOST, enough / entry->time));
    TRY(candidate_bind(field, entry->candidate, error));
    search->work->pace = entry->pace;
    double begin = clock_monotonic(), *time = &entry->rounds[round];
    enum status status = STATUS_OK;
    *time = NAN;
    if (field->replayed)
        status = graph_time(search->gpu, search->work, field->cold, time, error);
    if (status == STATUS_OK && isnan(*time))
        status = median_time(field, samples, seconds, time, error);
    field->ran += clock_monotonic() - begin;
    return status;
}

static enum status final_run(struct field_of_entries *field, int finalists, struct error *error)
{
    for (int round = 0; round < ROUNDS; ++round)
        for (int i = 0; i < finalists; ++i)
            TRY(round_time(field, &field->entries[i], round, error));
    /* Half the width of the interval from the second time to the last but one, over the median:
     * within it the median is by chance (88 % of the time, for seven rounds). */
    for (int i = 0; i < finalists; ++i) {
        struct entry *entry = &field->entries[i];
        const double *sorted = entry->rounds;
        qsort(entry->rounds, ROUNDS, sizeof *entry->rounds, by_value);
        entry->time = sorted[ROUNDS / 2];
        entry->noise = (sorted[ROUNDS - 2] - sorted[1]) / 2.0 / entry->time;
    }
    return STATUS_OK;
}

/* The fastest ones to the front, and the library's own choice among them if it is near. */
static int finalists_count(struct field_of_entries *field)
{
    double limit = (1.0 + finalist_margin) * field->entries[0].time;
    struct entry *first = first_find(field);
    int count = 0;
    while (count < field->count && count < FINALISTS && field->entries[count].time <= limit)
        ++count;
    if (first && first - field->entries >= count && first->time <= limit) {
        struct entry other = field->entries[count - 1];
        field->entries[count - 1] = *first;
        *first = other;
    }
    return count;
}

static struct entry *winner_find(const struct field_of_entries *field, double *noise)
{
    struct entry *fastest = &field->entries[0], *first = first_find(field);
    *noise = fastest->noise;
    if (!first || first == fastest)
        return fastest;
    *noise = fmax(fastest->noise, first->noise);
    return first->time <= (1.0 + *noise) * fastest->time ? first : fastest;
}

static void entry_tell(const struct search *search, const struct entry *entry, char *name,
                       size_t room, char *id, double *time)
{
    if (!entry)
        return;
    snprintf(name, room, "%s", search->name(search->work, entry->candidate));
    hash_format(entry->identity.kernels, id);
    *time = entry->time;
}

static void record_tell(const struct field_of_entries *field, const struct entry *winner,
                        double noise, struct record *record)
{
    const struct search *search = field->search;
    const struct entry *runner_up = &field->entries[winner == field->entries];
    record->heuristic_algorithm[0] = record->heuristic_id[0] = '\0';
    record->runner_up_algorithm[0] = record->runner_up_id[0] = '\0';
    record->heuristic_time = record->runner_up_time = NAN;
    hash_format(winner->identity.kernels, record->algorithm_id);
    hash_format(winner->identity.launches, record->algorithm_launches);
    snprintf(record->algorithm_origin, sizeof record->algorithm_origin, "%s", algorithm_searched);
    record->search_candidates = field->count;
    record->search_time = winner->time;
    record->search_noise = noise;
    entry_tell(search, first_find(field), record->heuristic_algorithm,
               sizeof record->heuristic_algorithm, record->heuristic_id, &record->heuristic_time);
    entry_tell(search, field->count > 1 ? runner_up : NULL, record->runner_up_algorithm,
               sizeof record->runner_up_algorithm, record->runner_up_id, &record->runner_up_time);
}

static enum status winner_bind(struct field_of_entries *field, int *chosen, struct record *record,
                               struct error *error)
{
    const struct search *search = field->search;
    double noise;
    qsort(field->entries, (size_t)field->count, sizeof *field->entries, by_time);
    int finalists = finalists_count(field);
    TRY(final_run(field, finalists, error));
    qsort(field->entries, (size_t)finalists, sizeof *field->entries, by_time);
    const struct entry *winner = winner_find(field, &noise);
    TRY(candidate_bind(field, winner->candidate, error));
    search->work->pace = winner->pace;
    record_tell(field, winner, noise, record);
    *chosen = winner->candidate;
    return STATUS_OK;
}

/* ---- an earlier algorithm ---- */

static enum status offered_try(struct field_of_entries *field, const struct algorithm *offer,
                               int candidate, struct error *error)
{
    struct identity identity = {0};
    char id[IDENTITY_TEXT], launches[IDENTITY_TEXT];
    TRY(candidate_identify(field, candidate, &identity, error));
    hash_format(identity.kernels, id);
    hash_format(identity.launches, launches);
    return id[0] && launches[0] && strcmp(id, offer->algorithm_id) == 0 &&
                   strcmp(launches, offer->algorithm_launches) == 0
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED, "other kernels");
}

/* A name may say after a colon what it runs, which is known once it is bound. */
static bool is_named(const char *name, const char *offered)
{
    size_t length = strlen(name);
    return strncmp(name, offered, length) == 0 &&
           (!offered[length] || strncmp(offered + length, ": ", 2) == 0);
}

/* Leaves it bound. */
static enum status offered_find(const struct search *search, const struct algorithm *offer,
                                int *chosen, struct error *error)
{
    struct field_of_entries field = {.search = search, .bound = -1};
    enum status status = STATUS_UNSUPPORTED;
    for (int i = 0; i < search->count && status != STATUS_OK && status != STATUS_DEVICE; ++i)
        if (is_named(search->name(search->work, i), offer->algorithm))
            status = offered_try(&field, offer, *chosen = i, error);
    return status;
}

bool search_recall(const struct search *search, int *chosen, struct record *record,
                   enum status *status, struct error *error)
{
    const struct algorithm *offer = record->offer;
    struct error refusal;
    *status = STATUS_OK;
    record->offer = NULL;
    if (!offer)
        return false;
    enum status found = offered_find(search, offer, chosen, &refusal);
    if (found == STATUS_DEVICE) {
        *error = refusal;
        *status = found;
    }
    if (found)
        return false;
    algorithm_into_record(offer, record);
    return true;
}

enum status search_run(const struct search *search, int *chosen, struct record *record,
                       struct error *error)
{
    struct field_of_entries field = {.search = search,
                                     .cold = config_cold(&record->config),
                                     .replayed = config_replayed(&record->config),
                                     .bound = -1};
    enum status status;
    if (search_recall(search, chosen, record, &status, error) || status)
        return status;
    double begin = clock_monotonic();
    field.entries = calloc((size_t)search->count, sizeof *field.entries);
    if (!field.entries)
        return error_set(error, STATUS_FAILED, "no memory for %d candidates", search->count);
    status = entries_find(&field, error);
    if (status == STATUS_OK)
        status = winner_bind(&field, chosen, record, error);
    record_add_part(record, PART_SEARCH_RUN, field.ran);
    record_add_part(record, PART_SEARCH_BUILD, clock_monotonic() - begin - field.ran);
    free(field.entries);
    return status;
}

enum status search_refuse(char refused[SEARCH_REFUSED], bool recalled, struct record *record,
                          struct error *error)
{
    if (recalled)
        record->refused_algorithms[0] = '\0';
    size_t used = strlen(refused), told = strlen(record->refused_algorithms);
    if (!record->algorithm_id[0] || used + sizeof record->algorithm_id >= SEARCH_REFUSED)
        return error_set(error, STATUS_UNSUPPORTED, "no other algorithm is tried");
    snprintf(refused + used, SEARCH_REFUSED - used, "%s ", record->algorithm_id);
    snprintf(record->refused_algorithms + told, sizeof record->refused_algorithms - told, "%s%s",
             told ? "; " : "", record->algorithm);
    return STATUS_OK;
}
