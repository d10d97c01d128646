/* cuDNN's plans of rows that are done. They stay for a while, because destroying a plan that cuDNN has
 * compiled unloads its code: then CUPTI has to be attached anew (profiling/module_watch.h), which costs as
 * much as counting dozens of rows. So many plans go together that this is rare. */
#ifndef ROOFSWEEP_PLAN_SHELF_H
#define ROOFSWEEP_PLAN_SHELF_H

#include <cudnn.h>

struct plan_shelf;

struct plan_shelf *plan_shelf_create(void);        /* NULL without memory */
void plan_shelf_destroy(struct plan_shelf *shelf); /* takes NULL; destroys what is on it */

/* Takes the descriptors of one graph, and their array, which is freed. They are destroyed at some time, the
 * last one first. NULL for a shelf: at once. */
enum { PLAN_SHELF_MOST = 128 };
void plan_shelf_put(struct plan_shelf *shelf, cudnnBackendDescriptor_t *descriptors, int count);

#endif
