/* What the CPU device says of machines that are not this one: hwloc builds them, and reads them
 * back from a file as if they were. */
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

/* One package, one memory of 4 GiB of its own, one of 1 GiB; infos: names and values, NULL last. */
static struct topology read_machine(const char *second_memory, const char *const *infos)
{
    hwloc_topology_t tree;
    struct topology topology;
    struct error error;
    char path[] = "/tmp/test_topology.XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(hwloc_topology_init(&tree), 0);
    assert_int_equal(hwloc_topology_set_synthetic(tree,
                                                  "Package:1 [NUMANode(memory=4294967296)] "
                                                  "[NUMANode(memory=1073741824)] Core:1024 PU:1"),
                     0);
    assert_int_equal(hwloc_topology_load(tree), 0);
    hwloc_obj_t package = hwloc_get_obj_by_type(tree, HWLOC_OBJ_PACKAGE, 0);
    for (; *infos; infos += 2)
        hwloc_obj_add_info(package, infos[0], infos[1]);
    hwloc_get_obj_by_type(tree, HWLOC_OBJ_NUMANODE, 1)->subtype = strdup(second_memory);
    assert_int_equal(hwloc_topology_export_xml(tree, path, 0), 0);
    hwloc_topology_destroy(tree);
    setenv("HWLOC_XMLFILE", path, 1);
    if (topology_init(&topology, &error))
        fail_msg("%s", error.text);
    unsetenv("HWLOC_XMLFILE");
    unlink(path);
    return topology;
}

static void check_model(const char *model, const char *const *infos)
{
    struct topology topology = read_machine("DRAM", infos);
    assert_string_equal(topology.model, model);
    topology_clear(&topology);
}

static void models_are_named(void **state)
{
    (void)state;
    check_model("Some CPU @ 3 GHz", (const char *[]){"CPUModel", "Some CPU @ 3 GHz", NULL});
    check_model("ARM Neoverse V2",
                (const char *[]){"CPUImplementer", "0x41", "CPUPart", "0xd4f", NULL});
    check_model("ARM implementer 0x46, part 0xd4f",
                (const char *[]){"CPUImplementer", "0x46", "CPUPart", "0xd4f", NULL});
}

/* A GH200's CPU has memory of its own beside the GPU's, which the system has as a node too. */
static void memory_of_gpus_is_not_the_cpus(void **state)
{
    (void)state;
    struct topology topology = read_machine("GPUMemory", (const char *[]){NULL});
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
