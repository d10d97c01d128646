/* A scripted driver reports other processes on a GPU, and the GPU's health. */

#include "unit.h"
#include "worker/cuda/gpu/nvml.c" /* NOLINT(bugprone-suspicious-include): for its statics */

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return cudaSuccess;
}

/* SELF is this process; process 1 is no worker. */
struct nvml_device {
    int status;
    unsigned count, pids[3], busy;
    const char *uuid;
    unsigned bus, domain, model, mig;
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

TEST(others_are_named)
{
    char init[32], first[96];
    name_read(1, init);
    snprintf(first, sizeof first, "%s (process 1, 34 %% busy)", init);
    const struct {
        struct nvml_device device;
        const char *text;
    } cases[] = {
        {{.count = 1, .pids = {SELF}}, "none"},
        {{.count = 2, .pids = {SELF, 1}, .busy = 34}, first},
        {{.count = 2, .pids = {SELF, 4194304}}, "unnamed (process 4194304, 0 % busy)"},
        {{.count = 1, .pids = {1}}, ""}, /* another process namespace: this process is not listed */
        {{.count = 0, .pids = {0}}, ""},
        {{.status = 3, .count = 1, .pids = {SELF}}, ""}, /* not supported */
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

/* ---- which GPUs ---- */

static struct nvml_device scripted_gpus[3];

static int scripted_count(unsigned *count)
{
    *count = 3;
    return 0;
}

static int scripted_by_index(unsigned index, nvml_device *device)
{
    *device = &scripted_gpus[index];
    return scripted_gpus[index].status;
}

static int scripted_uuid(nvml_device device, char *text, unsigned size)
{
    return snprintf(text, size, "%s", device->uuid) < 0;
}

static int scripted_pci(nvml_device device, struct nvml_pci *pci)
{
    *pci = (struct nvml_pci){
        .domain = device->domain ? device->domain : 1, .bus = device->bus, .id = device->model};
    return 0;
}

static int scripted_mig(nvml_device device, unsigned *current, unsigned *pending)
{
    *current = *pending = device->mig;
    return 0;
}

/* The list equals the one that CUDA would make. An empty list leaves the choice to CUDA. */
TEST(visible_gpus_are_listed)
{
    const struct nvml_device well = {.uuid = "GPU-a", .bus = 8};
    const struct {
        struct nvml_device second;
        const char *visible, *listed;
    } cases[] = {
        {well, NULL, "GPU-a GPU-b1 GPU-b2 "},
        {well, "2,0", "GPU-b2 GPU-a "},
        {well, "GPU-b2,GPU-a", "GPU-b2 GPU-a "},
        {well, "", ""},
        {well, "GPU-b", ""}, /* matches two */
        {well, "0,0", ""},
        {well, "0,3", ""},
        {well, "0,-1", ""},
        {well, "MIG-GPU-a/1/0", ""},
        {{.status = NO_PERMISSION}, NULL, "GPU-b1 GPU-b2 "}, /* of another job */
        {{.status = 15}, NULL, ""},                          /* lost */
        {{.uuid = "GPU-a", .mig = 1}, NULL, ""},
        {{.uuid = "GPU-a", .model = 1}, NULL, ""},
        {{.uuid = "GPU-a", .domain = 0xb38a}, NULL, "GPU-b1 GPU-b2 GPU-a "}, /* of a hypervisor */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const struct nvml nvml = {.count = scripted_count,
                                  .by_index = scripted_by_index,
                                  .uuid = scripted_uuid,
                                  .pci = scripted_pci,
                                  .mig = scripted_mig};
        struct visible_gpu gpus[VISIBLE_MAX];
        char listed[256] = "";
        scripted_gpus[0] = (struct nvml_device){.uuid = "GPU-b1", .bus = 9};
        scripted_gpus[1] = cases[i].second;
        scripted_gpus[2] = (struct nvml_device){.uuid = "GPU-b2", .bus = 10};
        const int count = nvml_list(&nvml, cases[i].visible, gpus);
        for (int j = 0; j < count; ++j)
            strcat(strcat(listed, gpus[j].uuid), " ");
        assert_string_equal(listed, cases[i].listed);
        assert_true(count == 0 || gpus[0].address >= (1 << 16 | 8 << 8));
    }
}

/* ---- health ---- */

static int scripted_ecc(nvml_device device, int uncorrected, int ever, unsigned long long *count)
{
    *count = 10 * (unsigned)uncorrected + (unsigned)ever;
    return 0;
}

static int scripted_retired(nvml_device device, int uncorrected, unsigned *count,
                            unsigned long long *addresses)
{
    assert_null(addresses);
    *count = 5;
    return uncorrected ? INSUFFICIENT_SIZE : 3 /* not supported */;
}

static int scripted_link(nvml_device device, unsigned link, unsigned *active)
{
    *active = link != 1;
    return link < 3 ? 0 : 2; /* no more links */
}

static int scripted_link_errors(nvml_device device, unsigned link, int kind,
                                unsigned long long *count)
{
    *count = 100 * link + 7;
    return kind == 0 ? 0 : 3;
}

static int scripted_violation(nvml_device device, int reason,
                              unsigned long long violation[VIOLATION])
{
    violation[VIOLATION_TIME] = 2500000000ULL;
    return reason == 0 ? 0 : 3;
}

static int scripted_number(nvml_device device, unsigned *value)
{
    *value = 700000;
    return 0;
}

static const unsigned long long *scripted_xids; /* pending ones; 0 ends the list */

static int scripted_wait(nvml_events events, struct nvml_event *event, unsigned ms)
{
    assert_int_equal(ms, 0);
    if (*scripted_xids == 0)
        return 10 /* timeout */;
    *event = (struct nvml_event){.kind = EVENT_XID, .xid = *scripted_xids++};
    return 0;
}

/* The driver reports each XID once; counts include all since the start. */
TEST(xids_are_counted)
{
    static const unsigned long long waiting[] = {31, 79, 13, 0, 94, 0};
    double health[HEALTH_COUNT];
    struct nvml nvml = {.events_wait = scripted_wait, .events = (nvml_events)&nvml};
    scripted_xids = &waiting[3];
    nvml_health(&nvml, health);
    assert_true(health[HEALTH_XIDS] == 0 && isnan(health[HEALTH_XID_LAST]));
    scripted_xids = &waiting[0];
    nvml_health(&nvml, health);
    assert_true(health[HEALTH_XIDS] == 1 && health[HEALTH_XIDS_OF_PROGRAMS] == 2 &&
                health[HEALTH_XID_LAST] == 13);
    scripted_xids = &waiting[4];
    nvml_health(&nvml, health);
    assert_true(health[HEALTH_XIDS] == 2 && health[HEALTH_XIDS_OF_PROGRAMS] == 2 &&
                health[HEALTH_XID_LAST] == 94);
}

/* Values that the driver lacks, or does not report, are missing, never 0. */
TEST(health_is_read)
{
    double expected[HEALTH_COUNT], health[HEALTH_COUNT];
    struct nvml nvml = {.ecc_errors = scripted_ecc,
                        .retired = scripted_retired,
                        .link = scripted_link,
                        .link_errors = scripted_link_errors,
                        .violation = scripted_violation};
    for (int i = 0; i < HEALTH_COUNT; ++i)
        expected[i] = NAN;
    expected[HEALTH_ECC_CORRECTED] = 0;
    expected[HEALTH_ECC_CORRECTED_EVER] = 1;
    expected[HEALTH_ECC_UNCORRECTED] = 10;
    expected[HEALTH_ECC_UNCORRECTED_EVER] = 11;
    expected[HEALTH_RETIRED_UNCORRECTED] = 5;
    expected[HEALTH_NVLINKS_ACTIVE] = 2;
    expected[HEALTH_NVLINK_ERRORS] = 214;
    expected[HEALTH_THROTTLED_BY_POWER] = 2.5;
    expected[HEALTH_POWER_CAP] = 700;
    for (size_t i = 0; i < NUMBERS; ++i)
        nvml.numbers[i] = numbers[i].health == HEALTH_POWER_CAP ? scripted_number : NULL;
    nvml_health(&nvml, health);
    for (int i = 0; i < HEALTH_COUNT; ++i)
        if (isnan(expected[i]) ? !isnan(health[i]) : fabs(health[i] - expected[i]) > 1e-9)
            fail_msg("%s is %g, not %g", health_name[i], health[i], expected[i]);
}
