/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_second_route_model.c - a sending comm of two paths through relays against a model of its
 * receiver, step by random step: circuits break, also both, others are asked for, accepted, opened,
 * or given up after the receiver has accepted them; grants and answers come late and in any order.
 *
 * What must hold: a segment is written to the memory that its path's circuit has, and never to that
 * of an earlier one; none is written again that has arrived; in the end all messages are sent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/peer_end.h"
#include "transport/circuit_end.h"
#include "transport/comm_open.h"
#include "transport/frames.h"
#include "transport/path_relayed.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/reroute.h"
#include "wire/handle.h"

#include "comm_fixture.h"
#include "log_capture.h"

#define SEEDS 400
#define STEPS 120
#define PATHS 2
#define RELAYS 3
#define MESSAGES 24
#define OUTSTANDING 6
#define FLIGHTS 256
#define ROOM ((size_t)256 << 10)
/* The receiver's memory for a path, as a circuit's grants name it. */
#define TARGET(path, epoch) (((uint64_t)(path) + 1) << 44 | ((uint64_t)(epoch) + 1) << 24)
/* The relay's id of a circuit. */
#define CIRCUIT_ID(path, epoch) (0x10000u + PATHS * (epoch) + (uint32_t)(path))

/* A grant or an answer on its way, over a circuit; dropped if that is broken when it comes. */
struct flight {
	bool is_have;
	int path;
	uint32_t circuit; /* its epoch */
	uint32_t seq;
	uint32_t epoch;
	uint32_t lives[PATHS];
	struct mesh_frame_have have;
};

struct relayed {
	uint32_t seq, segment, circuit;
	int path;
	uint8_t granule;
	bool ended;
};

static struct model {
	uint64_t random;
	struct mesh_comm *comm;
	int frames[RELAYS];
	struct mesh_request *requests[MESSAGES];
	uint64_t arrived[MESSAGES];
	uint32_t segments[MESSAGES];  /* 0: not known yet */
	uint32_t posted, received;    /* by NCCL of the sender; of the receiver */
	uint32_t epoch, lives[PATHS]; /* of the receiver */
	int asked;		      /* the path that is asked for; -1 */
	bool accepted;		      /* the receiver has accepted it */
	struct flight flights[FLIGHTS];
	int num_flights;
	struct relayed relayed[FAKE_POSTS_MAX];
	int num_relayed, seen_sends;
	int breaks, opens, given_up, resumes;
} model;

static uint32_t roll(uint32_t sides)
{
	model.random ^= model.random << 13;
	model.random ^= model.random >> 7;
	model.random ^= model.random << 17;
	return (uint32_t)(model.random >> 20) % sides;
}

static void process_take(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
}
static void process_release(void)
{
	mesh_lock_release(&fixture.setup.process.lock);
}

static struct mesh_path *path_at(int path)
{
	return &model.comm->paths[path];
}

static bool is_up(int path)
{
	return path_at(path)->state == MESH_PATH_UP;
}

/* True if what was sent over the circuit still comes. */
static bool circuit_lives(int path, uint32_t circuit)
{
	if (is_up(path))
		return path_at(path)->epoch == circuit;
	return model.asked == path && model.accepted && model.comm->epoch == circuit;
}

/* ---- the receiver -------------------------------------------------------------------------- */

static bool is_whole(uint32_t seq)
{
	return model.segments[seq] && model.arrived[seq] == (1ull << model.segments[seq]) - 1;
}

/* The receiver sends over any path that it has. Without one it sends when it has one. */
static void flight_add(struct flight flight)
{
	int first = (int)roll(PATHS), i, path;

	for (i = 0; i < PATHS; i++) {
		path = (first + i) % PATHS;
		flight.path = path;
		flight.circuit = model.lives[path];
		if (!circuit_lives(path, flight.circuit))
			continue;
		assert_true(model.num_flights < FLIGHTS);
		model.flights[model.num_flights++] = flight;
		return;
	}
}

static void grant_send(uint32_t seq)
{
	struct flight flight = {.seq = seq, .epoch = model.epoch};

	memcpy(flight.lives, model.lives, sizeof(flight.lives));
	flight_add(flight);
}

/* After a loss, and for a new circuit. */
static void grants_send_again(void)
{
	uint32_t seq;

	for (seq = 0; seq < model.received; seq++) {
		if (!is_whole(seq))
			grant_send(seq);
	}
}

