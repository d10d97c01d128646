/* What a reader of the file must know of a variable beyond its long name. Const data. */
#ifndef ROOFSWEEP_COMMENTS_H
#define ROOFSWEEP_COMMENTS_H

#include "results/dataset.h"

extern const struct comment file_comments[]; /* ends with a NULL name */

#endif
