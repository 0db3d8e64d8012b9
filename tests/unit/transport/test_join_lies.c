/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_join_lies.c - a peer that lies while paths join: random JOIN, ACCEPT, REFUSE and NICS, with
 * other comms, paths that do not exist or are up, wrong counts, and NICs that it does not have. A
 * path joins only if it is the next one, each JOIN has one answer, and the comm goes on.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "setup/events.h"
#include "setup/late_nics.h"
#include "transport/comm_open.h"
#include "transport/path_state.h"
#include "transport/rejoin_frames.h"

#include "lies_fixture.h"

#define SEEDS 100
#define LIES 100
#define ROOM ((size_t)1 << 20)
#define SEGMENTS 4
#define OWN_ID 0x77
#define KEY 1
#define LATER_MS 100000

/* All of it belongs to the seed that runs. */
static struct mesh_nic own_nic;
static int ends[2];   /* the peer's ends of the control connections */
static int num_paths; /* that the comm should have */
/* Of all seeds: the lies do what they are for. */
static int joined, refused;

/* A comm with one path, with a process to which a second link is up. */
static void run_begin(void **state, int seed, bool sending)
{
	struct mesh_process *process = &fixture.setup.process;
	int pair[2];

	lies_begin(state, seed, sending);
	process->config.max_paths = 8;
	process->process_id = OWN_ID;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fixture.peers[1].watch.fd = pair[0];
	ends[0] = fixture.frames;
	ends[1] = pair[1];
	mesh_lock_take(&process->lock);
	assert_int_equal(mesh_comm_open(&fixture.net, sending, &fixture.peers[0], KEY, 1, &comm),
			 0);
	mesh_path_accepted(&comm->paths[0], FIXTURE_REMOTE_ID, FIXTURE_REMOTE_TOKEN);
	mesh_lock_release(&process->lock);
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
	num_paths = 1;
}

static void run_end(void **state)
{
	lies_end(state);
	close(fixture.peers[1].watch.fd);
	close(ends[1]);
}

static void frame_arrives(int peer, enum mesh_frame_type type, struct mesh_frame *frame)
{
	struct mesh_frame arrived;
	size_t size = mesh_frame_finish(frame, type);

	assert_int_equal(mesh_frame_decode(frame, size, &arrived), size);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_setup_events.frames[type](&fixture.peers[peer], &arrived);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
}

/*
 * The same from another process that is up on the NIC of the second link: it knows an id that is
 * not its own. The comm takes nothing from it.
 */
static void stranger_sends(enum mesh_frame_type type, struct mesh_frame *frame)
{
	static struct mesh_peer stranger;

	stranger = (struct mesh_peer){
		.process = &fixture.setup.process,
		.domain = fixture.domains[1],
		.process_id = PROCESS_ID + 1,
		.incoming = fixture.peers[1].incoming,
		.state = MESH_PEER_UP,
		.watch.fd = -1,
	};
	mesh_frame_finish(frame, type);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_setup_events.frames[type](&stranger, frame);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(*comm_inside(comm).error, 0);
	assert_int_equal(*comm_inside(comm).peer_end, MESH_END_OPEN);
}

/* ---- the receiving end --------------------------------------------------------------------- */

static void join_choose(struct mesh_frame_connect *join)
{
	join->cookie = roll(8) ? OWN_ID : roll(1u << 31);
	join->comm_key = roll(8) ? KEY : roll(4);
	join->comm = roll(1u << 31);
	join->token = roll(1u << 31);
	join->asks = !roll(8);
	join->path = (uint8_t)(roll(4) ? roll(4) : roll(MESH_PATHS_MAX));
	join->num_paths = (uint8_t)(join->path + 1 + (roll(2) ? 0 : roll(4)));
	if (join->num_paths > MESH_PATHS_MAX)
		join->num_paths = MESH_PATHS_MAX;
}

