/* Bandwidths and latencies between GPUs.
 *
 * Each operation is enqueued on all devices while blocking kernels hold them, so that all begin
 * together; the time is that of the slowest device. Operations of NCCL are launched as a graph,
 * since short ones would have gaps in a stream; copies between devices cannot be captured. Every
 * result is compared with the exact values.
 *
 * Without NCCL, or with fewer than two visible GPUs, the operation is STATUS_UNSUPPORTED with the
 * way out. The process measures nothing else: after a lost device it ends without cleaning up. */
#include "worker/cuda/links.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/vendor.h"

/* The part of NCCL's interface that is used here, unchanged since version 2.7. */
enum { NCCL_FLOAT = 7, NCCL_SUM = 0 };
#define NCCL_FUNCTIONS(ROW)                                                                        \
    ROW(version, "ncclGetVersion", int *)                                                          \
    ROW(init, "ncclCommInitAll", void **, int, const int *)                                        \
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
    int from, to;     /* devices of a copy */
    int count;        /* number of devices */
    struct gpu gpus[LINK_DEVICES];
    struct graph *graphs[LINK_DEVICES];                /* owned; of NCCL's operations */
    void *sent[LINK_DEVICES], *received[LINK_DEVICES]; /* owned */
    void *comms[LINK_DEVICES];
    struct fill fill; /* device i sends values[i] and the following ones */
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

static enum status enqueue(const struct links *links, size_t count, struct error *error)
{
    const struct nccl *nccl = &links->nccl;
    const int n = links->count;
    if (links->link.operation == LINK_COPY)
        return CUDA(cudaMemcpyPeerAsync(links->received[links->to], links->to,
                                        links->sent[links->from], links->from,
                                        count * sizeof(float), links->gpus[links->from].stream));
    int code = nccl->begin();
    for (int i = 0; i < n && code == 0; ++i) {
        void *sent = links->sent[i], *received = links->received[i], *comm = links->comms[i];
        cudaStream_t stream = links->gpus[i].stream;
        if (links->link.operation == LINK_ALL_REDUCE)
            code = nccl->reduce(sent, received, count, NCCL_FLOAT, NCCL_SUM, comm, stream);
        else if (links->link.operation == LINK_ALL_GATHER)
            code = nccl->gather(sent, received, count / (size_t)n, NCCL_FLOAT, comm, stream);
        else if ((code = nccl->send(sent, count, NCCL_FLOAT, (i + 1) % n, comm, stream)) == 0)
            code = nccl->receive(received, count, NCCL_FLOAT, (i + n - 1) % n, comm, stream);
    }
    int ended = nccl->end();
    return nccl_check(code ? code : ended, error);
}

/* Waits for all devices. */
static enum status finish(struct links *links, struct error *error)
{
    for (int i = 0; i < links->count; ++i)
        TRY(vendor.synchronize(&links->gpus[i], error));
    return STATUS_OK;
}

/* Compares the last elements that each device received with their values; their sums are exact in
 * floating point. */
static enum status verify(const struct links *links, size_t count, struct error *error)
{
    enum { LAST = 1 << 14 };
    float found[LAST];
    const int64_t kind = links->link.operation;
    const size_t n = (size_t)links->count, first = count > LAST ? count - LAST : 0;
    const size_t part = kind == LINK_ALL_GATHER ? count / n : count;
    for (size_t i = 0; i < n; ++i) {
        if (kind == LINK_COPY && (int)i != links->to)
            continue;
        TRY(CUDA(cudaMemcpy(found, (float *)links->received[i] + first,
                            (count - first) * sizeof *found, cudaMemcpyDeviceToHost)));
        for (size_t j = first; j < count; ++j) {
            const size_t senders[LINK_OPERATIONS] = {[LINK_COPY] = (size_t)links->from,
                                                     [LINK_ALL_GATHER] = j / part,
                                                     [LINK_SEND_RECEIVE] = (i + n - 1) % n};
            double sum = 0;
            for (size_t k = 0; k < (kind == LINK_ALL_REDUCE ? n : 1); ++k)
                sum += fill_value(links->fill, j % part + senders[kind] + k);
            if ((double)found[j - first] != sum)
                return error_set(error, STATUS_FAILED, "wrong data on GPU %zu", i);
        }
    }
    return STATUS_OK;
}

