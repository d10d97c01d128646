/* One job that worked on a sweep, as the journal and the result file keep it. Plain data, but for the
 * manifest's text. */
#ifndef ROOFSWEEP_RESULTS_SESSION_H
#define ROOFSWEEP_RESULTS_SESSION_H

#include <stdint.h>
#include <jansson.h>

#include "base/status.h"

/* The first job of the sweep, or one that resumed it. */
struct session {
    char id[64];        /* unique; the first part of struct device.key */
    char version[64];   /* of roofsweep, with revision */
    char settings[256]; /* manifest_settings_text */
    char title[256];
    char manifest_path[1024];
    char *manifest_text; /* owned */
    char command[1024];  /* command line */
    char job_id[64];
    char hostname[128]; /* of rank 0 */
    char mpi[256];      /* library version */
    int64_t ranks;
    double start_time; /* s since 1970-01-01T00:00:00Z */
};

/* New reference; the caller owns it. */
json_t *session_encode(const struct session *session);
/* session_clear frees *session. */
enum status session_decode(const json_t *object, struct session *session, struct error *error);
void session_clear(struct session *session);

#endif
