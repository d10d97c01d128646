/* A result file that is read back: what results_nc_write wrote, as sessions, devices and records again. What
 * follows from others is left out, as it is made anew. Only files of this format version. */
#ifndef ROOFSWEEP_RESULT_FILE_H
#define ROOFSWEEP_RESULT_FILE_H

#include "base/status.h"
#include "model/device.h"
#include "model/record.h"
#include "results/nc_reader.h"
#include "results/session.h"

struct result_file {
    const char *path; /* the caller's */
    struct nc_reader reader;
    bool resting; /* netCDF does not have it open */
    struct session
        *sessions; /* owned; settings, title, manifest and MPI of all are those of the last */
    size_t session_count;
    struct device *devices; /* owned; the file's rows of device */
    size_t device_count;
    size_t rows, samples;
    int64_t *config_device; /* owned, of each row: index into devices, -1: it has none */
    int64_t *kernel_config; /* owned, of each kernel: its row, ascending; -1: of none */
    size_t kernels;
};

/* STATUS_USAGE: it cannot be read, is none, is of another format version, or some other tool has joined or
 * cut its rows. */
enum status result_file_open(const char *path, struct result_file *file, struct error *error);
void result_file_close(struct result_file *file);
/* Gives back what netCDF needs for an open file, some 10 MB. It is opened again when rows are read. */
void result_file_rest(struct result_file *file);

/* What tells a row from all others. */
struct row_key {
    char configuration[WORKLOAD_TEXT];
    char config_hash[CONFIG_HASH_TEXT];
    double start_time; /* NaN: missing */
};
/* Of `count` rows from `first` on. */
enum status result_file_keys(struct result_file *file, size_t first, size_t count,
                             struct row_key *keys, struct error *error);

/* `count` records from row `first` on, with samples and kernels; each initialised, and the caller's to clear. */
enum status result_file_records(struct result_file *file, size_t first, size_t count,
                                struct record *records, struct error *error);

#endif