static void grant_come(const struct flight *flight)
{
	struct mesh_path *path = path_at(flight->path);
	struct mesh_domain *domain = path->direct.domain;
	const struct mesh_message_header header = {.type = MESH_MESSAGE_GRANT,
						   .count = 1,
						   .paths = PATHS,
						   .seq = flight->seq,
						   .epoch = flight->epoch};
	struct mesh_grant grant = {.size = ROOM};
	int i;

	for (i = 0; i < PATHS; i++)
		grant.targets[i].address = TARGET(i, flight->lives[i]);
	mesh_domain_lock(domain);
	path->sink.message(&path->sink, &header, &grant);
	mesh_domain_unlock(domain);
}

static void have_come(const struct flight *flight)
{
	struct mesh_frame frame = {.have = flight->have};

	frame.have.to_comm = path_at(flight->path)->sink.id;
	process_take();
	mesh_have_frame_handle(mesh_path_peer(path_at(flight->path)), &frame);
	process_release();
}

static void step_flight(void)
{
	struct flight flight;
	int which;

	if (!model.num_flights)
		return;
	which = (int)roll((uint32_t)model.num_flights);
	flight = model.flights[which];
	model.flights[which] = model.flights[--model.num_flights];
	if (!circuit_lives(flight.path, flight.circuit))
		return;
	if (flight.is_have)
		have_come(&flight);
	else
		grant_come(&flight);
}

/* ---- what the sender does ------------------------------------------------------------------ */

static void relayed_learn(const struct mesh_message_header *header, const uint8_t *payload)
{
	struct relayed *relayed = &model.relayed[model.num_relayed++];
	struct mesh_message_relayed message;

	memcpy(&message, payload, sizeof(message));
	*relayed = (struct relayed){.seq = header->seq,
				    .segment = message.segment,
				    .path = (int)((header->comm - 0x10000u) % PATHS),
				    .circuit = (header->comm - 0x10000u) / PATHS,
				    .granule = message.granule};
	assert_true(header->seq < model.posted);
	assert_int_equal(path_at(relayed->path)->epoch, relayed->circuit);
	assert_true(message.address >= TARGET(relayed->path, relayed->circuit) &&
		    message.address < TARGET(relayed->path, relayed->circuit) + ROOM);
	assert_false(model.arrived[header->seq] >> message.segment & 1);
	model.segments[header->seq] = message.num_segments;
}

static void question_learn(const struct mesh_frame_resume *resume, int peer)
{
	struct flight flight = {.is_have = true};
	int path;

	model.resumes++;
	for (path = 0; path < PATHS; path++) {
		if (resume->dead >> path & 1)
			assert_int_equal(resume->ids[path], path_at(path)->epoch);
	}
	flight.have = (struct mesh_frame_have){.seq = resume->seq, .round = resume->round};
	flight.have.complete = is_whole(resume->seq);
	if (!flight.have.complete)
		flight.have.arrived[0] = model.arrived[resume->seq];
	/* Over the path of the question. */
	for (path = 0; path < PATHS; path++) {
		if (!is_up(path) || mesh_path_peer(path_at(path)) != &fixture.peers[peer] ||
		    path_at(path)->remote_id != resume->to_comm)
			continue;
		flight.path = path;
		flight.circuit = path_at(path)->epoch;
		model.flights[model.num_flights++] = flight;
	}
}

static void sender_turn(void)
{
	struct mesh_message_header header;
	struct mesh_frame frame;
	uint32_t seq;
	int i;

	process_take();
	mesh_comms_recover(&fixture.setup.process);
	process_release();
	fixture_writes_complete(fake.writes.num - fixture.writes_completed);
	fixture_sends_complete();
	for (; model.seen_sends < fake.sends.num; model.seen_sends++) {
		const uint8_t *bytes = fake.sends.posts[model.seen_sends].bytes;

		memcpy(&header, bytes, sizeof(header));
		if (header.type == MESH_MESSAGE_RELAYED)
			relayed_learn(&header, bytes + sizeof(header));
	}
	for (i = 0; i < RELAYS; i++) {
		fixture.frames = model.frames[i];
		while (fixture_next_frame(&frame)) {
			if (frame.header.type == MESH_FRAME_RESUME)
				question_learn(&frame.resume, i);
		}
	}
	fixture.frames = model.frames[0];
	for (seq = 0; seq < model.posted; seq++) {
		if (!model.requests[seq] || !fixture_is_done(model.requests[seq]))
			continue;
		assert_true(is_whole(seq));
		model.requests[seq] = NULL;
	}
	assert_int_equal(*comm_inside(model.comm).error, 0);
}

