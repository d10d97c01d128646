/* Two ranks on one GPU are refused, as is a list shared by GPUs and CPUs. */

#include "unit.h"

#include <string.h>

#include "model/device_kind.h"
#include "ranks/devices.h"

static struct device device(const char *kind, const char *host, const char *uuid)
{
    struct device device;
    device_init(&device);
    strcpy(device.kind, kind);
    strcpy(device.hostname, host);
    strcpy(device.uuid, uuid);
    return device;
}

TEST(a_gpu_with_two_ranks_is_refused)
{
    struct device devices[] = {device("cuda", "n1", "GPU-a"), device("cuda", "n1", "GPU-b"),
                               device("cuda", "n1", "GPU-a")};
    assert_fails(devices_number_shared(devices, 3, &failure), STATUS_DEVICE, "ranks 0 and 2");
    assert_says(failure.text, "GPU-a");
    assert_says(failure.text, "srun --ntasks-per-node=3 --gpus-per-task=1");
}

TEST(different_devices_are_accepted)
{
    struct device devices[] = {device("cuda", "n1", "GPU-a"),     device("cuda", "n1", "GPU-b"),
                               device("cuda", "n2", "GPU-a"),     device("cpu", "n1", "cpu-n1-0-1"),
                               device("cpu", "n1", "cpu-n1-0-1"), device("cuda", "n3", "MIG-a"),
                               device("cuda", "n3", "MIG-b")};
    assert_ok(devices_number_shared(devices, 7, &failure));
}

/* device_kinds[] says which kinds are exclusive. binding.h reports ranks on the same cores. */
TEST(exclusive_kinds_are_not_shared)
{
    for (int i = 0; i < DEVICE_KINDS; ++i) {
        struct device devices[] = {device(device_kinds[i].name, "n1", "a"),
                                   device(device_kinds[i].name, "n1", "a")};
        if (device_kinds[i].exclusive)
            assert_fails(devices_number_shared(devices, 2, &failure), STATUS_DEVICE,
                         device_kinds[i].noun);
        else
            assert_ok(devices_number_shared(devices, 2, &failure));
    }
}

/* With more ranks than cores each rank is a device of its own, so that --resume does not confuse
 * their rows. */
TEST(ranks_on_the_same_cores_get_names)
{
    static const char *const names[] = {"cpu-n1-0-1", "cpu-n1-0-1#2", "cpu-n1-2",
                                        "cpu-n1-0-1", "cpu-n1-0-1#3", ""};
    struct device devices[] = {device("cpu", "n1", "cpu-n1-0-1"), device("cpu", "n1", "cpu-n1-0-1"),
                               device("cpu", "n1", "cpu-n1-2"),   device("cpu", "n2", "cpu-n1-0-1"),
                               device("cpu", "n1", "cpu-n1-0-1"), device("cpu", "n1", "")};
    assert_ok(devices_number_shared(devices, 6, &failure));
    for (int i = 0; i < 6; ++i)
        assert_string_equal(devices[i].uuid, names[i]);
}

TEST(mixed_kinds_are_refused)
{
    struct device devices[] = {device("cuda", "n1", "GPU-a"), device("cuda", "n1", "GPU-b"),
                               device("cpu", "n2", "cpu-n2-0-1")};
    assert_ok(devices_check_kinds(devices, 2, &failure));
    assert_fails(devices_check_kinds(devices, 3, &failure), STATUS_DEVICE,
                 "rank 2 on n2 a cpu device");
    assert_says(failure.text, "replicate");
}

/* A device that never opened has only host and kind. */
TEST(lost_devices_are_ignored)
{
    struct device devices[] = {device("cuda", "n1", ""), device("cuda", "n1", ""),
                               device("cpu", "n2", "cpu-n2-0-1"), device("cuda", "n1", "GPU-a")};
    assert_ok(devices_number_shared(devices, 4, &failure));
    assert_ok(devices_check_kinds(devices, 3, &failure));
    assert_fails(devices_check_kinds(devices, 4, &failure), STATUS_DEVICE,
                 "rank 2 on n2 has a cpu device, but rank 3 on n1");
}
