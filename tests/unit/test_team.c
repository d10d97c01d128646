/* The team of four threads on the processors that there are, be they fewer. */
#include <omp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/cpu/team.h"

enum { THREADS = 4 };

/* Into how many processors each thread of a region may go. */
static void widths_find(int threads, int widths[THREADS])
{
#pragma omp parallel num_threads(threads)
    {
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof set, &set);
        widths[omp_get_thread_num()] = CPU_COUNT(&set);
    }
}

/* A smaller region ends threads. Those that come after have the processors of all, not one thread's. */
static void threads_of_a_loose_team_are_not_on_one_core(void **state)
{
    (void)state;
    cpu_set_t all;
    int cpus[THREADS], found = 0, widths[THREADS];
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        skip();
    for (int i = 0, cpu = 0; i < THREADS; cpu = (cpu + 1) % CPU_SETSIZE)
        if (CPU_ISSET(cpu, &all))
            cpus[i++] = cpu;
    found = CPU_COUNT(&all) < THREADS ? CPU_COUNT(&all) : THREADS;
    struct topology topology = {
        .cores = THREADS, .cpus = cpus, .mask = &all, .mask_size = sizeof all};
    struct error error;
    assert_int_equal(team_bind(&topology, &error), STATUS_OK);
    widths_find(THREADS, widths);
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(widths[i], 1);
    team_loosen(&topology);
    widths_find(2, widths);
    widths_find(THREADS, widths);
    assert_int_equal(widths[0], found);
    for (int i = 2; i < THREADS; ++i)
        assert_int_equal(widths[i], found);
    assert_int_equal(team_bind(&topology, &error), STATUS_OK);
    widths_find(THREADS, widths);
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(widths[i], 1);
    team_unbind(&topology);
    widths_find(THREADS, widths);
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(widths[i], CPU_COUNT(&all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_of_a_loose_team_are_not_on_one_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
