/* Rank 0's half of a sweep: assignment, records, lost and silent ranks, batches, the end. Most
 * cases are scripts. */

#include "unit.h"

#include <stdio.h>

#include "ranks/resume.h"
#include "dispatcher_bench.h"

/* Statements of a script, separated by `;`. R is a rank. A is a letter for a configuration, defined
 * when the configuration is assigned; `a-c` are three in turn; z is never assigned.
 *
 *   devices, device R       all ranks, or rank R, have their roofs
 *   works R A               R was assigned A
 *   waits R A, alone R A    R was assigned A, which may wait for counting, or must not
 *   idle R                  R was assigned nothing
 *   counts R, times R       R was ordered to count, or was not
 *   record R A, failed R A, timed R A, returned R A, lost R WHY, gone R, signalled R
 *                           message from R; gone: the last one
 *   batch R A               waits R A, and then timed R A
 *   says R TEXT, describes R TEXT
 *                           R sends TEXT as a record, as a device
 *   all R N                 ranks from R on measure all their rows: N in all
 *   together R A; settle    R's record arrives with others; all of them have arrived
 *   time S, signal          S seconds after the beginning; a signal
 *   suspended S             the job was suspended for S seconds
 *   uuid R TEXT, again      sets R's UUID; starts another run
 *   runs R                  R was not ordered to stop
 *   end STATUS TEXT         all were ordered to stop and send the last message; error contains TEXT
 *   over STATUS, goes-on    the sweep has ended, or not
 *   missing TEXT            ranks without a last message
 *   rows N, row I A ERROR   rows in the journal; row I failed if ERROR is given
 *   kept I N                row I in the journal has N rounds */
struct play {
    const char *name; /* shown if the test fails */
    struct bench_settings settings;
    const char *script;
};

/* `manifest` on `count` ranks; with batches of `together` rows; with a time limit. */
#define RANKS(count, text)                                                                         \
    {                                                                                              \
        .ranks = (count), .manifest = (text)                                                       \
    }
#define COUNTING(count, text, most)                                                                \
    {                                                                                              \
        .ranks = (count), .manifest = (text), .together = (most)                                   \
    }
#define LIMITED(count, text)                                                                       \
    {                                                                                              \
        .ranks = (count), .manifest = (text), .limited = true                                      \
    }

#define ONE        "[conv2d grid]\nbatch = 1\n"
#define TWO        "[conv2d grid]\nbatch = 1, 2\n"
#define THREE      "[conv2d grid]\nbatch = 1, 2, 4\n"
#define FOUR       "[conv2d grid]\nbatch = 1, 2, 4, 8\n"
#define SIX        "[conv2d grid]\nbatch = 1, 2, 4, 8, 16, 32\n"
#define FORTY      "[conv2d grid]\nbatch = 1:40:+1\n"
#define REPLICATED "[sweep]\ndistribute = replicate\n" FOUR
#define ROUNDS     "[measure]\nrounds = 2\n"
#define ROOFS      "[peaks]\nmemory = dram\n"

