/* What a run has produced, in one line for programs. */
#ifndef ROOFSWEEP_SUMMARY_H
#define ROOFSWEEP_SUMMARY_H

#include "results/results.h"

struct summary {
    size_t rows[3]; /* by enum record_status */
    size_t devices, roofs;
    size_t left;     /* configurations that have no row yet; SIZE_MAX: not known */
    char file[4096]; /* "": there is none */
};

struct summary summary_of(const struct results *results, const char *file);

/* "summary status=0 rows=118 measured=118 skipped=0 failed=0 left=0 devices=8 roofs=240 seconds=44.5
 * file=sweep.nc". status: of the program; seconds: since it began. The file comes last, since it may have
 * blanks. */
enum { SUMMARY_TEXT = 4400 };
void summary_format(const struct summary *summary, int status, double seconds,
                    char text[SUMMARY_TEXT]);

#endif
