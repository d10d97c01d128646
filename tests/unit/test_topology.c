/* What the CPU device says of machines that are not this one. */
#include <hwloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "worker/cpu/topology.h"

static FILE *create_file(char *path)
{
    strcpy(path, "/tmp/test_topology.XXXXXX");
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    return file;
}

static void check_model(const char *expected, const char *cpuinfo)
{
    char path[32], model[96];
    FILE *file = create_file(path);
    fputs(cpuinfo, file);
    fclose(file);
    topology_model(path, model, sizeof model);
    unlink(path);
    assert_string_equal(model, expected);
}

static void models_are_named(void **state)
{
    (void)state;
    check_model("Some CPU @ 3 GHz",
                "processor\t: 0\nmodel\t\t: 1\nmodel name\t: Some CPU @ 3 GHz\n");
    check_model("ARM Neoverse V2", "processor\t: 0\nCPU implementer\t: 0x41\n"
                                   "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n");
    check_model("ARM implementer 0x46, part 0xd4f", "CPU implementer\t: 0x46\nCPU part\t: 0xd4f\n");
    check_model("", "processor\t: 0\n");
}

/* A package with a memory of 4 GiB of its own, and one of 1 GiB that the system has as a node too:
 * on a GH200 that is the GPU's. hwloc builds it, and reads it back as if it were this machine. */
static void memory_of_gpus_is_not_the_cpus(void **state)
{
    static const char machine[] = "Package:1 [NUMANode(memory=4294967296)] "
                                  "[NUMANode(memory=1073741824)] Core:1024 PU:1";
    (void)state;
    hwloc_topology_t tree;
    struct topology topology;
    struct error error;
    char path[32];
    fclose(create_file(path));
    assert_int_equal(hwloc_topology_init(&tree), 0);
    assert_int_equal(hwloc_topology_set_synthetic(tree, machine), 0);
    assert_int_equal(hwloc_topology_load(tree), 0);
    hwloc_get_obj_by_type(tree, HWLOC_OBJ_NUMANODE, 1)->subtype = strdup("GPUMemory");
    assert_int_equal(hwloc_topology_export_xml(tree, path, 0), 0);
    hwloc_topology_destroy(tree);
    setenv("HWLOC_XMLFILE", path, 1);
    if (topology_init(&topology, &error))
        fail_msg("%s", error.text);
    unsetenv("HWLOC_XMLFILE");
    unlink(path);
    assert_true(topology.memory == 4.0 * 1024 * 1024 * 1024);
    topology_clear(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_named),
        cmocka_unit_test(memory_of_gpus_is_not_the_cpus),
    };
    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
