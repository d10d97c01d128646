/* The search for the fastest algorithm of a library.
 *
 * A search binds each candidate, identifies its kernels, and times it briefly. A candidate with the
 * kernels of an earlier candidate is not timed again. Candidates within 15 % of the fastest, five
 * at most, enter the final: they are timed in turn, seven times, so that a change of clock hits all
 * of them. The median of the seven times decides. A finalist leaves after three rounds if its
 * fastest round is slower than another's slowest. A single finalist wins without a final.
 *
 * A candidate that the library refuses, or that fails, is skipped. If all are skipped, the search
 * returns the first error. A lost device ends the search with STATUS_DEVICE.
 *
 * Cost: binding (a library may compile code) takes most of the time, PART_SEARCH_BUILD of the
 * record; the timed runs are PART_SEARCH_RUN. A candidate ten times slower than the best runs once.
 * Reusing the algorithm of an earlier search costs one binding. */
#include "worker/gpu/search.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/stats.h"
#include "worker/gpu/graph.h"
#include "worker/gpu/timing.h"

/* ---- kernels of a piece of work ---- */

/* From the C++ library, which CUPTI's metrics need anyway. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* CUTLASS kernels share these names; the first template argument tells them apart. */
static const char *const wrappers[] = {"cutlass::Kernel2<", "cutlass::Kernel<",
                                       "cutlass::device_kernel<"};
/* Parts of the names of kernels that do not multiply. */
static const char *const generic_kernels[] = {
    "lementWise",   "elementwise", "elemWise",    "addBias", "_combine_",
    "splitKreduce", "init",        "scal_kernel", "memset",  "convert"};

/* `symbol`: the driver's name, mangled or not. */
static void list_add(struct kernel_list *list, const char *symbol)
{
    int failed, i = 0;
    char *demangled = __cxa_demangle(symbol, NULL, NULL, &failed), name[KERNEL_LIST_NAME];
    const char *long_name = failed ? symbol : demangled;
    if (strncmp(long_name, "void ", 5) == 0)
        long_name += 5;
    for (size_t j = 0; j < sizeof wrappers / sizeof *wrappers; ++j)
        if (strncmp(long_name, wrappers[j], strlen(wrappers[j])) == 0)
            long_name += strlen(wrappers[j]);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(long_name, "<>(,"), long_name);
    free(demangled);
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
        bool listed = true;
        for (size_t j = 0; listed && j < sizeof generic_kernels / sizeof *generic_kernels; ++j)
            listed = !strstr(name, generic_kernels[j]);
        if (listed && used + strlen(before) + strlen(name) + sizeof more > size) {
            snprintf(text + used, size - used, "%s", used ? more : "");
            return;
        }
        if (listed)
            used += (size_t)snprintf(text + used, size - used, "%s%s", before, name);
    }
}

struct kernels_seen {
    struct identity *identity;
    struct kernel_list *list;
};

/* Adds hashes up, because the nodes of a graph have no order. */
static void kernel_visit(const struct graph_kernel *kernel, void *argument)
{
    struct kernels_seen *seen = argument;
    uint64_t hash = XXH3_64bits(kernel->name, strlen(kernel->name));
    seen->identity->kernels += hash;
    seen->identity->launches += XXH3_64bits_withSeed(kernel->launch, sizeof kernel->launch, hash);
    if (seen->list)
        list_add(seen->list, kernel->name);
}

enum status identity_find(struct gpu *gpu, struct work *work, struct identity *identity,
                          struct kernel_list *list, struct error *error)
{
    struct kernels_seen seen = {identity, list};
    bool known = false;
    *identity = (struct identity){0, 0};
    TRY(graph_kernels(gpu, work, kernel_visit, &seen, &known, error));
    if (!known)
        *identity = (struct identity){0, 0};
    return STATUS_OK;
}

