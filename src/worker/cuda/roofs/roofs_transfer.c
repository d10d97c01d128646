/* The copy engines: between host and device, and from this device to the next one that the process
 * sees. Each byte is counted once. */

#include <stdio.h>
#include <stdlib.h>

#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/roof_family.h"

/* Long enough that a copy's start is below 1 % of it; a host's link is slower, and may be shared by
 * all devices of the node. */
static const size_t host_bytes = (size_t)128 << 20, remote_bytes = (size_t)256 << 20;

struct transfer {
    void *host; /* owned, pinned; NULL: not yet */
    int own, next;
    void *remote; /* owned, on device `next`; NULL: not yet */
    bool direct;  /* it is mapped here, which must be undone */
};

/* ---- between host and device ---- */

/* The first copy is the other way round, so that both sides hold random numbers. */
static enum status host_open(struct roofs *roofs, struct error *error)
{
    struct transfer *transfer = roofs->transfer;
    void *host;
    if (transfer->host)
        return STATUS_OK;
    TRY(CUDA(cudaHostAlloc(&host, host_bytes, cudaHostAllocDefault)));
    transfer->host = host;
    return CUDA(cudaMemcpyAsync(host, roofs->results.data, host_bytes, cudaMemcpyDeviceToHost,
                                roofs->gpu->stream));
}

static cudaError_t copy_from_host(struct transfer *transfer, void *local, cudaStream_t stream)
{
    return cudaMemcpyAsync(local, transfer->host, host_bytes, cudaMemcpyHostToDevice, stream);
}

static cudaError_t copy_to_host(struct transfer *transfer, void *local, cudaStream_t stream)
{
    return cudaMemcpyAsync(transfer->host, local, host_bytes, cudaMemcpyDeviceToHost, stream);
}

/* ---- to the next device ---- */

/* Leaves the own device current, whatever happens. */
static cudaError_t remote_allocate(struct transfer *transfer)
{
    void *remote = NULL;
    cudaError_t code = cudaSetDevice(transfer->next);
    if (code == cudaSuccess)
        code = cudaMalloc(&remote, remote_bytes);
    cudaError_t back = cudaSetDevice(transfer->own);
    if (code == cudaSuccess)
        transfer->remote = remote;
    else
        cudaGetLastError(); /* it was the other device's: nothing is wrong with this one */
    return code == cudaSuccess ? back : code;
}

/* Where the one cannot reach the other, copies go through the host: slower, and the truth. */
static void remote_map(struct transfer *transfer)
{
    int possible = 0;
    if (cudaDeviceCanAccessPeer(&possible, transfer->own, transfer->next) == cudaSuccess &&
        possible)
        transfer->direct = cudaDeviceEnablePeerAccess(transfer->next, 0) == cudaSuccess;
    cudaGetLastError();
}

/* This process uses the other device for nothing else: its context there goes with the memory. */
static void remote_close(struct transfer *transfer)
{
    if (transfer->direct)
        cudaDeviceDisablePeerAccess(transfer->next);
    if (cudaSetDevice(transfer->next) == cudaSuccess)
        cudaDeviceReset();
    cudaSetDevice(transfer->own);
    cudaGetLastError();
    transfer->remote = NULL;
    transfer->direct = false;
}

static enum status remote_open(struct roofs *roofs, struct error *error)
{
    struct transfer *transfer = roofs->transfer;
    if (transfer->remote)
        return STATUS_OK;
    TRY(CUDA(cudaGetDevice(&transfer->own)));
    transfer->next = (transfer->own + 1) % roofs->devices;
    cudaError_t code = remote_allocate(transfer);
    if (code != cudaSuccess) {
        remote_close(transfer);
        return error_set(error, STATUS_UNSUPPORTED, "device %d, the next one: %s", transfer->next,
                         cudaGetErrorString(code));
    }
    remote_map(transfer);
    return STATUS_OK;
}

static cudaError_t copy_to_next(struct transfer *transfer, void *local, cudaStream_t stream)
{
    return cudaMemcpyPeerAsync(transfer->remote, transfer->next, local, transfer->own, remote_bytes,
                               stream);
}

/* ---- the family ---- */

static const struct direction {
    enum roof_id roof;
    const char *what; /* of a host's */
    enum status (*open)(struct roofs *roofs, struct error *error);
    cudaError_t (*copy)(struct transfer *transfer, void *local, cudaStream_t stream);
} directions[] = {
    {ROOF_HOST_TO_DEVICE, "from pinned memory", host_open, copy_from_host},
    {ROOF_DEVICE_TO_HOST, "to pinned memory", host_open, copy_to_host},
    {ROOF_DEVICE_TO_DEVICE, NULL, remote_open, copy_to_next},
};

static const void *transfer_row(struct roofs *roofs, int kind, int n)
{
    if (roofs->devices == 0 && cudaGetDeviceCount(&roofs->devices) != cudaSuccess)
        roofs->devices = 1;
    for (size_t i = 0; n == 0 && i < sizeof directions / sizeof *directions; ++i)
        if (directions[i].roof == (enum roof_id)kind &&
            (directions[i].open != remote_open || roofs->devices > 1))
            return &directions[i];
    return NULL;
}

static enum status transfer_prepare(struct roofs *roofs, int kind, const void *row, int choice,
                                    struct variant *variant, struct error *error)
{
    const struct direction *direction = row;
    (void)kind, (void)choice;
    if (!roofs->transfer)
        roofs->transfer = calloc(1, sizeof *roofs->transfer);
    if (!roofs->transfer)
        return error_set(error, STATUS_FAILED, "no memory");
    const struct transfer *transfer = roofs->transfer;
    bool remote = direction->open == remote_open;
    size_t bytes = remote ? remote_bytes : host_bytes;
    TRY(roofs_reserve(roofs, &roofs->results, bytes, error));
    TRY(direction->open(roofs, error));
    *variant =
        (struct variant){.row = direction, .bytes = bytes, .iterations = 1, .work = (double)bytes};
    if (remote)
        snprintf(variant->text, sizeof variant->text, "%zu MiB, device %d to %d, %s", bytes >> 20,
                 transfer->own, transfer->next, transfer->direct ? "direct" : "through the host");
    else
        snprintf(variant->text, sizeof variant->text, "%zu MiB %s", bytes >> 20, direction->what);
    return STATUS_OK;
}

static enum status transfer_run(struct roofs *roofs, const struct variant *variant,
                                struct error *error)
{
    const struct direction *direction = variant->row;
    return cuda_check(direction->copy(roofs->transfer, roofs->results.data, roofs->gpu->stream),
                      roof_kinds[direction->roof].name, error);
}

static void transfer_close(struct roofs *roofs)
{
    struct transfer *transfer = roofs->transfer;
    if (!transfer)
        return;
    if (transfer->remote)
        remote_close(transfer);
    if (transfer->host)
        cudaFreeHost(transfer->host);
    free(transfer);
    roofs->transfer = NULL;
}

const struct roof_family roofs_transfer = {
    .row = transfer_row,
    .choices = 1,
    .prepare = transfer_prepare,
    .run = transfer_run,
    .close = transfer_close,
};
