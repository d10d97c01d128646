/* What the device has still to do: its one stream, events, and what holds them. */
#include "scripted_machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct CUevent_st {
    double time; /* NaN: not recorded */
    struct CUevent_st *next;
};

cudaError_t script_enqueue(double seconds, cudaStream_t stream)
{
    assert_ptr_equal(stream, script_stream());
    assert_int_equal(machine.current, script.own);
    assert_false(machine.capturing);
    cudaError_t code = script_call();
    double *end = &machine.ends[machine.enqueued++ % QUEUE];
    machine.host = fmax(machine.host, *end);
    script_look();
    if (code == cudaSuccess) {
        machine.device = fmax(machine.device, machine.host) + seconds;
        script.busy += seconds;
    }
    *end = machine.device;
    return code;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    assert_ptr_equal(stream, script_stream());
    return cudaDeviceSynchronize();
}

cudaError_t cudaDeviceSynchronize(void)
{
    script_look();
    machine.host = fmax(machine.host, machine.device);
    return script_call();
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    struct allocation *allocation = script_within(memory, bytes, script.own);
    cudaError_t code = script_enqueue(1e-6, stream);
    if (code != cudaSuccess)
        return code;
    if (allocation->contents)
        memset(script_contents(memory, bytes), value, bytes);
    if (allocation->address == (uintptr_t)memory) {
        allocation->alike = bytes;
        allocation->value = value;
    }
    return code;
}

/* ---- events ---- */

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    cudaError_t code = script_call();
    if (code != cudaSuccess)
        return code;
    assert_non_null(*event = malloc(sizeof **event));
    **event = (struct CUevent_st){.time = NAN, .next = machine.first_event};
    machine.first_event = *event;
    ++machine.events;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaEvent_t *link = &machine.first_event;
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    free(event);
    return script_give_back(&machine.events);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t code = script_enqueue(script.event_time, stream);
    if (code == cudaSuccess)
        event->time = machine.device;
    return code;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    script_look();
    machine.host = fmax(machine.host, event->time);
    return script_call();
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    script_look();
    return event->time > machine.host ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    assert_false(isnan(begin->time) || isnan(end->time));
    assert_true(begin->time <= end->time && (end->time <= machine.host || script_is_lost()));
    *milliseconds = (float)(1e3 * (end->time - begin->time));
    return script_call();
}

/* ---- what holds the stream ---- */

/* All that is behind the hold comes earlier, by so much. */
static void shift(double seconds)
{
    struct hold *hold = &machine.hold;
    machine.device -= seconds;
    script.busy -= seconds;
    for (int i = 0; i < QUEUE; ++i)
        machine.ends[i] -= machine.ends[i] >= hold->end ? seconds : 0.0;
    for (cudaEvent_t event = machine.first_event; event; event = event->next)
        event->time -= event->time >= hold->end ? seconds : 0.0;
    for (int i = 0; i < hold->stamp_count; ++i) {
        hold->stamps[i].time -= seconds;
        script_stamp(&hold->stamps[i]);
    }
}

/* The host's last write was before any call since: it is seen at the next one, at the same time. */
void script_look(void)
{
    struct hold *hold = &machine.hold;
    if (!hold->released)
        return;
    bool over = machine.host >= hold->end;
    if (!over && *hold->released < hold->ticket)
        return;
    if (!over)
        shift(hold->end - fmax(machine.host, hold->begin));
    *hold = (struct hold){0};
}

cudaError_t kernel_hold(const volatile uint64_t *released, uint64_t ticket, double limit,
                        cudaStream_t stream)
{
    const struct allocation *word = script_within((const void *)released, sizeof *released, HOST);
    assert_ptr_equal(word->contents, released);
    assert_true(limit > 0.0);
    cudaError_t code = script_enqueue(limit, stream);
    assert_null(machine.hold.released);
    if (code != cudaSuccess)
        return code;
    machine.hold = (struct hold){.released = released,
                                 .ticket = ticket,
                                 .begin = machine.device - limit,
                                 .end = machine.device};
    ++script.holds;
    return cudaSuccess;
}
