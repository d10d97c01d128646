/* The roofs of the scripted H200 (scripted_bench.h), tuned and measured by their names. For tests only. */
#ifndef ROOFSWEEP_TEST_TUNED_H
#define ROOFSWEEP_TEST_TUNED_H

#include <stdbool.h>

#include "base/status.h"
#include "model/roof.h"
#include "worker/cuda/roofs/roofs.h"

extern bool found[ROOF_KINDS]; /* by the last tuning */

struct roof_request everything(void);
void tune(const struct roof_request *request, bool prove);
void tune_all(bool prove);
void tune_more(const struct roof_request *request, bool prove); /* keeps what was found */

int kind_of(const char *name);
struct roof measure(const char *name);
enum status measure_at(int kind, double start, struct roof *roof, struct error *error);
/* Found, and why it cannot be measured. */
const char *refusal(const char *name, enum status expected);

/* All that the script knows, but for the copy to another one. */
bool h200_has(int kind);

bool starts_with(const char *text, const char *start);

#endif