/* Captures `repeat` operations of NCCL, in a graph for each device. */
static enum status capture(struct links *links, size_t count, int repeat, struct error *error)
{
    struct error unused;
    enum status status = STATUS_OK;
    for (int i = 0; i < links->count; ++i)
        TRY(vendor.capture_begin(&links->gpus[i], error));
    for (int i = 0; i < repeat && status == STATUS_OK; ++i)
        status = enqueue(links, count, error);
    for (int i = 0; i < links->count; ++i) {
        enum status ended =
            vendor.capture_end(&links->gpus[i], &links->graphs[i], status ? &unused : error);
        status = status ? status : ended;
    }
    for (int i = 0; i < links->count && status == STATUS_OK; ++i)
        status = vendor.graph_ready(links->graphs[i], error);
    return status;
}

/* Times `repeat` operations. *seconds: time of one operation on the slowest device. */
static enum status sample(struct links *links, size_t count, int repeat, double *seconds,
                          struct error *error)
{
    const bool copies = links->link.operation == LINK_COPY;
    const double limit = 0.1; /* s, timeout of a host that waits for a device */
    *seconds = 0;
    for (int i = 0; i < links->count; ++i) {
        TRY(CUDA(cudaSetDevice(i)));
        TRY(vendor.block(&links->gpus[i], limit, error));
        TRY(vendor.record(&links->gpus[i], 0, error));
    }
    for (int i = 0; i < (copies ? repeat : links->count); ++i)
        TRY(copies ? enqueue(links, count, error)
                   : vendor.graph_launch(&links->gpus[i], links->graphs[i], error));
    for (int i = 0; i < links->count; ++i)
        TRY(vendor.record(&links->gpus[i], 1, error));
    for (int i = 0; i < links->count; ++i)
        vendor.unblock(&links->gpus[i]);
    TRY(finish(links, error));
    for (int i = 0; i < links->count; ++i) {
        double elapsed;
        TRY(vendor.elapsed(&links->gpus[i], 0, 1, &elapsed, error));
        *seconds = fmax(*seconds, elapsed / repeat);
    }
    return STATUS_OK;
}

/* Runs twice and verifies. *seconds: time of the second run. The first run loads code and connects,
 * which needs devices that are not blocked. */
static enum status rehearse(struct links *links, size_t count, double *seconds, struct error *error)
{
    for (int i = 0; i < 2; ++i) {
        TRY(finish(links, error));
        *seconds = clock_monotonic();
        TRY(enqueue(links, count, error));
    }
    TRY(finish(links, error));
    *seconds = clock_monotonic() - *seconds;
    return verify(links, count, error);
}

/* Allocates buffers of the exact sizes: full of values to send, full of NaN to receive into. A
 * send-receive between parts of larger buffers takes up to 5 % longer (docs/measurements.md, "Links
 * of a node"). */
static enum status buffers_open(struct links *links, size_t bytes, struct error *error)
{
    const bool gathers = links->link.operation == LINK_ALL_GATHER;
    const size_t sent = gathers ? bytes / (size_t)links->count : bytes;
    for (int i = 0; i < links->count; ++i) {
        struct gpu *gpu = &links->gpus[i];
        if (links->link.operation == LINK_COPY && i != links->from && i != links->to)
            continue;
        TRY(CUDA(cudaSetDevice(i)));
        TRY(CUDA(cudaMalloc(&links->sent[i], sent)));
        TRY(CUDA(cudaMalloc(&links->received[i], bytes)));
        TRY(CUDA(kernel_fill(PRECISION_FP32, links->sent[i], (int64_t)(sent / sizeof(float)),
                             links->fill, i, gpu->stream)));
        TRY(vendor.set(gpu, links->received[i], 0xff, bytes, error));
    }
    return STATUS_OK;
}

static void buffers_close(struct links *links)
{
    for (int i = 0; i < links->count; ++i) {
        cudaFree(links->sent[i]);
        cudaFree(links->received[i]);
        links->sent[i] = links->received[i] = NULL;
    }
}

/* byte. The largest size comes first, to wake the devices up. Copies use every second size. */
static const size_t sizes[] = {1 << 30, 1 << 28, 1 << 24, 1 << 20, 1 << 16, 1};

