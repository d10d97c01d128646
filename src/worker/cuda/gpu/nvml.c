#include "worker/cuda/gpu/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* The part of NVML's stable interface that is used here; nvml.h is often not installed, and the
 * library belongs to the driver, so both are met at run time only. All functions return 0 on
 * success. */
typedef struct nvml_device *nvml_device;
typedef struct nvml_events *nvml_events;
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_TEMPERATURE_GPU = 0 };
/* Clock event reasons: power cap, hardware slowdown, heat (driver and hardware), power brake.
 * Idling, set clocks and synchronised boards are no throttling. */
enum { NVML_HELD_DOWN = 0x04 | 0x08 | 0x20 | 0x40 | 0x80 };
enum { NVML_TOTAL_POWER_SAMPLES = 0, NVML_VALUE_UNSIGNED_INT = 1 };
struct nvml_power_sample {   /* nvmlSample_t */
    unsigned long long time; /* us since 1970-01-01T00:00:00Z */
    union {
        double d;
        unsigned milliwatt;
        unsigned long long ull;
    } value;
};

struct nvml_process { /* nvmlProcessInfo_t */
    unsigned pid;
    unsigned long long memory;
    unsigned instance, part;
};
struct nvml_utilization { /* nvmlProcessUtilizationSample_t */
    unsigned pid;
    unsigned long long time;             /* us since 1970-01-01T00:00:00Z */
    unsigned sm, memory, encode, decode; /* per cent */
};

enum { VIOLATION_REFERENCE /* us */, VIOLATION_TIME /* ns */, VIOLATION /* nvmlViolationTime_t */ };
enum { BANKS_NONE = 4, BANKS }; /* nvmlRowRemapperHistogramValues_t: by spare rows, all to none */
struct nvml_field {             /* nvmlFieldValue_t */
    unsigned id, scope;
    long long time, latency;
    int type, status;
    union {
        double d;
        unsigned number;
        unsigned long long ull;
    } value;
};

enum { EVENT_XID = 8 };
struct nvml_event { /* nvmlEventData_t */
    nvml_device device;
    unsigned long long kind, xid;
    unsigned instance, part;
};
/* Errors that a program causes by itself; NVIDIA's device plugin for Kubernetes takes a GPU out of
 * service over all others. */
static const unsigned xids_of_programs[] = {13, 31, 43, 45, 68, 109};

/* Health that is one number of an unsigned. */
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

struct nvml {
    void *library;
    nvml_device device;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_pci)(const char *pci_id, nvml_device *device);
    int (*driver)(char *text, unsigned size);
    int (*clock)(nvml_device device, int domain, unsigned *mhz);
    int (*clock_max)(nvml_device device, int domain, unsigned *mhz);
    int (*power_limit)(nvml_device device, unsigned *milliwatt);
    int (*temperature)(nvml_device device, int sensor, unsigned *celsius);
    int (*throttle)(nvml_device device, unsigned long long *reasons);
    int (*energy)(nvml_device device, unsigned long long *millijoule);
    int (*ecc)(nvml_device device, int *current, int *pending);
    int (*mig)(nvml_device device, unsigned *current, unsigned *pending);
    int (*processes)(nvml_device device, unsigned *count, struct nvml_process *processes);
    int (*utilization)(nvml_device device, struct nvml_utilization *samples, unsigned *count,
                       unsigned long long after);
    int (*samples)(nvml_device device, int kind, unsigned long long after, int *type,
                   unsigned *count, struct nvml_power_sample *samples);
    int (*vbios)(nvml_device device, char *text, unsigned size);
    int (*inforom)(nvml_device device, char *text, unsigned size);
    int (*numbers[NUMBERS])(nvml_device device, unsigned *value);
    int (*ecc_errors)(nvml_device device, int uncorrected, int ever, unsigned long long *count);
    int (*remapped)(nvml_device device, unsigned *corrected, unsigned *uncorrected,
                    unsigned *pending, unsigned *failed);
    int (*spares)(nvml_device device, unsigned banks[BANKS]);
    int (*retired)(nvml_device device, int uncorrected, unsigned *count,
                   unsigned long long *addresses);
    int (*link)(nvml_device device, unsigned link, unsigned *active);
    int (*link_errors)(nvml_device device, unsigned link, int kind, unsigned long long *count);
    int (*violation)(nvml_device device, int reason, unsigned long long violation[VIOLATION]);
    int (*fields)(nvml_device device, int count, struct nvml_field *fields);
    int (*events_create)(nvml_events *events);
    int (*events_register)(nvml_device device, unsigned long long kinds, nvml_events events);
    int (*events_wait)(nvml_events events, struct nvml_event *event, unsigned ms);
    nvml_events events;       /* NULL: the driver does not tell of XIDs */
    double xids[2], xid_last; /* so far: of the device, of programs */
};

