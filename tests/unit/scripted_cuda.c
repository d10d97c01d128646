/* What roofs call of the CUDA runtime themselves: devices, memory beside the arena's, copies. */
#include "scripted_cuda.h"

#include <stdio.h>
#include <string.h>

cudaStream_t script_stream(void)
{
    return (cudaStream_t)&machine;
}

/* ---- calls and their failures ---- */

static cudaError_t failed(cudaError_t code)
{
    machine.last_error = code;
    return code;
}

static cudaError_t code_of(enum status status)
{
    return status == STATUS_OK            ? cudaSuccess
           : status == STATUS_DEVICE      ? failed(cudaErrorIllegalAddress)
           : status == STATUS_UNSUPPORTED ? failed(cudaErrorMemoryAllocation)
                                          : failed(cudaErrorUnknown);
}

static cudaError_t called(void)
{
    struct error error;
    return code_of(script_call(&error));
}

cudaError_t script_cuda_kernel(const char *name, double seconds, double in_graph,
                               cudaStream_t stream)
{
    struct error error;
    assert_ptr_equal(stream, script_stream());
    return code_of(script_kernel(name, seconds, in_graph, &error));
}

cudaError_t script_cuda_enqueue(double seconds, cudaStream_t stream)
{
    struct error error;
    assert_ptr_equal(stream, script_stream());
    return code_of(script_enqueue(seconds, &error));
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = (cudaError_t)machine.last_error;
    machine.last_error = script_is_lost() ? cudaErrorIllegalAddress : cudaSuccess;
    return code;
}

const char *cudaGetErrorString(cudaError_t code)
{
    return code == cudaErrorNoKernelImageForDevice ? "no kernel image" : "some failure";
}

const char *cudaGetErrorName(cudaError_t code)
{
    return code == cudaErrorNoKernelImageForDevice ? "cudaErrorNoKernelImageForDevice"
                                                   : "cudaError";
}

/* ---- devices ---- */

cudaError_t cudaGetDevice(int *device)
{
    *device = machine.current;
    return called();
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = script.devices;
    return called();
}

cudaError_t cudaSetDevice(int device)
{
    assert_in_range(device, 0, script.devices - 1);
    cudaError_t code = called();
    if (code == cudaSuccess && device != script.own)
        code = (cudaError_t)script.remote_context;
    if (code != cudaSuccess && device != script.own)
        return failed(code);
    machine.current = device;
    machine.context[device] = true;
    return code;
}

/* With all that the process has there. */
cudaError_t cudaDeviceReset(void)
{
    assert_int_not_equal(machine.current, script.own);
    assert_false(machine.mapped);
    for (int i = 0; i < ALLOCATIONS; ++i)
        if (machine.allocations[i].address && machine.allocations[i].device == machine.current)
            machine.allocations[i] = (struct allocation){0};
    machine.context[machine.current] = false;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *possible, int device, int peer)
{
    assert_int_equal(device, script.own);
    assert_int_not_equal(peer, script.own);
    *possible = script.direct;
    return called();
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    assert_int_equal(machine.current, script.own);
    assert_int_not_equal(peer, script.own);
    assert_int_equal(flags, 0);
    assert_true(script.direct);
    assert_false(machine.mapped);
    cudaError_t code = called();
    machine.mapped = code == cudaSuccess;
    return code;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    assert_int_not_equal(peer, script.own);
    assert_true(machine.mapped);
    machine.mapped = false;
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **entry, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    (void)symbol, (void)entry, (void)version, (void)flags, (void)found;
    return cudaErrorNotSupported;
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    struct error error;
    ++script.allocations;
    if (machine.current != script.own && script.remote_memory != cudaSuccess)
        return failed((cudaError_t)script.remote_memory);
    return code_of(script_allocate((double)bytes, machine.current, memory, &error));
}

cudaError_t cudaFree(void *memory)
{
    vendor.free(memory);
    return script_is_lost() ? cudaErrorIllegalAddress : cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    struct error error;
    double free_now, all;
    enum status status = vendor.available(&free_now, &all, &error);
    *available = (size_t)free_now;
    *total = (size_t)all;
    return code_of(status);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    struct error error;
    assert_int_equal(flags, cudaHostAllocDefault);
    return code_of(script_allocate((double)bytes, HOST, memory, &error));
}

/* That it takes NULL is nowhere said. */
cudaError_t cudaFreeHost(void *memory)
{
    assert_non_null(memory);
    script_free(memory, HOST);
    return script_is_lost() ? cudaErrorIllegalAddress : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    struct error error;
    return code_of(vendor.synchronize(NULL, &error));
}

/* ---- work of a roof ---- */

/* Its code is loaded when it first runs, and the host waits for that. */
static void load(const struct work_done *work)
{
    const double loading = 4e-3; /* s */
    for (size_t i = 0; i < machine.loads; ++i)
        if (machine.loaded[i].row == work->row && machine.loaded[i].choice == work->choice)
            return;
    assert_true(machine.loads < LOADED);
    machine.loaded[machine.loads].row = work->row;
    machine.loaded[machine.loads++].choice = work->choice;
    machine.host += loading;
}

static double pace(const struct work_done *work, const char *label)
{
    bool shape = script.best.blocks == 0 ||
                 (script.best.blocks == work->blocks && script.best.threads == work->threads);
    return (work->pace > 0.0 ? work->pace : 1.0) * (shape ? 1.0 : script.less) *
           (strstr(label, script.best.what) ? 1.0 : script.less);
}

/* A launch returns whatever failed before it and was not read away. */
cudaError_t script_run(const struct work_done *work, cudaStream_t stream)
{
    char label[200];
    int kind = roof_kind_find(work->kind);
    assert_true(kind >= 0);
    assert_true(work->amount > 0.0);
    snprintf(label, sizeof label, "%s: %s", work->kind, work->what);
    if (script.refused && strstr(label, script.refused) && script.refusal != cudaSuccess)
        return (cudaError_t)script.refusal;
    if (machine.last_error != cudaSuccess)
        return cudaGetLastError();
    load(work);
    script.ran[kind] = true;
    double way = pace(work, label), begin = way == 1.0 ? script.best.begin_time : 0.0;
    return script_cuda_enqueue(
        begin + work->amount / (script.rate[kind] * way) * script_next_jitter(), stream);
}

/* ---- copies ---- */

static cudaError_t copy_run(const char *kind, size_t bytes, cudaStream_t stream)
{
    return script_run(
        &(struct work_done){.kind = kind, .what = "", .row = kind, .amount = (double)bytes},
        stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    bool up = kind == cudaMemcpyHostToDevice;
    assert_true(up || kind == cudaMemcpyDeviceToHost);
    script_assert_filled(from, bytes, PRECISION_FP32, up ? HOST : script.own);
    struct allocation *target = script_within(to, bytes, up ? script.own : HOST);
    cudaError_t code = copy_run(up ? "host to device" : "device to host", bytes, stream);
    if (code == cudaSuccess && target->filled < bytes)
        target->filled = bytes;
    target->precision = PRECISION_FP32;
    return code;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    assert_int_equal(from_device, script.own);
    assert_int_not_equal(to_device, script.own);
    script_assert_filled(from, bytes, PRECISION_FP32, from_device);
    script_within(to, bytes, to_device);
    return copy_run("device to device", bytes, stream);
}
