/* Requests of a rank to its worker, and replies of the worker: one JSON object per line.
 *
 *   Requests (a worker can be run by hand: echo '{"op":"describe"}' | roofsweep-worker-cpu):
 *     {"op":"devices"}                                  -> {"reply":"devices","count":2,
 *                                                           "addresses":[6656,6912]}
 *     {"op":"describe","index":0,"counters":"auto"}     -> {"reply":"device","device":{...}}
 *     {"op":"tune","memory":["dram"],"compute":["fp32"],"launch":true,"transfer":true,
 *      "prove":true}                                    -> {"reply":"roofs","roofs":[...],
 *                                                           "counters":"counted"}
 *     {"op":"roof","name":"dram read","condition":"together","start":1763.5,"sustained":true,
 *      "only_sustained":true,"energy":true,"keep_busy":true} -> {"reply":"roof","roof":{...}}
 *     {"op":"release"}                                  -> {"reply":"roofs","roofs":[]}
 *     {"op":"links","devices":"GPU-1,GPU-2"}            -> {"reply":"links","id":"","links":[...]}
 *     {"op":"links","devices":"GPU-1","members":4}      -> {"reply":"links","id":"07..."}
 *     {"op":"links","devices":"GPU-1","members":4,"place":2,"id":"07...","peers":"3,-1,1"}
 *                                                       -> {"reply":"links","id":"","links":[...]}
 *     {"op":"measure","configuration":"conv2d batch=16 ...","seed":1,"warmup":5,"iterations":20,
 *      "stop":0.005,"min_time":0.5,"max_time":15,"counters":"auto","kernels":false,
 *      "verify":true,"energy":false,"folder":"/home","timeout":120,"row":"stem","count_later":true,
 *      "round":2}
 *                                                       -> {"reply":"record","record":{...}}, or
 *                                                          {"reply":"timed","configuration":"..."}
 *     {"op":"count"}                                    -> {"reply":"record","record":{...}}
 *
 * - devices: counts the devices. `addresses` has their PCI addresses if they have any: domain x
 *   65536 + bus x 256 + device.
 * - describe: opens the device and, unless "counters" is "off", tries its counters. A second
 *   describe reports the health at that moment as health_end. A worker with --watch answers only
 *   describe.
 * - tune: finds the fastest variant of each roof; with "prove" tries the counters, too.
 * - roof: measures a tuned roof from `start` on (s since the epoch; 0: at once). "sustained" also
 *   measures a compute roof once the clock has settled; "only_sustained" omits the burst. "energy"
 *   also repeats the work until its energy is known. "keep_busy" continues the work after the
 *   reply, until the next request.
 * - release: frees the memory of the roofs.
 * - links: needs a process that has opened no device for rows. Without "devices", it measures all
 *   devices that the process sees. Without "members", the worker copies between them. With
 *   "members" but no "id", it makes an id of NCCL. Each member then gets this id, exchanges with
 *   its peer of each round, and takes part in the operations of all members.
 * - measure: measures one row. With "count_later" a timed and traced row may wait, so that the
 *   counters of several rows are read together; the reply is then "timed". A row does not wait if
 *   there is nothing to count, or if the device counts rows one by one.
 *   "algorithm":{"algorithm":"engine-38 k2=5",...} (model/record.h) is used instead of a search,
 *   if the algorithm still exists and has the same kernels. "folder" and "timeout" are the working
 *   directory of a program and the limit on all its runs. "row" is the name of the row, which the
 *   rank uses in warnings. From "round" 2 on the worker only times the row, because its trace is
 *   from the first round.
 * - count: replies with the record of the row that has waited longest. The first such request
 *   counts all waiting rows.
 *
 * A missing key has its default. The first request that needs the device opens it. A request with
 * an unknown key, an unknown word or a wrong type is refused; the error names the key and the
 * allowed values. (If the worker ignored the key, it would measure something else.) A failed
 * request has the reply
 *   {"reply":"error","status":"device","text":"..."};
 * After the status "device" the worker ends, because its device is lost. The worker also ends at
 * the end of its input. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "model/device.h"
#include "model/link.h"
#include "model/record.h"
#include "model/roof.h"
#include "model/workload.h"

/* ---- settings of a measurement: [measure] of a manifest ---- */

/* COUNTERS_CAUSES: as COUNTERS_AUTO, and also counts the activities of each kernel (enum
 * activity). */
enum counters_choice { COUNTERS_AUTO, COUNTERS_REQUIRE, COUNTERS_OFF, COUNTERS_CAUSES };
extern const char *const counters_words[]; /* by enum counters_choice, NULL-terminated */

