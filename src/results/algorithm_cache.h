/* Algorithms that searches found in this run, and in earlier runs that share a file.
 *
 * An entry is valid for one configuration, one model of device, and one version of the device's
 * library and driver. The latest of several entries counts.
 *
 * The file is a journal (journal.h) without sessions. Its records have only an algorithm and a
 * time, its devices only a model and versions. Runs only append lines, under a lock and with one
 * fdatasync, so several runs can share the file. Torn and damaged lines are left out. In place of
 * the file, the journal of an earlier result can be read; it stays unchanged. */
#pragma once

#include <stdbool.h>

#include "base/status.h"
#include "model/algorithm.h"
#include "model/device.h"

struct algorithm_cache;

/* `path` names the file, which the first entry creates, or an earlier result NAME.nc, whose journal
 * is read; NULL: no file. `keep`: later rows of this run may use algorithms that this run finds.
 * *damaged: number of lines left out. STATUS_USAGE: the path names something else. */
enum status algorithm_cache_open(const char *path, bool keep, struct algorithm_cache **cache,
                                 size_t *damaged, struct error *error);
void algorithm_cache_close(struct algorithm_cache *cache); /* takes NULL */

/* Sets *algorithm; its algorithm_origin is "run", or "file of 2026-11-22". False: no algorithm is
 * known for this configuration and device. */
bool algorithm_cache_find(const struct algorithm_cache *cache, const char *config_hash,
                          const struct device *device, struct algorithm *algorithm);

/* Adds the algorithm of a row that made a search of its own; ignores other rows. */
enum status algorithm_cache_learn(struct algorithm_cache *cache, const struct record *record,
                                  const char *config_hash, const struct device *device,
                                  struct error *error);

/* Appends new entries to the file. STATUS_USAGE: another run has locked the file for longer than
 * `patience` seconds. After a failure the next call tries again. */
enum status algorithm_cache_save(struct algorithm_cache *cache, double patience,
                                 struct error *error);
