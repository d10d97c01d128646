/* What a rank and its worker say to each other: one JSON object per line, in both directions.
 *
 * Requests (a worker can be run by hand: echo '{"op":"describe"}' | roofsweep-worker-cpu):
 *   {"op":"devices"}                                  -> {"reply":"devices","count":8}
 *   {"op":"describe","index":0,"counters":"auto"}     -> {"reply":"device","device":{...}}
 *   {"op":"tune","memory":["dram"],"compute":["fp32"],"launch":true,"transfer":true,
 *    "prove":true}                                    -> {"reply":"roofs","roofs":["dram read", ...]}
 *   {"op":"roof","name":"dram read","condition":"together","start":1763.5}
 *                                                     -> {"reply":"roof","roof":{...}}
 *   {"op":"release"}                                  -> {"reply":"roofs","roofs":[]}
 *   {"op":"roofs", ... as tune}                       -> {"reply":"device","device":{... with roofs}}
 *   {"op":"measure","configuration":"conv2d batch=16 ...","seed":1,"warmup":5,"iterations":20,
 *    "stop":0.005,"min_time":0.5,"max_time":15,"counters":"auto","kernels":false,
 *    "verify":true}
 *                                                     -> {"reply":"record","record":{...}}
 * Describe opens the device and, unless "counters" is "off", tries its counters. Tune finds the fastest
 * way to do each roof, which roof then measures, beginning at `start` (s since the epoch; 0: at
 * once); release forgets it and frees its memory; roofs does all three, each roof alone. Whatever
 * is left out has its default; the device opens by itself. What a request does not have (a key, a word, a
 * type) is refused with the key's name and what is allowed: it must not measure something else in
 * silence. A request that fails is answered with
 *   {"reply":"error","status":"device","text":"..."};
 * after the status "device" the worker ends, because its device is lost. End of input ends it
 * too. */
#ifndef ROOFSWEEP_PROTOCOL_H
#define ROOFSWEEP_PROTOCOL_H

#include "model/device.h"
#include "model/measurement.h"
#include "model/record.h"

enum request_op {
    REQUEST_DEVICES,
    REQUEST_DESCRIBE,
    REQUEST_TUNE,
    REQUEST_ROOF,
    REQUEST_RELEASE,
    REQUEST_ROOFS,
    REQUEST_MEASURE
};

struct request {
    enum request_op op;
    int64_t index;                 /* describe; with the counters of `measure` */
    struct roof_request peaks;     /* tune, roofs; without its conditions */
    bool prove;                    /* tune, roofs: by hardware counters */
    int kind;                      /* roof: index into roof_kinds */
    enum roof_condition condition; /* roof */
    double start;                  /* roof */
    struct config config;          /* measure; its canonical text on the wire */
    struct measure_settings measure;
    uint64_t seed;
};

enum reply_kind { REPLY_DEVICES, REPLY_DEVICE, REPLY_ROOFS, REPLY_ROOF, REPLY_RECORD, REPLY_ERROR };

struct reply {
    enum reply_kind kind;
    int64_t count;
    struct device device;
    bool found[ROOF_KINDS]; /* roofs */
    struct roof roof;
    struct record record; /* owned: reply_clear */
    json_t *record_json;  /* a decoded record as it came, to be passed on; owned: reply_clear */
    enum status status;   /* of REPLY_ERROR */
    struct error error;
};

/* What a worker assumes where a request says nothing: measure_default, all roofs, proven. */
struct request request_default(enum request_op op);

/* One line without its newline; the caller frees it. NULL without memory. */
char *request_encode(const struct request *request);
/* STATUS_USAGE: the request is wrong; STATUS_SYSTEM: it is no JSON object. */
enum status request_decode(const char *line, struct request *request, struct error *error);

char *reply_encode(const struct reply *reply);
/* Unknown members of records and devices are ignored, because a newer worker may send them. */
enum status reply_decode(const char *line, struct reply *reply, struct error *error);
void reply_init(struct reply *reply);
void reply_clear(struct reply *reply);

#endif
