/* Other processes on a GPU, as a driver that is a script tells of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/cuda/gpu/nvml.c" /* NOLINT(bugprone-suspicious-include): its driver is a script */

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

/* Passed as the device: this process is SELF; 1 is a process that is not a worker. */
struct nvml_device {
    int status;
    unsigned count, pids[3], busy;
};
enum { SELF = -1 };

static unsigned pid_of(const struct nvml_device *device, unsigned i)
{
    return device->pids[i] == (unsigned)SELF ? (unsigned)getpid() : device->pids[i];
}

static int scripted_processes(nvml_device device, unsigned *count, struct nvml_process *processes)
{
    assert_true(*count >= 3);
    *count = device->count;
    for (unsigned i = 0; i < 3 && i < device->count; ++i)
        processes[i] = (struct nvml_process){.pid = pid_of(device, i)};
    return device->status;
}

static int scripted_utilization(nvml_device device, struct nvml_utilization *samples,
                                unsigned *count, unsigned long long after)
{
    assert_true(1e-6 * (double)after > clock_epoch() - 10);
    samples[0] = (struct nvml_utilization){.pid = (unsigned)getpid(), .sm = 99};
    samples[1] = (struct nvml_utilization){.pid = pid_of(device, 1), .sm = device->busy};
    samples[2] = (struct nvml_utilization){.pid = pid_of(device, 1), .sm = device->busy / 2};
    *count = 3;
    return 0;
}

static void others_are_named(void **state)
{
    (void)state;
    char init[32], first[96];
    name_read(1, init);
    snprintf(first, sizeof first, "%s (process 1, 34 %% busy)", init);
    const struct {
        struct nvml_device device;
        const char *text;
    } cases[] = {
        {{0, 1, {SELF}, 0}, "none"},
        {{0, 2, {SELF, 1}, 34}, first},
        {{0, 2, {SELF, 4194304}, 0}, "unnamed (process 4194304, 0 % busy)"},
        {{0, 1, {1}, 0}, ""}, /* numbers of another namespace: this one is not among them */
        {{0, 0, {0}, 0}, ""},
        {{3, 1, {SELF}, 0}, ""}, /* not supported */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct nvml_device device = cases[i].device;
        struct nvml nvml = {.device = &device,
                            .processes = scripted_processes,
                            .utilization = scripted_utilization};
        char text[256];
        nvml_others(&nvml, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(nvml_processes(&nvml), device.status ? -1 : (int)device.count);
    }
    char text[256] = "?";
    nvml_others(NULL, text, sizeof text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(others_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
