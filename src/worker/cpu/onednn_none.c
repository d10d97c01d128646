/* A worker that was built without oneDNN: it says so, and nothing more can be asked of it. */
#include "worker/cpu/onednn.h"

void onednn_describe(char *text, size_t size)
{
    if (size > 0)
        text[0] = '\0';
}

enum status onednn_check(enum precision precision, struct error *error)
{
    (void)precision;
    return error_set(error, STATUS_UNSUPPORTED, "this worker was built without oneDNN");
}

enum status onednn_create(const struct onednn_operation *operation, const struct onednn *forward,
                          struct onednn **made, struct error *error)
{
    (void)forward, (void)made;
    return onednn_check(operation->tensors[ONEDNN_SOURCE].precision, error);
}

void onednn_destroy(struct onednn *made)
{
    (void)made;
}

const char *onednn_name(const struct onednn *made)
{
    (void)made;
    return "";
}

bool onednn_is_reference(const struct onednn *made)
{
    (void)made;
    return true;
}

size_t onednn_memory(const struct onednn *made)
{
    (void)made;
    return 0;
}

enum status onednn_bind(struct onednn *made, void *const data[ONEDNN_ARGUMENTS], void *memory,
                        struct error *error)
{
    (void)made, (void)data, (void)memory;
    return onednn_check(PRECISION_FP32, error);
}

enum status onednn_pack(struct onednn *made, struct error *error)
{
    (void)made;
    return onednn_check(PRECISION_FP32, error);
}

void onednn_move(struct onednn *made, enum onednn_argument argument, void *data)
{
    (void)made, (void)argument, (void)data;
}

void onednn_run(const struct onednn *made, struct trace *trace)
{
    (void)made, (void)trace;
}
