/* A simulated sweep for tests: a dispatcher with a real plan and journal. The test sends the
 * messages of the other ranks. No MPI, no worker. */
#pragma once

#include "unit.h"
#include "collected.h"
#include "model/protocol.h"
#include "ranks/dispatcher.h"
#include "results/journal.h"

enum {
    BENCH_RANKS = 3,
    BENCH_BEGIN = 1000 /* s, start of the sweep */
};

struct bench_settings {
    int ranks;
    const char *manifest;
    int together; /* batch size of the devices; 0: no counters */
    bool limited; /* a time limit of 100 s, 10 s of them for the file, and no timeouts of ranks */
    bool hosts;   /* one host per rank */
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
    struct dispatcher *dispatcher;
};

/* Starts at BENCH_BEGIN. Timeouts: 100 s for roofs, 50 s for a row, 20 s for each row that waits
 * for counting, 10 s for the end. */
void bench_start(struct bench *bench, const struct bench_settings *settings);
/* Starts another run that resumes the journal. */
void bench_start_again(struct bench *bench);
void bench_clear(struct bench *bench);

void bench_carry_out(struct bench *bench);
void bench_time(struct bench *bench, double now);

struct results *bench_rows(struct bench *bench);

/* Checks that each rank was ordered to stop once, and sends the last messages. */
enum status bench_end(struct bench *bench, struct error *error);

/* ---- the other ranks ---- */

/* Delivers a message. `arrive` also calls dispatcher_commit. */
void arrive(struct bench *bench, int from, enum message_kind kind, const char *text);
void arrive_with_others(struct bench *bench, int from, enum message_kind kind, const char *text);
void device_arrives(struct bench *bench, int rank);
void all_devices_arrive(struct bench *bench);

/* Takes the configuration that was assigned to a rank. False: none. */
bool work_taken(struct bench *bench, int rank, struct request *request);
bool count_ordered(struct bench *bench, int rank);

/* The message of a record; the caller frees it. */
char *record_text(const char *configuration, enum record_status status);
void record_arrives(struct bench *bench, int rank, const char *configuration);
