#include "worker/gpu/memory.h"

#include "base/units.h"
#include "worker/cuda/gpu/check.h"

static enum status memory_refuse(double bytes, const char *what, size_t available,
                                 struct error *error)
{
    char need[UNITS_TEXT], have[UNITS_TEXT];
    units_format(bytes, "B", need);
    units_format((double)available, "B", have);
    return error_set(error, STATUS_UNSUPPORTED, "needs %s of device memory for %s, %s are free",
                     need, what, have);
}

enum status memory_check(double bytes, const char *what, struct error *error)
{
    size_t available, total;
    TRY(CUDA(cudaMemGetInfo(&available, &total)));
    return bytes > (double)available ? memory_refuse(bytes, what, available, error) : STATUS_OK;
}

enum status memory_allocate(double bytes, const char *what, void **memory, struct error *error)
{
    TRY(memory_check(bytes, what, error));
    void *result = NULL;
    enum status status = bytes > 0.0 ? CUDA(cudaMalloc(&result, (size_t)bytes)) : STATUS_OK;
    if (status == STATUS_UNSUPPORTED) {
        size_t available, total;
        TRY(CUDA(cudaMemGetInfo(&available, &total)));
        return memory_refuse(bytes, what, available, error);
    }
    if (status == STATUS_OK)
        *memory = result;
    return status;
}