/* Only the next path of this comm may join. */
static bool may_join(const struct mesh_frame_connect *join)
{
	return join->cookie == OWN_ID && join->comm_key == KEY && !join->asks &&
	       join->path == num_paths && join->num_paths == num_paths + 1;
}

static void answer_read(int peer, const struct mesh_frame_connect *join)
{
	struct mesh_frame frame;
	uint8_t bytes[1024];
	ssize_t n = recv(ends[peer], bytes, sizeof(bytes), MSG_DONTWAIT);
	bool accepted;

	assert_true(n > 0);
	assert_int_equal(mesh_frame_decode(bytes, (size_t)n, &frame), n);
	accepted = frame.header.type == MESH_FRAME_ACCEPT;
	if (!accepted) {
		assert_int_equal(frame.header.type, MESH_FRAME_REFUSE);
		assert_int_equal(frame.refuse.comm, join->comm);
		refused++;
	} else {
		assert_true(may_join(join));
		assert_int_equal(frame.accept.to_comm, join->comm);
		assert_int_equal(frame.accept.comm, comm_path(comm, num_paths).sink->id);
		assert_int_equal(*comm_path(comm, num_paths).remote_id, join->comm);
		num_paths++;
		joined++;
	}
	assert_int_equal(*comm_inside(comm).num_paths, num_paths);
}

/* A message arrives over the first path all the same. */
static void message_arrives(struct mesh_request *request)
{
	struct mesh_immediate immediate = {.size = ROOM};

	for (immediate.segment = 0; immediate.segment < SEGMENTS; immediate.segment++) {
		immediate.last = immediate.segment == SEGMENTS - 1;
		fixture_written(comm, 0, immediate);
	}
	assert_int_equal(fixture_test(request), ROOM);
}

static void test_join(void **state)
{
	struct mesh_request *request;
	struct mesh_frame frame;
	int seed, i, peer;

	joined = refused = 0;
	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed, false);
		request = fixture_post(comm, ROOM);
		for (i = 0; i < LIES; i++) {
			memset(&frame, 0, sizeof(frame));
			join_choose(&frame.connect);
			peer = (int)roll(2);
			frame_arrives(peer, MESH_FRAME_JOIN, &frame);
			answer_read(peer, &frame.connect);
		}
		message_arrives(request);
		run_end(state);
	}
	assert_true(joined > SEEDS);
	assert_true(refused > SEEDS * LIES / 2);
}

/* ---- the sending end ----------------------------------------------------------------------- */

static void link_try(void)
{
	struct mesh_process *process = &fixture.setup.process;

	mesh_lock_take(&process->lock);
	mesh_rejoin_new(&fixture.peers[0], fixture.domains[1], &fixture.peers[1].address);
	mesh_timers_run(&process->engine.timers, mesh_clock_ms());
	mesh_timers_run(&process->engine.timers, mesh_clock_ms() + LATER_MS);
	mesh_lock_release(&process->lock);
	assert_int_equal(comm->paths[1].state, MESH_PATH_JOINING);
}

/* An id that is not the joining path's; often the other path's, or close to it. */
static uint32_t other_id(void)
{
	uint32_t id = roll(2) ? comm->paths[roll(2)].sink.id + roll(4) : roll(1u << 31);

	return id == comm->paths[1].sink.id ? 0 : id;
}

/* Both paths are up, and wait for no answer: what comes for them changes nothing. */
static void answers_to_nothing(void)
{
	struct mesh_frame frame;
	int i, path;

	for (i = 0; i < LIES; i++) {
		path = (int)roll(2);
		memset(&frame, 0, sizeof(frame));
		if (roll(2)) {
			frame.accept.to_comm = comm->paths[path].sink.id;
			frame.accept.comm = 0xbad;
			frame_arrives((int)roll(2), MESH_FRAME_ACCEPT, &frame);
		} else {
			frame.refuse.refusal = MESH_REFUSAL_ENDED;
			frame.refuse.comm = comm->paths[path].sink.id;
			frame_arrives((int)roll(2), MESH_FRAME_REFUSE, &frame);
		}
		assert_int_equal(comm->paths[path].state, MESH_PATH_UP);
		assert_int_equal(*comm_path(comm, 1).remote_id, 0xabc);
		assert_int_equal(*comm_path(comm, 0).remote_id, FIXTURE_REMOTE_ID);
		assert_int_equal(*comm_inside(comm).error, 0);
	}
}

