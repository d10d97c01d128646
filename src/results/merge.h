/* Result files as one: of jobs that measured one device each, or shared out a list.
 *
 * Devices, kernels and roofs are numbered anew; what follows from others is made anew. A device that is the
 * same in several files (host, UUID, everything known of it, roofs) is one device. Where its roofs differ each
 * file's stays, and rows are held against those of their own file. A configuration on the same device in
 * several files is a clash: an error, unless the one that was measured last is to hold. */
#ifndef ROOFSWEEP_MERGE_H
#define ROOFSWEEP_MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/status.h"
#include "results/journals.h"

/* Writes what the files hold into a journal without a name, from which publication_gather makes one file. Rows
 * go through memory some at a time. STATUS_USAGE: a file is none that can be merged, see result_file_open, is
 * named twice, or was measured with other settings; or there are clashes, of which the first are named.
 * `newest`: of a clash, the row that was measured last holds. */
enum status merge_files(const char *const *paths, size_t count, bool newest, const struct log *log,
                        struct journals *merged, struct error *error);

#endif