static const struct play plays[] = {
    /* ---- assignment of configurations ---- */
    {"no work before all roofs are measured", RANKS(2, FOUR),
     "device 0; idle 0; device 1; works 0; works 1"},
    {"each configuration is measured once", RANKS(3, FOUR), "devices; all 0 4; end ok; rows 4"},
    {"work comes after the sync, and not twice", RANKS(3, SIX),
     "devices; works 0 a; works 1 b; works 2 c; together 0 a; together 1 b; together 2 c;"
     "idle 0; idle 1; idle 2; settle; rows 3; works 0; works 1; works 2; settle; idle 0; idle 1;"
     "idle 2"},
    {"a signal stops all ranks; late records are kept", RANKS(2, FOUR),
     "devices; signal; works 1 a; record 1 a; idle 1; end interrupted; rows 1"},
    {"rows that fail after a signal are measured by the next run", RANKS(2, TWO),
     "devices; works 0 a; works 1 b; signalled 1; failed 0 a; end interrupted; rows 0; again;"
     "devices; all 0 2; end ok; rows 2"},
    {"a signal at another rank stops all ranks", RANKS(2, FOUR),
     "devices; signalled 1; works 1 a; record 1 a; idle 1; end interrupted; rows 1"},
    {"roofs alone end with the last device", RANKS(2, ROOFS), "device 1; runs 0; device 0; end ok"},
    {"a device that is lost over roofs alone is missing", RANKS(2, ROOFS),
     "device 1; lost 0 gone; end device"},

    /* ---- nonsense ---- */
    {"an empty message is no record", RANKS(2, FOUR),
     "devices; says 1; end system no record; rows 0"},
    {"a list is no record", RANKS(2, FOUR), "devices; says 1 []; end system no record; rows 0"},
    {"a record has a configuration", RANKS(2, FOUR),
     "devices; says 1 {\"time_median\":1}; end system no record"},
    {"a record has a status", RANKS(2, FOUR),
     "devices; says 1 {\"status\":\"merry\"}; end system no record"},
    {"a record of another rank's row is no record", RANKS(2, ONE),
     "devices; works 0 a; record 1 a; end system; rows 0"},
    {"a device is JSON", RANKS(2, FOUR), "describes 1; end system"},
    {"a row must be assigned before it is timed", COUNTING(1, FOUR, 3),
     "devices; timed 0 z; end system"},
    {"a row must be assigned before it returns", COUNTING(1, FOUR, 3),
     "devices; returned 0 z; end system"},

    /* ---- lost ranks ---- */
    {"another rank measures the row of a lost rank", RANKS(2, FOUR),
     "devices; lost 0 off the bus; all 1 4; end ok"},
    {"a rank that is lost over its roofs does not delay others", RANKS(2, FOUR),
     "device 1; lost 0 gone; all 1 4; end ok"},
    {"a second loss is a failed row", RANKS(3, ONE),
     "devices; works 0 a; lost 0 first; works 1 a; lost 1 second; idle 2; end ok; rows 1;"
     "row 0 a 2 devices were lost while measuring it, the last: second"},
    {"the sweep ends with the last rank", RANKS(2, FOUR),
     "devices; lost 0 first; lost 1 second; end device no rank is left"},
    {"replicate measures everything everywhere", RANKS(2, REPLICATED), "devices; all 0 8; end ok"},
    {"replicate lacks the rows of a lost device, and --resume measures them", RANKS(2, REPLICATED),
     "devices; works 0 a; record 0 a; lost 0 gone; all 1 4; end device --resume; again; devices;"
     "idle 1; all 0 3; end ok"},
    /* In older journals all ranks on the same cores have one UUID. */
    {"rows of a shared UUID are the first rank's", RANKS(2, REPLICATED),
     "uuid 1 uuid-0; devices; all 1 4; uuid 1 uuid-0#2; again; devices; all 0 4; end ok"},
    {"rows of the journal are not assigned again", RANKS(2, FOUR),
     "devices; works 1 a; record 1 a; rows 1; again; devices; all 0 3; end ok; rows 4"},

    /* ---- rounds ---- */
    {"each round measures each row on its device", RANKS(2, "[measure]\nrounds = 3\n" SIX),
     "devices; all 0 18; end ok; rows 6; kept 0 3; kept 5 3"},
    {"replicate has rounds on each device", RANKS(2, ROUNDS REPLICATED),
     "devices; all 0 16; end ok; kept 0 2; kept 7 2"},
    {"a round begins when the one before is done", RANKS(2, ROUNDS TWO),
     "devices; works 0 a; works 1 b; record 0 a; idle 0; record 1 b; works 0 a; works 1 b;"
     "record 1 b; idle 1; record 0 a; end ok; rows 2; kept 0 2; kept 1 2"},
    {"only rows of the first round are counted", COUNTING(1, ROUNDS TWO, 3),
     "devices; batch 0 a; batch 0 b; counts 0; record 0 a-b; alone 0 b; record 0 b; alone 0 a;"
     "record 0 a; end ok; rows 2; kept 0 2"},
    {"a round that a signal ends is resumed", RANKS(1, ROUNDS TWO),
     "devices; works 0 a; record 0 a; works 0 b; record 0 b; works 0 b; record 0 b; works 0 a;"
     "signal; end interrupted; kept 0 1; again; devices; works 0 a; record 0 a; end ok; rows 2;"
     "kept 0 2; kept 1 2"},
    {"a round of a lost device waits for it", RANKS(2, ROUNDS TWO),
     "devices; works 0 a; works 1 b; record 0 a; record 1 b; works 0 a; works 1 b; lost 0 gone;"
     "record 1 b; idle 1; end device --resume; kept 0 1; kept 1 2; again; devices; works 0 a;"
     "idle 1; record 0 a; end ok; kept 0 2"},
    {"without its device a row keeps the rounds that it has", RANKS(2, ROUNDS TWO),
     "devices; works 0 a; works 1 b; record 0 a; record 1 b; works 0 a; works 1 b; record 1 b;"
     "signal; end interrupted; uuid 0 other; again; devices; idle 0; idle 1; end ok; kept 0 1;"
     "kept 1 2"},
    {"a device lost before the first round is done costs its rows their rounds",
     RANKS(2, ROUNDS THREE),
     "devices; works 0 a; works 1 b; record 0 a; works 0 c; lost 0 gone; record 1 b; works 1 c;"
     "record 1 c; all 1 2; end device --resume; rows 3; kept 0 1; kept 1 2; kept 2 2"},
    {"a round that fails leaves its row measured", RANKS(1, ROUNDS ONE),
     "devices; works 0 a; record 0 a; works 0 a; failed 0 a; end ok; rows 1; row 0 a; kept 0 2;"
     "again; devices; idle 0; end ok"},
    {"a failed row has no further round", RANKS(1, ROUNDS ONE),
     "devices; works 0 a; failed 0 a; idle 0; end ok; rows 1; kept 0 0"},
    {"a late record of the round before is dropped", RANKS(2, ROUNDS TWO),
     "devices; works 0 a; time 49; works 1 b; record 1 b; idle 1; time 51; works 1 a;"
     "record 1 a; works 1; record 0 a; idle 0; rows 2; kept 0 1; kept 1 1"},
    {"a row that does not fit keeps no other from its next round",
     LIMITED(1, ROUNDS "[conv2d]\nbatch = 1, 2, 48, 49\n"),
     "devices; works 0 a; time 50; record 0 a; works 0 b; time 51; record 0 b; works 0 c;"
     "time 52; record 0 c; works 0 b; record 0 b; works 0 c; time 53; record 0 c;"
     "end interrupted 3 of 8 configurations are left; kept 0 1; kept 1 2; kept 2 2; again;"
     "devices; works 0 d"},
    {"the limit ends a round", LIMITED(1, ROUNDS "[conv2d]\nbatch = 1, 2\n"),
     "time 5; devices; works 0 a; time 25; record 0 a; works 0 b; time 45; record 0 b; works 0 b;"
     "time 65; record 0 b; end interrupted 1 of 4 configurations are left; rows 2; kept 1 2"},

    /* ---- silent ranks ---- */
    {"a silent rank's record comes before another's", RANKS(2, TWO),
     "devices; works 0 a; time 49; works 1 b; record 1 b; idle 1; time 51; record 0 a;"
     "works 1 a; record 1 a; rows 2; gone 1; missing rank 0 on node1; goes-on; gone 0; over ok;"
     "missing"},
    {"a silent rank's record comes after another's", RANKS(2, TWO),
     "devices; works 0 a; time 49; works 1 b; record 1 b; idle 1; time 51; works 1 a;"
     "record 1 a; record 0 a; rows 2; gone 1; missing rank 0 on node1; goes-on; gone 0; over ok;"
     "missing"},
    {"a silent rank's record never comes", RANKS(2, TWO),
     "devices; works 0 a; time 49; works 1 b; record 1 b; idle 1; time 51; works 1 a;"
     "record 1 a; rows 2; gone 1; missing rank 0 on node1; goes-on; time 62; over ok;"
     "missing rank 0 on node1"},
    {"a silent rank that writes again gets work", RANKS(2, FOUR),
     "devices; works 0 a; time 10; works 1 b; record 1 b; time 51; record 0 a; works 0"},
    {"a rank that is silent over its roofs joins late", RANKS(2, FOUR),
     "device 1; time 99; idle 1; time 101; works 1; device 0; works 0"},
    {"a suspended job is no silence", RANKS(2, TWO),
     "devices; works 0 a; works 1 b; suspended 100; time 149; idle 1; record 0 a; record 1 b;"
     "end ok; rows 2"},
    {"the sweep ends if all ranks are silent", RANKS(2, FOUR),
     "devices; time 51; goes-on; time 62; over device"},
    {"the end does not wait for silent ranks", RANKS(3, FOUR),
     "devices; time 5; signal; gone 1; time 14; goes-on; time 16; over interrupted;"
     "missing rank 0 on node1, rank 2 on node1"},

    /* ---- a time limit ---- */
    /* Rows take 20 s, so the estimate is 30 s: 45 s suffice for another row, 25 s do not. */
    {"rows beyond the limit are not begun",
     LIMITED(1, "[conv2d]\nfilters = 64, 65, 66, 67, 68, 69\n"),
     "time 5; devices; works 0 a; time 25; record 0 a; works 0 b; time 45; record 0 b;"
     "works 0 c; time 65; record 0 c;"
     "end interrupted 3 of 6 configurations are left for lack of time (--time-limit 100 s): 25.0 "
     "s remain for rows, and the shortest of them may take 30.0 s; rows 3"},
    {"a short row fits where a long one does not", LIMITED(1, "[conv2d]\nbatch = 1, 2, 48, 49\n"),
     "devices; works 0 a; time 50; record 0 a; works 0 b; time 51; record 0 b; works 0 c;"
     "time 52; record 0 c; end interrupted 1 of 4 configurations are left"},
    /* 10 s are left. The large row seems too long until the small one is measured. */
    {"estimates apply at once", LIMITED(2, "[conv2d]\nbatch = 1, 32\n"),
     "time 80; devices; works 0 a; idle 1; time 80.01; record 0 a; works 0; runs 0"},
    {"the limit ends rows under way", LIMITED(2, FOUR),
     "devices; works 0; time 89; runs 0; time 90.5;"
     "end interrupted 4 of 4 configurations are left for lack of time (--time-limit 100 s): "
     "only the time to write the file remains"},
    {"the limit ends roofs", LIMITED(2, FOUR), "device 1; time 91; end interrupted"},
    {"rows that no run has time for have a status of their own",
     LIMITED(1, "[sweep]\ntimeout = 500 s\n[conv2d]\nbatch = 1, 128\n"),
     "time 60; devices; works 0 a; time 60.5; record 0 a;"
     "end failed 1 of them may take up to 96.0 s, more than any run with this limit has for a "
     "row (30.0 s)"},

    /* ---- rows that are counted together ---- */
    {"batches have the device's number of rows, and the rest", COUNTING(1, FOUR, 3),
     "devices; batch 0 a; times 0; batch 0 b; times 0; batch 0 c; counts 0; idle 0;"
     "record 0 a-b; idle 0; record 0 c; batch 0 d; counts 0; record 0 d; end ok; rows 4"},
    {"the last rows go to free ranks", COUNTING(2, FOUR, 3),
     "devices; waits 0 a; batch 1 b; batch 1 c; batch 1 d; counts 1; record 1 b-d; timed 0 a;"
     "counts 0; record 0 a; end ok; rows 4"},
    {"the manifest may set the batch size", COUNTING(1, "[measure]\ncount_together = 2\n" FOUR, 3),
     "devices; batch 0 a; batch 0 b; counts 0"},
    {"a batch of one does not wait", COUNTING(1, "[measure]\ncount_together = 1\n" FOUR, 3),
     "devices; alone 0"},
    {"without counters nothing waits", COUNTING(1, "[measure]\ncounters = off\n" FOUR, 3),
     "devices; alone 0"},
    {"ten seconds of timings fill a batch", COUNTING(1, FOUR, 3),
     "devices; waits 0 a; time 6; timed 0 a; times 0; waits 0 b; time 11; timed 0 b; counts 0"},
    /* Rows take 5 s, a collection 1 s; 12 s are left when c is timed, and d may take 8.25 s. */
    {"timed rows leave the time for their counting alone",
     {.ranks = 1,
      .manifest = "[conv2d]\nheight = 4\nwidth = 4\nfilters = 64:69:+1\n",
      .together = 100,
      .limited = true},
     "time 62; devices; waits 0 a; time 67; timed 0 a; waits 0 b; time 72; timed 0 b; counts 0;"
     "time 73; record 0 a-b; waits 0 c; time 78; timed 0 c; waits 0 d"},
    /* A collection fails after 1 s, so nothing is known when c is timed and 10 s are left: c takes
     * its estimate of 7.5 s, and d does not fit. */
    {"a failed collection says nothing about the time for counting",
     {.ranks = 1,
      .manifest = "[conv2d]\nheight = 4\nwidth = 4\nfilters = 64:69:+1\n",
      .together = 2,
      .limited = true},
     "time 60; devices; waits 0 a; time 62; timed 0 a; waits 0 b; time 64; timed 0 b; counts 0;"
     "time 65; returned 0 a-b; alone 0 a; time 70; record 0 a; alone 0 b; time 75; record 0 b;"
     "waits 0 c; time 80; timed 0 c; counts 0"},
    {"a row without anything to count does not wait", COUNTING(1, THREE, 3),
     "devices; batch 0 a; waits 0 b; record 0 b; batch 0 c; counts 0; record 0 a; record 0 c;"
     "end ok; rows 3"},
    {"a row that returns from a lost worker is counted alone", COUNTING(1, THREE, 3),
     "devices; batch 0 a; batch 0 b; waits 0 c; returned 0 a-b; record 0 c; alone 0 d;"
     "record 0 d; alone 0 e; record 0 e; end ok; rows 3"},
    {"a row that returns from counting is counted alone", COUNTING(1, THREE, 3),
     "devices; batch 0 a; batch 0 b; batch 0 c; counts 0; record 0 a; returned 0 b-c; alone 0 d;"
     "record 0 d; alone 0 e; record 0 e; end ok; rows 3"},
    {"a row that is counted alone joins no batch", COUNTING(2, THREE, 3),
     "devices; batch 0 a; waits 1 b; waits 0 c; returned 0 a; timed 1 b; counts 1; record 1 b;"
     "alone 1 a; record 1 a; timed 0 c; counts 0; record 0 c; end ok; rows 3"},
    {"a device may be lost over any row that it counts", COUNTING(3, TWO, 3),
     "devices; batch 0 a; counts 0; lost 0 first; waits 1 b; alone 2 a; lost 2 second;"
     "timed 1 b; counts 1; record 1 b; end ok; rows 2;"
     "row 0 a 2 devices were lost while measuring it, the last: second; row 1 b"},
    {"a rank may be silent over each row that it counts", COUNTING(1, TWO, 3),
     "devices; batch 0 a; batch 0 b; counts 0; time 39; record 0 a; time 58; runs 0; time 60;"
     "idle 0; record 0 b; end device; rows 2"},
    /* The rank may be silent for 50 s, and 20 s more for its waiting row. */
    {"a late rank counts before it gets work", COUNTING(2, FOUR, 3),
     "devices; batch 0 a; waits 0 b; time 5; batch 1 c; time 72; timed 0 b; counts 0; idle 0;"
     "record 0 a-b; waits 1 d; record 1 d; counts 1; record 1 c; end ok; rows 4"},

    /* ---- when a rank counts; test_dispatcher_batches.c has more tests ---- */
    /* A nearly full batch is counted while no other rank of the host counts. */
    {"a full batch does not wait for neighbours", COUNTING(2, FORTY, 8),
     "devices; batch 0 a-g; batch 1 h-n; times 1; batch 1 o; counts 1; record 1 h-o; counts 0;"
     "record 0 a-g"},
    {"ten seconds of timings do not wait for neighbours", COUNTING(2, FORTY, 100),
     "devices; waits 0 a; waits 1 b; time 4.5; timed 0 a; timed 1 b; waits 0 c; waits 1 d;"
     "time 9; timed 0 c; timed 1 d; times 1; waits 1 e; time 10.5; timed 1 e; counts 1;"
     "record 1 b; record 1 d-e; counts 0; record 0 a; record 0 c"},
    {"a lost neighbour does not end batches early", COUNTING(2, FORTY, 8),
     "devices; lost 0 off the bus; batch 1 a-g; times 1; batch 1 h; counts 1"},
    {"a rank that is lost while counting does not block others", COUNTING(3, FORTY, 8),
     "devices; batch 0 a-g; batch 1 h-n; counts 0; lost 0 off the bus; batch 2 o-u; counts 2"},
};

