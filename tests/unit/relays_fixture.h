/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relays_fixture.h - a comm over relays, each at a NIC of its own: it is comm_fixture.h's, and the
 * test also plays the relays, which have a control connection each.
 */
#ifndef MESH_TESTS_RELAYS_FIXTURE_H
#define MESH_TESTS_RELAYS_FIXTURE_H

#include <sys/socket.h>

#include "transport/comm_life.h"
#include "wire/handle.h"

#include "comm_fixture.h"

#define RELAYS_MAX 3
#define KEY 0x5eed
#define COOKIE 0xc0c0
#ifndef GRANULE
#define GRANULE ((uint32_t)64 << 10)
#endif
#define TIMEOUT_S 30 /* of recovery */
#ifndef RELAYS_PROVIDER
#define RELAYS_PROVIDER MESH_PROVIDER_TCP
#endif
/* The id of relay @i's node; its name is a letter, from 'p' on. */
#define RELAY_NODE(i) (11u + (uint64_t)(i))
/* What the other end of path @i is called. */
#define REMOTE_ID(i) (FIXTURE_REMOTE_ID + (uint32_t)(i))

static struct mesh_comm *comm;
static int num_relays;
static int relay_frames[RELAYS_MAX]; /* the relays' ends of their control connections */

/* What the relays of a sending comm answer. */
static const struct mesh_frame_opened opened = {
	.comm = FIXTURE_REMOTE_ID,
	.token = FIXTURE_REMOTE_TOKEN,
	.eager_limit = FIXTURE_EAGER_LIMIT,
	.address = 0xab0000,
	.key = 0xcd,
	.granule = GRANULE,
	.via = "p",
};

/* What a receiving comm was asked with, for each of its paths. */
static struct mesh_frame_connect request = {
	.cookie = COOKIE,
	.comm_key = KEY,
	.comm = 0xabc,
	.token = 0xdef,
	.origin = "a",
	.via = "p",
};

/* After fixture_setup(). @incoming: the relays have connected to us. */
static inline void relays_open(int num, bool incoming)
{
	struct mesh_process *process = &fixture.setup.process;
	int i, ends[2];

	process->config.recovery_timeout_s = TIMEOUT_S;
	process->config.dead_peer_timeout_s = 10;
	process->node_id = 1;
	strcpy(process->name, "here");
	fixture_paths_open(RELAYS_PROVIDER, num);
	num_relays = num;
	relay_frames[0] = fixture.frames;
	for (i = 0; i < num; i++) {
		fixture.peers[i].incoming = incoming;
		fixture.peers[i].node_id = RELAY_NODE(i);
		fixture.peers[i].name[0] = (char)('p' + i);
		if (!i)
			continue;
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		fixture.peers[i].watch.fd = ends[0];
		relay_frames[i] = ends[1];
	}
}

/* A test's teardown. */
static inline void relays_close(void)
{
	for (int i = 1; i < num_relays; i++) {
		close(fixture.peers[i].watch.fd);
		close(relay_frames[i]);
	}
	fixture.num_paths = num_relays;
	fixture_teardown();
}

/*
 * Both: a comm of so many paths over the first of @relays relays. fixture.num_paths counts the
 * relays, whose NICs are all polled; the test changes it for fixture_grant().
 */
static inline void relayed_sender_open(int relays, int num_paths)
{
	const struct mesh_comm_wish wish = {
		.num_paths = num_paths,
		.key = KEY,
		.handle = &fixture_handle,
		.relayed_to = "b",
	};

	relays_open(relays, false);
	process_take();
	assert_int_equal(mesh_comm_open(&fixture.net, &fixture.peers[0], &wish, &comm), 0);
	for (int i = 1; i < num_paths; i++)
		assert_int_equal(mesh_comm_path_add(comm, &fixture.peers[i], true), 0);
	for (int i = 0; i < num_paths; i++)
		assert_int_equal(mesh_path_relayed_opened(&comm->paths[i], &opened), 0);
	mesh_comm_paths_learn(comm);
	for (int i = 0; i < num_paths; i++)
		fixture_accept(&comm->paths[i], REMOTE_ID(i), FIXTURE_REMOTE_TOKEN);
	process_release();
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
}

static inline void relayed_receiver_open(int relays, int num_paths)
{
	const struct mesh_comm_wish wish = {
		.num_paths = num_paths,
		.key = KEY,
		.relayed_to = request.origin,
	};

	relays_open(relays, true);
	request.num_paths = (uint8_t)num_paths;
	process_take();
	assert_int_equal(mesh_comm_open(&fixture.net, &fixture.peers[0], &wish, &comm), 0);
	for (int i = 1; i < num_paths; i++)
		assert_int_equal(mesh_comm_path_add(comm, &fixture.peers[i], true), 0);
	for (int i = 0; i < num_paths; i++) {
		assert_int_equal(mesh_path_via_set(&comm->paths[i], request.via), 0);
		fixture_accept(&comm->paths[i], REMOTE_ID(i), FIXTURE_REMOTE_TOKEN);
	}
	comm->cookie = COOKIE;
	process_release();
	memset(fixture_memory, 0, FIXTURE_MEMORY);
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
}

static inline void relayed_close(void)
{
	fixture.num_paths = num_relays;
	fixture_comm_close(comm);
}

/* The next frame to relay @i, of any type; false if there is none. */
static inline bool next_frame_to(int i, struct mesh_frame *frame)
{
	bool came;

	fixture.frames = relay_frames[i];
	came = fixture_next_frame(frame);
	fixture.frames = relay_frames[0];
	return came;
}

/* The same; fails the test if there is none of this type. */
static inline struct mesh_frame frame_to(int i, enum mesh_frame_type type)
{
	struct mesh_frame frame;

	assert_true(next_frame_to(i, &frame));
	assert_int_equal(frame.header.type, type);
	return frame;
}

/* From relay @i, about the circuit of path @path. */
static inline void circuit_comes(int i, int path, struct mesh_frame_circuit event)
{
	struct mesh_frame frame = {.circuit = event};

	frame.circuit.to_comm = comm->paths[path].sink.id;
	process_take();
	mesh_path_circuit_event(&fixture.peers[i], &frame);
	process_release();
}

static inline void circuit_drained(int i, int path)
{
	circuit_comes(i, path, (struct mesh_frame_circuit){.event = MESH_CIRCUIT_DRAINED});
}

#endif
