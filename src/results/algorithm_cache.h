/* What searches for algorithms chose: kept for the run, and on request in a file that later runs
 * read. The result file of an earlier run serves as well; nothing is added to that.
 *
 * An entry is found by its configuration, the model of the device, and the versions of its library
 * and driver: under another one it is as if it were not there. Of several the last one counts.
 *
 * The file is made of lines as a journal's (journal.h), of the kind "algorithm"; lines are only
 * added. It is locked while something is added, with one fdatasync, so several runs may share it. A
 * torn last line, and lines that are damaged, are left out. */
#pragma once

#include <stdbool.h>

#include "base/status.h"
#include "model/algorithm.h"
#include "model/device.h"

struct algorithm_cache;

/* What stands in the file. */
struct algorithm_cache_file {
    size_t entries, damaged; /* lines, or rows of a result file */
};

/* path: NULL: there is no file; one that does not exist is created with the first entry. `keep`:
 * what this run finds is found again in this run; otherwise only what the file had is.
 * STATUS_USAGE: what is there is no such file, or a result file (NAME.nc) is not there;
 * STATUS_SYSTEM. */
enum status algorithm_cache_open(const char *path, bool keep, struct algorithm_cache **cache,
                                 struct algorithm_cache_file *file, struct error *error);
void algorithm_cache_close(struct algorithm_cache *cache); /* takes NULL */

/* False: there is none for this configuration on such a device. Its algorithm_origin is what a row
 * of it says: "run", or "file of 2026-11-22". */
bool algorithm_cache_find(const struct algorithm_cache *cache, const char *config_hash,
                          const struct device *device, struct algorithm *algorithm);

/* Takes the algorithm of a row that was measured with what its own search chose; of any other row
 * nothing. */
enum status algorithm_cache_learn(struct algorithm_cache *cache, const struct record *record,
                                  const char *config_hash, const struct device *device,
                                  struct error *error);

/* Adds to the file what was learnt since. Does not wait: STATUS_USAGE while another run writes to
 * it. After a failure nothing is lost: the next call tries again. */
enum status algorithm_cache_save(struct algorithm_cache *cache, struct error *error);
