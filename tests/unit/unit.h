/* cmocka, with what it needs before it. The state that it gives to each test few of them need, so
 * parameters may be unused from here on. */
#ifndef ROOFSWEEP_TEST_UNIT_H
#define ROOFSWEEP_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#endif
