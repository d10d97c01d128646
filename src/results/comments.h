/* What a reader of the file must know of a variable beyond its long name: a remark, and whether it
 * follows from others. Const data. */
#ifndef ROOFSWEEP_COMMENTS_H
#define ROOFSWEEP_COMMENTS_H

#include "results/dataset.h"

extern const struct comment file_comments[]; /* ends with a NULL name */

/* Names of the variables that follow from others of the file; ends with NULL. A reader can throw them away
 * and make them anew, as tests/postproc/recompute.py does. */
extern const char *const file_derived[];

/* Names of those that are neither measured nor derived: what a model, a specification or a setting says. */
extern const char *const file_modelled[];

#endif