/* Entry points; those that a driver may lack are NULL then. */
static const struct {
    const char *name;
    size_t member;
    bool required;
} entries[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init), true},
    {"nvmlShutdown", offsetof(struct nvml, shutdown), true},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct nvml, by_pci), true},
    {"nvmlSystemGetDriverVersion", offsetof(struct nvml, driver), true},
    {"nvmlDeviceGetClockInfo", offsetof(struct nvml, clock), true},
    {"nvmlDeviceGetMaxClockInfo", offsetof(struct nvml, clock_max), true},
    {"nvmlDeviceGetEnforcedPowerLimit", offsetof(struct nvml, power_limit), true},
    {"nvmlDeviceGetTemperature", offsetof(struct nvml, temperature), true},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct nvml, throttle), false},
    {"nvmlDeviceGetTotalEnergyConsumption", offsetof(struct nvml, energy), false},
    {"nvmlDeviceGetEccMode", offsetof(struct nvml, ecc), true},
    {"nvmlDeviceGetMigMode", offsetof(struct nvml, mig), false},
    {"nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct nvml, processes), false},
    {"nvmlDeviceGetProcessUtilization", offsetof(struct nvml, utilization), false},
    {"nvmlDeviceGetSamples", offsetof(struct nvml, samples), false},
    {"nvmlDeviceGetVbiosVersion", offsetof(struct nvml, vbios), false},
    {"nvmlDeviceGetInforomImageVersion", offsetof(struct nvml, inforom), false},
    {"nvmlDeviceGetTotalEccErrors", offsetof(struct nvml, ecc_errors), false},
    {"nvmlDeviceGetRemappedRows", offsetof(struct nvml, remapped), false},
    {"nvmlDeviceGetRowRemapperHistogram", offsetof(struct nvml, spares), false},
    {"nvmlDeviceGetRetiredPages", offsetof(struct nvml, retired), false},
    {"nvmlDeviceGetNvLinkState", offsetof(struct nvml, link), false},
    {"nvmlDeviceGetNvLinkErrorCounter", offsetof(struct nvml, link_errors), false},
    {"nvmlDeviceGetViolationStatus", offsetof(struct nvml, violation), false},
    {"nvmlDeviceGetFieldValues", offsetof(struct nvml, fields), false},
    {"nvmlEventSetCreate", offsetof(struct nvml, events_create), true},
    {"nvmlDeviceRegisterEvents", offsetof(struct nvml, events_register), true},
    {"nvmlEventSetWait_v2", offsetof(struct nvml, events_wait), true},
};

static bool nvml_bind(struct nvml *nvml)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i) {
        void *symbol = dlsym(nvml->library, entries[i].name);
        if (!symbol && entries[i].required)
            return false;
        memcpy((char *)nvml + entries[i].member, &symbol, sizeof symbol);
    }
    for (size_t i = 0; i < NUMBERS; ++i) {
        void *symbol = dlsym(nvml->library, numbers[i].name);
        memcpy(&nvml->numbers[i], &symbol, sizeof symbol);
    }
    return true;
}