/* An answer with the right id over another connection than the one that was asked. */
static void answers_of_others(void)
{
	enum mesh_frame_type type = roll(2) ? MESH_FRAME_ACCEPT : MESH_FRAME_REFUSE;
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	if (type == MESH_FRAME_ACCEPT) {
		frame.accept.to_comm = comm->paths[1].sink.id;
		frame.accept.comm = 0xbad;
	} else {
		frame.refuse.comm = comm->paths[1].sink.id;
		frame.refuse.refusal = roll(2) ? MESH_REFUSAL_ENDED : MESH_REFUSAL_RESOURCES;
	}
	if (roll(2))
		stranger_sends(type, &frame);
	else
		frame_arrives(0, type, &frame);
}

static void test_answers(void **state)
{
	struct mesh_frame frame;
	int seed, i;

	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed, true);
		link_try();
		for (i = 0; i < LIES; i++) {
			memset(&frame, 0, sizeof(frame));
			if (roll(2)) {
				frame.accept.to_comm = other_id();
				frame.accept.comm = roll(1u << 31);
				frame.accept.token = roll(1u << 31);
				frame_arrives((int)roll(2), MESH_FRAME_ACCEPT, &frame);
			} else {
				frame.refuse.refusal = MESH_REFUSAL_ENDED;
				frame.refuse.comm = other_id();
				if (!frame.refuse.comm)
					frame.refuse.comm = 1; /* 0 names a HELLO */
				frame_arrives((int)roll(2), MESH_FRAME_REFUSE, &frame);
			}
			answers_of_others();
			assert_int_equal(comm->paths[1].state, MESH_PATH_JOINING);
		}
		memset(&frame, 0, sizeof(frame));
		frame.accept.to_comm = comm->paths[1].sink.id;
		frame.accept.comm = 0xabc;
		frame_arrives(1, MESH_FRAME_ACCEPT, &frame);
		assert_int_equal(comm->paths[1].state, MESH_PATH_UP);
		answers_to_nothing();
		run_end(state);
	}
}

/* ---- both ---------------------------------------------------------------------------------- */

/* Frames for a comm, from another process than its peer. */
static void test_stranger(void **state)
{
	static const enum mesh_frame_type types[] = {
		MESH_FRAME_CLOSE, MESH_FRAME_CLOSED, MESH_FRAME_ASK,
		MESH_FRAME_SENT,  MESH_FRAME_RESUME, MESH_FRAME_HAVE,
	};
	struct mesh_frame frame;
	size_t i;
	int k;

	for (k = 0; k < 2; k++) {
		run_begin(state, k, k);
		mesh_lock_take(&fixture.setup.process.lock);
		comm->wanted_paths = 2;
		assert_int_equal(mesh_comm_path_add(comm, &fixture.peers[1]), 0);
		mesh_path_accepted(&comm->paths[1], FIXTURE_REMOTE_ID, FIXTURE_REMOTE_TOKEN);
		mesh_lock_release(&fixture.setup.process.lock);
		for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			memset(&frame, 0, sizeof(frame));
			if (types[i] == MESH_FRAME_RESUME) {
				frame.resume.dead = 1;
				frame.resume.ids[0] = comm->paths[0].sink.id;
			}
			frame.to_comm = comm->paths[1].sink.id;
			stranger_sends(types[i], &frame);
			assert_int_equal(comm->paths[0].state, MESH_PATH_UP);
		}
		run_end(state);
	}
}

/* ---- NICs ---------------------------------------------------------------------------------- */

