/* NVML, loaded at run time.
 *
 * The table below declares the part of NVML's stable interface that is used here: the library comes
 * with the driver, but nvml.h comes with a package that often is not installed. If the driver lacks
 * a function, calling it fails as if the GPU did not support it. Without the library, or if NVML
 * does not know the GPU, nvml_open returns NULL and all values stay missing. */
#include "worker/cuda/gpu/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

typedef struct nvml_device *nvml_device;
typedef struct nvml_events *nvml_events;
typedef unsigned long long u64;
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 }; /* nvmlClockType_t */
enum { TOTAL_POWER_SAMPLES = 0 };        /* nvmlSamplingType_t */
enum { UNSIGNED_INT = 1 };               /* nvmlValueType_t */
enum { NO_PERMISSION = 4 };              /* nvmlReturn_t; a cgroup hides the GPU, also from CUDA */
enum { INSUFFICIENT_SIZE = 7 };          /* nvmlReturn_t; the call still sets the count */
enum { MEMORY_TEMPERATURE = 82 };        /* NVML's id of a field */
/* nvmlRowRemapperHistogramValues_t; BANKS_NONE: banks without spare rows */
enum { BANKS_NONE = 4, BANKS };
enum { VIOLATION_TIME /* ns */ = 1, VIOLATION }; /* nvmlViolationTime_t */
enum { EVENT_XID = 8 };
/* Clock event reasons that slow the GPU down: power cap, hardware slowdown, heat (driver and
 * hardware), power brake. An idle GPU, a user's clock and synchronised boards do not count. */
enum { THROTTLED = 0x04 | 0x08 | 0x20 | 0x40 | 0x80 };