/* ---- the steps ----------------------------------------------------------------------------- */

static void step_post(void)
{
	uint32_t seq, open = 0;

	for (seq = 0; seq < model.posted; seq++)
		open += !!model.requests[seq];
	if (model.posted < MESSAGES && open < OUTSTANDING) {
		seq = model.posted++;
		model.requests[seq] = fixture_post(model.comm, ROOM);
	}
}

static void step_receive(void)
{
	uint32_t first = 0;

	while (first < model.received && is_whole(first))
		first++;
	if (model.received < MESSAGES && model.received < first + OUTSTANDING)
		grant_send(model.received++);
}

/* A segment arrives. Its relay says so, unless its circuit is broken. */
static void step_arrive(void)
{
	struct relayed *relayed;
	struct mesh_message_arrived arrived;
	const struct mesh_message_header header = {.type = MESH_MESSAGE_ARRIVED,
						   .length = sizeof(arrived)};
	struct mesh_path *path;
	int i, num = 0;

	for (i = 0; i < model.num_relayed; i++)
		num += !model.relayed[i].ended;
	if (!num)
		return;
	num = (int)roll((uint32_t)num);
	for (relayed = model.relayed; relayed->ended || num--; relayed++)
		continue;
	relayed->ended = true;
	model.arrived[relayed->seq] |= 1ull << relayed->segment;
	path = path_at(relayed->path);
	arrived.granules = 1ull << relayed->granule;
	mesh_domain_lock(path->direct.domain);
	path->sink.message(&path->sink, &header, &arrived);
	mesh_domain_unlock(path->direct.domain);
}

/* What is on the way over the circuit arrives, or never does. */
static void circuit_end(int path)
{
	int i;

	for (i = 0; i < model.num_relayed; i++) {
		struct relayed *relayed = &model.relayed[i];

		if (relayed->ended || relayed->path != path)
			continue;
		relayed->ended = true;
		if (roll(2))
			model.arrived[relayed->seq] |= 1ull << relayed->segment;
	}
}

static void step_break(void)
{
	int path = (int)roll(PATHS);
	struct mesh_frame frame = {.circuit = {.event = MESH_CIRCUIT_LOST, .lost = "b", .by = "p"}};

	if (!is_up(path))
		return;
	frame.circuit.to_comm = path_at(path)->sink.id;
	circuit_end(path);
	process_take();
	mesh_path_circuit_event(mesh_path_peer(path_at(path)), &frame);
	process_release();
	assert_int_equal(path_at(path)->state, MESH_PATH_DOWN);
	model.breaks++;
	grants_send_again();
}

static void step_ask(void)
{
	int path = (int)roll(PATHS), ret;

	if (model.asked >= 0 || path_at(path)->state != MESH_PATH_DOWN)
		return;
	process_take();
	ret = mesh_reroute_begin(path_at(path), &fixture.peers[roll(RELAYS)]);
	process_release();
	assert_true(!ret || ret == -EAGAIN);
	if (ret)
		return;
	model.asked = path;
	model.accepted = false;
}

static void step_accept(void)
{
	if (model.asked < 0 || model.accepted)
		return;
	model.accepted = true;
	model.epoch = model.lives[model.asked] = model.comm->epoch;
	grants_send_again();
}

/* OPENED comes; or the attempt ends, and the receiver learns that. */
static void step_answer(bool faults)
{
	struct mesh_frame_opened opened = {.eager_limit = FIXTURE_EAGER_LIMIT,
					   .token = FIXTURE_REMOTE_TOKEN,
					   .address = 0xab0000,
					   .granule = 64 << 10,
					   .limit = MESH_GRANULES,
					   .via = "p"};
	struct mesh_path *path;
	bool opens;

	if (model.asked < 0)
		return;
	path = path_at(model.asked);
	opens = model.accepted && (!faults || roll(3));
	process_take();
	if (opens) {
		opened.comm = CIRCUIT_ID(model.asked, model.comm->epoch);
		assert_ptr_equal(mesh_reroute_find(mesh_path_peer(path), path->sink.id), path);
		assert_true(mesh_reroute_opened(path, &opened));
		model.opens++;
	} else if (faults) {
		mesh_reroute_end(path);
		model.given_up += model.accepted;
	}
	process_release();
	if (!opens && !faults)
		return;
	model.asked = -1;
	if (!opens)
		grants_send_again();
}

