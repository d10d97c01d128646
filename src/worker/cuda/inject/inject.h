/* The injection of this process. */
#ifndef ROOFSWEEP_INJECT_INJECT_H
#define ROOFSWEEP_INJECT_INJECT_H

#include <stdbool.h>

#include "worker/cuda/inject/task.h"

/* Reads the task, the first time that it is called. False: this process has none. */
bool inject_begin(void);
/* NULL: this process has none. */
const struct task *inject_task(void);
/* The program opens its region, or closes it. What does not fit is passed over. */
void inject_region(bool opens);

#endif