static enum status measure(struct links *links, struct device *device, struct error *error)
{
    enum { SAMPLES = 5 };
    const bool copies = links->link.operation == LINK_COPY;
    const double length = copies ? 2e-3 : 10e-3; /* s */
    const double repeat_most =
        copies ? 100 : 400; /* number of operations that a blocked stream takes */
    const size_t unit = 16 * (size_t)links->count; /* bytes: 16 of each device */
    const size_t step = copies ? 2 : 1;
    for (size_t i = step - 1; i < sizeof sizes / sizeof *sizes; i += step) {
        const size_t bytes = sizes[i] > unit ? sizes[i] / unit * unit : unit;
        double about, seconds[SAMPLES];
        TRY(buffers_open(links, bytes, error));
        TRY(rehearse(links, bytes / sizeof(float), &about, error));
        const int repeat = (int)fmin(ceil(length / about), repeat_most);
        if (!copies)
            TRY(capture(links, bytes / sizeof(float), repeat, error));
        for (int j = 0; j < SAMPLES; ++j)
            TRY(sample(links, bytes / sizeof(float), repeat, &seconds[j], error));
        for (int j = 0; j < links->count; ++j) /* must precede the end of the communicators */
            vendor.graph_drop(links->graphs[j]);
        buffers_close(links);
        links->link.bytes = (double)bytes;
        TRY(link_set_samples(&links->link, seconds, SAMPLES, error));
        device_add_link(device, &links->link);
    }
    return STATUS_OK;
}

static enum status measure_copies(struct links *links, struct device *device, struct error *error)
{
    struct cudaDeviceProp from, to;
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
        TRY(measure(links, device, error));
    }
    return STATUS_OK;
}

/* NVLink multicast (NVLS) can leave all GPUs of a host out of service, so it is off. Two other
 * features are off, too: direct writes to other GPUs' buffers, and registered buffers. Training
 * jobs with a process for each GPU use neither. */
static enum status measure_nccl(struct links *links, struct device *device, struct error *error)
{
    int version = 0;
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    setenv("NCCL_P2P_DIRECT_DISABLE", "1", 1);
    setenv("NCCL_GRAPH_REGISTER", "0", 1);
    TRY(nccl_open(&links->nccl, error));
    TRY(nccl_check(links->nccl.version(&version), error));
    links->link.nccl = version;
    TRY(nccl_check(links->nccl.init(links->comms, links->count, NULL), error));
    TRY(measure(links, device, error));
    for (int i = 0; i < links->count; ++i)
        links->nccl.destroy(links->comms[i]);
    return STATUS_OK;
}

/* Opens one device for timing. */
static enum status open_one(struct links *links, int i, struct error *error)
{
    struct gpu *gpu = &links->gpus[i];
    TRY(CUDA(cudaSetDevice(i)));
    TRY(CUDA(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking)));
    gpu->timer = timer_open();
    TRY(gpu->timer ? vendor.reserve(gpu, 2, false, error)
                   : error_set(error, STATUS_SYSTEM, "no memory"));
    TRY(vendor.block(gpu, 0, error)); /* this launch loads the blocking kernel's code */
    return vendor.synchronize(gpu, error);
}

enum status links_measure(const char *devices, enum link_operation operation, struct device *device,
                          struct error *error)
{
    struct links links = {.fill = fill_make(1, TENSOR_INPUT, 8, 0)};
    int named = *devices != '\0';
    for (const char *c = devices; *c; ++c)
        named += *c == ',';
    if (named > 0)
        setenv("CUDA_VISIBLE_DEVICES", devices, 1);
    TRY(gpu_count(&links.count, error));
    if (links.count < 2 || links.count > LINK_DEVICES || (named > 0 && links.count != named))
        return error_set(error, STATUS_UNSUPPORTED,
                         "this process can use %d GPUs of %d; it takes 2 to %d, and all of them "
                         "(srun --gpu-bind=none)",
                         links.count, named, LINK_DEVICES);
    fields_clear(link_fields, &links.link);
    links.link.operation = operation;
    links.link.devices = operation == LINK_COPY ? 2 : links.count;
    enum status status = STATUS_OK;
    for (int i = 0; i < links.count && status == STATUS_OK; ++i)
        status = open_one(&links, i, error);
    if (status == STATUS_OK)
        status = (operation == LINK_COPY ? measure_copies : measure_nccl)(&links, device, error);
    if (status != STATUS_DEVICE)
        buffers_close(&links);
    return status;
}
