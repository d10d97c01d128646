/* Whether code has left the process while CUPTI counts in it.
 *
 * CUPTI counts vector FLOPs by instructions that it adds to each kernel when the kernel is first launched.
 * It knows such a kernel by an address, and is not told when the kernel's module is unloaded. A kernel
 * that is loaded to the same address later is taken for the old one: its FLOPs are wrong, or the process
 * dies in the launch. So counters are begun afresh once a module has been unloaded. cuDNN unloads one with
 * each plan that it has compiled. */
#ifndef ROOFSWEEP_MODULE_WATCH_H
#define ROOFSWEEP_MODULE_WATCH_H

#include <stdbool.h>
#include <cupti.h>

/* All zero: nothing is watched. Must not move while it watches: CUPTI has its address. */
struct module_watch {
    CUpti_SubscriberHandle subscriber;
    bool watching;
    bool unloaded; /* set by whatever thread unloads: by __atomic functions alone */
};

/* CUPTI is in the process. Where another tool is CUPTI's subscriber nothing can be watched. */
void module_watch_begin(struct module_watch *watch);
void module_watch_end(struct module_watch *watch);

/* A module was unloaded since it began. */
bool module_watch_saw_unload(const struct module_watch *watch);
/* It has watched since it began, and no module was unloaded. */
bool module_watch_is_clean(const struct module_watch *watch);

#endif
