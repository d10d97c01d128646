/* Bandwidths and latencies between GPUs: copies between the GPUs of this process, and NCCL with a
 * process for each GPU.
 *
 * Operations are enqueued while a blocking kernel holds the stream. With NCCL a short operation of
 * the same members comes first, so that all begin together. NCCL's operations are launched as a
 * graph, because a stream would leave gaps between short ones. Copies between devices cannot be
 * captured in a graph. Every result is compared with the exact values.
 *
 * Without NCCL, or for copies with fewer than two visible GPUs, the request is STATUS_UNSUPPORTED
 * with the way out. The process measures nothing else: after a lost device it ends without cleaning
 * up. If another member is lost, NCCL waits for ever, and the rank ends this process. */
#include "worker/cuda/links.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/vendor.h"

/* The part of NCCL's interface that is used here, unchanged since version 2.7. */
enum { NCCL_FLOAT = 7, NCCL_SUM = 0, NCCL_MAX = 2, NCCL_ID = (LINK_ID - 1) / 2 };
struct nccl_id {
    char bytes[NCCL_ID];
};
#define NCCL_FUNCTIONS(ROW)                                                                        \
    ROW(version, "ncclGetVersion", int *)                                                          \
    ROW(make_id, "ncclGetUniqueId", struct nccl_id *)                                              \
    ROW(init, "ncclCommInitRank", void **, int, struct nccl_id, int)                               \
    ROW(destroy, "ncclCommDestroy", void *)                                                        \
    ROW(begin, "ncclGroupStart", void)                                                             \
    ROW(end, "ncclGroupEnd", void)                                                                 \
    ROW(reduce, "ncclAllReduce", void *, void *, size_t, int, int, void *, cudaStream_t)           \
    ROW(gather, "ncclAllGather", void *, void *, size_t, int, void *, cudaStream_t)                \
    ROW(send, "ncclSend", void *, size_t, int, int, void *, cudaStream_t)                          \
    ROW(receive, "ncclRecv", void *, size_t, int, int, void *, cudaStream_t)
#define MEMBER(member, name, ...) int (*member)(__VA_ARGS__);
#define NAME(member, name, ...)   name,
struct nccl {
    NCCL_FUNCTIONS(MEMBER)
};
static const char *const nccl_names[] = {NCCL_FUNCTIONS(NAME)};

struct links {
    struct link link; /* the measurement in progress */
    int count;        /* number of open GPUs; 1 with NCCL */
    int from, to;     /* GPUs of a copy; 0 with NCCL */
    struct gpu gpus[LINK_DEVICES];
    struct graph *graph;   /* owned: NCCL's operations; NULL: copies */
    void *sent, *received; /* owned; memory of `from` and `to` */
    float *shared;         /* owned: two numbers that members of NCCL exchange; NULL: copies */
    int members, place;    /* NCCL: number of members, number of this member */
    int peer;              /* place of the other member of a pair; -1: all members */
    void *comm;
    struct fill fill; /* the device with place i sends the values from number i on */
    struct nccl nccl;
};

static enum status nccl_open(struct nccl *nccl, struct error *error)
{
    const char *path = getenv("ROOFSWEEP_NCCL");
    void *library = dlopen(path ? path : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof nccl_names / sizeof *nccl_names; ++i) {
        void *symbol = dlsym(library, nccl_names[i]);
        memcpy((char *)nccl + i * sizeof symbol, &symbol, sizeof symbol);
        library = symbol ? library : NULL;
    }
    return library ? STATUS_OK
                   : error_set(error, STATUS_UNSUPPORTED,
                               "%s; install NCCL, or name it: ROOFSWEEP_NCCL=/.../libnccl.so.2",
                               dlerror());
}

static enum status nccl_check(int code, struct error *error)
{
    return code == 0 ? STATUS_OK
                     : error_set(error, cuda_is_lost() ? STATUS_DEVICE : STATUS_FAILED,
                                 "NCCL fails with code %d; NCCL_DEBUG=WARN says why", code);
}

static int exchange(const struct links *links, void *sent, void *received, size_t count, int to,
                    int from)
{
    const struct nccl *nccl = &links->nccl;
    cudaStream_t stream = links->gpus[0].stream;
    int code = nccl->begin();
    if (code == 0)
        code = nccl->send(sent, count, NCCL_FLOAT, to, links->comm, stream);
    if (code == 0)
        code = nccl->receive(received, count, NCCL_FLOAT, from, links->comm, stream);
    const int ended = nccl->end();
    return code ? code : ended;
}

