/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_traps.c - what NCCL does to a plugin that is in no header: one test for each trap that the
 * transport has to bear. Those that src/nccl takes care of are in test_plugin.c; each transfer of
 * fabric_pingpong has receives that are larger than their messages, and registers beside them.
 */
#include <dlfcn.h>

#include "base/clock.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "transport/comm_life.h"
#include "transport/data.h"

#include "transport_pair.h"

/* A call that blocks would wait for the network; one that does not takes microseconds. */
#define AT_ONCE_MS 5000

TEST(trap_init_comes_many_times)
{
	struct mesh_net *nets[5];
	int i, num;

	for (i = 0; i < 5; i++)
		assert_int_equal(mesh_net_open(&nets[i]), 0);
	num = mesh_net_num_nics();
	for (i = 0; i < 5; i++)
		mesh_net_close(nets[i]);
	/* Devices stay what they were: NCCL reads them once. */
	assert_int_equal(mesh_net_num_nics(), num);
	assert_non_null(mesh_net_nic(0));
	assert_null(mesh_net_nic(num));
}

/* The probe for GPUDirect and the bootstrap pass a char array: no alignment. */
TEST(trap_handle_has_any_alignment)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	struct pair pair = {.send = NULL};
	struct mesh_listener *listener;
	char space[MESH_HANDLE_BYTES + 8];
	char *handle = space + 3;

	assert_int_equal(mesh_net_open(&pair.net), 0);
	assert_int_equal(mesh_net_listen(pair.net, 0, handle, &listener), 0);
	while (!pair.send || !pair.receive) {
		assert_true(mesh_clock_ms() < deadline);
		if (!pair.send)
			assert_int_equal(mesh_net_connect(pair.net, 0, handle, &pair.send), 0);
		if (!pair.receive)
			assert_int_equal(mesh_listener_accept(listener, &pair.receive), 0);
	}
	mesh_listener_close(listener);
	message_move(&pair, 100, 200, false);
	pair_close(&pair);
}

/* One thread polls all connections in turn: none may wait for its own. */
TEST(trap_nothing_blocks_while_connecting)
{
	uint8_t handle[MESH_HANDLE_BYTES];
	struct mesh_listener *listener;
	struct mesh_comm *comm = NULL;
	struct mesh_net *net;
	uint64_t start;

	assert_int_equal(mesh_net_open(&net), 0);
	start = mesh_clock_ms();
	assert_int_equal(mesh_net_listen(net, 0, handle, &listener), 0);
	for (int i = 0; i < 10; i++) {
		/* No connection: success, and no comm. */
		assert_int_equal(mesh_listener_accept(listener, &comm), 0);
		assert_null(comm);
	}
	assert_true(mesh_clock_ms() - start < AT_ONCE_MS);
	mesh_listener_close(listener);
	mesh_net_close(net);
}

/* On abort NCCL closes neither listeners nor half open connections: finalize has to. */
TEST(trap_finalize_closes_what_is_left)
{
	uint8_t handle[MESH_HANDLE_BYTES], other[MESH_HANDLE_BYTES];
	struct mesh_listener *listener;
	struct mesh_registration *left;
	struct mesh_comm *comm = NULL;
	static char memory[4096];
	struct pair pair;

	pair_open(&pair);
	assert_int_equal(mesh_registration_open(pair.send, memory, sizeof(memory), &left), 0);
	assert_int_equal(mesh_net_listen(pair.net, 0, handle, &listener), 0);
	assert_int_equal(mesh_net_listen(pair.net, 0, other, &listener), 0);
	assert_int_equal(mesh_net_connect(pair.net, 0, handle, &comm), 0);
	mesh_net_close(pair.net); /* ASan looks for what it forgot */
}

/* NCCL registers one pool again for every peer, and ends each registration once. */
TEST(trap_one_pool_registered_again)
{
	enum {
		TIMES = 20
	};
	struct mesh_registration *again[TIMES];
	struct transfer t;
	struct pair pair;

	pair_open(&pair);
	transfer_open(&pair, &t, 100000, 100000);
	for (int i = 0; i < TIMES; i++)
		assert_int_equal(
			mesh_registration_open(pair.receive, t.target + i, 50000, &again[i]), 0);
	for (int i = 0; i < TIMES; i++)
		mesh_registration_close(pair.receive, again[i]);
	pattern_fill(t.source, 100000, 3);
	assert_int_equal(mesh_comm_receive(pair.receive, t.target, 100000, t.to, &t.receive), 0);
	assert_int_equal(mesh_comm_send(pair.send, t.source, 100000, t.from, &t.send), 0);
	request_finish(t.receive, 100000);
	request_finish(t.send, 100000);
	assert_memory_equal(t.source, t.target, 100000);
	transfer_close(&pair, &t);
	pair_close(&pair);
}

