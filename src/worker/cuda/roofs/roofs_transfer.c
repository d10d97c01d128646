/* The copy engines between host and device. Each byte is counted once. */

#include <stdio.h>

#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/roof_family.h"

/* Bytes of a copy. Starting a queued copy of this size takes below 1 % of its time. Pinning memory
 * takes 1.6 ms for each MiB, longer while neighbours pin theirs. */
static const size_t copied = (size_t)32 << 20;
enum { IN_A_ROW = 4 };

/* The family has no table of its own: its rows are those of roof_kinds. */
static const void *transfer_row(struct roofs *roofs, int kind, int n)
{
    (void)roofs;
    return n == 0 && roof_kinds[kind].requested_by == offsetof(struct roof_request, transfer)
               ? &roof_kinds[kind]
               : NULL;
}

/* The first copy goes to the host, so that both sides hold random numbers. */
static enum status transfer_prepare(struct roofs *roofs, int kind, const void *row, int choice,
                                    struct variant *variant, struct error *error)
{
    void *host;
    (void)choice;
    *variant = (struct variant){
        .row = row, .bytes = copied, .iterations = IN_A_ROW, .work = (double)copied};
    snprintf(variant->text, sizeof variant->text, "%d x %zu MiB %s pinned memory", IN_A_ROW,
             copied >> 20, kind == ROOF_DEVICE_TO_HOST ? "to" : "from");
    TRY(roofs_reserve(roofs, &roofs->results, copied, error));
    if (roofs->host)
        return STATUS_OK;
    TRY(CUDA(cudaHostAlloc(&host, copied, cudaHostAllocDefault)));
    roofs->host = host;
    return CUDA(cudaMemcpyAsync(host, roofs->results.data, copied, cudaMemcpyDeviceToHost,
                                roofs->gpu->stream));
}

static enum status transfer_run(struct roofs *roofs, const struct variant *variant,
                                struct error *error)
{
    const struct roof_kind *roof = variant->row;
    const bool out = roof == &roof_kinds[ROOF_DEVICE_TO_HOST];
    void *host = roofs->host, *device = roofs->results.data;
    for (int i = 0; i < variant->iterations; ++i)
        TRY(cuda_check(cudaMemcpyAsync(out ? host : device, out ? device : host, copied,
                                       out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
                                       roofs->gpu->stream),
                       roof->name, error));
    return STATUS_OK;
}

static void transfer_close(struct roofs *roofs)
{
    if (roofs->host)
        cudaFreeHost(roofs->host);
    roofs->host = NULL;
}

const struct roof_family roofs_transfer = {
    .row = transfer_row,
    .choices = 1,
    .prepare = transfer_prepare,
    .run = transfer_run,
    .close = transfer_close,
};
