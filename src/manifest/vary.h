/* How the lists of a section combine; enum vary is in manifest.h. */
#ifndef ROOFSWEEP_VARY_H
#define ROOFSWEEP_VARY_H

#include "manifest/manifest.h"

/* "vary: " is in front of the error. */
enum status vary_parse(const char *text, enum vary *vary, struct error *error);

#endif
