/* What a device gives to a program that runs on it. */
#ifndef ROOFSWEEP_WORKER_PROGRAM_LOAN_H
#define ROOFSWEEP_WORKER_PROGRAM_LOAN_H

#include <sched.h>
#include "model/outcome.h"

struct program_loan {
    char visible[160];     /* "NAME=VALUE", by which the program sees this device alone; "": none */
    const cpu_set_t *cpus; /* that it may use; NULL: the worker's. The device's */
    size_t cpus_size;      /* byte */
    char library[4096];    /* to inject, which sees kernels and regions; "": there is none */
    struct outcome counters; /* whether they can be counted, and why not */
};

#endif
