/* What a rank and its worker say to each other: one JSON object per line, in both directions.
 *
 * Requests (a worker can be run by hand: echo '{"op":"describe"}' | roofsweep-worker-cpu):
 *   {"op":"devices"}                                  -> {"reply":"devices","count":2,
 *                                                         "addresses":[6656,6912]}
 *   {"op":"describe","index":0,"counters":"auto"}     -> {"reply":"device","device":{...}}
 *   {"op":"tune","memory":["dram"],"compute":["fp32"],"launch":true,"transfer":true,
 *    "prove":true}                                    -> {"reply":"roofs","roofs":["dram read",
 *                                                     ...]}
 *   {"op":"roof","name":"dram read","condition":"together","start":1763.5,"sustained":true,
 *    "only_sustained":true,"energy":true,"keep_busy":true} -> {"reply":"roof","roof":{...}}
 *   {"op":"release"}                                  -> {"reply":"roofs","roofs":[]}
 *   {"op":"roofs", ... as tune, "sustained":true,"energy":true}
 *                                                     -> {"reply":"device","device":{... with
 *                                                     roofs}}
 *   {"op":"links","operation":"copy","devices":"GPU-1,GPU-2"}
 *                                                     -> {"reply":"device","device":{... links
 *                                                     alone}}
 *   {"op":"measure","configuration":"conv2d batch=16 ...","seed":1,"warmup":5,"iterations":20,
 *    "stop":0.005,"min_time":0.5,"max_time":15,"counters":"auto","kernels":false,
 *    "verify":true,"energy":false,"folder":"/home/me/sweeps","timeout":120,"count_later":true}
 *                                                     -> {"reply":"record","record":{...}}, or
 *                                                        {"reply":"timed","configuration":"conv2d
 *                                                        ..."}
 *   {"op":"count"}                                    -> {"reply":"record","record":{...}}
 * Seen are PCI addresses, where the devices have some: domain x 65536 + bus x 256 + device.
 *
 * Describe opens the device and, unless "counters" is "off", tries its counters. Asked again, it
 * tells the device's health of that moment as health_end; a worker that was started with --watch
 * does nothing else. Tune finds the fastest way to do each roof. Roof then measures, beginning at
 * `start` (s since the epoch; 0: at once). With "sustained" a compute roof is also measured once
 * the clock has settled. With "only_sustained" it is measured only then: the answer has no burst.
 * With "energy" the work then runs for as long as its energy needs. With "keep_busy" the device
 * goes on with the same work after the reply, until the next request comes. Release forgets it and
 * frees its memory. Roofs does all three, each roof alone.
 *
 * Links is asked of a process that has opened nothing. Without `devices` it is about all that the
 * process sees.
 *
 * With "count_later" a row may wait once it is timed and traced, so that counters are read for
 * several rows together. Then the answer is "timed". Count answers with the record of the row that
 * has waited longest, and is asked once for each; the first time it counts all that wait. A row
 * that has nothing to count, and one of a device that counts rows one by one, does not wait.
 *
 * Measure with "algorithm":{"algorithm":"engine-38 k2=5",...} (model/algorithm.h) runs that
 * algorithm without a search, if it can be had and has the same kernels.
 *
 * Folder and timeout are for programs: where they run, and how long all runs of one may take.
 *
 * Whatever is left out has its default; the device opens by itself. An unknown key, an unknown word
 * and a wrong type are refused, with the key's name and what is allowed: passed over in silence,
 * they would measure something else. A request that fails is answered with
 *   {"reply":"error","status":"device","text":"..."};
 * after the status "device" the worker ends, because its device is lost. End of input ends it
 * too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "base/status.h"
#include "model/algorithm.h"
#include "model/device.h"
#include "model/record.h"
#include "model/roof.h"
#include "model/workload.h"

/* ---- how a configuration is measured: what a manifest says under [measure] ---- */

/* Causes: as auto, and what each kernel keeps busy (enum activity). */
enum counters_choice { COUNTERS_AUTO, COUNTERS_REQUIRE, COUNTERS_OFF, COUNTERS_CAUSES };
extern const char *const counters_words[]; /* by enum counters_choice, NULL-terminated */