static enum status enqueue(const struct links *links, size_t count, struct error *error)
{
    const struct nccl *nccl = &links->nccl;
    const int n = links->members, place = links->place, peer = links->peer;
    void *sent = links->sent, *received = links->received, *comm = links->comm;
    cudaStream_t stream = links->gpus[links->from].stream;
    if (links->link.operation == LINK_COPY)
        return CUDA(cudaMemcpyPeerAsync(received, links->to, sent, links->from,
                                        count * sizeof(float), stream));
    if (links->link.operation == LINK_ALL_REDUCE)
        return nccl_check(nccl->reduce(sent, received, count, NCCL_FLOAT, NCCL_SUM, comm, stream),
                          error);
    if (links->link.operation == LINK_ALL_GATHER)
        return nccl_check(nccl->gather(sent, received, count / (size_t)n, NCCL_FLOAT, comm, stream),
                          error);
    return nccl_check(exchange(links, sent, received, count, peer < 0 ? (place + 1) % n : peer,
                               peer < 0 ? (place + n - 1) % n : peer),
                      error);
}

/* Enqueues a short operation that ends when all members have begun it. It sets the second shared
 * number to the maximum of all members' first numbers, or in a pair to the peer's first number. */
static enum status meet(const struct links *links, struct error *error)
{
    float *own = links->shared, *all = own + 1;
    return nccl_check(links->peer < 0 ? links->nccl.reduce(own, all, 1, NCCL_FLOAT, NCCL_MAX,
                                                           links->comm, links->gpus[0].stream)
                                      : exchange(links, own, all, 1, links->peer, links->peer),
                      error);
}

/* Raises *seconds to the greatest value among the members. */
static enum status agree(struct links *links, double *seconds, struct error *error)
{
    float values[2] = {(float)*seconds};
    if (!links->shared)
        return STATUS_OK;
    TRY(CUDA(cudaMemcpy(links->shared, values, sizeof *values, cudaMemcpyHostToDevice)));
    TRY(meet(links, error));
    TRY(vendor_synchronize(&links->gpus[0], error));
    TRY(CUDA(cudaMemcpy(values, links->shared, sizeof values, cudaMemcpyDeviceToHost)));
    *seconds = fmaxf(values[0], values[1]);
    return STATUS_OK;
}

/* Compares the last received elements with their values; sums are exact in floating point. */
static enum status verify(const struct links *links, size_t count, struct error *error)
{
    enum { LAST = 1 << 14 };
    float found[LAST];
    const int64_t kind = links->link.operation;
    const size_t n = (size_t)links->members, first = count > LAST ? count - LAST : 0;
    const size_t part = kind == LINK_ALL_GATHER ? count / n : count;
    const int before = (links->place + links->members - 1) % links->members;
    TRY(CUDA(cudaMemcpy(found, (float *)links->received + first, (count - first) * sizeof *found,
                        cudaMemcpyDeviceToHost)));
    for (size_t j = first; j < count; ++j) {
        const size_t senders[LINK_OPERATIONS] = {
            [LINK_COPY] = (size_t)links->from,
            [LINK_ALL_GATHER] = j / part,
            [LINK_SEND_RECEIVE] = (size_t)(links->peer < 0 ? before : links->peer)};
        double sum = 0;
        for (size_t k = 0; k < (kind == LINK_ALL_REDUCE ? n : 1); ++k)
            sum += fill_value(links->fill, j % part + senders[kind] + k);
        if ((double)found[j - first] != sum)
            return error_set(error, STATUS_FAILED, "wrong data");
    }
    return STATUS_OK;
}

static enum status capture(struct links *links, size_t count, int repeat, struct error *error)
{
    struct error unused;
    TRY(vendor_capture_begin(&links->gpus[0], error));
    enum status status = STATUS_OK;
    for (int i = 0; i < repeat && status == STATUS_OK; ++i)
        status = enqueue(links, count, error);
    enum status ended =
        vendor_capture_end(&links->gpus[0], &links->graph, status ? &unused : error);
    TRY(status ? status : ended);
    return vendor_graph_ready(links->graph, error);
}

/* Times `repeat` operations. *seconds: time of one operation. */
static enum status sample(struct links *links, size_t count, int repeat, double *seconds,
                          struct error *error)
{
    struct gpu *gpu = &links->gpus[links->from];
    const double limit = 0.1; /* s; ends the blocking kernel if the host waits for a device */
    TRY(CUDA(cudaSetDevice(links->from)));
    TRY(vendor_block(gpu, limit, error));
    TRY(links->shared ? meet(links, error) : STATUS_OK);
    TRY(vendor_record(gpu, 0, error));
    for (int i = 0; i < (links->graph ? 1 : repeat); ++i)
        TRY(links->graph ? vendor_graph_launch(gpu, links->graph, error)
                         : enqueue(links, count, error));
    TRY(vendor_record(gpu, 1, error));
    vendor_unblock(gpu);
    TRY(vendor_synchronize(gpu, error));
    TRY(vendor_elapsed(gpu, 0, 1, seconds, error));
    *seconds /= repeat;
    return STATUS_OK;
}

