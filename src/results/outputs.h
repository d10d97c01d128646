/* The two files that a sweep writes, OUTPUT and OUTPUT.journal, and what may happen to older
 * ones. */
#pragma once

#include <stdbool.h>

#include "results/journal.h"
#include "base/log.h"
#include "results/results.h"
#include "base/status.h"

enum { OUTPUTS_PATH = 4096, OUTPUTS_JOURNAL = OUTPUTS_PATH + sizeof ".journal" };

struct outputs {
    char netcdf[OUTPUTS_PATH], journal[OUTPUTS_JOURNAL];
    bool resume, overwrite;
    bool any_owner; /* of a journal that is resumed */
};

/* The journal that a path of an earlier result stands for: beside a file NAME.nc, or else the file
 * itself. */
void outputs_journal_of(const char *path, char journal[OUTPUTS_JOURNAL]);

/* Names the files. STATUS_USAGE if a name is too long. */
enum status outputs_name(const char *path, bool resume, bool overwrite, struct outputs *outputs,
                         struct error *error);

/* STATUS_USAGE, before anything is measured, if there are older ones and it was not said what is to
 * become of them, if one is no regular file, if the output is a journal or its journal is something
 * else, or if the folder does not exist or cannot be written to. Changes nothing. */
enum status outputs_check(const struct outputs *outputs, struct error *error);

/* STATUS_USAGE if a file of the sweep would replace this one, which it reads, also through a link.
 * `what` it is, for people: "the manifest". */
enum status outputs_check_input(const struct outputs *outputs, const char *input, const char *what,
                                struct error *error);

/* An older journal is opened, so that no other job has it, and with resume read; there is no
 * *journal and there are empty results otherwise. STATUS_USAGE if another job has it, or if it was
 * measured with other settings than these, since the rows could not be compared. Changes no
 * file. */
enum status outputs_earlier(const struct outputs *outputs, const char *settings,
                            const struct log *log, struct journal **journal,
                            struct results **results, struct error *error);

/* Creates the journal if it is not open yet; removes an older NetCDF file where overwriting was
 * asked for. */
enum status outputs_begin(const struct outputs *outputs, struct journal **journal,
                          struct error *error);

/* STATUS_USAGE if what --gather is to read is a result file; its journal is named. */
enum status outputs_check_journal(const char *journal, struct error *error);

/* Whether --gather may write to `path` what it reads from `journal`. STATUS_USAGE as for
 * outputs_check; a file that exists needs `overwrite`, and a journal is refused always. */
enum status outputs_check_gathered(const char *journal, const char *path, bool overwrite,
                                   struct error *error);
