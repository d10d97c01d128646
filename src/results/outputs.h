/* The two files that a sweep writes, OUTPUT and OUTPUT.journal, and the rules for existing ones. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "results/journal.h"
#include "base/log.h"
#include "results/results.h"
#include "base/status.h"

enum { OUTPUTS_PATH = 4096, OUTPUTS_JOURNAL = OUTPUTS_PATH + sizeof ".journal" };

struct outputs {
    char netcdf[OUTPUTS_PATH], journal[OUTPUTS_JOURNAL];
    bool resume, overwrite;
    dev_t device;   /* device and inode of the file `netcdf` before the sweep */
    ino_t inode;    /* 0: there was no file */
    bool any_owner; /* with resume: accepts a journal of another user */
};

/* Sets `journal` to the journal of an earlier result: PATH.journal if PATH is a result file or ends
 * in ".nc", otherwise PATH itself. */
void outputs_journal_of(const char *path, char journal[OUTPUTS_JOURNAL]);

/* Sets the files' names, and device and inode of an existing file. STATUS_USAGE: name too long. */
enum status outputs_name(const char *path, bool resume, bool overwrite, struct outputs *outputs,
                         struct error *error);

/* Checks both files before the first measurement, and changes none. STATUS_USAGE: a file exists
 * without resume or overwrite, or is no regular file; OUTPUT is a journal, or OUTPUT.journal is not
 * a journal; or a trial shows that the folder takes no new file. */
enum status outputs_check(const struct outputs *outputs, struct error *error);

/* STATUS_USAGE: the sweep would replace `input`, perhaps through a link. `what` names the input in
 * the message: "the manifest". */
enum status outputs_check_input(const struct outputs *outputs, const char *input, const char *what,
                                struct error *error);

/* Opens and locks an existing journal, and with resume reads it. Changes no file. If there is no
 * journal, *journal remains NULL and the results are empty. STATUS_USAGE: another job has locked
 * the journal, or its rows were measured with other settings and cannot be compared. */
enum status outputs_earlier(struct outputs *outputs, const char *settings, const struct log *log,
                            struct journal **journal, struct results **results,
                            struct error *error);

/* Creates the journal unless it is open. With overwrite, removes an existing NetCDF file. */
enum status outputs_begin(const struct outputs *outputs, struct journal **journal,
                          struct error *error);

/* True if the result replaces an existing file: with overwrite any file, with resume only the file
 * that existed before the sweep. */
bool outputs_replaces(const struct outputs *outputs);

/* STATUS_USAGE: the input of --gather is a result file; the message names the file's journal. */
enum status outputs_check_journal(const char *journal, struct error *error);

/* Checks that --gather may write `path` from `journal`. STATUS_USAGE: the reasons of outputs_check,
 * or `path` exists without `overwrite`, or `path` is a journal, or the output of a running job. */
enum status outputs_check_gathered(const char *journal, const char *path, bool overwrite,
                                   struct error *error);
