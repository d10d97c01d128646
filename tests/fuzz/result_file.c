/* A result file as C reads it, [peaks] reuse: with variables, dimensions and attributes that are
 * missing, of another type or rank, with other values, and with bits that are flipped. The input
 * says what is changed. What can be read holds what a device can have measured. */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "results/earlier.h"
#include "results/results_nc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input, number by number; 0 after its end. */
struct input {
    const uint8_t *at, *end;
};

static unsigned take(struct input *input, unsigned below)
{
    unsigned value = 0;
    for (int i = 0; i < 3 && input->at < input->end; ++i)
        value = value << 8 | *input->at++;
    return below > 0 ? value % below : 0;
}

/* The bytes of a file of one device, once made. */
static const uint8_t *original(size_t *size)
{
    static uint8_t bytes[1 << 20];
    static size_t length;
    char path[] = "/tmp/roofsweep-fuzz-XXXXXX";
    struct device device;
    struct results *results = length > 0 ? NULL : results_create();
    struct error error;
    *size = length;
    if (length > 0)
        return bytes;
    results_nc_prepare();
    device_init(&device);
    strcpy(device.key, "k");
    strcpy(device.uuid, "GPU-1");
    for (int kind = 0; kind < 3; ++kind) {
        struct roof roof;
        double seconds[] = {1, 2, 3};
        roof_init(&roof, kind, ROOF_ALONE);
        roof_set_samples(&roof, 1e12, seconds, 3);
        device_add_roof(&device, &roof);
    }
    close(mkstemp(path));
    if (!results || results_add_device(results, &device, &error) ||
        results_nc_write(results, path, NULL, &error))
        abort();
    results_destroy(results);
    FILE *stream = fopen(path, "rb");
    *size = length = stream ? fread(bytes, 1, sizeof bytes, stream) : 0;
    if (length == 0 || fclose(stream))
        abort();
    unlink(path);
    return bytes;
}

/* One change through netCDF, which may refuse it. */
static void change(int file, struct input *input)
{
    static const nc_type types[] = {NC_BYTE, NC_CHAR, NC_INT, NC_UINT64, NC_DOUBLE, NC_STRING};
    static const double numbers[] = {-1, 0, 1e-300, 1e308, 9e18, 3e9};
    static const char *const texts[] = {"", "dram read", "\xff\n\x1b[2J", NULL};
    int variables = 0, dimensions = 0, variable, type, attributes = 0, ids[2], found;
    const size_t first[] = {0, 0}, lengths[] = {1, 2, 1000};
    char name[NC_MAX_NAME + 1];
    nc_inq_nvars(file, &variables);
    nc_inq_ndims(file, &dimensions);
    unsigned what = take(input, 7);
    variable = (int)take(input, (unsigned)variables);
    type = (int)take(input, sizeof types / sizeof *types);
    unsigned value = take(input, sizeof numbers / sizeof *numbers);
    ids[0] = (int)take(input, (unsigned)dimensions);
    ids[1] = (int)take(input, (unsigned)dimensions);
    switch (what) {
    case 0: /* the variable has another name */
    case 1: /* ... and one of another type and rank has its name */
        nc_inq_varname(file, variable, name);
        nc_rename_var(file, variable, "renamed");
        if (what == 1)
            nc_def_var(file, name, types[type], (int)take(input, 3), ids, &found);
        break;
    case 2: /* a dimension has another name */
        nc_rename_dim(file, ids[0], "renamed");
        break;
    case 3: /* an attribute of another type, longer than its reader thinks, or none */
        nc_inq_natts(file, &attributes);
        if (nc_inq_attname(file, NC_GLOBAL, (int)take(input, (unsigned)attributes), name))
            break;
        nc_del_att(file, NC_GLOBAL, name);
        if (value < 3) {
            long long many[1000] = {0};
            many[0] = 2;
            nc_put_att_longlong(file, NC_GLOBAL, name, types[type], lengths[value], many);
        }
        break;
    case 4: /* a number of a variable, which has one or two dimensions */
        nc_put_var1_double(file, variable, first, &numbers[value]);
        break;
    case 5:
        nc_put_var1_string(file, variable, first, (const char **)&texts[value % 4]);
        break;
    default: /* a dimension that is longer than memory */
        nc_inq_varname(file, variable, name);
        nc_rename_dim(file, ids[0], "renamed");
        nc_def_dim(file, ids[1] % 2 ? "device" : "device_roof", (size_t)1 << (14 + 8 * value),
                   &found);
        break;
    }
}

/* Renaming can leave a variable whose dimension netCDF itself no longer finds. */
static bool has_dimensions(const char *path)
{
    int file, variables, rank, ids[NC_MAX_VAR_DIMS];
    size_t length;
    bool all =
        nc_open(path, NC_NOWRITE, &file) == NC_NOERR && nc_inq_nvars(file, &variables) == NC_NOERR;
    for (int variable = 0; all && variable < variables; ++variable) {
        all = nc_inq_var(file, variable, NULL, NULL, &rank, ids, NULL) == NC_NOERR;
        for (int i = 0; all && i < rank; ++i)
            all = nc_inq_dimlen(file, ids[i], &length) == NC_NOERR;
    }
    return all;
}

/* HDF5 may crash over flipped bits, but over nothing that netCDF has made. */
static void file_read(const char *path, bool flipped)
{
    struct device *devices = NULL;
    struct error error = {""}, wrong;
    size_t count = 0;
    if (earlier_roofs_read(path, &devices, &count, &error)) {
        if (!*error.text || devices || (!flipped && strstr(error.text, "damaged")))
            abort();
        return;
    }
    for (size_t i = 0; i < count; ++i)
        if (device_check(&devices[i], &wrong))
            abort();
    free(devices);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    char path[] = "/tmp/roofsweep-fuzz-XXXXXX";
    size_t length;
    const uint8_t *bytes = original(&length);
    int fd = mkstemp(path), file;
    if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
        abort();
    bool flipped = take(&input, 2) != 0;
    if (!flipped) {
        pid_t changer = fork(); /* netCDF may crash over these changes */
        if (changer == 0) {
            if (nc_open(path, NC_WRITE, &file))
                _exit(1);
            for (int i = 0; i < 8 && input.at < input.end; ++i)
                change(file, &input);
            nc_close(file);
            _exit(!has_dimensions(path));
        }
        int ended = 1;
        waitpid(changer, &ended, 0);
        flipped = ended != 0;
    } else {
        for (int i = 0; i < 8 && input.at < input.end; ++i) {
            off_t at = (off_t)take(&input, (unsigned)length);
            const uint8_t byte = bytes[at] ^ (uint8_t)(1 << take(&input, 8));
            if (pwrite(fd, &byte, 1, at) != 1)
                abort();
        }
    }
    file_read(path, flipped);
    close(fd);
    unlink(path);
    return 0;
}
