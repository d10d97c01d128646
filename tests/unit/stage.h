/* A sweep as rank 0 sees it: a coordinator over a real plan and a real journal, and the other ranks played by
 * letters. No MPI, no worker. For tests only; include cmocka.h first. */
#ifndef ROOFSWEEP_TEST_STAGE_H
#define ROOFSWEEP_TEST_STAGE_H

#include "collected_post.h"
#include "ranks/coordinator.h"

enum {
    STAGE_RANKS = 3,
    STAGE_BEGIN = 1000,       /* s, the first moment of one with patience */
    STAGE_COUNT_PATIENCE = 20 /* s, for each row that waits for its counters */
};

struct stage {
    struct manifest *manifest;
    struct plan *plan;
    struct device devices[STAGE_RANKS];
    struct results *earlier;
    struct log log;
    char path[64];
    struct journal *journal;
    struct collected sent;
    struct choices *choices;
    struct coordinator *coordinator;
    int ranks;
};

/* Without a coordinator; then with one. */
struct stage stage_make(int ranks, const char *manifest);
void stage_begin(struct stage *stage, enum journal_mode mode);
/* With these patiences, limit or choices; what the stage has is filled in. */
void stage_open(struct stage *stage, struct coordinator_settings settings, enum journal_mode mode);

/* Both. stage_start_with: at STAGE_BEGIN. */
void stage_start(struct stage *stage, int ranks, const char *manifest);
void stage_start_with(struct stage *stage, int ranks, const char *manifest,
                      struct coordinator_settings settings);
void stage_clear(struct stage *stage);

/* What the journal holds. */
struct results *stage_rows(struct stage *stage);

/* Everyone is told to stop, once, and says its last word. */
enum status stage_end(struct stage *stage, struct error *error);

void assert_ok(enum status status, const struct error *error);

/* ---- the other ranks ---- */

void arrive(struct stage *stage, int from, enum letter_kind kind, const char *text);
void device_arrives(struct stage *stage, int rank);
void all_devices_arrive(struct stage *stage);

/* The work that a rank was given; false: none. */
bool work_of(struct stage *stage, int rank, struct config *config);

/* What its worker says; the caller's. */
char *record_text(const struct config *config, int rank, enum record_status status);

/* The rank measures what it was given. False: it had no work. */
bool rank_measures(struct stage *stage, int rank, enum record_status status);
/* The same, in so many seconds. */
struct config measured_in(struct stage *stage, int rank, double seconds);
/* Ranks from `first` on measure in turns as long as there is work. */
size_t measure_all(struct stage *stage, int first);

/* ---- rows that are counted together ---- */

/* After stage_make, at STAGE_BEGIN: devices that count so many rows together, with their roofs. */
void stage_begin_counting(struct stage *stage, int together);

/* The configuration that a rank was given; whether its counters may wait must be as expected. */
bool work_that_waits(struct stage *stage, int rank, bool later, char text[WORKLOAD_TEXT]);
/* The rank times what it was given. */
void rank_times(struct stage *stage, int rank, char text[WORKLOAD_TEXT]);
bool is_told_to_count(struct stage *stage, int rank);
void record_arrives(struct stage *stage, int rank, const char *configuration);
/* The sweep has ended with a row for each configuration, so many in all. Clears the stage. */
void assert_each_once(struct stage *stage, size_t count);

#endif