enum { IDENTITY_TEXT = 17 };
/* Writes 16 hexadecimal digits; "" for an unknown hash. */
static void hash_format(uint64_t hash, char text[IDENTITY_TEXT])
{
    text[0] = '\0';
    if (hash)
        snprintf(text, IDENTITY_TEXT, "%016" PRIx64, hash);
}

/* ---- candidates ---- */

enum { ROUNDS = 7, EARLY_ROUNDS = 3, FINALISTS = 5 };
/* A finalist's brief time exceeds the fastest brief time by at most this fraction. */
static const double finalist_margin = 0.15;

/* A candidate whose kernels differ from those of all earlier entries. */
struct entry {
    int candidate;
    struct identity identity;
    double time;           /* s, median of the last timing */
    double least;          /* s, lower bound of the time */
    double rounds[ROUNDS]; /* s, times of a finalist's rounds */
    int taken;             /* number of these rounds */
    double noise;          /* of a finalist's rounds, relative */
    struct pace pace;
    bool first; /* has the kernels of the library's own choice */
};

struct search_state {
    const struct search *search;
    bool cold, replayed;   /* values of the record's configuration */
    struct entry *entries; /* owned, room for all candidates */
    int count;
    int bound;  /* candidate; -1: none */
    double ran; /* s, time of all timed runs */
};

/* Returns the library's own choice; NULL: the library has none, or refused all. */
static struct entry *first_find(const struct search_state *state)
{
    for (int i = 0; i < state->count; ++i)
        if (state->entries[i].first)
            return &state->entries[i];
    return NULL;
}

/* Leaves out the first of several samples, which brings the candidate's data into the caches. */
static enum status median_time(const struct search_state *state, double share, int samples,
                               double *seconds, double *median, struct error *error)
{
    const struct search *search = state->search;
    const int left_out = samples > 1;
    struct stats stats;
    TRY(timing_compare(search->gpu, search->work, state->cold, share, samples, seconds, error));
    TRY(stats_compute(seconds + left_out, (size_t)(samples - left_out), &stats, error));
    *median = stats.median;
    return STATUS_OK;
}

/* Returns whether one sample shows that a candidate cannot become a finalist. `slack`: s by which a
 * sample of one iteration may exceed an iteration of a longer sample. */
static bool is_hopeless(double time, double best_time, double slack)
{
    const double noise = 0.1;
    return time > (1.0 + finalist_margin + noise) * best_time + slack;
}

/* s; a longer iteration is timed once, because filling the caches hardly counts. */
static const double long_time = 1e-3;

/* Times three iterations: the first loads code, the third runs behind a blocking kernel. Stops if
 * an iteration shows that the candidate cannot win. Then takes samples, unless iterations are long:
 * one more iteration, with a head start, if the device waited for the host. */
static enum status brief_time(const struct search_state *state, double best_time,
                              struct entry *entry, struct error *error)
{
    const struct search *search = state->search;
    enum { SINGLES = 3, SAMPLES = 3 };
    const double slacks[SINGLES] = {5e-3, 5e-5, 3e-6}, share = 0.05, slow_factor = 10.0;
    double seconds[SAMPLES];
    entry->time = INFINITY;
    for (int i = 0; i < SINGLES; ++i) {
        TRY(timing_run(search->gpu, search->work, state->cold, 1, seconds, NULL, error));
        entry->time = fmin(entry->time, seconds[0]);
        entry->least = entry->time - (i == 0 ? slacks[0] : 0);
        if (i == 0 ? entry->time > slow_factor * best_time + slacks[0]
                   : is_hopeless(entry->time, best_time, slacks[i]))
            return STATUS_OK;
    }
    if (entry->time >= long_time && !search->work->pace.given_up)
        return STATUS_OK;
    return median_time(state, share, entry->time < long_time ? SAMPLES : 1, seconds, &entry->time,
                       error);
}

static enum status candidate_bind(struct search_state *state, int candidate, struct error *error)
{
    const struct search *search = state->search;
    if (candidate == state->bound)
        return STATUS_OK;
    state->bound = -1;
    TRY(search->bind(search->gpu, search->work, candidate, error));
    state->bound = candidate;
    return STATUS_OK;
}

