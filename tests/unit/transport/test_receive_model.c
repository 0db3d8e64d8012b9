/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_receive_model.c - a receiving comm against a model of its sender, step by random step: its
 * paths are lost at any moment, at either end first, and join again; one joins late; what is on the
 * way over different paths arrives in any order, messages come twice, RESUME and HAVE are late and
 * repeated, and the immediates of a path that was fenced come after all.
 *
 * What must hold: a receive completes once, with all bytes of its message and no byte beside them,
 * and nothing changes them later; when HAVE is sent, nothing of the lost paths is on the way, and
 * what it says is true; a path joins under an id that it never had; in the end everything has
 * arrived.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/link_settle.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "control/peer_index.h"
#include "transport/path_state.h"
#include "transport/receive.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"

#include "sender_model.h"

#define SEEDS 150
#define STEPS 400
#define RECEIVES 12 /* posted and not complete */
#define OWN_ID 0x77
#define PROCESS_ID 0x1234
#define REMOTE_ID(life) (0x1000u + (uint32_t)(life))

/* ---- the receives -------------------------------------------------------------------------- */

/* The message is there, all of it, and nothing beside it. */
static void area_check(int seq)
{
	const size_t size = model.messages[seq].size;
	uint8_t expected[GUARD + LARGE_MAX + GUARD];
	size_t i;

	memset(expected, FILL, sizeof(expected));
	for (i = 0; i < size; i++)
		expected[GUARD + i] = byte_of(seq, i);
	assert_memory_equal(area_of(seq) - GUARD, expected, sizeof(expected));
}

static void receives_test(void)
{
	int i;

	for (i = 0; i < model.received; i++) {
		struct message *message = &model.messages[i];
		int64_t size;

		if (!message->request)
			continue;
		size = fixture_test(message->request);
		if (size < 0)
			continue;
		assert_int_equal(size, message->size);
		area_check(i);
		message->request = NULL;
		message->done = true;
		counts.completed++;
	}
	assert_int_equal(*comm_inside(model.comm).error, 0);
}

static void step_receive(void)
{
	int seq = model.received, i, open = 0;
	struct message *message = &model.messages[seq];

	for (i = 0; i < seq; i++)
		open += !!model.messages[i].request;
	if (seq == MESSAGES || open >= RECEIVES ||
	    (seq >= AREAS && !model.messages[seq - AREAS].done))
		return;
	if (seq >= AREAS)
		area_check(seq - AREAS); /* nothing came late */
	memset(area_of(seq) - GUARD, FILL, AREA);
	assert_int_equal(mesh_comm_receive(model.comm, area_of(seq), message->room,
					   fixture_registration(model.comm), &message->request),
			 0);
	assert_non_null(message->request);
	model.received++;
}

/* ---- steps --------------------------------------------------------------------------------- */

/* Those that polls post are on their way before they complete. */
static void sends_complete(void)
{
	do {
		reports_learn();
		while (fixture.sends_completed < model.seen_sends)
			fake_complete(&fake.sends.posts[fixture.sends_completed++]);
		fixture_poll();
	} while (model.seen_sends < fake.sends.num);
}

/* After each step: what was posted is on its way, and the engine has its turn. */
static void settle(void)
{
	int i;

	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
	sends_complete();
	receives_test();
	sends_complete();
	if (model.seen_sends == fake.sends.num && fake.read == fake.completed) {
		model.seen_sends = fixture.sends_completed = fake.sends.num = 0;
		fake.read = fake.completed = 0;
	}
	for (i = 0; i < model.num_links; i++) {
		if (model.links[i].up && model.comm->paths[i].state != MESH_PATH_UP)
			model.links[i].unaware = true;
	}
}

/* ---- links are lost and come back ---------------------------------------------------------- */

static void receiver_loses(int link, enum mesh_refusal refusal)
{
	struct mesh_peer *peer = model.links[link].peer;

	mesh_lock_take(&fixture.setup.process.lock);
	if (peer->state == MESH_PEER_UP)
		mesh_link_lose(peer, "the test says so", refusal);
	mesh_lock_release(&fixture.setup.process.lock);
	model.links[link].greeted = false;
}

/* Either end notices first, or an operation of the receiver fails. */
static void step_lose(void)
{
	int link = (int)roll((uint32_t)model.num_links);
	const struct mesh_path *path = &model.comm->paths[link];

	switch (roll(3)) {
	case 0:
		receiver_loses(link, MESH_REFUSAL_BROKEN);
		break;
	case 1:
		if (!model.links[link].up)
			break;
		sender_loses(link);
		model.links[link].refuses = true;
		break;
	default:
		if (link >= model.comm->num_paths || path->state != MESH_PATH_UP)
			break;
		mesh_lock_take(&model.comm->lock);
		mesh_path_suspect(&model.comm->paths[link], -ECONNRESET);
		mesh_lock_release(&model.comm->lock);
	}
}

