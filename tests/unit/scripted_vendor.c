/* The scripted GPU: virtual time, the script, and the vendor's table of functions. */
#include "scripted_vendor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/gpu/arena.h"

static const double epoch = 1.7e9, clock_call_time = 2.5e-7; /* s */
static const double total_bytes = 150e9, flush_bytes = 100e6;
static const double memory_rate = 3e12; /* byte s-1, of a fill and of the flush */

enum {
    ALLOCATIONS = 256,
    QUEUE = 1000, /* operations that wait for the device */
    EVENTS = 600,
    GRAPH_NODES = 6000 /* most kernels of a graph */
};

struct script script;

static struct machine {
    double host, device; /* s: now, and the end of all enqueued work */
    double ends[QUEUE];  /* s, end of each of the last enqueued operations */
    size_t enqueued;
    double joules, drawn;       /* beyond idle power: J of all work, W of the last operation */
    double counter, counted_at; /* J and s, at the last step of the energy counter */
    /* While the stream is blocked, later operations get times as if the kernel ended at its limit.
     * When the host unblocks the stream, their times shift. */
    bool blocked;
    double block_begin, block_end; /* s, end of the blocking kernel at its limit */
    double block_host;             /* s, when the host launched the blocking kernel */
    int block_events;              /* events recorded behind the blocking kernel */
    double events[EVENTS];         /* s; NaN: not recorded */
    double stamps[2];              /* s, begin and end of a span */
    struct calibration calibration;
    void *flush;            /* memory that a flush reads; NULL: not reserved */
    struct graph *captured; /* NULL: no capture is open */
    int graphs;
    uintptr_t next_address;
    struct {
        uintptr_t address; /* 0: free */
        size_t bytes;
    } allocations[ALLOCATIONS];
    size_t runs;
} machine;

void script_reset(void)
{
    script = (struct script){
        .free_bytes = 140e9,
        .call_time = 2e-6,
        .empty_time = 1e-6,
        .node_time = 1.3e-6,
        .jitter = {1.0, 1.0, 1.0, 1.0},
        .sm_clock = 1.98e9,
        .memory_clock = 3.2e9,
        .power_limit = 700.0,
        .collection = "counted",
        .activities = "counted",
    };
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        script.counted[i] = 1.0;
    machine = (struct machine){.next_address = (uintptr_t)1 << 45};
    for (int i = 0; i < EVENTS; ++i)
        machine.events[i] = NAN;
}

void script_assert_clean(void)
{
    vendor_free(machine.flush);
    machine.flush = NULL;
    for (int i = 0; i < ALLOCATIONS; ++i)
        if (machine.allocations[i].address)
            fail_msg("%zu byte of memory are left", machine.allocations[i].bytes);
    assert_int_equal(machine.graphs, 0);
    assert_null(machine.captured);
}

int script_set_up(void **state)
{
    script_reset();
    return 0;
}