enum { WARMUP_MAX = 1000000, ITERATIONS_MAX = 1000000, REPEAT_MAX = 50, COUNT_TOGETHER_MAX = 1000 };

struct measure_settings {
    int warmup;
    int iterations;            /* timed samples, each of one or more iterations; 0: adaptive rule */
    double stop;               /* adaptive rule: goal for stats_uncertainty; 0 without the rule */
    double min_time, max_time; /* s, limits of the adaptive rule; 0 without the rule */
    bool by_kind;              /* use the adaptive rule of the device's kind, if it has one */
    int repeat;                /* number of placements of the buffers to time, at least 1 */
    enum counters_choice counters;
    bool kernels; /* also count each kernel alone */
    /* largest number of rows that are counted together; 0: as many as suit the device */
    int count_together;
    bool verify;
    bool energy; /* repeat the work until its energy per iteration is known */
};

/* Defaults, with a fixed number of iterations. min_time and max_time are those of the adaptive
 * rule, which is off. */
extern const struct measure_settings measure_default;
enum { SEED_DEFAULT = 1 }; /* seed of the inputs */

/* Environment variable of a worker: number of ranks of its node, which share a quota of CPU
 * time. */
#define NODE_RANKS_VARIABLE "ROOFSWEEP_NODE_RANKS"

/* ---- requests ---- */

enum request_op {
    REQUEST_DEVICES,
    REQUEST_DESCRIBE,
    REQUEST_TUNE,
    REQUEST_ROOF,
    REQUEST_RELEASE,
    REQUEST_LINKS,
    REQUEST_MEASURE,
    REQUEST_COUNT
};

struct request {
    enum request_op op;
    int64_t index;                 /* describe: number of the device */
    struct roof_request peaks;     /* tune: levels and precisions; roof: only `energy` */
    bool prove;                    /* tune: check FLOPs and bytes by hardware counters */
    int kind;                      /* roof: index into roof_kinds */
    enum roof_condition condition; /* roof */
    double start;                  /* roof: s since the epoch; 0: at once */
    bool sustained;         /* roof: measure compute roofs again once the clock has settled */
    bool only_sustained;    /* roof: omit the burst */
    bool keep_busy;         /* roof: continue the work until the next request */
    struct link_order link; /* links */
    struct config config;   /* measure; canonical text in JSON */
    struct measure_settings measure; /* measure; describe: only `counters` */
    uint64_t seed;
    struct algorithm algorithm; /* measure: result of an earlier search; unknown: search */
    bool count_later;           /* measure: the row may wait for REQUEST_COUNT */
    int round;                  /* measure: round of the sweep, from 1 */
    char row[WORKLOAD_TEXT];    /* measure: name in warnings of the rank; "": none */
    /* measure, for programs alone */
    char folder[4096]; /* working directory; "": the worker's */
    double timeout;    /* s, limit on all runs; 0: none */
};

/* A request without optional keys: measure_default, all roofs, with proofs. */
struct request request_default(enum request_op op);

/* One line without its newline; the caller frees it. NULL: no memory. */
char *request_encode(const struct request *request);
/* STATUS_USAGE: the request is wrong; STATUS_SYSTEM: it is no JSON object. */
enum status request_decode(const char *line, struct request *request, struct error *error);

/* ---- replies ---- */

enum reply_kind {
    REPLY_DEVICES,
    REPLY_DEVICE,
    REPLY_LINKS,
    REPLY_ROOFS,
    REPLY_ROOF,
    REPLY_RECORD,
    REPLY_TIMED,
    REPLY_ERROR
};

/* PCI addresses of the devices that a process sees, in its order. Empty if addresses are unknown or
 * there are too many. */
enum { VISIBLE_MAX = 64 };
struct visible {
    int count, address[VISIBLE_MAX];
};

struct reply {
    enum reply_kind kind;
    int64_t count;
    struct visible visible; /* devices */
    struct device device;
    struct link_list links; /* owned: reply_clear */
    char id[LINK_ID];       /* links: id of NCCL, or "" */
    bool found[ROOF_KINDS]; /* roofs */
    struct roof roof;
    struct record record; /* owned: reply_clear */
    char *record_text;    /* JSON of `record` as the worker printed it; owned: reply_clear */
    char configuration[WORKLOAD_TEXT]; /* timed: canonical text */
    enum status status;                /* error */
    struct error error;                /* error */
};

/* One line without its newline; the caller frees it. NULL: no memory. */
char *reply_encode(const struct reply *reply);
/* Ignores unknown members of records and devices, because a newer worker may send them. Checks
 * records, devices and roofs (record_check, device_check, roof_check). */
enum status reply_decode(const char *line, struct reply *reply, struct error *error);
void reply_init(struct reply *reply);
void reply_clear(struct reply *reply);
