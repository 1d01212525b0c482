/* tests/unit/unit.h - cmocka with the headers that it wants first. */
#ifndef WEIR_TESTS_UNIT_UNIT_H
#define WEIR_TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