struct scene {
    struct bench bench;
    const char *name, *statement;
    char rows['z' + 1][WORKLOAD_TEXT]; /* by letter */
};

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("%s: %.60s: not %s", scene->name, scene->statement, #condition);              \
    } while (0)

/* The rank was assigned a configuration: the letter's, if the letter is defined. */
static void expect_work(struct scene *scene, int rank, char letter, const bool *later)
{
    struct request request;
    char text[WORKLOAD_TEXT], *row = scene->rows[(int)letter];
    EXPECT(work_taken(&scene->bench, rank, &request));
    EXPECT(!later || request.count_later == *later);
    EXPECT(request.round < 2 ||
           (request.measure.counters == COUNTERS_OFF && !request.measure.verify));
    config_format(&request.config, text);
    if (letter && !*row)
        strcpy(row, text);
    EXPECT(!letter || strcmp(row, text) == 0);
}

static void say_record(struct scene *scene, int rank, char letter, enum record_status status,
                       bool with_others)
{
    char *text = record_text(scene->rows[(int)letter], status);
    (with_others ? arrive_with_others : arrive)(&scene->bench, rank, MESSAGE_RECORD, text);
    free(text);
}

/* Plays a statement about a configuration. False: it is another kind of statement. */
static bool play_row(struct scene *scene, const char *verb, int rank, char letter)
{
    const char *row = scene->rows[(int)letter];
    if (strcmp(verb, "batch") == 0)
        return play_row(scene, "waits", rank, letter) && play_row(scene, "timed", rank, letter);
    if (strcmp(verb, "works") == 0)
        expect_work(scene, rank, letter, NULL);
    else if (strcmp(verb, "waits") == 0)
        expect_work(scene, rank, letter, &(bool){true});
    else if (strcmp(verb, "alone") == 0)
        expect_work(scene, rank, letter, &(bool){false});
    else if (strcmp(verb, "record") == 0)
        say_record(scene, rank, letter, RECORD_MEASURED, false);
    else if (strcmp(verb, "together") == 0)
        say_record(scene, rank, letter, RECORD_MEASURED, true);
    else if (strcmp(verb, "failed") == 0)
        say_record(scene, rank, letter, RECORD_FAILED, false);
    else if (strcmp(verb, "timed") == 0)
        arrive(&scene->bench, rank, MESSAGE_TIMED, row);
    else if (strcmp(verb, "returned") == 0)
        arrive(&scene->bench, rank, MESSAGE_RETURNED, row);
    else
        return false;
    return true;
}

