/* A sweep as rank 0 sees it: a dispatcher over a real plan, its actions carried out on a real
 * journal, and the other ranks played by messages. No MPI, no worker. For tests only. */
#pragma once

#include "unit.h"
#include "collected.h"
#include "model/protocol.h"
#include "ranks/dispatcher.h"
#include "results/journal.h"

enum {
    BENCH_RANKS = 3,
    BENCH_BEGIN = 1000 /* s, the first moment */
};

struct bench_settings {
    int ranks;
    const char *manifest;
    int together; /* rows that the devices count together; 0: they count nothing */
    bool limited; /* by 100 s, of which 10 s are for the file; then no rank is ever silent */
    bool hosts;   /* each rank has its own */
};

struct bench {
    struct bench_settings settings;
    struct manifest *manifest;
    struct plan *plan;
    struct device devices[BENCH_RANKS];
    struct results *earlier;
    struct log log;
    char path[64];
    struct journal *journal;
    struct collected sent;
    struct algorithm_cache *algorithm_cache;
    struct dispatcher *dispatcher;
};

/* At BENCH_BEGIN. A rank may be silent for 100 s over its roofs, for 50 s over a row, for 20 s over
 * each row that it counts, and for 10 s after the end. */
void bench_start(struct bench *bench, const struct bench_settings *settings);
/* Another run that goes on with what the journal holds. */
void bench_start_again(struct bench *bench);
void bench_clear(struct bench *bench);

/* What the dispatcher wants done is done. */
void bench_carry_out(struct bench *bench);
void bench_time(struct bench *bench, double now);

/* What the journal holds. */
struct results *bench_rows(struct bench *bench);

/* Each rank gets the order to stop, once, and says its last word. */
enum status bench_end(struct bench *bench, struct error *error);

void assert_ok(enum status status, const struct error *error);

/* ---- the other ranks ---- */

/* A message and, if it is the last one of its moment, what follows from it. */
void arrive(struct bench *bench, int from, enum message_kind kind, const char *text);
void arrive_with_others(struct bench *bench, int from, enum message_kind kind, const char *text);
void device_arrives(struct bench *bench, int rank);
void all_devices_arrive(struct bench *bench);

/* What a rank was asked to measure; false: nothing. */
bool work_taken(struct bench *bench, int rank, struct request *request);
bool is_told_to_count(struct bench *bench, int rank);

/* The message of a record; the caller frees it. */
char *record_text(const char *configuration, enum record_status status);
void record_arrives(struct bench *bench, int rank, const char *configuration);
