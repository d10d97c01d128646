/* Time, the script, and the table of functions of a vendor whose GPU it is. */
#include "scripted_machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/gpu/arena.h"

static const double epoch = 1.7e9, clock_call_time = 2.5e-7; /* s */
static const double total_bytes = 150e9;
static const double memory_rate = 3e12; /* byte s-1, of a fill and of the flush */

struct script script;
struct machine machine;
struct arena *script_arena;
struct script_roofs script_roofs;

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
        .activities = "counted",
        .absent = QUANTITY_COUNT,
    };
    for (size_t i = 0; i < sizeof h200 / sizeof *h200; ++i)
        script.rate[roof_kind_find(h200[i].kind)] = h200[i].rate;
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        script.counted[i] = 1.0;
    machine = (struct machine){.next_address = (uintptr_t)1 << 45};
    for (int i = 0; i < EVENTS; ++i)
        machine.events[i] = NAN;
}

/* Of a context that is lost, the other device's ends with the process. */
void script_assert_clean(void)
{
    vendor.free(machine.flush);
    machine.flush = NULL;
    for (int i = 0; i < ALLOCATIONS; ++i) {
        const struct allocation *left = &machine.allocations[i];
        if (left->address &&
            (left->device == script.own || left->device == HOST || !script_is_lost()))
            fail_msg("%zu byte of memory %d are left", left->bytes, left->device);
    }
    assert_int_equal(machine.graphs, 0);
    for (int i = 0; i < DEVICES; ++i)
        assert_true(i == script.own || !machine.context[i] || script_is_lost());
    assert_false(machine.mapped);
    assert_null(machine.captured);
    assert_false(machine.attached);
    assert_false(machine.opened);
    assert_int_equal(machine.current, script.own);
}

int script_set_up(void **state)
{
    (void)state;
    script_reset();
    return 0;
}

int script_tear_down(void **state)
{
    (void)state;
    script_assert_clean();
    return 0;
}

void assert_near(double value, double expected)
{
    const double tolerance = 0.01;
    if (!(fabs(value / expected - 1.0) <= tolerance))
        fail_msg("%g instead of %g", value, expected);
}

/* ---- time ---- */

/* All that was enqueued after the hold comes earlier, by so much. */
static void shift(double seconds)
{
    machine.device -= seconds;
    script.busy -= seconds;
    machine.joules -= (script.held_power - script.idle_power) * seconds;
    for (int i = 0; i < QUEUE; ++i)
        machine.ends[i] -= machine.ends[i] >= machine.hold_end ? seconds : 0.0;
    for (int i = 0; i < EVENTS; ++i)
        machine.events[i] -= machine.events[i] >= machine.hold_end ? seconds : 0.0;
    for (int i = 0; i < 2; ++i)
        machine.stamps[i] -= machine.stamps[i] >= machine.hold_end ? seconds : 0.0;
}

/* The stream goes on when its hold is over, by its limit or because the host released it. */
static void hold_over(bool released)
{
    if (machine.held && !released && machine.host < machine.hold_end)
        return;
    if (machine.held && machine.host < machine.hold_end)
        shift(machine.hold_end - fmax(machine.host, machine.hold_begin));
    machine.held = false;
}

double clock_monotonic(void)
{
    hold_over(false);
    return machine.host += clock_call_time;
}

void clock_sleep(double seconds)
{
    hold_over(false);
    machine.host += seconds;
}

double clock_epoch(void)
{
    return epoch + clock_monotonic();
}

double clock_date(void)
{
    return clock_epoch();
}

double script_device_time(void)
{
    hold_over(false);
    return machine.device;
}

static void device_await(double time)
{
    hold_over(false);
    machine.host = fmax(machine.host, time);
}

/* rad, of the clock's swings. */
static double swing_at(double now)
{
    return script.swings_in > 0.0 ? 2.0 * acos(-1.0) * now / script.swings_in : 0.0;
}

/* The clock's integral over the device's time. */
static double cycles_until(double now)
{
    const double since = fmax(0.0, now - script.falls_from);
    const double fallen = script.falls_in > 0.0 ? script.falls_by * script.falls_in *
                                                      (1.0 - exp(-since / script.falls_in))
                                                : 0.0;
    const double swung =
        script.swings_by * script.swings_in / (2.0 * acos(-1.0)) * sin(swing_at(now));
    return script.sm_clock * (now + fallen + swung);
}

