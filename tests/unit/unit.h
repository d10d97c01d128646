/* cmocka, with what it needs before it. The state that it gives to each test few of them need, so
 * parameters may be unused from here on. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"
