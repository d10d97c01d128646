/* What a rank asks its worker for: one line of the protocol, see protocol.h. */
#ifndef ROOFSWEEP_REQUEST_H
#define ROOFSWEEP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "model/choice.h"
#include "model/measurement.h"
#include "model/roof.h"
#include "model/workload.h"

enum request_op {
    REQUEST_DEVICES,
    REQUEST_DESCRIBE,
    REQUEST_TUNE,
    REQUEST_ROOF,
    REQUEST_RELEASE,
    REQUEST_ROOFS,
    REQUEST_MEASURE,
    REQUEST_COUNT
};

struct request {
    enum request_op op;
    int64_t index;                 /* describe; with the counters of `measure` */
    struct roof_request peaks;     /* tune, roofs; without its conditions */
    bool prove;                    /* tune, roofs: by hardware counters */
    int kind;                      /* roof: index into roof_kinds */
    enum roof_condition condition; /* roof */
    double start;                  /* roof */
    bool sustained;                /* roof, roofs: compute roofs once the clock has settled, too */
    bool only_sustained;           /* roof: without the burst */
    bool hold;                     /* roof: go on with the work until the next request */
    struct config config;          /* measure; its canonical text on the wire */
    struct measure_settings measure;
    uint64_t seed;
    struct choice choice; /* measure: what an earlier search chose; not made: nothing */
    bool count_later;     /* measure: its counters with those of others, at the next count */
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

#endif
