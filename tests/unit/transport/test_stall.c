/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stall.c - messages of the protocol itself that are lost between two living processes.
 *
 * The provider silently drops injected messages when its connection is reset. Here the
 * injecting function does so, by a type of message.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "transport/comm.h"
#include "transport/receive.h"
#include "transport/send.h"

#include "transport_pair.h"

#define MESSAGES 32 /* more than the eager window */

/* How many messages of each type are still to be lost. */
static _Atomic(int) to_lose[MESH_MESSAGE_WRITTEN + 1];

int __real_mesh_remote_inject(struct mesh_domain *domain, struct mesh_remote *remote,
			      const void *bytes, size_t size);
int __wrap_mesh_remote_inject(struct mesh_domain *domain, struct mesh_remote *remote,
			      const void *bytes, size_t size);

int __wrap_mesh_remote_inject(struct mesh_domain *domain, struct mesh_remote *remote,
			      const void *bytes, size_t size)
{
	struct mesh_message_header header;

	memcpy(&header, bytes, sizeof(header));
	if (atomic_load(&to_lose[header.type]) > 0) {
		atomic_fetch_sub(&to_lose[header.type], 1);
		return 0;
	}
	return __real_mesh_remote_inject(domain, remote, bytes, size);
}

static void lose(enum mesh_message_type type, int count)
{
	atomic_store(&to_lose[type], count);
}

static void assert_lost(enum mesh_message_type type)
{
	assert_int_equal(atomic_load(&to_lose[type]), 0);
}

static void test_lost_grant(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair);
	lose(MESH_MESSAGE_GRANT, 1);
	message_move(&pair, 100000, 100000, false);
	assert_lost(MESH_MESSAGE_GRANT);
	message_move(&pair, 100000, 200000, true);
	pair_close(&pair);
}

/* The first receive's grant leaves at once, the others' in one message with the next poll. */
static void test_lost_grants(void **state)
{
	enum {
		DEPTH = 4,
		SIZE = 50000
	};
	struct transfer t[DEPTH];
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair);
	lose(MESH_MESSAGE_GRANT, 2);
	for (i = 0; i < DEPTH; i++) {
		transfer_open(&pair, &t[i], SIZE, SIZE);
		pattern_fill(t[i].source, SIZE, (uint32_t)i);
		assert_int_equal(
			mesh_comm_receive(pair.receive, t[i].target, SIZE, t[i].to, &t[i].receive),
			0);
	}
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(
			mesh_comm_send(pair.send, t[i].source, SIZE, t[i].from, &t[i].send), 0);
	for (i = 0; i < DEPTH; i++) {
		request_finish(t[i].receive, SIZE);
		request_finish(t[i].send, SIZE);
		assert_memory_equal(t[i].source, t[i].target, SIZE);
	}
	assert_lost(MESH_MESSAGE_GRANT);
	for (i = 0; i < DEPTH; i++)
		transfer_close(&pair, &t[i]);
	pair_close(&pair);
}

static void test_lost_want(void **state)
{
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair);
	for (i = 0; i < MESSAGES; i++)
		message_move(&pair, 64, 100000, i % 2); /* from now on grants are held back */
	lose(MESH_MESSAGE_WANT, 1);
	message_move(&pair, 100000, 100000, false);
	assert_lost(MESH_MESSAGE_WANT);
	pair_close(&pair);
}

static void test_lost_posted(void **state)
{
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair);
	lose(MESH_MESSAGE_POSTED, 2); /* one alone is made up for by the next */
	for (i = 0; i < MESSAGES; i++)
		message_move(&pair, 64, 64, false);
	assert_lost(MESH_MESSAGE_POSTED);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_grant),
		cmocka_unit_test(test_lost_grants),
		cmocka_unit_test(test_lost_want),
		cmocka_unit_test(test_lost_posted),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