/* Of sm_clock, between these times, s; power goes by it. */
static double clock_share(double begin, double end)
{
    return (cycles_until(end) - cycles_until(begin)) / (script.sm_clock * (end - begin));
}

/* ---- calls and their failures ---- */

bool script_is_lost(void)
{
    return script.lost_at > 0 && script.calls >= script.lost_at;
}

enum status script_call(struct error *error)
{
    hold_over(false);
    machine.host += script.call_time;
    ++script.calls;
    if (script.pause_every > 0 && script.calls % script.pause_every == 0)
        machine.host += script.pause_time;
    if (script_is_lost())
        return error_set(error, STATUS_DEVICE, "the device is lost");
    return script.calls == script.fail_at ? error_set(error, STATUS_FAILED, "some failure")
                                          : STATUS_OK;
}

/* The host waits where the queue is full. */
enum status script_enqueue(double seconds, struct error *error)
{
    assert_int_equal(machine.current, script.own);
    assert_null(machine.captured);
    enum status status = script_call(error);
    double *end = &machine.ends[machine.enqueued++ % QUEUE];
    device_await(*end);
    hold_over(false);
    if (status == STATUS_OK) {
        machine.device = fmax(machine.device, machine.host) + seconds;
        script.busy += seconds;
        machine.drawn = seconds > 0.0 ? script.busy_power - script.idle_power : machine.drawn;
        machine.joules += machine.drawn * seconds;
    }
    *end = machine.device;
    return status;
}

double script_next_jitter(void)
{
    return script.jitter[machine.runs++ % SCRIPT_JITTER];
}

/* ---- memory ---- */

enum status script_allocate(double bytes, int device, void **memory, struct error *error)
{
    struct allocation *allocation = machine.allocations;
    const uintptr_t alignment = 512;
    TRY(script_call(error));
    assert_true(bytes > 0.0);
    if (device == script.own && bytes > script.free_bytes)
        return error_set(error, STATUS_UNSUPPORTED, "out of memory");
    while (allocation->address)
        assert_true(++allocation < machine.allocations + ALLOCATIONS);
    *allocation = (struct allocation){
        .address = machine.next_address, .bytes = (size_t)bytes, .device = device};
    machine.next_address +=
        ((size_t)bytes / alignment + 2) * alignment; /* never two side by side */
    script.free_bytes -= device == script.own ? bytes : 0.0;
    *memory = (void *)allocation->address;
    return STATUS_OK;
}

void script_free(void *memory, int device)
{
    struct allocation *allocation = script_within(memory, 1, device);
    assert_true(allocation->address == (uintptr_t)memory);
    script.free_bytes += device == script.own ? (double)allocation->bytes : 0.0;
    *allocation = (struct allocation){0};
}

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

static enum status allocate(double bytes, void **memory, struct error *error)
{
    ++script.allocations;
    return script_allocate(bytes, script.own, memory, error);
}

/* Waits for the device, as the real one does. */
static void memory_free(void *memory)
{
    device_await(machine.device);
    if (!memory)
        return;
    ++script.frees;
    script_free(memory, script.own);
}

static enum status available(double *free_now, double *total, struct error *error)
{
    assert_int_equal(machine.current, script.own);
    *free_now = script.free_bytes;
    *total = total_bytes;
    return script_call(error);
}

static struct arena *arena(const struct gpu *gpu)
{
    (void)gpu;
    return script_arena;
}

static enum status fill(struct gpu *gpu, enum precision precision, void *data, int64_t count,
                        struct fill values, struct error *error)
{
    size_t bytes = (size_t)count * precision_info[precision].bytes;
    (void)gpu, (void)values;
    TRY(script_enqueue((double)bytes / memory_rate, error));
    struct allocation *allocation = script_within(data, bytes, script.own);
    allocation->filled = bytes;
    allocation->precision = precision;
    return STATUS_OK;
}