/* The other end learns of it. */
static void step_learn(void)
{
	int link = (int)roll((uint32_t)model.num_links);

	if (model.links[link].unaware)
		sender_loses(link);
	else if (model.links[link].refuses)
		receiver_loses(link, 0);
	model.links[link].refuses = false;
}

/* A peer that connects from the other end of the link. */
static void peer_enter(struct mesh_peer *peer, int link)
{
	fixture_peer_enter(peer, PROCESS_ID, 0);
	mesh_link_watch(peer);
	model.links[link].peer = peer;
}

/* The sender connects again: both ends bring to rest what was lost on the link. */
static void step_greet(void)
{
	int link = (int)roll((uint32_t)model.num_links), ends[2], i;
	struct mesh_peer *before = model.links[link].peer, *peer = &model.lives[model.num_lives];
	struct link *of = &model.links[link];
	bool quiet;

	if (of->up || of->greeted || model.num_lives == LIVES)
		return;
	peer->process = before->process;
	peer->domain = before->domain;
	peer->address = before->address;
	peer->eager_limit = before->eager_limit;
	peer->state = MESH_PEER_HELLO;
	peer->incoming = true;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_peer_process_set(peer, PROCESS_ID);
	quiet = mesh_link_settle(peer);
	mesh_peer_process_set(peer, 0);
	if (quiet) {
		for (i = 0; i < of->num; i++)
			assert_int_equal(of->items[(of->first + i) % ITEMS].kind, ITEM_REPORT);
		of->num = 0;
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		peer->watch.fd = ends[0];
		of->read_end = model.life_ends[model.num_lives++] = ends[1];
		peer->state = MESH_PEER_UP;
		assert_int_equal(mesh_remote_open(peer->domain, before->remote->name,
						  before->remote->name_len, &peer->remote),
				 0);
		peer_enter(peer, link);
		of->greeted = true;
		of->refuses = false;
	}
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The path has an id that no life of it had before. */
static void id_learn(int link, uint32_t id, uint32_t token)
{
	int i;

	for (i = 0; i < model.num_ids; i++)
		assert_false(model.ids[i].link == link && model.ids[i].id == id);
	model.ids[model.num_ids].link = link;
	model.ids[model.num_ids++].id = id;
	model.links[link].id = id;
	model.links[link].token = token;
	model.links[link].up = true;
}

/* JOIN, and its answer. A comm that got its last path late has its grants sent again. */
static void step_join(void)
{
	int link = (int)roll((uint32_t)model.num_links), seq;
	const int wanted = model.comm->wanted_paths;
	struct mesh_frame frame, answer;

	if (!model.links[link].greeted || model.links[link].peer->state != MESH_PEER_UP ||
	    model.num_ids == LINKS + LIVES)
		return;
	memset(&frame, 0, sizeof(frame));
	frame.connect.cookie = OWN_ID;
	frame.connect.comm_key = 1;
	frame.connect.comm = REMOTE_ID(model.num_ids);
	frame.connect.path = (uint8_t)link;
	frame.connect.num_paths = (uint8_t)(link < wanted ? wanted : link + 1);
	frames_read(link, NULL);
	frame_arrives(model.links[link].peer, MESH_FRAME_JOIN, &frame);
	answer = frames_read(link, NULL);
	if (answer.header.type == MESH_FRAME_REFUSE)
		return; /* not yet: it is asked again */
	assert_int_equal(answer.header.type, MESH_FRAME_ACCEPT);
	model.links[link].greeted = false;
	id_learn(link, answer.accept.comm, answer.accept.token);
	counts.joined++;
	if (link < model.grant_paths)
		return;
	counts.late_joined++;
	model.grant_paths = link + 1;
	for (seq = 0; seq < MESSAGES; seq++)
		model.messages[seq].granted &= model.messages[seq].grant_paths > link;
}

/* The sender has waited for long: the receiver sends its grants again. */
static void step_stall(void)
{
	int link = link_choose(model.num_links);
	struct mesh_frame frame;

	if (link < 0 || !model.sent || model.links[link].peer->state != MESH_PEER_UP)
		return;
	memset(&frame, 0, sizeof(frame));
	frame.ask.to_comm = model.links[link].id;
	frame.ask.seq = roll((uint32_t)model.sent);
	frame_arrives(model.links[link].peer, MESH_FRAME_ASK, &frame);
}

static void step(void)
{
	switch (roll(20)) {
	case 0:
		if (!roll(3))
			step_lose();
		break;
	case 1:
		step_learn();
		break;
	case 2:
		step_question(true);
		break;
	case 3:
		step_answer(true);
		break;
	case 4:
		step_greet();
		break;
	case 5:
		step_join();
		break;
	case 6:
		step_ask();
		break;
	case 7:
		step_acknowledge();
		break;
	case 8:
		step_late();
		break;
	case 9:
		if (!roll(8))
			step_stall();
		break;
	case 10:
	case 11:
	case 12:
		step_receive();
		break;
	case 13:
	case 14:
	case 15:
		step_push();
		break;
	default:
		step_arrive();
		break;
	}
	settle();
}

/* ---- a run --------------------------------------------------------------------------------- */

/* No more faults: all messages arrive. */
static void run_end(void)
{
	int turn, seq = 0;

	for (turn = 0; turn < 20000 && seq < MESSAGES; turn++) {
		step_receive();
		step_push();
		step_arrive();
		step_learn();
		step_ask();
		step_question(false);
		step_answer(false);
		step_greet();
		step_join();
		step_acknowledge();
		step_late();
		settle();
		while (seq < MESSAGES && model.messages[seq].done)
			seq++;
	}
	assert_int_equal(seq, MESSAGES);
	for (seq = MESSAGES - AREAS; seq < MESSAGES; seq++)
		area_check(seq);
}

static void messages_make(void)
{
	int seq;

	for (seq = 0; seq < MESSAGES; seq++) {
		struct message *message = &model.messages[seq];

		if (roll(3))
			message->size =
				FIXTURE_EAGER_LIMIT + 1 + roll(LARGE_MAX - FIXTURE_EAGER_LIMIT - 1);
		else
			message->size = roll(FIXTURE_EAGER_LIMIT);
		message->room = message->size;
		if (roll(2) && message->size < LARGE_MAX)
			message->room += roll((uint32_t)(LARGE_MAX - message->size));
	}
}

/* A comm over two links or more; over the last one later, in half of the runs. */
static void run_begin(void **state, int seed)
{
	static const int bits[] = {64, 32, 0};
	struct mesh_process *process = &fixture.setup.process;
	int i, late, ends[2];

	memset(&model, 0, sizeof(model));
	model.random = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);
	model.immediate_bits = bits[seed % 3];
	model.num_links = 2 + (int)roll(LINKS - 1);
	late = model.num_links > 2 && roll(2);
	messages_make();
	assert_int_equal(fixture_setup(state), 0);
	process->config.recovery = 1;
	process->config.max_paths = MESH_PATHS_MAX;
	process->process_id = OWN_ID;
	fake.rx_size = 8;
	fake.cq_data_size = model.immediate_bits == 32 ? 4 : 8;
	fixture_paths_open(model.immediate_bits ? MESH_PROVIDER_TCP : MESH_PROVIDER_TCP_RXM,
			   model.num_links);
	model.links[0].read_end = fixture.frames;
	for (i = 0; i < model.num_links; i++) {
		if (i) {
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
			fixture.peers[i].watch.fd = ends[0];
			model.links[i].read_end = ends[1];
		}
		fixture.peers[i].address.addr.bytes[2] = (uint8_t)i;
		mesh_lock_take(&process->lock);
		peer_enter(&fixture.peers[i], i);
		mesh_lock_release(&process->lock);
	}
	fixture.num_paths -= late;
	model.comm = fixture_comm_open(false);
	fixture.num_paths += late;
	model.grant_paths = model.comm->num_paths;
	for (i = 0; i < model.comm->num_paths; i++)
		id_learn(i, model.comm->paths[i].sink.id, model.comm->paths[i].sink.token);
	assert_int_equal(model.comm->paths[0].immediate_bits, model.immediate_bits);
}