/* Plays a statement about a rank. False: it is another kind of statement. */
static bool play_rank(struct scene *scene, const char *verb, int rank, const char *text)
{
    struct bench *bench = &scene->bench;
    struct request request;
    if (strcmp(verb, "device") == 0)
        device_arrives(bench, rank);
    else if (strcmp(verb, "uuid") == 0)
        strcpy(bench->devices[rank].uuid, text);
    else if (strcmp(verb, "idle") == 0)
        EXPECT(!work_taken(bench, rank, &request));
    else if (strcmp(verb, "counts") == 0)
        EXPECT(count_ordered(bench, rank));
    else if (strcmp(verb, "times") == 0)
        EXPECT(!count_ordered(bench, rank));
    else if (strcmp(verb, "runs") == 0)
        EXPECT(!collected_take(&bench->sent, rank, MESSAGE_STOP));
    else if (strcmp(verb, "lost") == 0)
        arrive(bench, rank, MESSAGE_DEVICE_LOST, text);
    else if (strcmp(verb, "gone") == 0)
        arrive(bench, rank, MESSAGE_FINISHED, "");
    else if (strcmp(verb, "signalled") == 0)
        arrive(bench, rank, MESSAGE_SIGNAL, "");
    else if (strcmp(verb, "says") == 0)
        arrive(bench, rank, MESSAGE_RECORD, text);
    else if (strcmp(verb, "describes") == 0)
        arrive(bench, rank, MESSAGE_DEVICE, text);
    else
        return false;
    return true;
}

