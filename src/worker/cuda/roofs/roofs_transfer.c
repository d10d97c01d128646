/* The copy engines: between host and device, and from this device to the next one that the process
 * sees. Each byte is counted once. */

#include <stdio.h>
#include <stdlib.h>

#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/roof_family.h"

/* Sizes of copies. Their start takes below 1 % of the time. A host's link is slower, and all
 * devices of the node may share it. */
static const size_t host_bytes = (size_t)128 << 20, remote_bytes = (size_t)256 << 20;

struct transfer {
    void *host;    /* owned, pinned; NULL: not allocated */
    int own, next; /* device numbers */
    void *remote;  /* owned, on device `next`; NULL: not allocated */
    bool direct;   /* access to the next device is on and must be undone */
};

/* ---- between host and device ---- */

/* The first copy goes to the host, so that both sides hold random numbers. */
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

/* ---- copies to the next device ---- */

/* The device of this worker is current afterwards, also after a failure. */
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
        cudaGetLastError(); /* clears an error of the other device; this device works */
    return code == cudaSuccess ? back : code;
}

/* This process uses the other device for nothing else, so its context goes with the memory. */
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

/* Without access from one device to the other, copies go through the host. */
static enum status remote_open(struct roofs *roofs, struct error *error)
{
    struct transfer *transfer = roofs->transfer;
    int possible = 0;
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
    if (cudaDeviceCanAccessPeer(&possible, transfer->own, transfer->next) == cudaSuccess &&
        possible)
        transfer->direct = cudaDeviceEnablePeerAccess(transfer->next, 0) == cudaSuccess;
    cudaGetLastError();
    return STATUS_OK;
}

/* ---- the family ---- */

static const struct direction {
    enum roof_id roof;
    const char *what; /* text of a direction to or from the host */
    enum status (*open)(struct roofs *roofs, struct error *error);
} directions[] = {
    {ROOF_HOST_TO_DEVICE, "from pinned memory", host_open},
    {ROOF_DEVICE_TO_HOST, "to pinned memory", host_open},
    {ROOF_DEVICE_TO_DEVICE, NULL, remote_open},
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
    const enum roof_id roof = ((const struct direction *)variant->row)->roof;
    const struct transfer *t = roofs->transfer;
    void *local = roofs->results.data;
    cudaStream_t stream = roofs->gpu->stream;
    cudaError_t code =
        roof == ROOF_HOST_TO_DEVICE
            ? cudaMemcpyAsync(local, t->host, host_bytes, cudaMemcpyHostToDevice, stream)
        : roof == ROOF_DEVICE_TO_HOST
            ? cudaMemcpyAsync(t->host, local, host_bytes, cudaMemcpyDeviceToHost, stream)
            : cudaMemcpyPeerAsync(t->remote, t->next, local, t->own, remote_bytes, stream);
    return cuda_check(code, roof_kinds[roof].name, error);
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
