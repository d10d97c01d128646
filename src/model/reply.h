/* What a worker answers: one line of the protocol, see protocol.h. */
#ifndef ROOFSWEEP_REPLY_H
#define ROOFSWEEP_REPLY_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "base/status.h"
#include "model/device.h"
#include "model/record.h"

enum reply_kind {
    REPLY_DEVICES,
    REPLY_DEVICE,
    REPLY_ROOFS,
    REPLY_ROOF,
    REPLY_RECORD,
    REPLY_TIMED,
    REPLY_ERROR
};

struct reply {
    enum reply_kind kind;
    int64_t count;
    struct device device;
    bool found[ROOF_KINDS];           /* roofs */
    struct roof_way ways[ROOF_KINDS]; /* roofs: those that won */
    struct roof roof;
    struct record record; /* owned: reply_clear */
    json_t *record_json;  /* a decoded record as it came, to be passed on; owned: reply_clear */
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

#endif