static void run_clean(void **state)
{
	struct mesh_process *process = &fixture.setup.process;
	int i;

	mesh_lock_take(&process->lock);
	for (i = 0; i < model.num_lives; i++)
		mesh_peer_lose(&model.lives[i], "the end");
	for (i = 0; i < model.num_links; i++)
		mesh_peer_lose(&fixture.peers[i], "the end");
	mesh_lock_release(&process->lock);
	fixture_comm_close(model.comm);
	mesh_lock_take(&process->lock);
	mesh_rejoins_close(process);
	for (i = 0; i < model.num_links; i++)
		mesh_peer_index_remove(&fixture.peers[i]);
	for (i = 0; i < model.num_lives; i++) {
		mesh_peer_index_remove(&model.lives[i]);
		mesh_remote_close(model.lives[i].domain, model.lives[i].remote);
		free(model.lives[i].out);
	}
	mesh_lock_release(&process->lock);
	for (i = 0; i < model.num_lives; i++)
		close(model.life_ends[i]);
	assert_int_equal(fixture_teardown(state), 0);
}

static void test_receiver(void **state)
{
	int seed, i;

	memset(&counts, 0, sizeof(counts));
	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed);
		for (i = 0; i < STEPS; i++)
			step();
		run_end();
		run_clean(state);
	}
	assert_int_equal(counts.completed, SEEDS * MESSAGES);
	assert_true(counts.rewritten > SEEDS);
	assert_true(counts.fenced > SEEDS);
	assert_true(counts.answers > SEEDS);
	assert_true(counts.old_answers > SEEDS / 4);
	assert_true(counts.joined > SEEDS);
	assert_true(counts.late_joined > SEEDS / 8);
	assert_true(counts.late > SEEDS);
	assert_true(counts.twice > SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_receiver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