struct nvml *nvml_open(const char *pci_id)
{
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return NULL;
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        goto free_nvml;
    if (!nvml_bind(nvml) || nvml->init() != 0)
        goto close_library;
    if (nvml->by_pci(pci_id, &nvml->device) != 0)
        goto shut_down;
    if (nvml->events_create(&nvml->events) != 0 ||
        nvml->events_register(nvml->device, EVENT_XID, nvml->events) != 0)
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

void nvml_describe(struct nvml *nvml, struct device *device)
{
    if (!nvml)
        return;
    unsigned value, pending;
    char driver[sizeof device->driver_version];
    if (nvml->driver(driver, sizeof driver) == 0)
        memcpy(device->driver_version, driver, sizeof driver);
    if (nvml->clock_max(nvml->device, NVML_CLOCK_SM, &value) == 0)
        device->clock_max = 1e6 * value;
    if (nvml->clock_max(nvml->device, NVML_CLOCK_MEMORY, &value) == 0)
        device->memory_clock_max = 1e6 * value;
    if (nvml->power_limit(nvml->device, &value) == 0)
        device->power_limit = 1e-3 * value;
    if (nvml->mig && nvml->mig(nvml->device, &value, &pending) == 0)
        device->mig = value != 0;
    char text[32];
    if (nvml->vbios && nvml->vbios(nvml->device, text, sizeof text) == 0)
        snprintf(device->system, sizeof device->system, "VBIOS %s, ", text);
    if (nvml->inforom && nvml->inforom(nvml->device, text, sizeof text) == 0)
        snprintf(device->system + strlen(device->system), 48, "InfoROM %s, ", text);
}

static const double celsius_zero = 273.15;
enum { INSUFFICIENT_SIZE = 7 }; /* the number of elements is then set */

/* Values that NVML tells together stand in the order of NVML in enum health, too. */
static void memory_health(const struct nvml *nvml, double *health)
{
    enum { MEMORY_TEMPERATURE = 82 };
    struct nvml_field temperature = {.id = MEMORY_TEMPERATURE};
    unsigned long long errors;
    unsigned rows[4], banks[BANKS];
    for (int kind = 0; kind < 2; ++kind) { /* corrected, uncorrected */
        unsigned pages = 0;
        int status = nvml->retired ? nvml->retired(nvml->device, kind, &pages, NULL) : -1;
        if (status == 0 || status == INSUFFICIENT_SIZE)
            health[HEALTH_RETIRED_CORRECTED + kind] = pages;
        for (int ever = 0; ever < 2; ++ever)
            if (nvml->ecc_errors && nvml->ecc_errors(nvml->device, kind, ever, &errors) == 0)
                health[HEALTH_ECC_CORRECTED + kind + 2 * ever] = (double)errors;
    }
    if (nvml->remapped && nvml->remapped(nvml->device, &rows[0], &rows[1], &rows[2], &rows[3]) == 0)
        for (int i = 0; i < 4; ++i)
            health[HEALTH_REMAPPED_CORRECTED + i] = rows[i];
    if (nvml->spares && nvml->spares(nvml->device, banks) == 0)
        health[HEALTH_BANKS_WITHOUT_SPARES] = banks[BANKS_NONE];
    if (nvml->fields && nvml->fields(nvml->device, 1, &temperature) == 0 &&
        temperature.status == 0 && temperature.type == NVML_VALUE_UNSIGNED_INT &&
        temperature.value.number > 0)
        health[HEALTH_MEMORY_TEMPERATURE] = celsius_zero + temperature.value.number;
}

/* Over all links: replays, recoveries and wrong checksums of flits. A GPU without NVLink has none.
 */
static void link_health(const struct nvml *nvml, double *health)
{
    enum { NVLINKS_MAX = 18, ERROR_KINDS = 3 };
    double *links = &health[HEALTH_NVLINKS_ACTIVE], *errors = &health[HEALTH_NVLINK_ERRORS];
    unsigned long long count;
    unsigned active;
    for (unsigned link = 0; nvml->link && link < NVLINKS_MAX; ++link) {
        if (nvml->link(nvml->device, link, &active) != 0)
            return;
        *links = fmax(*links, 0) + (active != 0);
        for (int kind = 0; active && nvml->link_errors && kind < ERROR_KINDS; ++kind)
            if (nvml->link_errors(nvml->device, link, kind, &count) == 0)
                *errors = fmax(*errors, 0) + (double)count;
    }
}

static void xid_health(struct nvml *nvml, double *health)
{
    struct nvml_event event;
    if (!nvml->events)
        return;
    while (nvml->events_wait(nvml->events, &event, 0) == 0) {
        bool of_program = false;
        for (size_t i = 0; i < sizeof xids_of_programs / sizeof *xids_of_programs; ++i)
            of_program |= event.xid == xids_of_programs[i];
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
    unsigned long long violation[VIOLATION];
    unsigned value;
    int enabled, pending;
    for (int i = 0; i < HEALTH_COUNT; ++i)
        health[i] = NAN;
    if (!nvml)
        return;
    if (nvml->ecc && nvml->ecc(nvml->device, &enabled, &pending) == 0)
        health[HEALTH_ECC_ENABLED] = enabled;
    memory_health(nvml, health);
    link_health(nvml, health);
    xid_health(nvml, health);
    for (size_t i = 0; i < NUMBERS; ++i)
        if (nvml->numbers[i] && nvml->numbers[i](nvml->device, &value) == 0)
            health[numbers[i].health] = numbers[i].unit * value;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; ++i)
        if (nvml->violation && nvml->violation(nvml->device, reasons[i], violation) == 0)
            health[HEALTH_THROTTLED_BY_POWER + i] = 1e-9 * (double)violation[VIOLATION_TIME];
}

void nvml_sample(struct nvml *nvml, cudaEvent_t last, const struct conditions *seen)
{
    if (!nvml)
        return;
    unsigned value;
    unsigned long long reasons;
    if (nvml->clock(nvml->device, NVML_CLOCK_SM, &value) == 0)
        *seen->sm_clock = 1e6 * value;
    if (nvml->throttle && nvml->throttle(nvml->device, &reasons) == 0 &&
        cudaEventQuery(last) == cudaErrorNotReady) {
        *seen->throttle_reasons = (int64_t)reasons;
        *seen->throttled = *seen->throttled == 1 || (reasons & NVML_HELD_DOWN) != 0;
    }
    if (nvml->clock(nvml->device, NVML_CLOCK_MEMORY, &value) == 0)
        *seen->memory_clock = 1e6 * value;
    if (nvml->temperature(nvml->device, NVML_TEMPERATURE_GPU, &value) == 0)
        *seen->temperature = celsius_zero + value;
}

/* Mean of the sensor's own samples. The sensor is slow and smooths its values, so the first samples
 * of a load are left out: docs/measurements.md, Power sensor. */
double nvml_power(struct nvml *nvml, double since)
{
    enum { SAMPLES_MAX = 1024 };
    const double settling = 0.05;
    struct nvml_power_sample samples[SAMPLES_MAX];
    const unsigned long long after = (unsigned long long)(1e6 * (since + settling));
    unsigned count = 0, taken = 0;
    double sum = 0.0;
    int type;
    if (!nvml || !nvml->samples ||
        nvml->samples(nvml->device, NVML_TOTAL_POWER_SAMPLES, after, &type, &count, NULL) != 0 ||
        count > SAMPLES_MAX ||
        nvml->samples(nvml->device, NVML_TOTAL_POWER_SAMPLES, after, &type, &count, samples) != 0 ||
        type != NVML_VALUE_UNSIGNED_INT)
        return NAN;
    for (unsigned i = 0; i < count; ++i)
        if (samples[i].time > after) {
            sum += 1e-3 * samples[i].value.milliwatt;
            ++taken;
        }
    return taken > 0 ? sum / taken : NAN;
}

double nvml_energy(struct nvml *nvml)
{
    unsigned long long millijoule;
    bool known = nvml && nvml->energy && nvml->energy(nvml->device, &millijoule) == 0;
    return known ? 1e-3 * (double)millijoule : NAN;
}

enum { LISTED = 64 }; /* processes, and samples of their work */

/* -1: not known. `processes` are the first LISTED. */
static int processes_list(const struct nvml *nvml, struct nvml_process processes[LISTED])
{
    unsigned count = LISTED;
    int status = nvml && nvml->processes ? nvml->processes(nvml->device, &count, processes) : -1;
    return status == 0 || status == INSUFFICIENT_SIZE ? (int)count : -1;
}

int nvml_processes(struct nvml *nvml)
{
    struct nvml_process processes[LISTED];
    return processes_list(nvml, processes);
}

/* Per cent: the most that a process was seen to use of the multiprocessors within two seconds. */
static unsigned busy_most(const struct nvml *nvml, unsigned pid)
{
    const double window = 2.0;
    struct nvml_utilization samples[LISTED];
    unsigned count = LISTED, most = 0;
    unsigned long long after = (unsigned long long)(1e6 * fmax(clock_epoch() - window, 0.0));
    if (!nvml->utilization || nvml->utilization(nvml->device, samples, &count, after) != 0)
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

/* The workers of the other ranks keep contexts here from the roofs of transfers: they count only if
 * they are seen to work. */
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