static enum status candidate_identify(struct search_state *state, int candidate,
                                      struct identity *identity, struct error *error)
{
    const struct search *search = state->search;
    TRY(candidate_bind(state, candidate, error));
    return search->identify ? search->identify(search->gpu, search->work, identity, error)
                            : identity_find(search->gpu, search->work, identity, NULL, error);
}

/* Adds a candidate, or finds the entry with the same kernels. */
static enum status entry_add(struct search_state *state, int candidate, double *best_time,
                             struct error *error)
{
    const struct search *search = state->search;
    struct entry entry = {.candidate = candidate};
    char id[IDENTITY_TEXT];
    double *hot = search->hot_time ? search->hot_time(search->work, candidate) : NULL;
    const bool first = candidate >= search->ordered && !first_find(state);
    if (state->cold && hot && is_hopeless(*hot, *best_time, 5e-5) && !first)
        return error_set(error, STATUS_UNSUPPORTED, "it was too slow with a hot cache");
    TRY(candidate_identify(state, candidate, &entry.identity, error));
    hash_format(entry.identity.kernels, id);
    if (search->refused && id[0] && strstr(search->refused, id))
        return error_set(error, STATUS_UNSUPPORTED, "its results are wrong");
    struct entry *same = NULL;
    for (int i = 0; entry.identity.launches && !same && i < state->count; ++i)
        if (state->entries[i].identity.launches == entry.identity.launches)
            same = &state->entries[i];
    if (!same) {
        search->work->pace = (struct pace){0};
        double begin = clock_monotonic();
        TRY(brief_time(state, *best_time, &entry, error));
        state->ran += clock_monotonic() - begin;
        entry.pace = search->work->pace;
        *best_time = fmin(*best_time, entry.time);
        same = &state->entries[state->count++];
        *same = entry;
    }
    if (!state->cold && hot)
        *hot = same->least;
    same->first |= first;
    return STATUS_OK;
}

static enum status entries_find(struct search_state *state, struct error *error)
{
    double best_time = INFINITY;
    enum status refusal = STATUS_OK;
    struct error attempt;
    for (int i = 0; i < state->search->count; ++i) {
        enum status status = entry_add(state, i, &best_time, &attempt);
        if (status && !refusal) {
            refusal = status;
            *error = attempt;
        }
        if (status == STATUS_DEVICE) {
            *error = attempt;
            return status;
        }
    }
    return state->count > 0 ? STATUS_OK : refusal;
}

/* ---- the final ---- */

/* Beaten finalists follow the others: they have no rounds of a clock that fell later. */
static int by_time(const void *a, const void *b)
{
    const struct entry *first = a, *second = b;
    const int later = second->taken - first->taken;
    return later ? later : (first->time > second->time) - (first->time < second->time);
}

static enum status round_time(struct search_state *state, struct entry *entry, struct error *error)
{
    const struct search *search = state->search;
    enum { SAMPLES = 2 };
    const double share = 0.03; /* the timer's share of a sample's time */
    double seconds[SAMPLES];
    TRY(candidate_bind(state, entry->candidate, error));
    search->work->pace = entry->pace;
    double begin = clock_monotonic(), *time = &entry->rounds[entry->taken++];
    enum status status = STATUS_OK;
    *time = NAN;
    if (state->replayed)
        status = timing_graph(search->gpu, search->work, state->cold, time, error);
    if (status == STATUS_OK && isnan(*time))
        status =
            median_time(state, share, entry->time < long_time ? SAMPLES : 1, seconds, time, error);
    state->ran += clock_monotonic() - begin;
    return status;
}

/* Returns whether the first rounds of another finalist were all faster. The library's own choice
 * stays, since its time is recorded. */