/* Ranks from `first` on measure in turn while there is work. */
static size_t measure_all(struct bench *bench, int first)
{
    size_t count = 0, before;
    do {
        before = count;
        for (int rank = first; rank < bench->settings.ranks; ++rank) {
            struct request request;
            char text[WORKLOAD_TEXT];
            if (!work_taken(bench, rank, &request))
                continue;
            config_format(&request.config, text);
            record_arrives(bench, rank, text);
            ++count;
        }
    } while (count > before);
    return count;
}

static void expect_status(struct scene *scene, enum status found, const char *word)
{
    static const struct {
        const char *word;
        enum status status;
    } words[] = {{"ok", STATUS_OK},
                 {"failed", STATUS_FAILED},
                 {"device", STATUS_DEVICE},
                 {"interrupted", STATUS_INTERRUPTED},
                 {"system", STATUS_SYSTEM}};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strcmp(words[i].word, word) == 0) {
            EXPECT(found == words[i].status);
            return;
        }
    fail_msg("%s: no status", word);
}

/* Configurations without a row are missing, unless the sweep replicates. */
static void expect_rows(struct scene *scene, size_t count)
{
    const struct bench *bench = &scene->bench;
    struct results *rows = bench_rows(&scene->bench);
    EXPECT(rows->row_count == count);
    EXPECT(resume_missing(bench->plan, rows, NULL, 0, 1) == bench->plan->count - count);
    results_destroy(rows);
}