int script_tear_down(void **state)
{
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

/* Shifts everything behind the blocking kernel to an earlier time. */
static void shift(double seconds)
{
    machine.device -= seconds;
    script.busy -= seconds;
    machine.joules -= (script.blocked_power - script.idle_power) * seconds;
    for (int i = 0; i < QUEUE; ++i)
        machine.ends[i] -= machine.ends[i] >= machine.block_end ? seconds : 0.0;
    for (int i = 0; i < EVENTS; ++i)
        machine.events[i] -= machine.events[i] >= machine.block_end ? seconds : 0.0;
    for (int i = 0; i < 2; ++i)
        machine.stamps[i] -= machine.stamps[i] >= machine.block_end ? seconds : 0.0;
}

/* Ends the blocking kernel if its limit has passed or the host has unblocked the stream. */
static void block_over(bool released)
{
    if (machine.blocked && !released && machine.host < machine.block_end)
        return;
    if (machine.blocked && machine.host < machine.block_end)
        shift(machine.block_end - fmax(machine.host, machine.block_begin));
    machine.blocked = false;
}

double clock_monotonic(void)
{
    block_over(false);
    return machine.host += clock_call_time;
}

void clock_sleep(double seconds)
{
    block_over(false);
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
    block_over(false);
    return machine.device;
}

static void device_await(double time)
{
    block_over(false);
    machine.host = fmax(machine.host, time);
}

/* Returns the phase of the clock's swings, rad. */
static double swing_at(double now)
{
    return script.swings_in > 0.0 ? 2.0 * acos(-1.0) * now / script.swings_in : 0.0;
}

/* Returns the integral of the clock over the device's time. */
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

/* Returns the mean clock between two times, relative to sm_clock. Power is proportional to the
 * clock. */
static double clock_share(double begin, double end)
{
    return (cycles_until(end) - cycles_until(begin)) / (script.sm_clock * (end - begin));
}

/* ---- calls and their failures ---- */

static bool is_lost(void)
{
    return script.lost_at > 0 && script.calls >= script.lost_at;
}

static enum status call(struct error *error)
{
    block_over(false);
    machine.host += script.call_time;
    ++script.calls;
    if (script.pause_every > 0 && script.calls % script.pause_every == 0)
        machine.host += script.pause_time;
    if (is_lost())
        return error_set(error, STATUS_DEVICE, "the device is lost");
    return script.calls == script.fail_at ? error_set(error, STATUS_FAILED, "some failure")
                                          : STATUS_OK;
}

/* The host waits if the queue is full. */
enum status script_enqueue(double seconds, struct error *error)
{
    assert_null(machine.captured);
    enum status status = call(error);
    double *end = &machine.ends[machine.enqueued++ % QUEUE];
    device_await(*end);
    block_over(false);
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

/* Returns the index of the allocation that contains `bytes` from `memory` on. Fails the test if
 * there is none. */
static int within(const void *memory, size_t bytes)
{
    uintptr_t address = (uintptr_t)memory;
    for (int i = 0; i < ALLOCATIONS; ++i) {
        uintptr_t begin = machine.allocations[i].address,
                  end = begin + machine.allocations[i].bytes;
        if (begin && address >= begin && address < end) {
            assert_true(bytes <= end - address);
            return i;
        }
    }
    fail_msg("%p is no memory of the device", memory);
    return 0;
}

enum status vendor_allocate(double bytes, void **memory, struct error *error)
{
    const uintptr_t alignment = 512;
    int i = 0;
    ++script.allocations;
    TRY(call(error));
    assert_true(bytes > 0.0);
    if (bytes > script.free_bytes)
        return error_set(error, STATUS_UNSUPPORTED, "out of memory");
    while (machine.allocations[i].address)
        assert_true(++i < ALLOCATIONS);
    machine.allocations[i].address = machine.next_address;
    machine.allocations[i].bytes = (size_t)bytes;
    machine.next_address += ((size_t)bytes / alignment + 2) * alignment; /* leaves a gap */
    script.free_bytes -= bytes;
    *memory = (void *)machine.allocations[i].address;
    return STATUS_OK;
}

/* Waits for the device, as cudaFree does. */
void vendor_free(void *memory)
{
    device_await(machine.device);
    if (!memory)
        return;
    int i = within(memory, 1);
    assert_true(machine.allocations[i].address == (uintptr_t)memory);
    ++script.frees;
    script.free_bytes += (double)machine.allocations[i].bytes;
    machine.allocations[i].address = 0;
}

enum status vendor_available(double *free_now, double *total, struct error *error)
{
    *free_now = script.free_bytes;
    *total = total_bytes;
    return call(error);
}

struct arena *vendor_arena(const struct gpu *gpu)
{
    return script.arena;
}

enum status vendor_fill(struct gpu *gpu, enum precision precision, void *data, int64_t count,
                        struct fill values, struct error *error)
{
    size_t bytes = (size_t)count * precision_info[precision].bytes;
    within(data, bytes);
    return script_enqueue((double)bytes / memory_rate, error);
}

enum status vendor_set(struct gpu *gpu, void *data, int value, size_t bytes, struct error *error)
{
    within(data, bytes);
    return script_enqueue(1e-6, error);
}

enum status vendor_gather(struct gpu *gpu, enum precision precision, const void *data,
                          const int64_t *offsets, int64_t count, void *memory, double *values,
                          struct error *error)
{
    within(memory, 2 * (size_t)count * sizeof *values);
    within(data, 1);
    for (int64_t i = 0; i < count; ++i)
        values[i] = (double)offsets[i];
    return call(error);
}

enum status vendor_hash(struct gpu *gpu, const void *data, size_t bytes, enum tensor tensor,
                        void *memory, uint64_t *hash, struct error *error)
{
    return error_set(error, STATUS_FAILED, "the scripted GPU has no hashes");
}

/* ---- events ---- */

enum status vendor_synchronize(struct gpu *gpu, struct error *error)
{
    device_await(machine.device);
    return call(error);
}

enum status vendor_reserve(struct gpu *gpu, int events, bool flush, struct error *error)
{
    assert_in_range(events, 0, EVENTS);
    if (!flush || machine.flush)
        return STATUS_OK;
    return memory_allocate(flush_bytes, "flushing the cache", &machine.flush, error);
}

enum status vendor_record(struct gpu *gpu, int event, struct error *error)
{
    ++machine.block_events;
    TRY(script_enqueue(script.event_time, error));
    machine.events[event] = machine.device;
    return STATUS_OK;
}

enum status vendor_wait(struct gpu *gpu, int event, struct error *error)
{
    device_await(machine.events[event]);
    return call(error);
}

enum status vendor_pending(struct gpu *gpu, int event, bool *is_pending, struct error *error)
{
    block_over(false);
    *is_pending = machine.events[event] > machine.host;
    return STATUS_OK;
}

enum status vendor_elapsed(struct gpu *gpu, int first, int second, double *seconds,
                           struct error *error)
{
    double begin = machine.events[first], end = machine.events[second];
    assert_true(begin <= end && (end <= machine.host || is_lost()));
    *seconds = end - begin;
    return call(error);
}

/* ---- blocking kernel, flush, clock ---- */

enum status vendor_block(struct gpu *gpu, double limit, struct error *error)
{
    assert_true(limit > 0.0);
    TRY(script_enqueue(limit, error));
    assert_false(machine.blocked);
    machine.blocked = true;
    machine.drawn = script.blocked_power - script.idle_power;
    machine.joules -= (script.busy_power - script.blocked_power) * limit;
    machine.block_begin = machine.device - limit;
    machine.block_end = machine.device;
    machine.block_host = machine.host;
    machine.block_events = 0;
    ++script.blocks;
    script.block.limit = limit;
    return STATUS_OK;
}

void vendor_unblock(struct gpu *gpu)
{
    script.block.host = machine.host - machine.block_host;
    script.block.device = machine.device - machine.block_end;
    script.block.samples = machine.block_events / 2;
    block_over(true);
}

enum status vendor_launch_empty(struct gpu *gpu, struct error *error)
{
    return script_enqueue(script.empty_time, error);
}

enum status vendor_delay(struct gpu *gpu, double seconds, struct error *error)
{
    return script_enqueue(seconds, error);
}

enum status vendor_flush(struct gpu *gpu, struct error *error)
{
    TRY(vendor_reserve(gpu, 0, true, error));
    script.cache = SCRIPT_FLUSHED;
    return script_enqueue(flush_bytes / memory_rate, error);
}

enum status vendor_stamp(struct gpu *gpu, enum span_end end, struct error *error)
{
    TRY(script_enqueue(0.0, error));
    machine.stamps[end] = machine.device;
    return STATUS_OK;
}

enum status vendor_span(struct gpu *gpu, struct clock_span *span, struct error *error)
{
    const double *stamps = machine.stamps;
    assert_true(stamps[SPAN_END] <= machine.host || is_lost());
    script.begin_time = epoch + stamps[SPAN_BEGIN];
    *span = (struct clock_span){cycles_until(stamps[SPAN_END]) - cycles_until(stamps[SPAN_BEGIN]),
                                stamps[SPAN_END] - stamps[SPAN_BEGIN]};
    return call(error);
}

struct calibration *vendor_calibration(const struct gpu *gpu)
{
    struct calibration *known = &machine.calibration;
    if (known->clock_free == 0.0)
        *known = script.uncalibrated ? (struct calibration){NAN, NAN}
                                     : (struct calibration){script.event_time, script.sm_clock};
    return known;
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
    TRY(call(error));
    graph->seconds += in_graph;
    assert_true(graph->count < GRAPH_NODES);
    graph->kernels[graph->count++] = (struct graph_kernel){.name = name};
    return STATUS_OK;
}

enum status vendor_capture_begin(struct gpu *gpu, struct error *error)
{
    assert_null(machine.captured);
    TRY(call(error));
    assert_non_null(machine.captured = calloc(1, sizeof *machine.captured));
    ++machine.graphs;
    return STATUS_OK;
}

void vendor_graph_drop(struct graph *graph)
{
    machine.graphs -= graph != NULL;
    free(graph);
}

enum status vendor_capture_end(struct gpu *gpu, struct graph **graph, struct error *error)
{
    struct graph *captured = machine.captured;
    assert_non_null(captured);
    machine.captured = NULL;
    enum status status = call(error);
    if (status)
        vendor_graph_drop(captured);
    else
        *graph = captured;
    return status;
}

bool vendor_graph_kernels(const struct graph *graph, graph_kernel_visit *visit, void *argument)
{
    assert_false(graph->ready);
    for (int i = 0; i < graph->count; ++i)
        visit(&graph->kernels[i], argument);
    return true;
}

enum status vendor_graph_ready(struct graph *graph, struct error *error)
{
    TRY(call(error));
    graph->ready = true;
    return STATUS_OK;
}

enum status vendor_graph_launch(struct gpu *gpu, const struct graph *graph, struct error *error)
{
    assert_true(graph->ready);
    return script_enqueue(graph->seconds * script_next_jitter(), error);
}

/* ---- sensors ---- */

void vendor_conditions(struct gpu *gpu, int last, const struct conditions *read)
{
    *read->sm_clock = 1e9; /* differs from the device's own clocks */
    *read->memory_clock = script.memory_clock;
    block_over(false);
    if (machine.events[last] > machine.host)
        *read->throttled = 0;
}

double vendor_power(struct gpu *gpu, double since)
{
    const double slow = 0.05, seen = clock_epoch() - since - slow; /* s */
    return seen > 0.0 ? 700.0 * clock_share(machine.host - seen, machine.host) : NAN;
}

double vendor_energy(struct gpu *gpu)
{
    const double step = 0.1; /* s */
    const double now = floor(machine.host / step) * step;
    if (now != machine.counted_at)
        machine.counter = script.idle_power * now + machine.joules -
                          machine.drawn * fmax(machine.device - now, 0.0);
    machine.counted_at = now;
    return script.idle_power > 0.0 ? machine.counter : NAN;
}

const struct theory *vendor_theory(const struct gpu *gpu)
{
    return script.theory;
}

double vendor_power_limit(const struct gpu *gpu)
{
    return script.power_limit;
}

enum status vendor_count(struct profiler *profiler, unsigned tensors,
                         const struct profiled_work *works, size_t count, const size_t *launches,
                         size_t room, double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                         struct error *error)
{
    ++script.collections;
    script.cache = SCRIPT_FOREIGN;
    const bool activities = tensors == QUANTITY_ACTIVITIES;
    assert_true(
        outcome_parse(activities ? script.activities : script.collection, counted_word, outcome));
    for (size_t i = 0; i < count; ++i) {
        TRY(works[i].prepare(works[i].argument, error));
        memset(script.done, 0, sizeof script.done);
        script.counted_cache = script.cache;
        TRY(works[i].run(works[i].argument, error));
        assert_true(machine.device <= machine.host || is_lost());
        for (int j = 0; j < QUANTITY_COUNT; ++j) {
            unsigned tensor = quantity_tensor((enum quantity)j);
            bool counted = outcome->code == COUNTED_YES && (!tensor || tensor & tensors) &&
                           activities == (j >= QUANTITY_ACTIVITY);
            values[i][j] = counted ? script.done[j] * script.counted[j] : NAN;
        }
    }
    return STATUS_OK;
}