static bool is_beaten(const struct search_state *state, int finalists, const struct entry *entry)
{
    double least = INFINITY, most = INFINITY; /* s, the entry's shortest, another's longest round */
    for (int i = 0; i < finalists; ++i) {
        double longest = 0.0;
        for (int round = 0; round < EARLY_ROUNDS; ++round) {
            longest = fmax(longest, state->entries[i].rounds[round]);
            least = fmin(least, entry->rounds[round]);
        }
        most = fmin(most, longest);
    }
    return least > most && !entry->first;
}

/* A single finalist has won. If rows replay a graph, one round measures its time in a graph. */
static enum status final_run(struct search_state *state, int finalists, struct error *error)
{
    const int rounds = finalists > 1 ? ROUNDS : state->replayed;
    for (int round = 0; round < rounds; ++round)
        for (int i = 0; i < finalists; ++i)
            if (round < EARLY_ROUNDS || !is_beaten(state, finalists, &state->entries[i]))
                TRY(round_time(state, &state->entries[i], error));
    /* The noise is half the interval from the second time to the last but one, over the median. For
     * seven rounds the interval covers the true median with a probability of 88 %. */
    for (int i = 0; i < finalists && rounds > 0; ++i) {
        struct entry *entry = &state->entries[i];
        const double *sorted = entry->rounds;
        entry->time = stats_sort(entry->rounds, (size_t)entry->taken);
        entry->noise =
            entry->taken > 1 ? (sorted[entry->taken - 2] - sorted[1]) / 2.0 / entry->time : 0.0;
    }
    return STATUS_OK;
}

/* Counts the finalists among the sorted entries. The library's own choice is a finalist whenever
 * its time allows: it takes the last of the five places if necessary. */
static int finalists_count(struct search_state *state)
{
    double limit = (1.0 + finalist_margin) * state->entries[0].time;
    struct entry *first = first_find(state);
    int count = 0;
    while (count < state->count && count < FINALISTS && state->entries[count].time <= limit)
        ++count;
    if (first && first - state->entries >= count && first->time <= limit) {
        struct entry other = state->entries[count - 1];
        state->entries[count - 1] = *first;
        *first = other;
    }
    return count;
}

/* The library's own choice wins unless the fastest beats it by more than the noise. */
static struct entry *winner_find(const struct search_state *state, double *noise)
{
    struct entry *fastest = &state->entries[0], *first = first_find(state);
    *noise = first ? fmax(fastest->noise, first->noise) : fastest->noise;
    return first && first->time <= (1.0 + *noise) * fastest->time ? first : fastest;
}

static void entry_describe(const struct search *search, const struct entry *entry, char *name,
                           size_t room, char *id, double *time)
{
    if (!entry)
        return;
    snprintf(name, room, "%s", search->name(search->work, entry->candidate));
    hash_format(entry->identity.kernels, id);
    *time = entry->time;
}

static void record_describe(const struct search_state *state, const struct entry *winner,
                            double noise, struct record *record)
{
    const struct search *search = state->search;
    const struct entry *runner_up = &state->entries[winner == state->entries];
    record->heuristic_algorithm[0] = record->heuristic_id[0] = '\0';
    record->runner_up_algorithm[0] = record->runner_up_id[0] = '\0';
    record->heuristic_time = record->runner_up_time = NAN;
    hash_format(winner->identity.kernels, record->algorithm_id);
    hash_format(winner->identity.launches, record->algorithm_launches);
    snprintf(record->algorithm_origin, sizeof record->algorithm_origin, "%s", algorithm_searched);
    record->search_candidates = state->count;
    record->search_time = winner->time;
    record->search_noise = noise;
    entry_describe(search, first_find(state), record->heuristic_algorithm,
                   sizeof record->heuristic_algorithm, record->heuristic_id,
                   &record->heuristic_time);
    entry_describe(search, state->count > 1 ? runner_up : NULL, record->runner_up_algorithm,
                   sizeof record->runner_up_algorithm, record->runner_up_id,
                   &record->runner_up_time);
}