static void expect_row(struct scene *scene, size_t index, char letter, const char *why)
{
    struct results *rows = bench_rows(&scene->bench);
    EXPECT(index < rows->row_count);
    const struct row *row = &rows->rows[index];
    EXPECT(strcmp(row->configuration, scene->rows[(int)letter]) == 0);
    EXPECT(strcmp(row->error, why) == 0);
    EXPECT(row->status == (*why ? RECORD_FAILED : RECORD_MEASURED));
    results_destroy(rows);
}

static void expect_rounds(struct scene *scene, size_t index, size_t count)
{
    struct results *rows = bench_rows(&scene->bench);
    EXPECT(index < rows->row_count && rows->rows[index].round_count == count);
    results_destroy(rows);
}

static void play_sweep(struct scene *scene, const char *verb, const char *text)
{
    struct bench *bench = &scene->bench;
    struct error error = {""};
    char word[16] = "", absent[200];
    int number = 0, end = 0;
    sscanf(text, "%15s %n", word, &end);
    if (strcmp(verb, "devices") == 0)
        all_devices_arrive(bench);
    else if (strcmp(verb, "settle") == 0)
        dispatcher_commit(bench->dispatcher);
    else if (strcmp(verb, "signal") == 0)
        dispatcher_interrupt(bench->dispatcher);
    else if (strcmp(verb, "again") == 0)
        bench_start_again(bench);
    else if (strcmp(verb, "suspended") == 0)
        dispatcher_suspended(bench->dispatcher, strtod(text, NULL));
    else if (strcmp(verb, "time") == 0)
        bench_time(bench, BENCH_BEGIN + strtod(text, NULL));
    else if (strcmp(verb, "all") == 0 && sscanf(text, "%*d %d", &number) == 1)
        EXPECT(measure_all(bench, atoi(text)) == (size_t)number);
    else if (strcmp(verb, "rows") == 0)
        expect_rows(scene, (size_t)atoi(text));
    else if (strcmp(verb, "kept") == 0)
        expect_rounds(scene, (size_t)atoi(word), (size_t)atoi(text + end));
    else if (strcmp(verb, "row") == 0)
        expect_row(scene, (size_t)atoi(word), text[end], text[end + 1] ? text + end + 2 : "");
    else if (strcmp(verb, "missing") == 0) {
        EXPECT(dispatcher_missing(bench->dispatcher, absent, sizeof absent) == (*text != '\0'));
        EXPECT(strcmp(absent, text) == 0);
    } else if (strcmp(verb, "goes-on") == 0)
        EXPECT(!dispatcher_finished(bench->dispatcher));
    else if (strcmp(verb, "over") == 0) {
        EXPECT(dispatcher_finished(bench->dispatcher));
        expect_status(scene, dispatcher_status(bench->dispatcher, &error), word);
    } else if (strcmp(verb, "end") == 0) {
        expect_status(scene, bench_end(bench, &error), word);
        EXPECT(strstr(error.text, text + end));
    } else
        fail_msg("%s: no statement", scene->statement);
    bench_carry_out(bench);
}