/* Runs twice and verifies. *seconds: the longest time among the members for the second run. The
 * first run loads code and connects, which needs devices that are not blocked. */
static enum status rehearse(struct links *links, size_t count, double *seconds, struct error *error)
{
    struct gpu *gpu = &links->gpus[links->from];
    for (int i = 0; i < 2; ++i) {
        TRY(vendor_synchronize(gpu, error));
        *seconds = clock_monotonic();
        TRY(enqueue(links, count, error));
    }
    TRY(vendor_synchronize(gpu, error));
    *seconds = clock_monotonic() - *seconds;
    TRY(verify(links, count, error));
    return agree(links, seconds, error);
}

/* The receive buffer is full of NaN. Buffers have the exact sizes: parts of larger buffers take up
 * to 5 % longer in a send-receive (docs/measurements.md, "Links of a node"). */
static enum status buffers_open(struct links *links, size_t bytes, struct error *error)
{
    const bool gathers = links->link.operation == LINK_ALL_GATHER;
    const size_t sent = gathers ? bytes / (size_t)links->members : bytes;
    const int place = links->shared ? links->place : links->from;
    TRY(CUDA(cudaSetDevice(links->to)));
    TRY(CUDA(cudaMalloc(&links->received, bytes)));
    TRY(vendor_set(&links->gpus[links->to], links->received, 0xff, bytes, error));
    TRY(vendor_synchronize(&links->gpus[links->to], error));
    TRY(CUDA(cudaSetDevice(links->from)));
    TRY(CUDA(cudaMalloc(&links->sent, sent)));
    return CUDA(kernel_fill(PRECISION_FP32, links->sent, (int64_t)(sent / sizeof(float)),
                            links->fill, place, links->gpus[links->from].stream));
}

static void buffers_close(struct links *links)
{
    cudaFree(links->sent);
    cudaFree(links->received);
    links->sent = links->received = NULL;
}

static enum status measure(struct links *links, struct link_list *found, struct error *error)
{
    const bool copies = !links->shared;
    const double length = copies ? 2e-3 : 10e-3;   /* s */
    const double repeat_most = copies ? 100 : 400; /* operations that a blocked stream takes */
    size_t bytes;
    for (int i = 0; (bytes = link_size(&links->link, i)) > 0; ++i) {
        double about, seconds[LINK_SAMPLES];
        TRY(buffers_open(links, bytes, error));
        TRY(rehearse(links, bytes / sizeof(float), &about, error));
        const int repeat = (int)fmin(ceil(length / about), repeat_most);
        if (!copies)
            TRY(capture(links, bytes / sizeof(float), repeat, error));
        for (int j = 0; j < LINK_SAMPLES; ++j)
            TRY(sample(links, bytes / sizeof(float), repeat, &seconds[j], error));
        vendor_graph_drop(links->graph); /* must precede the end of the communicator */
        links->graph = NULL;
        buffers_close(links);
        TRY(link_list_measured(found, &links->link, bytes, seconds, error));
    }
    return STATUS_OK;
}

static enum status measure_copies(struct links *links, struct link_list *found, struct error *error)
{
    struct cudaDeviceProp from, to;
    links->link.operation = LINK_COPY;
    links->link.devices = links->members = 2;
    for (int pair = 0; pair < links->count * links->count; ++pair) {
        int possible = 0;
        links->from = pair / links->count;
        links->to = pair % links->count;
        if (links->from == links->to)
            continue;
        TRY(CUDA(cudaGetDeviceProperties(&from, links->from)));
        TRY(CUDA(cudaGetDeviceProperties(&to, links->to)));
        gpu_uuid(from.uuid.bytes, links->link.from, sizeof links->link.from);
        gpu_uuid(to.uuid.bytes, links->link.to, sizeof links->link.to);
        TRY(CUDA(cudaSetDevice(links->from)));
        TRY(CUDA(cudaDeviceCanAccessPeer(&possible, links->from, links->to)));
        links->link.peer_access =
            possible && (cudaDeviceEnablePeerAccess(links->to, 0) == cudaSuccess ||
                         cudaGetLastError() == cudaErrorPeerAccessAlreadyEnabled);
        TRY(measure(links, found, error));
    }
    return STATUS_OK;
}

