/* SPDX-License-Identifier: Apache-2.0 */
/* comm_fixture.h - comm_stage.h for unit tests, whose frame is unit.h. */
#ifndef MESH_TESTS_COMM_FIXTURE_H
#define MESH_TESTS_COMM_FIXTURE_H

#include "comm_stage.h"
#include "unit.h"

static inline void process_take(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
}

static inline void process_release(void)
{
	mesh_lock_release(&fixture.setup.process.lock);
}

#endif