static void play_statement(struct scene *scene)
{
    char verb[16] = "", first, last;
    int at = 0, rank = -1, after = 0;
    sscanf(scene->statement, "%15s %n%d %n", verb, &at, &rank, &after);
    const char *text = scene->statement + (after ? after : at);
    first = *text >= 'a' && *text <= 'z' && (!text[1] || text[1] == '-') ? *text : '\0';
    last = first && text[1] ? text[2] : first;
    if (rank >= 0 && rank < BENCH_RANKS && play_rank(scene, verb, rank, text))
        return;
    if (rank < 0 || rank >= BENCH_RANKS || !play_row(scene, verb, rank, first))
        play_sweep(scene, verb, scene->statement + at);
    for (; first < last; ++first)
        play_row(scene, verb, rank, (char)(first + 1));
}

TEST(scripts_play_as_written)
{
    for (size_t i = 0; i < sizeof plays / sizeof *plays; ++i) {
        static struct scene scene;
        char *script = strdup(plays[i].script), *rest = script;
        scene = (struct scene){.name = plays[i].name};
        strcpy(scene.rows['z'], "conv2d batch=77");
        bench_start(&scene.bench, &plays[i].settings);
        while ((scene.statement = strsep(&rest, ";"))) {
            scene.statement += strspn(scene.statement, " ");
            play_statement(&scene);
        }
        bench_clear(&scene.bench);
        free(script);
    }
}

/* The journal holds the worker's text, then the members that the ranks add. */
TEST(the_journal_keeps_the_workers_text)
{
    struct bench bench;
    char line[16384];
    bool found = false;
    bench_start(&bench, &(struct bench_settings)RANKS(1, FOUR));
    all_devices_arrive(&bench);
    assert_int_equal(measure_all(&bench, 0), 4);
    FILE *file = fopen(bench.path, "r");
    while (fgets(line, sizeof line, file))
        if (strstr(line, "\"kind\":\"record\"")) {
            found = true;
            assert_says(line, "\"mood\":7");
        }
    fclose(file);
    assert_true(found);
    struct results *results = bench_rows(&bench);
    assert_string_equal(results->rows[0].label, "grid");
    assert_string_equal(results->rows[0].device_key, "session/0");
    assert_int_equal(results->rows[0].attempts, 1);
    results_destroy(results);
    bench_clear(&bench);
}

TEST(a_failed_action_ends_the_sweep)
{
    for (int interrupted = 0; interrupted < 2; ++interrupted) {
        struct bench bench;
        struct dispatcher_action action;
        bench_start(&bench, &(struct bench_settings)RANKS(2, FOUR));
        device_arrives(&bench, 0);
        const struct message message = {MESSAGE_DEVICE, 1, "{\"key\":\"session/1\"}"};
        dispatcher_message(bench.dispatcher, &message);
        assert_true(dispatcher_next(bench.dispatcher, &action));
        assert_int_equal(action.kind, ACTION_STORE_DEVICE);
        if (interrupted) /* the earlier order to end stays */
            dispatcher_interrupt(bench.dispatcher);
        error_set(&failure, STATUS_SYSTEM, "no space left");
        dispatcher_failed(bench.dispatcher, &failure);
        bench_carry_out(&bench);
        assert_int_equal(bench_end(&bench, &failure),
                         interrupted ? STATUS_INTERRUPTED : STATUS_SYSTEM);
        bench_clear(&bench);
    }
}