static enum status winner_bind(struct search_state *state, int *chosen, struct record *record,
                               struct error *error)
{
    const struct search *search = state->search;
    double noise;
    qsort(state->entries, (size_t)state->count, sizeof *state->entries, by_time);
    int finalists = finalists_count(state);
    TRY(final_run(state, finalists, error));
    qsort(state->entries, (size_t)finalists, sizeof *state->entries, by_time);
    const struct entry *winner = winner_find(state, &noise);
    TRY(candidate_bind(state, winner->candidate, error));
    search->work->pace = winner->pace;
    record_describe(state, winner, noise, record);
    *chosen = winner->candidate;
    return STATUS_OK;
}

/* ---- an algorithm of an earlier search ---- */

/* Returns STATUS_OK if the candidate is the offered algorithm, and leaves it bound. The offered
 * name may end with ": KERNELS", which a candidate's name gets only when it is bound. */
static enum status offered_try(struct search_state *state, const struct algorithm *offer,
                               int candidate, struct error *error)
{
    const char *name = state->search->name(state->search->work, candidate);
    const char *rest = offer->algorithm + strlen(name);
    struct identity identity = {0};
    char id[IDENTITY_TEXT], launches[IDENTITY_TEXT];
    if (strncmp(name, offer->algorithm, strlen(name)) != 0 ||
        (*rest && strncmp(rest, ": ", 2) != 0))
        return STATUS_UNSUPPORTED;
    TRY(candidate_identify(state, candidate, &identity, error));
    hash_format(identity.kernels, id);
    hash_format(identity.launches, launches);
    return id[0] && launches[0] && strcmp(id, offer->algorithm_id) == 0 &&
                   strcmp(launches, offer->algorithm_launches) == 0
               ? STATUS_OK
               : STATUS_UNSUPPORTED;
}

bool search_recall(const struct search *search, int *chosen, struct record *record,
                   enum status *status, struct error *error)
{
    const struct algorithm *offer = record->offer;
    struct search_state state = {.search = search, .bound = -1};
    enum status found = STATUS_UNSUPPORTED;
    struct error refusal;
    *status = STATUS_OK;
    record->offer = NULL;
    for (int i = 0; offer && i < search->count && found && found != STATUS_DEVICE; ++i)
        found = offered_try(&state, offer, *chosen = i, &refusal);
    if (found == STATUS_DEVICE) {
        *error = refusal;
        *status = found;
    }
    if (found == STATUS_OK)
        record->found = *offer;
    return found == STATUS_OK;
}

enum status search_run(const struct search *search, int *chosen, struct record *record,
                       struct error *error)
{
    struct search_state state = {.search = search,
                                 .cold = config_cold(&record->config),
                                 .replayed = config_replayed(&record->config),
                                 .bound = -1};
    enum status status;
    if (search_recall(search, chosen, record, &status, error) || status)
        return status;
    double begin = clock_monotonic();
    state.entries = calloc((size_t)search->count, sizeof *state.entries);
    if (!state.entries)
        return error_set(error, STATUS_FAILED, "no memory for %d candidates", search->count);
    status = entries_find(&state, error);
    if (status == STATUS_OK)
        status = winner_bind(&state, chosen, record, error);
    record_add_part(record, PART_SEARCH_RUN, state.ran);
    record_add_part(record, PART_SEARCH_BUILD, clock_monotonic() - begin - state.ran);
    free(state.entries);
    return status;
}

enum status search_refuse(char refused[SEARCH_REFUSED], bool recalled, struct record *record,
                          struct error *error)
{
    if (recalled)
        record->refused_algorithms[0] = '\0';
    size_t used = strlen(refused), length = strlen(record->refused_algorithms);
    if (!record->algorithm_id[0] || used + sizeof record->algorithm_id >= SEARCH_REFUSED)
        return error_set(error, STATUS_UNSUPPORTED, "no other algorithm is tried");
    snprintf(refused + used, SEARCH_REFUSED - used, "%s ", record->algorithm_id);
    snprintf(record->refused_algorithms + length, sizeof record->refused_algorithms - length,
             "%s%s", length ? "; " : "", record->algorithm);
    return STATUS_OK;
}
