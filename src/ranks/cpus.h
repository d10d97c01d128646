/* CPUs that a thread may run on. cpu_set_t ends at CPU 1023, and the kernel refuses a set that is
 * smaller than its own. The macros CPU_..._S of sched.h take cpus.part and sizeof cpus. */
#pragma once

#include <sched.h>

enum { CPUS_MAX = 8192 }; /* the limit of Linux */

struct cpus {
    cpu_set_t part[CPUS_MAX / CPU_SETSIZE];
};
