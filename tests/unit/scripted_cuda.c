/* Time, the script, and what stands in for the CUDA runtime; its graphs are in scripted_graphs.c. */
#include "scripted_machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const double epoch = 1.7e9, clock_call_time = 2.5e-7; /* s */
enum { CONTENTS = 1 << 16 }; /* byte: smaller memory keeps what the device writes */

struct script script;
struct machine machine;

static const struct {
    const char *kind;
    double rate;
} h200[] = {
    {"dram read", 4.61e12},
    {"dram write", 4.12e12},
    {"dram copy", 4.23e12},
    {"dram triad", 4.34e12},
    {"l2 read", 9.7e12},
    {"l2 write", 6.1e12},
    {"l2 copy", 7.2e12},
    {"l2 triad", 7.9e12},
    {"l2 atomic", 2.6e12},
    {"l1 read", 30.1e12},
    {"shared read", 32.3e12},
    {"host to device", 55e9},
    {"device to host", 53e9},
    {"device to device", 390e9},
    {"fp64 vector", 32.5e12},
    {"fp32 vector", 65.1e12},
    {"fp16 vector", 130e12},
    {"bf16 vector", 129e12},
    {"fp64 tensor mma", 61e12},
    {"tf32 tensor mma", 320e12},
    {"fp16 tensor mma", 640e12},
    {"bf16 tensor mma", 630e12},
    {"fp8 tensor mma", 650e12},
    {"int8 tensor mma", 1290e12},
    {"tf32 tensor wgmma", 490e12},
    {"fp16 tensor wgmma", 980e12},
    {"bf16 tensor wgmma", 960e12},
    {"fp8 tensor wgmma", 1970e12},
    {"int8 tensor wgmma", 1960e12},
    {"fp64 tensor library", 60e12},
    {"tf32 tensor library", 420e12},
    {"fp16 tensor library", 790e12},
    {"bf16 tensor library", 800e12},
    {"fp8 tensor library", 1400e12},
    {"int8 tensor library", 1500e12},
};

void script_reset(void)
{
    script = (struct script){
        .devices = 1,
        .free_bytes = 140e9,
        .direct = true,
        .call_time = 2e-6,
        .empty_time = 1e-6,
        .node_time = 1.3e-6,
        .link_time = 2.1e-6,
        .link_node_time = 1.7e-6,
        .less = 0.9,
        .best.what = "",
        .jitter = {1.0, 1.0, 1.0, 1.0},
        .sm_clock = 1.98e9,
        .memory_clock = 3.2e9,
        .processes = 1,
        .preflight = "counted",
        .capability = CAPABILITY,
        .collection = "counted",
        .absent = QUANTITY_COUNT,
    };
    for (size_t i = 0; i < sizeof h200 / sizeof *h200; ++i)
        script.rate[roof_kind_find(h200[i].kind)] = h200[i].rate;
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        script.counted[i] = 1.0;
    machine = (struct machine){.next_address = (uintptr_t)1 << 45};
}

cudaStream_t script_stream(void)
{
    return (cudaStream_t)&machine;
}

/* Of a context that is lost, the other device's ends with the process. */
void script_assert_clean(void)
{
    for (int i = 0; i < ALLOCATIONS; ++i) {
        const struct allocation *left = &machine.allocations[i];
        if (left->address &&
            (left->device == script.own || left->device == HOST || !script_is_lost()))
            fail_msg("%zu byte of memory %d are left", left->bytes, left->device);
    }
    assert_int_equal(machine.events, 0);
    assert_int_equal(machine.graphs, 0);
    assert_int_equal(machine.executables, 0);
    for (int i = 0; i < DEVICES; ++i)
        assert_true(i == script.own || !machine.context[i] || script_is_lost());
    assert_false(machine.mapped);
    assert_false(machine.capturing);
    assert_false(machine.attached);
    assert_false(machine.opened);
    assert_int_equal(machine.current, script.own);
}

/* ---- time ---- */

double clock_monotonic(void)
{
    script_look();
    return machine.host += clock_call_time;
}

void clock_sleep(double seconds)
{
    script_look();
    machine.host += seconds;
}

double clock_epoch(void)
{
    return epoch + clock_monotonic();
}

double script_device_time(void)
{
    script_look();
    return machine.device;
}

double script_epoch(void)
{
    return epoch;
}

/* ---- calls and their failures ---- */

static cudaError_t failed(cudaError_t code)
{
    machine.last_error = code;
    return code;
}

bool script_is_lost(void)
{
    return script.lost_at > 0 && script.calls >= script.lost_at;
}

cudaError_t script_call(void)
{
    script_look();
    machine.host += script.call_time;
    ++script.calls;
    if (script.pause_every > 0 && script.calls % script.pause_every == 0)
        machine.host += script.pause_time;
    if (script_is_lost())
        return failed(cudaErrorIllegalAddress);
    return script.calls == script.fail_at ? failed(cudaErrorUnknown) : cudaSuccess;
}

/* What gives something back does so even if the context is gone. */
cudaError_t script_give_back(int *count)
{
    assert_true(*count > 0);
    --*count;
    return script_is_lost() ? cudaErrorIllegalAddress : cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = machine.last_error;
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
    return script_call();
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = script.devices;
    return script_call();
}

cudaError_t cudaSetDevice(int device)
{
    assert_in_range(device, 0, script.devices - 1);
    cudaError_t code = script_call();
    if (code == cudaSuccess && device != script.own)
        code = script.remote_context;
    if (code != cudaSuccess && device != script.own)
        return failed(code);
    machine.current = device;
    machine.context[device] = true;
    return code;
}