/* 32 requests at once; the next one is "later", not an error, and only the oldest is tested. */
TEST(trap_requests_outstanding_and_reaped_in_order)
{
	struct transfer t[MESH_COMM_REQUESTS];
	struct mesh_request *more;
	struct pair pair;
	size_t size;

	pair_open(&pair);
	for (int i = 0; i < MESH_COMM_REQUESTS; i++) {
		transfer_open(&pair, &t[i], 20000, 20000);
		pattern_fill(t[i].source, 20000, (uint32_t)i);
		assert_int_equal(
			mesh_comm_receive(pair.receive, t[i].target, 20000, t[i].to, &t[i].receive),
			0);
		assert_non_null(t[i].receive);
	}
	assert_int_equal(mesh_comm_receive(pair.receive, t[0].target, 20000, t[0].to, &more), 0);
	assert_null(more);
	for (int i = 0; i < MESH_COMM_REQUESTS; i++) {
		size = i % 2 ? 20000 : 100; /* later ones are done before earlier ones */
		assert_int_equal(
			mesh_comm_send(pair.send, t[i].source, size, t[i].from, &t[i].send), 0);
		assert_non_null(t[i].send);
	}
	assert_int_equal(mesh_comm_send(pair.send, t[0].source, 100, t[0].from, &more), 0);
	assert_null(more);
	for (int i = 0; i < MESH_COMM_REQUESTS; i++) {
		size = i % 2 ? 20000 : 100;
		request_finish(t[i].receive, size);
		request_finish(t[i].send, size);
		assert_memory_equal(t[i].source, t[i].target, size);
	}
	for (int i = 0; i < MESH_COMM_REQUESTS; i++)
		transfer_close(&pair, &t[i]);
	pair_close(&pair);
}

TEST(trap_message_larger_than_its_receive_is_an_error)
{
	static const size_t sizes[] = {200, 200000}; /* eager, and written */
	uint64_t deadline;
	struct transfer t;
	struct pair pair;
	int64_t ret;

	for (size_t i = 0; i < 2; i++) {
		pair_open(&pair);
		transfer_open(&pair, &t, sizes[i], sizes[i] - 100);
		assert_int_equal(
			mesh_comm_receive(pair.receive, t.target, sizes[i] - 100, t.to, &t.receive),
			0);
		assert_int_equal(mesh_comm_send(pair.send, t.source, sizes[i], t.from, &t.send), 0);
		deadline = mesh_clock_ms() + LIMIT_MS;
		do {
			assert_true(mesh_clock_ms() < deadline);
			ret = mesh_request_test(t.receive);
		} while (ret == MESH_REQUEST_PENDING);
		assert_int_equal(ret, -EMSGSIZE);
		assert_int_equal(t.target[sizes[i] - 100], 0xee);
		transfer_close(&pair, &t);
		pair_close(&pair);
	}
}

/* There is no barrier at the end: the peer may have closed and freed its memory. */
TEST(trap_peer_closes_first)
{
	struct transfer t;
	struct pair pair;

	pair_open(&pair);
	message_move(&pair, 100000, 100000, false);
	transfer_open(&pair, &t, 1000, 1000);
	mesh_registration_close(pair.receive, t.to);
	t.to = NULL;
	mesh_comm_close(pair.receive);
	pair.receive = NULL;
	mesh_registration_close(pair.send, t.from);
	t.from = NULL;
	mesh_comm_close(pair.send);
	pair.send = NULL;
	transfer_close(&pair, &t);
	pair_close(&pair);
}

/* A receiver that has everything may close before the sender has looked at its requests. */
TEST(trap_receiver_closes_before_sends_are_reaped)
{
	enum {
		ROUNDS = 30,
		DEPTH = 4
	};
	struct transfer t[DEPTH];
	struct pair pair;

	for (int round = 0; round < ROUNDS; round++) {
		pair_open(&pair);
		for (int i = 0; i < DEPTH; i++) {
			transfer_open(&pair, &t[i], 300000, 300000);
			assert_int_equal(mesh_comm_receive(pair.receive, t[i].target, 300000,
							   t[i].to, &t[i].receive),
					 0);
			assert_int_equal(mesh_comm_send(pair.send, t[i].source, 300000, t[i].from,
							&t[i].send),
					 0);
		}
		for (int i = 0; i < DEPTH; i++)
			request_finish(t[i].receive, 300000);
		for (int i = 0; i < DEPTH; i++) {
			mesh_registration_close(pair.receive, t[i].to);
			t[i].to = NULL;
		}
		mesh_comm_close(pair.receive);
		pair.receive = NULL;
		for (int i = 0; i < DEPTH; i++)
			request_finish(t[i].send, 300000);
		for (int i = 0; i < DEPTH; i++)
			transfer_close(&pair, &t[i]);
		pair_close(&pair);
	}
}

/* NCCL unloads v6 to v10 without a call to the plugin; the thread's code must stay. */
TEST(trap_library_stays_while_its_thread_lives)
{
	static const char path[] = MESH_BUILD_DIR "/libnccl-net-mesh.so";
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	assert_non_null(library);
	assert_non_null(dlsym(library, "ncclNetPlugin_v6"));
	assert_int_equal(dlclose(library), 0);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	assert_non_null(library); /* -z nodelete */
	dlclose(library);
}

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
}