static enum status set(struct gpu *gpu, void *data, int value, size_t bytes, struct error *error)
{
    (void)gpu, (void)value;
    script_within(data, bytes, script.own);
    return script_enqueue(1e-6, error);
}

static enum status gather(struct gpu *gpu, enum precision precision, const void *data,
                          const int64_t *offsets, int64_t count, void *memory, double *values,
                          struct error *error)
{
    (void)gpu, (void)precision;
    script_within(memory, 2 * (size_t)count * sizeof *values, script.own);
    script_within(data, 1, script.own);
    for (int64_t i = 0; i < count; ++i)
        values[i] = (double)offsets[i]; /* its place */
    return script_call(error);
}

/* ---- events ---- */

static enum status synchronize(struct gpu *gpu, struct error *error)
{
    (void)gpu;
    device_await(machine.device);
    return script_call(error);
}

static enum status reserve(struct gpu *gpu, int events, bool flush, struct error *error)
{
    (void)gpu;
    assert_in_range(events, 0, EVENTS);
    if (!flush || machine.flush)
        return STATUS_OK;
    return memory_allocate(2.0 * L2_BYTES, "flushing the cache", &machine.flush, error);
}

static enum status record(struct gpu *gpu, int event, struct error *error)
{
    (void)gpu;
    TRY(script_enqueue(script.event_time, error));
    machine.events[event] = machine.device;
    return STATUS_OK;
}

static enum status await(struct gpu *gpu, int event, struct error *error)
{
    (void)gpu;
    device_await(machine.events[event]);
    return script_call(error);
}

static enum status pending(struct gpu *gpu, int event, bool *is_pending, struct error *error)
{
    (void)gpu, (void)error;
    hold_over(false);
    *is_pending = machine.events[event] > machine.host;
    return STATUS_OK;
}

static enum status elapsed(struct gpu *gpu, int first, int second, double *seconds,
                           struct error *error)
{
    double begin = machine.events[first], end = machine.events[second];
    (void)gpu;
    assert_true(begin <= end && (end <= machine.host || script_is_lost()));
    *seconds = end - begin;
    return script_call(error);
}

/* ---- hold, flush, clock ---- */

/* It is enqueued as if the host never released it. */
static enum status hold(struct gpu *gpu, double limit, struct error *error)
{
    (void)gpu;
    assert_true(limit > 0.0);
    TRY(script_enqueue(limit, error));
    assert_false(machine.held);
    machine.held = true;
    machine.drawn = script.held_power - script.idle_power;
    machine.joules -= (script.busy_power - script.held_power) * limit;
    machine.hold_begin = machine.device - limit;
    machine.hold_end = machine.device;
    ++script.holds;
    return STATUS_OK;
}

static void release(struct gpu *gpu)
{
    (void)gpu;
    hold_over(true);
}

static enum status flush(struct gpu *gpu, struct error *error)
{
    TRY(reserve(gpu, 0, true, error));
    machine.cache = SCRIPT_FLUSHED;
    return script_enqueue(2.0 * L2_BYTES / memory_rate, error);
}

static enum status stamp(struct gpu *gpu, enum span_end end, struct error *error)
{
    (void)gpu;
    TRY(script_enqueue(0.0, error));
    machine.stamps[end] = machine.device;
    return STATUS_OK;
}

static enum status span(struct gpu *gpu, struct clock_span *span, struct error *error)
{
    const double *stamps = machine.stamps;
    (void)gpu;
    assert_true(stamps[SPAN_END] <= machine.host || script_is_lost());
    script.begin_time = epoch + stamps[SPAN_BEGIN];
    *span = (struct clock_span){cycles_until(stamps[SPAN_END]) - cycles_until(stamps[SPAN_BEGIN]),
                                stamps[SPAN_END] - stamps[SPAN_BEGIN]};
    return script_call(error);
}

static enum status calibrate(struct gpu *gpu, struct calibration *calibration, struct error *error)
{
    (void)gpu, (void)error;
    if (machine.calibration.clock_free == 0.0)
        machine.calibration = (struct calibration){script.event_time, script.sm_clock};
    *calibration = machine.calibration;
    return STATUS_OK;
}

/* ---- graphs ---- */

