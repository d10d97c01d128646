/* A sweep as rank 0 sees it: a dispatcher over a real plan, its actions carried out on a real journal, and the
 * other ranks played by messages. No MPI, no worker. For tests only; include cmocka.h first. */
#ifndef ROOFSWEEP_TEST_DISPATCHER_BENCH_H
#define ROOFSWEEP_TEST_DISPATCHER_BENCH_H

#include "collected.h"
#include "ranks/dispatcher.h"
#include "results/journal.h"

enum {
    BENCH_RANKS = 3,
    BENCH_BEGIN = 1000,      /* s, the first moment of one with timeouts */
    BENCH_COUNT_TIMEOUT = 20 /* s, for each row that waits for its counters */
};

struct bench {
    struct manifest *manifest;
    struct plan *plan;
    struct device devices[BENCH_RANKS];
    struct results *earlier;
    struct log log;
    char path[64];
    struct journal *journal;
    struct collected sent;
    struct choices *choices;
    struct dispatcher *dispatcher;
    struct progress_left left; /* the last that people were told */
    int ranks;
};

/* Without a dispatcher; then with one. */
struct bench bench_make(int ranks, const char *manifest);
void bench_begin(struct bench *bench, enum journal_mode mode);
/* With these timeouts, limit or choices; what the bench has is filled in. */
void bench_open(struct bench *bench, struct dispatcher_settings settings, enum journal_mode mode);

/* Both. bench_start_with: at BENCH_BEGIN. */
void bench_start(struct bench *bench, int ranks, const char *manifest);
void bench_start_with(struct bench *bench, int ranks, const char *manifest,
                      struct dispatcher_settings settings);
void bench_clear(struct bench *bench);

/* What the dispatcher wants done is done. */
void bench_carry_out(struct bench *bench);
/* The moment, or a signal, comes, and what follows from it is done. */
void bench_time(struct bench *bench, double now);
void bench_interrupt(struct bench *bench);

/* What the journal holds. */
struct results *bench_rows(struct bench *bench);

/* Everyone is told to stop, once, and says its last word. */
enum status bench_end(struct bench *bench, struct error *error);

void assert_ok(enum status status, const struct error *error);

/* ---- the other ranks ---- */

void arrive(struct bench *bench, int from, enum message_kind kind, const char *text);
void device_arrives(struct bench *bench, int rank);
void all_devices_arrive(struct bench *bench);

/* The work that a rank was given; false: none. */
bool work_of(struct bench *bench, int rank, struct config *config);

/* What its worker says; the caller's. */
char *record_text(const struct config *config, int rank, enum record_status status);

/* The rank measures what it was given. False: it had no work. */
bool rank_measures(struct bench *bench, int rank, enum record_status status);
/* Ranks from `first` on measure in turns as long as there is work. */
size_t measure_all(struct bench *bench, int first);

/* ---- rows that are counted together ---- */

/* After bench_make, at BENCH_BEGIN: devices that count so many rows together, with their roofs. */
void bench_begin_counting(struct bench *bench, int together);

/* The configuration that a rank was given; whether its counters may wait must be as expected. */
bool work_that_waits(struct bench *bench, int rank, bool later, char text[WORKLOAD_TEXT]);
/* The rank times what it was given. */
void rank_times(struct bench *bench, int rank, char text[WORKLOAD_TEXT]);
bool is_told_to_count(struct bench *bench, int rank);
void record_arrives(struct bench *bench, int rank, const char *configuration);
/* The sweep has ended with a row for each configuration, so many in all. Clears the bench. */
void assert_each_once(struct bench *bench, size_t count);

#endif