union nvml_value {
    double d;
    unsigned number;
    u64 ull;
};
struct nvml_power_sample { /* nvmlSample_t */
    u64 time;              /* us since 1970-01-01T00:00:00Z */
    union nvml_value value;
};
struct nvml_process { /* nvmlProcessInfo_t */
    unsigned pid;
    u64 memory;
    unsigned instance, part;
};
struct nvml_utilization { /* nvmlProcessUtilizationSample_t */
    unsigned pid;
    u64 time;                            /* us since 1970-01-01T00:00:00Z */
    unsigned sm, memory, encode, decode; /* per cent */
};
struct nvml_field { /* nvmlFieldValue_t */
    unsigned id, scope;
    long long time, latency;
    int type, status;
    union nvml_value value;
};
struct nvml_pci { /* nvmlPciInfo_t */
    char legacy_id[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};
struct nvml_event { /* nvmlEventData_t */
    nvml_device device;
    u64 kind, xid;
    unsigned instance, part;
};

/* Member of struct nvml, NVML's name, parameters. Each function returns 0 on success. */
/* clang-format off */
#define FUNCTIONS(F)                                                                               \
    F(init, "nvmlInit_v2", void)                                                                   \
    F(shutdown, "nvmlShutdown", void)                                                              \
    F(by_pci, "nvmlDeviceGetHandleByPciBusId_v2", const char *pci_id, nvml_device *device)         \
    F(count, "nvmlDeviceGetCount_v2", unsigned *count)                                             \
    F(by_index, "nvmlDeviceGetHandleByIndex_v2", unsigned index, nvml_device *device)              \
    F(uuid, "nvmlDeviceGetUUID", nvml_device, char *text, unsigned size)                           \
    F(pci, "nvmlDeviceGetPciInfo_v3", nvml_device, struct nvml_pci *pci)                           \
    F(driver, "nvmlSystemGetDriverVersion", char *text, unsigned size)                             \
    F(clock, "nvmlDeviceGetClockInfo", nvml_device, int domain, unsigned *mhz)                     \
    F(clock_max, "nvmlDeviceGetMaxClockInfo", nvml_device, int domain, unsigned *mhz)              \
    F(temperature, "nvmlDeviceGetTemperature", nvml_device, int sensor, unsigned *celsius)         \
    F(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons", nvml_device, u64 *reasons)            \
    F(energy, "nvmlDeviceGetTotalEnergyConsumption", nvml_device, u64 *millijoule)                 \
    F(ecc, "nvmlDeviceGetEccMode", nvml_device, int *current, int *pending)                        \
    F(mig, "nvmlDeviceGetMigMode", nvml_device, unsigned *current, unsigned *pending)              \
    F(processes, "nvmlDeviceGetComputeRunningProcesses_v3", nvml_device, unsigned *count,          \
      struct nvml_process *processes)                                                              \
    F(utilization, "nvmlDeviceGetProcessUtilization", nvml_device,                                 \
      struct nvml_utilization *samples, unsigned *count, u64 after)                                \
    F(samples, "nvmlDeviceGetSamples", nvml_device, int kind, u64 after, int *type,                \
      unsigned *count, struct nvml_power_sample *samples)                                          \
    F(vbios, "nvmlDeviceGetVbiosVersion", nvml_device, char *text, unsigned size)                  \
    F(inforom, "nvmlDeviceGetInforomImageVersion", nvml_device, char *text, unsigned size)         \
    F(ecc_errors, "nvmlDeviceGetTotalEccErrors", nvml_device, int uncorrected, int ever,           \
      u64 *count)                                                                                  \
    F(remapped, "nvmlDeviceGetRemappedRows", nvml_device, unsigned *corrected,                     \
      unsigned *uncorrected, unsigned *pending, unsigned *failed)                                  \
    F(spares, "nvmlDeviceGetRowRemapperHistogram", nvml_device, unsigned banks[BANKS])             \
    F(retired, "nvmlDeviceGetRetiredPages", nvml_device, int uncorrected, unsigned *count,         \
      u64 *addresses)                                                                              \
    F(link, "nvmlDeviceGetNvLinkState", nvml_device, unsigned link, unsigned *active)              \
    F(link_errors, "nvmlDeviceGetNvLinkErrorCounter", nvml_device, unsigned link, int kind,        \
      u64 *count)                                                                                  \
    F(violation, "nvmlDeviceGetViolationStatus", nvml_device, int reason,                          \
      u64 violation[VIOLATION])                                                                    \
    F(fields, "nvmlDeviceGetFieldValues", nvml_device, int count, struct nvml_field *fields)       \
    F(events_create, "nvmlEventSetCreate", nvml_events *events)                                    \
    F(events_register, "nvmlDeviceRegisterEvents", nvml_device, u64 kinds, nvml_events events)     \
    F(events_wait, "nvmlEventSetWait_v2", nvml_events events, struct nvml_event *event, unsigned ms)
/* clang-format on */

/* NVML's functions for one unsigned number. */
static const struct {
    const char *name;
    enum health health;
    double unit;
} numbers[] = {
    {"nvmlDeviceGetRetiredPagesPendingStatus", HEALTH_RETIRE_PENDING, 1},
    {"nvmlDeviceGetCurrPcieLinkGeneration", HEALTH_PCIE_GENERATION, 1},
    {"nvmlDeviceGetMaxPcieLinkGeneration", HEALTH_PCIE_GENERATION_MAX, 1},
    {"nvmlDeviceGetCurrPcieLinkWidth", HEALTH_PCIE_WIDTH, 1},
    {"nvmlDeviceGetMaxPcieLinkWidth", HEALTH_PCIE_WIDTH_MAX, 1},
    {"nvmlDeviceGetPcieReplayCounter", HEALTH_PCIE_REPLAYS, 1},
    {"nvmlDeviceGetEnforcedPowerLimit", HEALTH_POWER_CAP, 1e-3},
    {"nvmlDeviceGetPowerManagementDefaultLimit", HEALTH_POWER_CAP_DEFAULT, 1e-3},
    {"nvmlDeviceGetPersistenceMode", HEALTH_PERSISTENCE, 1},
    {"nvmlDeviceGetComputeMode", HEALTH_COMPUTE_MODE, 1},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

#define MEMBER(member, name, ...) int (*member)(__VA_ARGS__);
#define NAME(member, name, ...)   name,
static const char *const names[] = {FUNCTIONS(NAME)};
enum { NAMES = sizeof names / sizeof *names };

struct nvml {
    FUNCTIONS(MEMBER) /* first members, in the order of `names`; NULL: the driver lacks it */
    int (*numbers[NUMBERS])(nvml_device device, unsigned *value);
    void *library;
    nvml_device device;
    nvml_events events;       /* NULL: the driver does not report XIDs */
    double xids[2], xid_last; /* [1]: number of XIDs that programs caused; [0]: of all others */
};

/* Calls a function of the device; -1: the driver lacks it. */
#define CALL(function, ...) (nvml->function ? nvml->function(nvml->device, __VA_ARGS__) : -1)

static const double celsius_zero = 273.15;

struct nvml *nvml_open(const char *pci_id)
{
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return NULL;
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        goto free_nvml;
    for (size_t i = 0; i < NAMES + NUMBERS; ++i) {
        void *symbol = dlsym(nvml->library, i < NAMES ? names[i] : numbers[i - NAMES].name);
        memcpy((char *)nvml + i * sizeof symbol, &symbol, sizeof symbol);
    }
    if (!nvml->init || !nvml->shutdown || !nvml->by_pci || nvml->init() != 0)
        goto close_library;
    if (pci_id && nvml->by_pci(pci_id, &nvml->device) != 0)
        goto shut_down;
    if (!nvml->events_create || !nvml->events_wait || nvml->events_create(&nvml->events) != 0 ||
        CALL(events_register, EVENT_XID, nvml->events) != 0)
        nvml->events = NULL;
    return nvml;

shut_down:
    nvml->shutdown();
close_library:
    dlclose(nvml->library);
free_nvml:
    free(nvml);
    return NULL;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

/* Lists the GPUs that this process may use, in the order of their addresses, which is CUDA's order
 * if all have one model. Returns 0 if there are several models, or a GPU with MIG. */
static int list_all(const struct nvml *nvml, struct visible_gpu gpus[VISIBLE_MAX])
{
    unsigned all, mig, pending, model = 0;
    int count = 0, place;
    if (!nvml || !nvml->count || !nvml->by_index || !nvml->uuid || !nvml->pci ||
        nvml->count(&all) != 0)
        return 0;
    for (unsigned i = 0; i < all; ++i) {
        struct visible_gpu gpu;
        struct nvml_pci pci;
        nvml_device device;
        const int status = nvml->by_index(i, &device);
        if (status == NO_PERMISSION)
            continue;
        if (status != 0 || count == VISIBLE_MAX || nvml->pci(device, &pci) != 0 ||
            nvml->uuid(device, gpu.uuid, sizeof gpu.uuid) != 0 || (count > 0 && pci.id != model) ||
            (nvml->mig && nvml->mig(device, &mig, &pending) == 0 && mig))
            return 0;
        model = pci.id;
        gpu.address = (int)(pci.domain << 16 | pci.bus << 8 | pci.device);
        for (place = count++;
             place > 0 && (unsigned)gpus[place - 1].address > (unsigned)gpu.address; --place)
            gpus[place] = gpus[place - 1];
        gpus[place] = gpu;
    }
    return count;
}

/* Returns the index of the GPU that a word of CUDA_VISIBLE_DEVICES names, by its number or by the
 * beginning of its UUID; -1: none, or several. */
static int find_named(const struct visible_gpu *gpus, int count, const char *word)
{
    char *end;
    int found = -1;
    const long number = strtol(word, &end, 10);
    if (*word >= '0' && *word <= '9')
        return *end == '\0' && number < count ? (int)number : -1;
    for (int i = 0; i < count && strncmp(word, "GPU-", 4) == 0; ++i)
        if (strncmp(gpus[i].uuid, word, strlen(word)) == 0)
            found = found < 0 ? i : count;
    return found < count ? found : -1;
}

int nvml_list(const struct nvml *nvml, const char *visible, struct visible_gpu gpus[VISIBLE_MAX])
{
    struct visible_gpu all[VISIBLE_MAX];
    bool taken[VISIBLE_MAX] = {false};
    char words[4096];
    int chosen = 0;
    if (!visible)
        return list_all(nvml, gpus);
    const int count = list_all(nvml, all);
    snprintf(words, sizeof words, "%s", visible);
    for (char *at = words, *word; (word = strsep(&at, ","));) {
        const int i = find_named(all, count, word);
        if (i < 0 || taken[i])
            return 0;
        taken[i] = true;
        gpus[chosen++] = all[i];
    }
    return chosen;
}

static void numbers_read(const struct nvml *nvml, double *health)
{
    unsigned value;
    for (size_t i = 0; i < NUMBERS; ++i)
        if (CALL(numbers[i], &value) == 0)
            health[numbers[i].health] = numbers[i].unit * value;
}

void nvml_describe(struct nvml *nvml, struct device *device)
{
    if (!nvml)
        return;
    unsigned value, pending;
    char driver[sizeof device->driver_version], text[32];
    double health[HEALTH_COUNT] = {[HEALTH_POWER_CAP] = device->power_limit};
    if (nvml->driver && nvml->driver(driver, sizeof driver) == 0)
        memcpy(device->driver_version, driver, sizeof driver);
    if (CALL(clock_max, CLOCK_SM, &value) == 0)
        device->clock_max = 1e6 * value;
    if (CALL(clock_max, CLOCK_MEMORY, &value) == 0)
        device->memory_clock_max = 1e6 * value;
    numbers_read(nvml, health);
    device->power_limit = health[HEALTH_POWER_CAP];
    if (CALL(mig, &value, &pending) == 0)
        device->mig = value != 0;
    if (CALL(vbios, text, sizeof text) == 0)
        snprintf(device->system, sizeof device->system, "VBIOS %s, ", text);
    if (CALL(inforom, text, sizeof text) == 0)
        snprintf(device->system + strlen(device->system), 48, "InfoROM %s, ", text);
}

/* Values that one function of NVML returns are neighbours in enum health, in NVML's order. */
static void memory_health(const struct nvml *nvml, double *health)
{
    struct nvml_field temperature = {.id = MEMORY_TEMPERATURE};
    u64 errors;
    unsigned rows[4], banks[BANKS];
    for (int kind = 0; kind < 2; ++kind) { /* corrected, uncorrected */
        unsigned pages = 0;
        int status = CALL(retired, kind, &pages, NULL);
        if (status == 0 || status == INSUFFICIENT_SIZE)
            health[HEALTH_RETIRED_CORRECTED + kind] = pages;
        for (int ever = 0; ever < 2; ++ever)
            if (CALL(ecc_errors, kind, ever, &errors) == 0)
                health[HEALTH_ECC_CORRECTED + kind + 2 * ever] = (double)errors;
    }
    if (CALL(remapped, &rows[0], &rows[1], &rows[2], &rows[3]) == 0)
        for (int i = 0; i < 4; ++i)
            health[HEALTH_REMAPPED_CORRECTED + i] = rows[i];
    if (CALL(spares, banks) == 0)
        health[HEALTH_BANKS_WITHOUT_SPARES] = banks[BANKS_NONE];
    if (CALL(fields, 1, &temperature) == 0 && temperature.status == 0 &&
        temperature.type == UNSIGNED_INT && temperature.value.number > 0)
        health[HEALTH_MEMORY_TEMPERATURE] = celsius_zero + temperature.value.number;
}

/* Sums replays, recoveries and checksum errors of flits over all links. */
static void link_health(const struct nvml *nvml, double *health)
{
    enum { NVLINKS_MAX = 18, ERROR_KINDS = 3 };
    double *links = &health[HEALTH_NVLINKS_ACTIVE], *errors = &health[HEALTH_NVLINK_ERRORS];
    u64 count;
    unsigned active;
    for (unsigned link = 0; link < NVLINKS_MAX && CALL(link, link, &active) == 0; ++link) {
        *links = fmax(*links, 0) + (active != 0);
        for (int kind = 0; active && kind < ERROR_KINDS; ++kind)
            if (CALL(link_errors, link, kind, &count) == 0)
                *errors = fmax(*errors, 0) + (double)count;
    }
}

/* NVML reports each XID once, so nvml->xids keeps the counts. */
static void xid_health(struct nvml *nvml, double *health)
{
    /* NVIDIA's device plugin for Kubernetes takes a GPU out of service after any other XID. */
    static const unsigned of_programs[] = {13, 31, 43, 45, 68, 109};
    struct nvml_event event;
    if (!nvml->events)
        return;
    while (nvml->events_wait(nvml->events, &event, 0) == 0) {
        bool of_program = false;
        for (size_t i = 0; i < sizeof of_programs / sizeof *of_programs; ++i)
            of_program |= event.xid == of_programs[i];
        ++nvml->xids[of_program];
        nvml->xid_last = (double)event.xid;
    }
    health[HEALTH_XIDS] = nvml->xids[false];
    health[HEALTH_XIDS_OF_PROGRAMS] = nvml->xids[true];
    if (nvml->xid_last > 0)
        health[HEALTH_XID_LAST] = nvml->xid_last;
}

void nvml_health(struct nvml *nvml, double health[HEALTH_COUNT])
{
    static const int reasons[] = {0, 1, 3, 5}; /* power, heat, board, reliability */
    u64 violation[VIOLATION];
    int enabled, pending;
    for (int i = 0; i < HEALTH_COUNT; ++i)
        health[i] = NAN;
    if (!nvml)
        return;
    if (CALL(ecc, &enabled, &pending) == 0)
        health[HEALTH_ECC_ENABLED] = enabled;
    memory_health(nvml, health);
    link_health(nvml, health);
    xid_health(nvml, health);
    numbers_read(nvml, health);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; ++i)
        if (CALL(violation, reasons[i], violation) == 0)
            health[HEALTH_THROTTLED_BY_POWER + i] = 1e-9 * (double)violation[VIOLATION_TIME];
}

void nvml_sample(struct nvml *nvml, cudaEvent_t last, const struct conditions *conditions)
{
    if (!nvml)
        return;
    unsigned value;
    u64 reasons;
    if (CALL(clock, CLOCK_SM, &value) == 0)
        *conditions->sm_clock = 1e6 * value;
    if (CALL(throttle, &reasons) == 0 && cudaEventQuery(last) == cudaErrorNotReady) {
        *conditions->throttle_reasons = (int64_t)reasons;
        *conditions->throttled = *conditions->throttled == 1 || (reasons & THROTTLED) != 0;
    }
    if (CALL(clock, CLOCK_MEMORY, &value) == 0)
        *conditions->memory_clock = 1e6 * value;
    if (CALL(temperature, 0, &value) == 0)
        *conditions->temperature = celsius_zero + value;
}

/* Averages the sensor's own samples. Leaves out the first samples of a load, because the sensor is
 * slow and smooths its values (docs/measurements.md, "Power sensor"). */
double nvml_power(struct nvml *nvml, double since)
{
    enum { SAMPLES_MAX = 1024 };
    const double settling = 0.05; /* s */
    struct nvml_power_sample samples[SAMPLES_MAX];
    const u64 after = (u64)(1e6 * (since + settling));
    unsigned count = 0, taken = 0;
    double sum = 0.0;
    int type;
    if (!nvml || CALL(samples, TOTAL_POWER_SAMPLES, after, &type, &count, NULL) != 0 ||
        count > SAMPLES_MAX ||
        CALL(samples, TOTAL_POWER_SAMPLES, after, &type, &count, samples) != 0 ||
        type != UNSIGNED_INT)
        return NAN;
    for (unsigned i = 0; i < count; ++i)
        if (samples[i].time > after) {
            sum += 1e-3 * samples[i].value.number;
            ++taken;
        }
    return taken > 0 ? sum / taken : NAN;
}

double nvml_energy(struct nvml *nvml)
{
    u64 millijoule;
    return nvml && CALL(energy, &millijoule) == 0 ? 1e-3 * (double)millijoule : NAN;
}

enum { LISTED = 64 }; /* most processes, and most samples of their work */

/* Returns the number of processes and lists the first LISTED; -1: unknown. */
static int processes_list(const struct nvml *nvml, struct nvml_process processes[LISTED])
{
    unsigned count = LISTED;
    int status = nvml ? CALL(processes, &count, processes) : -1;
    return status == 0 || status == INSUFFICIENT_SIZE ? (int)count : -1;
}

int nvml_processes(struct nvml *nvml)
{
    struct nvml_process processes[LISTED];
    return processes_list(nvml, processes);
}

/* Returns the highest share of the multiprocessors, %, that a process used in the last 2 s. */
static unsigned busy_most(const struct nvml *nvml, unsigned pid)
{
    const double window = 2.0;
    struct nvml_utilization samples[LISTED];
    unsigned count = LISTED, most = 0;
    u64 after = (u64)(1e6 * fmax(clock_epoch() - window, 0.0));
    if (CALL(utilization, samples, &count, after) != 0)
        return 0;
    for (unsigned i = 0; i < count && i < LISTED; ++i)
        if (samples[i].pid == pid && samples[i].sm > most)
            most = samples[i].sm;
    return most;
}

static void name_read(unsigned pid, char name[32])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(name, 32, file))
        snprintf(name, 32, "unnamed");
    name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
}

/* Leaves out idle workers of other ranks, which keep a context after the roofs of transfers. */
void nvml_others(struct nvml *nvml, char *text, size_t size)
{
    struct nvml_process processes[LISTED];
    char own[32], name[32], one[96];
    const unsigned self = (unsigned)getpid();
    int count = processes_list(nvml, processes), others = 0;
    bool listed = false;
    name_read(self, own);
    for (int i = 0; i < count && i < LISTED; ++i)
        listed |= processes[i].pid == self;
    text[0] = '\0';
    if (!listed)
        return;
    for (int i = 0; i < count && i < LISTED; ++i) {
        const unsigned pid = processes[i].pid, busy = pid == self ? 0 : busy_most(nvml, pid);
        name_read(pid, name);
        if (pid == self || (strcmp(name, own) == 0 && busy == 0))
            continue;
        snprintf(one, sizeof one, "%s (process %u, %u %% busy)", name, pid, busy);
        snprintf(text + strlen(text), size - strlen(text), "%s%s", others ? ", " : "", one);
        ++others;
    }
    if (others == 0)
        snprintf(text, size, "none");
}