struct graph {
    struct graph_kernel kernels[GRAPH_NODES];
    int count;
    double seconds;
    bool ready;
};

enum status script_kernel(const char *name, double seconds, double in_graph, struct error *error)
{
    struct graph *graph = machine.captured;
    if (!graph)
        return script_enqueue(seconds, error);
    TRY(script_call(error));
    graph->seconds += in_graph;
    assert_true(graph->count < GRAPH_NODES);
    graph->kernels[graph->count++] = (struct graph_kernel){.name = name};
    return STATUS_OK;
}

static enum status capture_begin(struct gpu *gpu, struct error *error)
{
    (void)gpu;
    assert_null(machine.captured);
    TRY(script_call(error));
    assert_non_null(machine.captured = calloc(1, sizeof *machine.captured));
    ++machine.graphs;
    return STATUS_OK;
}

static void graph_drop(struct graph *graph)
{
    machine.graphs -= graph != NULL;
    free(graph);
}

static enum status capture_end(struct gpu *gpu, struct graph **graph, struct error *error)
{
    struct graph *captured = machine.captured;
    (void)gpu;
    assert_non_null(captured);
    machine.captured = NULL;
    enum status status = script_call(error);
    if (status)
        graph_drop(captured);
    else
        *graph = captured;
    return status;
}

static bool graph_kernels(const struct graph *graph, graph_kernel_see *see, void *argument)
{
    assert_false(graph->ready);
    for (int i = 0; i < graph->count; ++i)
        see(&graph->kernels[i], argument);
    return true;
}

static enum status graph_ready(struct graph *graph, struct error *error)
{
    TRY(script_call(error));
    graph->ready = true;
    return STATUS_OK;
}

static enum status graph_launch(struct gpu *gpu, const struct graph *graph, struct error *error)
{
    (void)gpu;
    assert_true(graph->ready);
    return script_enqueue(graph->seconds * script_next_jitter(), error);
}

/* ---- sensors ---- */

static void conditions(struct gpu *gpu, int last, const struct conditions *seen)
{
    (void)gpu;
    *seen->sm_clock = 1e9; /* not what the device's own counters say */
    *seen->memory_clock = script.memory_clock;
    hold_over(false);
    if (machine.events[last] > machine.host)
        *seen->throttled = 0;
}

static double power(struct gpu *gpu, double since)
{
    const double slow = 0.05, seen = clock_epoch() - since - slow; /* s */
    (void)gpu;
    return seen > 0.0 ? 700.0 * clock_share(machine.host - seen, machine.host) : NAN;
}

static double energy(struct gpu *gpu)
{
    const double step = 0.1; /* s */
    const double now = floor(machine.host / step) * step;
    (void)gpu;
    if (now != machine.counted_at)
        machine.counter = script.idle_power * now + machine.joules -
                          machine.drawn * fmax(machine.device - now, 0.0);
    machine.counted_at = now;
    return script.idle_power > 0.0 ? machine.counter : NAN;
}

static const struct theory *theory(const struct gpu *gpu)
{
    (void)gpu;
    return script_roofs.theory;
}

static double power_limit(const struct gpu *gpu)
{
    (void)gpu;
    return *script_roofs.power_limit;
}

static enum status count_works(struct profiler *profiler, unsigned tensors,
                               const struct profiled_work *works, size_t count,
                               double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                               struct error *error)
{
    return script_roofs.count(profiler, tensors, works, count, values, outcome, error);
}

const struct gpu_vendor vendor = {
    .allocate = allocate,
    .free = memory_free,
    .available = available,
    .arena = arena,
    .fill = fill,
    .set = set,
    .gather = gather,
    .synchronize = synchronize,
    .reserve = reserve,
    .record = record,
    .wait = await,
    .pending = pending,
    .elapsed = elapsed,
    .hold = hold,
    .release = release,
    .flush = flush,
    .stamp = stamp,
    .span = span,
    .calibrate = calibrate,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_kernels = graph_kernels,
    .graph_ready = graph_ready,
    .graph_launch = graph_launch,
    .graph_drop = graph_drop,
    .conditions = conditions,
    .power = power,
    .energy = energy,
    .theory = theory,
    .power_limit = power_limit,
    .count = count_works,
};
