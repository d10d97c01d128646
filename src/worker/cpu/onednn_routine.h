/* The routine of a workload that is one operation of oneDNN: its file describes the operation, and the
 * rest is the same for all. */
#ifndef ROOFSWEEP_CPU_ONEDNN_ROUTINE_H
#define ROOFSWEEP_CPU_ONEDNN_ROUTINE_H

#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

/* What each of the work's tensors is to the operation, where it reads it and where it writes it. */
struct onednn_roles {
    enum onednn_argument inputs[TENSOR_COUNT], results[TENSOR_COUNT];
};

struct onednn_plan {
    struct onednn *made;
    struct onednn_roles roles;
};

/* STATUS_UNSUPPORTED: it is one of the library's definitions, and `auto` takes none of them. */
enum status onednn_routine_accept(const struct work *work, const struct onednn *made,
                                  struct error *error);
/* The end of a plan, which has set the work's tensors: creates the operation. */
enum status onednn_routine_plan(struct work *work, const struct onednn_operation *operation,
                                const struct onednn_roles *roles, struct error *error);
enum status onednn_routine_ready(struct work *work, struct error *error);
void onednn_routine_run(struct work *work, struct trace *trace);
void onednn_routine_release(struct work *work);
const char *onednn_routine_name(const struct work *work);

/* Members of a struct routine. */
#define ONEDNN_ROUTINE(plan_function)                                                              \
    .plan_size = sizeof(struct onednn_plan), .own_regions = true, .check = onednn_check,           \
    .plan = plan_function, .ready = onednn_routine_ready, .run = onednn_routine_run,               \
    .release = onednn_routine_release, .name = onednn_routine_name

#endif