/* The dispatcher has ordered the end before its last sync is carried out. */
TEST(rows_of_a_failed_last_sync_are_left)
{
    struct bench bench;
    struct request request;
    struct dispatcher_action action;
    struct error error;
    char *text;
    bench_start(&bench, &(struct bench_settings)RANKS(1, FOUR));
    all_devices_arrive(&bench);
    for (int row = 0; row < 4; ++row) {
        char configuration[WORKLOAD_TEXT];
        assert_true(work_taken(&bench, 0, &request));
        config_format(&request.config, configuration);
        if (row < 3) {
            record_arrives(&bench, 0, configuration);
            continue;
        }
        text = record_text(configuration, RECORD_MEASURED);
        const struct message message = {MESSAGE_RECORD, 0, text};
        dispatcher_message(bench.dispatcher, &message);
        dispatcher_commit(bench.dispatcher);
        free(text);
    }
    do
        assert_true(dispatcher_next(bench.dispatcher, &action));
    while (action.kind != ACTION_SYNC);
    error_set(&error, STATUS_SYSTEM, "no space left");
    dispatcher_failed(bench.dispatcher, &error);
    bench_carry_out(&bench);
    assert_fails_with(bench_end(&bench, &failure), STATUS_SYSTEM, "no space left");
    assert_int_equal(dispatcher_left(bench.dispatcher), 1);
    bench_clear(&bench);
}

struct search {
    const char *library, *driver; /* of the other device */
    enum record_status status;
    const char *id, *origin;
    bool travels;
};
static const struct search searched = {"", "", RECORD_MEASURED, "0123456789abcdef", "search", true};

static void searched_arrives(struct bench *bench, int from, const char *configuration, int engine,
                             const struct search *search)
{
    char *record = record_text(configuration, search->status), *text;
    record[strlen(record) - 1] = '\0';
    assert_true(asprintf(&text,
                         "%s,\"algorithm\":\"engine-%d\",\"algorithm_id\":\"%s\","
                         "\"algorithm_launches\":\"0123456789abcdef\","
                         "\"algorithm_origin\":\"%s\"}",
                         record, engine, search->id, search->origin) > 0);
    free(record);
    arrive(bench, from, MESSAGE_RECORD, text);
    free(text);
}

/* Later rounds take the row's own algorithm, not that of an equal device; also after --resume. */
TEST(a_round_takes_the_algorithm_of_its_row)
{
    struct bench bench;
    struct request request;
    char text[WORKLOAD_TEXT], engine[] = "engine-0";
    bench_start(&bench,
                &(struct bench_settings)RANKS(2, ROUNDS "[sweep]\ndistribute = replicate\n" ONE));
    all_devices_arrive(&bench);
    for (int i = 0; i < 6; ++i) {
        if (i == 4) {
            bench_start_again(&bench);
            all_devices_arrive(&bench);
        }
        assert_true(work_taken(&bench, i % 2, &request));
        config_format(&request.config, text);
        engine[7] = (char)('0' + i % 2);
        assert_string_equal(request.algorithm.algorithm, i < 2 ? "" : engine);
        if (i < 2)
            searched_arrives(&bench, i, text, i, &searched);
    }
    bench_clear(&bench);
}

static void check_travel(const struct search *search)
{
    bool travels = search->travels;
    struct bench bench;
    struct request request;
    char text[WORKLOAD_TEXT];
    bench_start(&bench, &(struct bench_settings)RANKS(3, "[sweep]\ndistribute = replicate\n" TWO));
    strcpy(bench.devices[1].library_version, search->library);
    strcpy(bench.devices[1].driver_version, search->driver);
    all_devices_arrive(&bench);
    for (int i = 0; i < 2; ++i) { /* rank 0 is ahead */
        assert_true(work_taken(&bench, 0, &request));
        assert_false(algorithm_is_known(&request.algorithm));
        config_format(&request.config, text);
        searched_arrives(&bench, 0, text, 1, search);
    }
    for (int rank = 1; rank < 3; ++rank) { /* an H200 like rank 0's, and an H100 */
        assert_true(work_taken(&bench, rank, &request));
        assert_false(algorithm_is_known(&request.algorithm)); /* assigned before the search ended */
        config_format(&request.config, text);
        record_arrives(&bench, rank, text);
        assert_true(work_taken(&bench, rank, &request));
        travels &= rank == 1;
        assert_int_equal(algorithm_is_known(&request.algorithm), travels);
        assert_string_equal(request.algorithm.algorithm, travels ? "engine-1" : "");
        assert_string_equal(request.algorithm.algorithm_origin, travels ? "run" : "");
    }
    bench_clear(&bench);
}

/* Later devices of the same model, library and driver use the algorithm that a search found. */
TEST(an_algorithm_travels_to_an_equal_device)
{
    static const char id[] = "0123456789abcdef";
    const struct search others[] = {
        {"cuDNN 9.15.0", "", RECORD_MEASURED, id, "search", false},
        {"", "580.0", RECORD_MEASURED, id, "search", false},
        {"", "", RECORD_FAILED, id, "search", false},
        {"", "", RECORD_MEASURED, "", "search", false},
        {"", "", RECORD_MEASURED, id, "run", false},
    };
    check_travel(&searched);
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        check_travel(&others[i]);
}