static void allocation_free(struct allocation *allocation)
{
    if (allocation->device == script.own)
        script.free_bytes += (double)allocation->bytes;
    free(allocation->contents);
    *allocation = (struct allocation){0};
}

/* With all that the process has there. */
cudaError_t cudaDeviceReset(void)
{
    assert_int_not_equal(machine.current, script.own);
    assert_false(machine.mapped);
    for (int i = 0; i < ALLOCATIONS; ++i)
        if (machine.allocations[i].address && machine.allocations[i].device == machine.current)
            allocation_free(&machine.allocations[i]);
    machine.context[machine.current] = false;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *possible, int device, int peer)
{
    assert_int_equal(device, script.own);
    assert_int_not_equal(peer, script.own);
    *possible = script.direct;
    return script_call();
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    assert_int_equal(machine.current, script.own);
    assert_int_not_equal(peer, script.own);
    assert_int_equal(flags, 0);
    assert_true(script.direct);
    assert_false(machine.mapped);
    cudaError_t code = script_call();
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

static cudaError_t allocate(void **memory, size_t bytes, int device)
{
    struct allocation *allocation = machine.allocations;
    const uintptr_t alignment = 512;
    while (allocation->address)
        assert_true(++allocation < machine.allocations + ALLOCATIONS);
    *allocation =
        (struct allocation){.address = machine.next_address, .bytes = bytes, .device = device};
    if (bytes < CONTENTS)
        assert_non_null(allocation->contents = calloc(1, bytes));
    machine.next_address += (bytes / alignment + 2) * alignment; /* never two side by side */
    *memory = (void *)allocation->address;
    return cudaSuccess;
}

/* Where `bytes` from here on lie, which must be on this device. */
struct allocation *script_within(const void *memory, size_t bytes, int device)
{
    uintptr_t address = (uintptr_t)memory;
    for (struct allocation *a = machine.allocations; a < machine.allocations + ALLOCATIONS; ++a)
        if (a->address && address >= a->address && address < a->address + a->bytes) {
            assert_true(bytes <= a->address + a->bytes - address);
            assert_int_equal(a->device, device);
            return a;
        }
    fail_msg("%p is no memory of %d", memory, device);
    return NULL;
}

void script_assert_filled(const void *memory, size_t bytes, enum precision precision, int device)
{
    const struct allocation *allocation = script_within(memory, bytes, device);
    assert_true(bytes <= allocation->filled);
    assert_int_equal(allocation->precision, precision);
}

unsigned char *script_contents(const void *memory, size_t bytes)
{
    struct allocation *allocation = script_within(memory, bytes, script.own);
    assert_non_null(allocation->contents);
    return allocation->contents + ((uintptr_t)memory - allocation->address);
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t code = script_call();
    bool own = machine.current == script.own;
    ++script.allocations;
    assert_true(bytes > 0);
    if (code != cudaSuccess)
        return code;
    if (!own && script.remote_memory != cudaSuccess)
        return failed(script.remote_memory);
    if (own && (double)bytes > script.free_bytes)
        return failed(cudaErrorMemoryAllocation);
    if (own)
        script.free_bytes -= (double)bytes;
    return allocate(memory, bytes, machine.current);
}

static cudaError_t release(const void *memory, int device)
{
    if (!memory)
        return cudaSuccess;
    struct allocation *allocation = script_within(memory, 1, device);
    assert_true(allocation->address == (uintptr_t)memory);
    allocation_free(allocation);
    return script_is_lost() ? cudaErrorIllegalAddress : cudaSuccess;
}

/* Waits for the device, as the real one does. */
cudaError_t cudaFree(void *memory)
{
    script_look();
    machine.host = fmax(machine.host, machine.device);
    script.frees += memory != NULL;
    return release(memory, script.own);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    assert_int_equal(machine.current, script.own);
    *available = (size_t)script.free_bytes;
    *total = (size_t)150e9;
    return script_call();
}

/* Only what is mapped can be touched. */
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    assert_true(flags == cudaHostAllocDefault || flags == cudaHostAllocMapped);
    cudaError_t code = script_call();
    if (code == cudaSuccess)
        code = allocate(memory, bytes, HOST);
    if (code == cudaSuccess && flags == cudaHostAllocMapped) {
        struct allocation *allocation = script_within(*memory, bytes, HOST);
        assert_non_null(allocation->contents);
        *memory = allocation->contents;
        allocation->address = (uintptr_t)*memory;
    }
    return code;
}

/* That it takes NULL is nowhere said. */
cudaError_t cudaFreeHost(void *memory)
{
    assert_non_null(memory);
    return release(memory, HOST);
}

/* The worker's stream does not wait for the default one, nor that for it. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    assert_int_equal(kind, cudaMemcpyDeviceToHost);
    assert_true(machine.device <= machine.host || script_is_lost());
    cudaError_t code = script_call();
    if (code == cudaSuccess)
        memcpy(to, script_contents(from, bytes), bytes);
    return code;
}

/* ---- work of a roof ---- */

double script_next_jitter(void)
{
    return script.jitter[machine.runs++ % SCRIPT_JITTER];
}

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
        return script.refusal;
    if (machine.last_error != cudaSuccess)
        return cudaGetLastError();
    load(work);
    script.ran[kind] = true;
    double way = pace(work, label), begin = way == 1.0 ? script.best.begin_time : 0.0;
    return script_enqueue(begin + work->amount / (script.rate[kind] * way) * script_next_jitter(),
                          stream);
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
