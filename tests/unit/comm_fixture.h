/* SPDX-License-Identifier: Apache-2.0 */
/* comm_fixture.h - comm_stage.h for unit tests, which use cmocka. */
#ifndef MESH_TESTS_COMM_FIXTURE_H
#define MESH_TESTS_COMM_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm_stage.h"

#endif