enum { WARMUP_MAX = 1000000, ITERATIONS_MAX = 1000000, REPEAT_MAX = 50, COUNT_TOGETHER_MAX = 1000 };

struct measure_settings {
    int warmup;
    int iterations; /* timed samples, each of one or more iterations; 0: the adaptive rule below */
    double stop;    /* fraction: half the width of the 95 % confidence interval of the median, over
                          the median; 0 with a fixed number of samples */
    double min_time, max_time; /* s, of the adaptive rule; 0 without it */
    int repeat;                /* placements of the buffers that a row is timed in, at least 1 */
    enum counters_choice counters;
    bool kernels;       /* count each kernel by itself as well */
    int count_together; /* rows whose counters are read together, at most; 0: as its device says */
    bool verify;
    bool energy; /* repeat the work for as long as the energy of one iteration needs */
};

/* What holds where nothing is said: a fixed number of iterations, and the times of the adaptive
 * rule, should it be chosen. */
extern const struct measure_settings measure_default;
enum { SEED_DEFAULT = 1 }; /* of the inputs */

/* ---- what a rank asks for ---- */

enum request_op {
    REQUEST_DEVICES,
    REQUEST_DESCRIBE,
    REQUEST_TUNE,
    REQUEST_ROOF,
    REQUEST_RELEASE,
    REQUEST_ROOFS,
    REQUEST_LINKS,
    REQUEST_MEASURE,
    REQUEST_COUNT
};

struct request {
    enum request_op op;
    int64_t index;                 /* describe; with the counters of `measure` */
    struct roof_request peaks;     /* tune, roofs; without its conditions. roof: its energy alone */
    bool prove;                    /* tune, roofs: by hardware counters */
    int kind;                      /* roof: index into roof_kinds */
    enum roof_condition condition; /* roof */
    double start;                  /* roof */
    bool sustained;                /* roof, roofs: compute roofs once the clock has settled, too */
    bool only_sustained;           /* roof: without the burst */
    bool keep_busy;                /* roof: go on with the work until the next request */
    enum link_operation link;      /* links */
    char devices[4096];            /* links: UUIDs, separated by commas; "": all */
    struct config config;          /* measure; its canonical text on the wire */
    struct measure_settings measure;
    uint64_t seed;
    struct algorithm algorithm; /* measure: result of an earlier search; not known: search */
    bool count_later;           /* measure: its counters with those of others, at the next count */
    /* measure, of a program alone */
    char folder[4096]; /* that it runs in; "": the worker's */
    double timeout;    /* s, of all its runs; 0: none */
};

/* What a worker assumes where a request says nothing: measure_default, all roofs, proven. */
struct request request_default(enum request_op op);

/* One line without its newline; the caller frees it. NULL without memory. */
char *request_encode(const struct request *request);
/* STATUS_USAGE: the request is wrong; STATUS_SYSTEM: it is no JSON object. */
enum status request_decode(const char *line, struct request *request, struct error *error);

/* ---- what a worker answers ---- */

enum reply_kind {
    REPLY_DEVICES,
    REPLY_DEVICE,
    REPLY_ROOFS,
    REPLY_ROOF,
    REPLY_RECORD,
    REPLY_TIMED,
    REPLY_ERROR
};

/* The devices that a process sees, in its order. None: not known, or too many. */
enum { VISIBLE_MAX = 64 };
struct visible {
    int count, address[VISIBLE_MAX];
};

struct reply {
    enum reply_kind kind;
    int64_t count;
    struct visible visible; /* devices */
    struct device device;
    bool found[ROOF_KINDS]; /* roofs */
    struct roof roof;
    struct record record; /* owned: reply_clear */
    char *record_text;    /* a decoded record as the worker printed it; owned: reply_clear */
    char configuration[WORKLOAD_TEXT]; /* timed: its canonical text */
    enum status status;                /* of REPLY_ERROR */
    struct error error;
};

/* One line without its newline; the caller frees it. NULL without memory. */
char *reply_encode(const struct reply *reply);
/* Unknown members of records and devices are ignored, because a newer worker may send them. */
enum status reply_decode(const char *line, struct reply *reply, struct error *error);
void reply_init(struct reply *reply);
void reply_clear(struct reply *reply);
