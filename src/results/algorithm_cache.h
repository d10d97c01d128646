/* Algorithms that searches found: of this run, and of a file that outlives it.
 *
 * An entry is valid for one configuration, one model of device, and one version of the device's
 * library and driver. The latest of several entries counts.
 *
 * The file is a journal (journal.h) without sessions. Its records have an algorithm and a time, its
 * devices a model and versions. Lines are only added. The file is locked while lines are added,
 * with one fdatasync, so several runs can share it. Torn and damaged lines are left out. The
 * journal of an earlier result is read in the same way, and stays unchanged. */
#pragma once

#include <stdbool.h>

#include "base/status.h"
#include "model/algorithm.h"
#include "model/device.h"

struct algorithm_cache;

/* `path`: the file, which the first entry creates, or an earlier result NAME.nc, whose journal is
 * read. NULL: no file. `keep`: algorithms that this run finds serve its later rows. *damaged:
 * lines left out. STATUS_USAGE: the path names neither. */
enum status algorithm_cache_open(const char *path, bool keep, struct algorithm_cache **cache,
                                 size_t *damaged, struct error *error);
void algorithm_cache_close(struct algorithm_cache *cache); /* takes NULL */

/* False: no algorithm for this configuration on such a device. algorithm_origin is "run", or "file
 * of 2026-11-22". */
bool algorithm_cache_find(const struct algorithm_cache *cache, const char *config_hash,
                          const struct device *device, struct algorithm *algorithm);

/* Adds the algorithm of a row that searched by itself; ignores other rows. */
enum status algorithm_cache_learn(struct algorithm_cache *cache, const struct record *record,
                                  const char *config_hash, const struct device *device,
                                  struct error *error);

/* Appends new entries to the file. STATUS_USAGE: another run writes to the file for longer than
 * `patience`, s. After a failure the next call tries again. */
enum status algorithm_cache_save(struct algorithm_cache *cache, double patience,
                                 struct error *error);
