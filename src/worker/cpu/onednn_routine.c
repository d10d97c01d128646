#include "worker/cpu/onednn_routine.h"

enum status onednn_routine_accept(const struct work *work, const struct onednn *made,
                                  struct error *error)
{
    if (onednn_is_reference(made) && routine_is_automatic(work))
        return error_set(error, STATUS_UNSUPPORTED,
                         "oneDNN has only a definition of it, not made for speed (\"%s\")",
                         onednn_name(made));
    return STATUS_OK;
}

enum status onednn_routine_plan(struct work *work, const struct onednn_operation *operation,
                                const struct onednn_roles *roles, struct error *error)
{
    struct onednn_plan *plan = work->plan;
    enum status status = onednn_create(operation, NULL, &plan->made, error);
    if (status == STATUS_OK)
        status = onednn_routine_accept(work, plan->made, error);
    if (status)
        return status;
    plan->roles = *roles;
    work->scratch_size = onednn_memory(plan->made);
    return STATUS_OK;
}

enum status onednn_routine_ready(struct work *work, struct error *error)
{
    const struct onednn_plan *plan = work->plan;
    void *data[ONEDNN_ARGUMENTS] = {NULL};
    for (int tensor = 0; tensor < TENSOR_COUNT; ++tensor) {
        if (work->reads[tensor])
            data[plan->roles.inputs[tensor]] = work->input[tensor];
        if (work->writes[tensor])
            data[plan->roles.results[tensor]] = work->result[tensor];
    }
    return onednn_bind(plan->made, data, work->scratch, error);
}

void onednn_routine_run(struct work *work, struct trace *trace)
{
    onednn_run(((const struct onednn_plan *)work->plan)->made, trace);
}

void onednn_routine_release(struct work *work)
{
    onednn_destroy(((const struct onednn_plan *)work->plan)->made);
}

const char *onednn_routine_name(const struct work *work)
{
    return onednn_name(((const struct onednn_plan *)work->plan)->made);
}