/* This process has one NIC, and the peer has named one. */
static void nics_prepare(void)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_peer *peer = &fixture.peers[0];

	memset(&own_nic, 0, sizeof(own_nic));
	strcpy(process->config.routed, "off");
	assert_int_equal(mesh_addr_parse("10.7.0.1/24", &own_nic.source), 0);
	process->nics[0] = &own_nic;
	process->num_devs = process->num_endpoints = 1;
	process->providers[0] = MESH_PROVIDER_TCP;
	process->dev_states[0] = MESH_DEV_OPEN;
	process->domains[0] = fixture.domains[0];
	process->endpoints[0] =
		(struct mesh_endpoint_addr){.addr = own_nic.source, .provider = MESH_PROVIDER_TCP};
	peer->nics = calloc(MESH_NICS_MAX, sizeof(*peer->nics));
	assert_non_null(peer->nics);
	assert_int_equal(mesh_addr_parse("10.7.0.2/24", &peer->nics[0].addr), 0);
	peer->nics[0].provider = MESH_PROVIDER_TCP;
	peer->num_nics = 1;
}

/* Often another address of the cable's subnet. */
static void nic_choose(struct mesh_wire_nic *wire)
{
	struct mesh_endpoint_addr nic = {
		.port = (uint16_t)roll(1 << 16),
		.nic = (uint8_t)roll(MESH_NICS_MAX),
		.provider = (enum mesh_provider_id)roll(MESH_PROVIDER_ID_MAX + 1),
		.reserve = !roll(4),
		.speed_mbps = (int)roll(1000000),
	};
	size_t i;

	nic.addr.family = roll(4) ? MESH_FAMILY_IPV4 : MESH_FAMILY_IPV6;
	nic.addr.prefix_len = (uint8_t)(roll(2) ? 24 : roll(33));
	for (i = 0; i < mesh_addr_size(nic.addr.family); i++)
		nic.addr.bytes[i] = (uint8_t)roll(256);
	if (nic.addr.family == MESH_FAMILY_IPV4 && roll(2))
		memcpy(nic.addr.bytes, own_nic.source.bytes, 3);
	mesh_wire_nic_encode(&nic, wire);
}

static void nics_check(const struct mesh_endpoint_addr *first)
{
	const struct mesh_peer *peer = &fixture.peers[0];
	int i, k;

	assert_in_range(peer->num_nics, 1, MESH_NICS_MAX);
	assert_memory_equal(&peer->nics[0], first, sizeof(*first));
	for (i = 0; i < peer->num_nics; i++) {
		assert_true(!i || peer->late_nics >> peer->nics[i].nic & 1);
		for (k = 0; k < i; k++)
			assert_false(mesh_addr_equal(&peer->nics[i].addr, &peer->nics[k].addr));
	}
}

static void test_nics(void **state)
{
	struct mesh_endpoint_addr first;
	struct mesh_frame frame;
	int seed, i, k, full = 0;

	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed, true);
		nics_prepare();
		first = fixture.peers[0].nics[0];
		for (i = 0; i < LIES / 10; i++) {
			memset(&frame, 0, sizeof(frame));
			frame.nics.num_nics = (uint8_t)roll(MESH_NICS_MAX + 1);
			for (k = 0; k < frame.nics.num_nics; k++)
				nic_choose(&frame.nics.nics[k]);
			frame_arrives((int)roll(2), MESH_FRAME_NICS, &frame);
			mesh_lock_take(&fixture.setup.process.lock);
			mesh_late_nics_tick(&fixture.setup.process);
			mesh_lock_release(&fixture.setup.process.lock);
			nics_check(&first);
		}
		full += fixture.peers[0].num_nics == MESH_NICS_MAX;
		free(fixture.peers[0].nics);
		fixture.peers[0].nics = NULL;
		fixture.setup.process.domains[0] = NULL;
		run_end(state);
	}
	assert_true(full > SEEDS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_nics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
