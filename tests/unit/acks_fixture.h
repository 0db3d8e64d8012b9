/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acks_fixture.h - a comm with recovery, for messages that the receiver acknowledges in place of
 * the provider (transport/acks.h).
 */
#ifndef MESH_TESTS_ACKS_FIXTURE_H
#define MESH_TESTS_ACKS_FIXTURE_H

#include "transport/acks.h"

#include "comm_fixture.h"

#define LARGE ((size_t)64 << 10) /* is acknowledged so */
#define MOST MESH_ACKS_BYTES_MAX /* the largest one that is */

static struct mesh_comm *comm;

/* A setup of cmocka's. */
static inline int acks_setup(void **state)
{
	int ret = fixture_setup(state);

	fixture.setup.process.config.recovery = 1;
	return ret;
}

/* One comm is done; the next one of the same test has other settings. */
static inline void acks_begin_anew(void **state)
{
	fixture_comm_close(comm);
	assert_int_equal(fixture_teardown(state), 0);
	assert_int_equal(acks_setup(state), 0);
}

#endif
