/* The copy engines between host and device. Each byte is counted once. */

#include <stdio.h>

#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/roof_family.h"

/* Size of a copy, and copies in a row. The start of a queued copy takes below 1 % of its time.
 * Pinning memory takes 1.6 ms for each MiB, longer while neighbours pin theirs. */
static const size_t copied = (size_t)32 << 20;
enum { IN_A_ROW = 4 };

static const struct direction {
    enum roof_id roof;
    const char *what;
} directions[] = {
    {ROOF_HOST_TO_DEVICE, "from pinned memory"},
    {ROOF_DEVICE_TO_HOST, "to pinned memory"},
};

static const void *transfer_row(struct roofs *roofs, int kind, int n)
{
    (void)roofs;
    for (size_t i = 0; n == 0 && i < sizeof directions / sizeof *directions; ++i)
        if (directions[i].roof == (enum roof_id)kind)
            return &directions[i];
    return NULL;
}

/* The first copy goes to the host, so that both sides hold random numbers. */
static enum status transfer_prepare(struct roofs *roofs, int kind, const void *row, int choice,
                                    struct variant *variant, struct error *error)
{
    const struct direction *direction = row;
    void *host;
    (void)kind, (void)choice;
    *variant = (struct variant){
        .row = direction, .bytes = copied, .iterations = IN_A_ROW, .work = (double)copied};
    snprintf(variant->text, sizeof variant->text, "%d x %zu MiB %s", IN_A_ROW, copied >> 20,
             direction->what);
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
    const enum roof_id roof = ((const struct direction *)variant->row)->roof;
    const bool out = roof == ROOF_DEVICE_TO_HOST;
    void *host = roofs->host, *device = roofs->results.data;
    for (int i = 0; i < variant->iterations; ++i)
        TRY(cuda_check(cudaMemcpyAsync(out ? host : device, out ? device : host, copied,
                                       out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
                                       roofs->gpu->stream),
                       roof_kinds[roof].name, error));
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