/* All members begin each round of exchanges together, even without a peer in the round. */
static enum status measure_members(struct links *links, const struct link_order *order,
                                   struct link_list *found, struct error *error)
{
    char *end = NULL;
    int version = 0;
    TRY(nccl_check(links->nccl.version(&version), error));
    links->link.nccl = version;
    for (const char *at = order->peers; *at; at = *end ? end + 1 : end) {
        links->peer = -1;
        TRY(meet(links, error));
        TRY(vendor_synchronize(&links->gpus[0], error));
        links->peer = (int)strtol(at, &end, 10);
        links->link.operation = LINK_SEND_RECEIVE;
        links->link.devices = 2;
        links->link.to_rank = links->peer;
        if (links->peer >= 0)
            TRY(measure(links, found, error));
    }
    links->peer = -1;
    links->link.to_rank = FIELD_MISSING;
    links->link.devices = links->members;
    for (int i = LINK_ALL_REDUCE; i < LINK_OPERATIONS; ++i) {
        links->link.operation = i;
        TRY(measure(links, found, error));
    }
    return STATUS_OK;
}

static enum status measure_nccl(struct links *links, const struct link_order *order,
                                struct link_list *found, struct error *error)
{
    struct nccl_id id;
    unsigned byte;
    links->members = order->members;
    links->place = order->place;
    for (int i = 0; i < NCCL_ID; ++i) {
        if (sscanf(order->id + (size_t)2 * i, "%2x", &byte) != 1)
            return error_set(error, STATUS_USAGE, "'id' is no id of NCCL");
        id.bytes[i] = (char)byte;
    }
    TRY(CUDA(cudaMalloc((void **)&links->shared, 2 * sizeof *links->shared)));
    TRY(nccl_check(links->nccl.init(&links->comm, order->members, id, order->place), error));
    enum status status = measure_members(links, order, found, error);
    if (status != STATUS_DEVICE)
        links->nccl.destroy(links->comm);
    return status;
}

static enum status open_one(struct links *links, int i, struct error *error)
{
    struct gpu *gpu = &links->gpus[i];
    TRY(CUDA(cudaSetDevice(i)));
    TRY(CUDA(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking)));
    gpu->timer = timer_open();
    TRY(gpu->timer ? vendor_reserve(gpu, 2, false, error)
                   : error_set(error, STATUS_SYSTEM, "no memory"));
    TRY(vendor_block(gpu, 0, error)); /* this launch loads the blocking kernel's code */
    return vendor_synchronize(gpu, error);
}

/* Makes the id of a communicator, which is valid while this process lives. */
static enum status make_id(const struct links *links, char *text, struct error *error)
{
    struct nccl_id id;
    TRY(nccl_check(links->nccl.make_id(&id), error));
    for (int i = 0; i < NCCL_ID; ++i)
        snprintf(text + (size_t)2 * i, 3, "%02x", (unsigned char)id.bytes[i]);
    return STATUS_OK;
}

enum status links_measure(const struct link_order *order, struct link_list *found, char *id,
                          struct error *error)
{
    struct links links = {.fill = fill_make(1, TENSOR_INPUT, 8, 0), .peer = -1};
    const bool copies = order->members == 0;
    int named = *order->devices != '\0';
    for (const char *c = order->devices; *c; ++c)
        named += *c == ',';
    if (named > 0)
        setenv("CUDA_VISIBLE_DEVICES", order->devices, 1);
    setenv("NCCL_NVLS_ENABLE", "0", 1);    /* multicast can leave a host's GPUs out of service */
    setenv("NCCL_GRAPH_REGISTER", "0", 1); /* training jobs do not register buffers */
    TRY(gpu_count(&links.count, error));
    if (links.count < (copies ? 2 : 1) || links.count > LINK_DEVICES ||
        (named > 0 && links.count != named))
        return error_set(error, STATUS_UNSUPPORTED,
                         "this process can use %d GPUs of %d; copies take 2 to %d, and all of them "
                         "(srun --gpu-bind=none)",
                         links.count, named, LINK_DEVICES);
    TRY(copies ? STATUS_OK : nccl_open(&links.nccl, error));
    if (!copies && !*order->id)
        return make_id(&links, id, error);
    fields_clear(link_fields, &links.link);
    links.link.nodes = 1;
    enum status status = STATUS_OK;
    for (int i = 0; i < links.count && status == STATUS_OK; ++i)
        status = open_one(&links, i, error);
    if (status == STATUS_OK)
        status = copies ? measure_copies(&links, found, error)
                        : measure_nccl(&links, order, found, error);
    if (status != STATUS_DEVICE) {
        buffers_close(&links);
        cudaFree(links.shared);
    }
    return status;
}
