#include "ranks/agreement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/device_kind.h"

enum status agreement_reach(MPI_Comm comm, enum status own, struct error *error)
{
    int rank, size, first;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int candidate = own == STATUS_OK ? size : rank;
    MPI_Allreduce(&candidate, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == size)
        return STATUS_OK;
    int status = (int)own;
    MPI_Bcast(&status, 1, MPI_INT, first, comm);
    struct error text = *error;
    MPI_Bcast(text.text, sizeof text.text, MPI_CHAR, first, comm);
    *error = text;
    if (first != 0)
        error_prefix(error, "rank %d", first);
    return (enum status)status;
}

char *agreement_share_text(MPI_Comm comm, const char *text)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    unsigned long long length = rank == 0 ? strlen(text) : 0;
    MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG_LONG, 0, comm);
    char *copy = malloc(length + 1);
    if (!copy)
        MPI_Abort(comm, 1);
    if (rank == 0)
        memcpy(copy, text, length);
    MPI_Bcast(copy, (int)length, MPI_CHAR, 0, comm);
    copy[length] = '\0';
    return copy;
}

static bool same_device(const struct device *a, const struct device *b)
{
    return device_is_open(a) && strcmp(a->kind, b->kind) == 0 &&
           strcmp(a->hostname, b->hostname) == 0 && strcmp(a->uuid, b->uuid) == 0;
}

enum status agreement_check_devices(const struct device *devices, int count, struct error *error)
{
    for (int i = 0; i < count; ++i) {
        const struct device_kind *kind = device_kind_find(devices[i].kind);
        for (int j = 0; j < i && kind && kind->exclusive; ++j)
            if (same_device(&devices[i], &devices[j]))
                return error_set(error, STATUS_DEVICE,
                                 "ranks %d and %d would both measure %s %s (PCI %s) of host %s; "
                                 "start one rank per %s, e.g. srun --ntasks-per-node=GPUS "
                                 "--gpus-per-task=1, or let every rank see all %ss of its node",
                                 j, i, kind->noun, devices[i].uuid, devices[i].pci_id,
                                 devices[i].hostname, kind->noun, kind->noun);
    }
    return STATUS_OK;
}

void agreement_tell_apart(struct device *devices, int count)
{
    /* From the last one on, so that those before it still have the names that they came with. */
    for (int i = count - 1; i >= 0; --i) {
        int place = 1;
        char name[sizeof devices->uuid];
        for (int j = 0; j < i; ++j)
            place += same_device(&devices[i], &devices[j]);
        if (place == 1)
            continue;
        snprintf(name, sizeof name, "%.80s#%d", devices[i].uuid, place);
        memcpy(devices[i].uuid, name, sizeof name);
    }
}

/* The first that is open; NULL: none. */
static const struct device *first_open(const struct device *devices, int count)
{
    for (int i = 0; i < count; ++i)
        if (device_is_open(&devices[i]))
            return &devices[i];
    return NULL;
}

enum status agreement_check_kinds(const struct device *devices, int count, struct error *error)
{
    const struct device *first = first_open(devices, count);
    for (int i = 0; first && i < count; ++i)
        if (device_is_open(&devices[i]) && strcmp(devices[i].kind, first->kind) != 0)
            return error_set(
                error, STATUS_DEVICE,
                "rank %d on %s has a %s device, but rank %d on %s a %s device, and they "
                "would share out one list; mend the GPU, name one kind with --device, or "
                "measure all on each with distribute = replicate",
                (int)(first - devices), first->hostname, first->kind, i, devices[i].hostname,
                devices[i].kind);
    return STATUS_OK;
}