static void step(void)
{
	switch (roll(16)) {
	case 0:
	case 1:
	case 2:
		step_post();
		break;
	case 3:
	case 4:
		step_receive();
		break;
	case 5:
	case 6:
	case 7:
		step_flight();
		break;
	case 8:
	case 9:
		step_arrive();
		break;
	case 10:
		step_break();
		break;
	case 11:
	case 12:
		step_ask();
		break;
	case 13:
	case 14:
		step_accept();
		break;
	default:
		step_answer(true);
		break;
	}
	sender_turn();
}

/* ---- a run --------------------------------------------------------------------------------- */

static void run_begin(void **state, int seed)
{
	struct mesh_frame_opened opened = {.eager_limit = FIXTURE_EAGER_LIMIT,
					   .token = FIXTURE_REMOTE_TOKEN,
					   .address = 0xab0000,
					   .granule = 64 << 10,
					   .limit = MESH_GRANULES,
					   .via = "p"};
	int i, ends[2];

	assert_int_equal(fixture_setup(state), 0);
	memset(&model, 0, sizeof(model));
	model.random = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);
	model.asked = -1;
	fixture.setup.process.config.recovery = 1;
	fixture.setup.process.config.recovery_timeout_s = 30;
	strcpy(fixture.setup.process.name, "here");
	fixture_paths_open(MESH_PROVIDER_TCP, RELAYS);
	model.frames[0] = fixture.frames;
	for (i = 1; i < RELAYS; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		fixture.peers[i].watch.fd = ends[0];
		model.frames[i] = ends[1];
	}
	process_take();
	assert_int_equal(
		mesh_comm_open_relayed(&fixture.net, &fixture.peers[0], "b", 1, PATHS, &model.comm),
		0);
	assert_int_equal(mesh_comm_path_add_relayed(model.comm, &fixture.peers[1]), 0);
	for (i = 0; i < PATHS; i++)
		assert_int_equal(mesh_path_relayed_opened(path_at(i), &opened), 0);
	mesh_comm_paths_learn(model.comm);
	for (i = 0; i < PATHS; i++)
		mesh_path_accepted(path_at(i), CIRCUIT_ID(i, 0), FIXTURE_REMOTE_TOKEN);
	model.comm->handle = calloc(1, sizeof(*model.comm->handle));
	process_release();
	fixture_register(model.comm, fixture_memory, FIXTURE_MEMORY);
}

static bool run_is_over(void)
{
	uint32_t seq;

	for (seq = 0; seq < MESSAGES; seq++) {
		if (seq >= model.posted || model.requests[seq])
			return false;
	}
	return true;
}

/* No more faults. Not each path has to be up for that. */
static void run_end(void)
{
	int turn;

	for (turn = 0; turn < 3000 && !run_is_over(); turn++) {
		step_post();
		step_receive();
		step_flight();
		step_arrive();
		step_ask();
		step_accept();
		step_answer(false);
		sender_turn();
	}
	assert_true(run_is_over());
}

static void run_clean(void **state)
{
	int i;

	fixture_comm_close(model.comm);
	for (i = 1; i < RELAYS; i++) {
		close(fixture.peers[i].watch.fd);
		close(model.frames[i]);
	}
	assert_int_equal(fixture_teardown(state), 0);
}

static void test_model(void **state)
{
	int seed, i, breaks = 0, opens = 0, given_up = 0, resumes = 0;

	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed);
		for (i = 0; i < STEPS && fake.sends.num < FAKE_POSTS_MAX / 2; i++)
			step();
		run_end();
		breaks += model.breaks;
		opens += model.opens;
		given_up += model.given_up;
		resumes += model.resumes;
		run_clean(state);
	}
	/* The steps do what they are for. */
	assert_true(breaks > SEEDS);
	assert_true(opens > SEEDS);
	assert_true(given_up > SEEDS / 4);
	assert_true(resumes > SEEDS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
