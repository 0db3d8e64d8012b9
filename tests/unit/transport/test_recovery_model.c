/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_recovery_model.c - a sending comm against a model of its receiver, step by random step: one
 * of its two paths is lost and joins again, writes end in any order and with any result, answers to
 * RESUME come late, twice, or in another order.
 *
 * What must hold: a segment that has arrived is not written again; a request is done only when the
 * receiver has all of it; in the end everything has arrived; nothing is posted with an id of an
 * earlier life of the path.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "control/peer_end.h"
#include "control/peer_index.h"
#include "control/peer_life.h"
#include "transport/frames.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"
#include "transport/rejoin_frames.h"

#include "comm_fixture.h"

#define SEEDS 500
#define STEPS 150
#define MESSAGES 40
#define OUTSTANDING 8
#define LIVES 12
#define QUESTIONS 16
#define SMALL ((size_t)64)
#define LARGE_MAX ((size_t)1 << 20)
#define SEGMENTS 4 /* of each large message: two for each path */
#define PROCESS_ID 0x1234
#define PORT 999
#define LONG_MS 100000
#define LIFE_ID(life) (0x1000u + (uint32_t)(life))

struct message {
	struct mesh_request *request; /* NULL: not posted, or done */
	size_t size;
	uint64_t arrived; /* bits: segments that the receiver has */
	int in_flight;	  /* writes of it that have not ended */
	bool in_socket;	  /* a small one: in the second path's socket */
};

struct write {
	int seq, segment, life; /* life 0: over the first path */
	bool ended, decided, arrives;
};

/* All of it belongs to the seed that runs. */
static struct {
	uint64_t random;
	struct mesh_comm *comm;
	struct message messages[MESSAGES];
	int posted, granted; /* messages */
	struct write writes[FAKE_POSTS_MAX];
	int num_writes;
	int seen_sends;
	struct mesh_peer lives[LIVES + 1];
	int frames[LIVES + 1]; /* the peer's end of each life's control connection */
	int life;	       /* of the second path: 1 is the first */
	bool up;
	uint32_t join; /* the id in the JOIN that waits for its answer; 0: none */
	struct mesh_frame_resume questions[QUESTIONS]; /* that the receiver has not read */
	struct mesh_frame_have answers[QUESTIONS];     /* that the sender has not read */
	int num_questions, num_answers;
	uint64_t looks;
	int resumes, joins;
} model;

static uint32_t roll(uint32_t sides)
{
	model.random ^= model.random << 13;
	model.random ^= model.random >> 7;
	model.random ^= model.random << 17;
	return (uint32_t)(model.random >> 20) % sides;
}

static bool is_small(const struct message *message)
{
	return message->size == SMALL;
}

static uint64_t all_of(const struct message *message)
{
	return is_small(message) ? 1 : (1u << SEGMENTS) - 1;
}

/* The second path's socket has been read, or is gone: then some of what it held may have come. */
static void socket_empty(bool gone)
{
	int i;

	for (i = 0; i < model.posted; i++) {
		if (model.messages[i].in_socket && (!gone || roll(2)))
			model.messages[i].arrived = 1;
		model.messages[i].in_socket = false;
	}
}

static void loss_learn(void)
{
	if (!model.up || model.comm->paths[1].state == MESH_PATH_UP)
		return;
	model.up = false;
	socket_empty(true);
}

/* ---- what the sender does ------------------------------------------------------------------ */

static int life_of_id(uint32_t id)
{
	int life;

	if (id == FIXTURE_REMOTE_ID)
		return 0;
	if (id == FIXTURE_REMOTE_ID + 1)
		return 1;
	for (life = 2; life <= LIVES && id != LIFE_ID(life); life++)
		continue;
	assert_true(life <= LIVES);
	return life;
}

static void write_learn(int i)
{
	const struct fake_post *post = &fake.writes.posts[i];
	const struct mesh_immediate immediate = mesh_immediate_decode(post->data);
	struct write *write = &model.writes[i];
	struct message *message;
	int path;

	*write = (struct write){.life = life_of_id(immediate.comm)};
	/* Numbers of 6 bits: fewer than 64 messages are posted. */
	write->seq = (int)immediate.seq;
	write->segment = (int)immediate.segment;
	assert_true(write->seq < model.posted);
	message = &model.messages[write->seq];
	path = write->life ? 1 : 0;
	assert_true(!path || (model.up && write->life == model.life));
	assert_int_equal(post->size, message->size / SEGMENTS);
	assert_true(post->address == FIXTURE_ADDRESS(path) + (uint64_t)write->segment * post->size);
	assert_false(message->arrived >> write->segment & 1);
	message->in_flight++;
}

/* What goes over the first path arrives; over the second one it may be lost with its socket. */
static void send_learn(const struct fake_post *post)
{
	const struct mesh_message_header *header =
		(const struct mesh_message_header *)(const void *)post->bytes;
	int life;

	if (header->type != MESH_MESSAGE_DATA)
		return;
	life = life_of_id(header->comm);
	assert_true(!life || (model.up && life == model.life));
	assert_true((int)header->seq < MESSAGES);
	if (life)
		model.messages[header->seq].in_socket = true;
	else
		model.messages[header->seq].arrived = 1;
}

static void learn(void)
{
	int i;

	for (; model.num_writes < fake.writes.num; model.num_writes++)
		write_learn(model.num_writes);
	for (; model.seen_sends < fake.sends.num; model.seen_sends++)
		send_learn(&fake.sends.posts[model.seen_sends]);
	for (i = 0; i < model.posted; i++) {
		struct message *message = &model.messages[i];

		if (!message->request || !fixture_is_done(message->request))
			continue;
		message->request = NULL;
		if (!is_small(message))
			assert_true(message->arrived == all_of(message));
	}
	assert_int_equal(*comm_inside(model.comm).error, 0);
}

static void questions_read(void)
{
	const struct mesh_path *second = &model.comm->paths[1];
	struct mesh_frame frame;

	while (!fixture_no_frame()) {
		frame = fixture_frame(MESH_FRAME_RESUME);
		assert_int_equal(model.messages[frame.resume.seq].in_flight, 0);
		assert_true(!(frame.resume.dead & ~2u));
		if (frame.resume.dead)
			assert_int_equal(frame.resume.ids[1], second->remote_id);
		model.resumes++;
		if (model.num_questions < QUESTIONS)
			model.questions[model.num_questions++] = frame.resume;
	}
}

static void recover(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
	loss_learn();
	questions_read();
	fixture_sends_complete();
}

/* ---- the steps ----------------------------------------------------------------------------- */

static void step_post(void)
{
	struct message *message = &model.messages[model.posted];
	int i, open = 0;

	for (i = 0; i < model.posted; i++)
		open += !!model.messages[i].request;
	if (model.posted == MESSAGES || open >= OUTSTANDING)
		return;
	message->size = roll(3) ? (LARGE_MAX >> 2) << roll(3) : SMALL;
	model.posted++;
	message->request = fixture_post(model.comm, message->size);
	fixture_sends_complete();
}

/* A receiver posts at most MESH_COMM_REQUESTS receives that are not complete. */
static void step_grant(void)
{
	int first = 0;

	while (first < model.posted &&
	       model.messages[first].arrived == all_of(&model.messages[first]))
		first++;
	if (model.granted == MESSAGES || model.granted >= first + MESH_COMM_REQUESTS / 2)
		return;
	fixture_grant(model.comm, (uint32_t)model.granted++, 1, LARGE_MAX);
	fixture_sends_complete();
}

static void write_end(struct write *write, bool arrives, bool fails)
{
	const struct fake_post *post = &fake.writes.posts[write - model.writes];
	struct message *message = &model.messages[write->seq];

	write->ended = true;
	message->in_flight--;
	if (arrives)
		message->arrived |= 1ull << write->segment;
	if (fails) {
		fake_complete_error(post->context, FI_ECONNRESET);
		fake.completions[fake.completed - 1].domain = post->domain;
	} else {
		fake_complete(post);
	}
	fixture_poll();
	if (model.comm->paths[1].state != MESH_PATH_UP)
		model.up = false;
}

/* One that is in flight ends. On a path that is lost it fails, or completes late. */
static void step_end(bool faults)
{
	struct write *write;
	bool living, fails;
	int i, num = 0;

	for (i = 0; i < model.num_writes; i++)
		num += !model.writes[i].ended;
	if (!num)
		return;
	num = (int)roll((uint32_t)num);
	for (write = model.writes; write->ended || num--; write++)
		continue;
	living = !write->life || (model.up && write->life == model.life);
	fails = living ? faults && write->life && !roll(8) : roll(4);
	if (write->decided)
		write_end(write, write->arrives, fails || !write->arrives);
	else
		write_end(write, !fails || !roll(2), fails);
	fixture_sends_complete();
}

static void step_lose(void)
{
	if (!model.up)
		return;
	mesh_lock_take(&model.comm->lock);
	mesh_path_suspect(&model.comm->paths[1], -ECONNRESET);
	mesh_lock_release(&model.comm->lock);
	loss_learn();
	recover();
}

/* The receiver fences the path: what has not arrived now never does. Then it answers. */
static void step_receive_question(bool faults)
{
	struct mesh_frame_resume question;
	struct mesh_frame_have *have;
	struct message *message;
	int i, which;

	if (!model.num_questions || model.num_answers == QUESTIONS)
		return;
	which = (int)roll((uint32_t)model.num_questions);
	question = model.questions[which];
	if (!faults || roll(4)) /* else it comes once more */
		model.questions[which] = model.questions[--model.num_questions];
	for (i = 0; i < model.num_writes && question.dead; i++) {
		struct write *write = &model.writes[i];

		if (write->ended || write->decided || !write->life ||
		    (model.up && write->life == model.life))
			continue;
		write->decided = true;
		write->arrives = roll(2);
		if (write->arrives)
			model.messages[write->seq].arrived |= 1ull << write->segment;
	}
	message = &model.messages[question.seq];
	have = &model.answers[model.num_answers++];
	*have = (struct mesh_frame_have){.seq = question.seq, .round = question.round};
	have->complete = message->arrived == all_of(message);
	if (!have->complete)
		have->arrived[0] = message->arrived;
}

static void step_answer(bool faults)
{
	struct mesh_frame frame;
	int which;

	if (!model.num_answers)
		return;
	which = (int)roll((uint32_t)model.num_answers);
	memset(&frame, 0, sizeof(frame));
	frame.have = model.answers[which];
	frame.have.to_comm = model.comm->paths[0].sink.id;
	if (!faults || roll(4))
		model.answers[which] = model.answers[--model.num_answers];
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_have_frame_handle(&fixture.peers[0], &frame);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_sends_complete();
}

static bool life_begin(void)
{
	struct mesh_peer *before = &fixture.peers[1], *peer = &model.lives[model.life + 1];
	int ends[2];

	if (model.life == LIVES)
		return false;
	model.life++;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	peer->process = before->process;
	peer->domain = before->domain;
	peer->address = before->address;
	peer->state = MESH_PEER_UP;
	peer->watch.fd = ends[0];
	peer->control_port = PORT;
	peer->timer.expired = before->timer.expired;
	model.frames[model.life] = ends[1];
	mesh_lock_take(&fixture.setup.process.lock);
	assert_int_equal(mesh_remote_open(peer->domain, before->remote->name,
					  before->remote->name_len, &peer->remote),
			 0);
	mesh_peer_process_set(peer, PROCESS_ID);
	mesh_peer_index_add(peer);
	mesh_lock_release(&fixture.setup.process.lock);
	return true;
}

/* The link works again, and the sender asks for its path. */
static void step_join(void)
{
	const int first = fixture.frames;
	struct mesh_frame frame;

	if (model.up || model.join || model.comm->paths[1].state != MESH_PATH_DOWN)
		return;
	if (model.life < 2 || model.lives[model.life].state != MESH_PEER_UP) {
		if (!life_begin())
			return;
	}
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_timers_run(&fixture.setup.process.engine.timers,
			mesh_clock_ms() + ++model.looks * LONG_MS);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture.frames = model.frames[model.life];
	if (!fixture_no_frame()) {
		frame = fixture_frame(MESH_FRAME_JOIN);
		model.join = frame.connect.comm;
		model.joins++;
	}
	fixture.frames = first;
}

static void step_join_answer(void)
{
	struct mesh_frame_accept accept = {.to_comm = model.join, .token = 0xdef};
	struct mesh_frame_refuse refuse = {.comm = model.join, .refusal = MESH_REFUSAL_RESOURCES};
	struct mesh_peer *peer = &model.lives[model.life];

	if (!model.join)
		return;
	accept.comm = LIFE_ID(model.life);
	mesh_lock_take(&fixture.setup.process.lock);
	if (roll(4)) {
		model.up = true;
		assert_true(mesh_rejoin_accepted(peer, &accept));
		assert_false(mesh_rejoin_accepted(peer, &accept));
	} else {
		assert_true(mesh_rejoin_refused(peer, &refuse));
	}
	mesh_lock_release(&fixture.setup.process.lock);
	model.join = 0;
	fixture_sends_complete();
}

static void step(void)
{
	switch (roll(12)) {
	case 0:
	case 1:
		step_post();
		break;
	case 2:
	case 3:
		step_grant();
		break;
	case 4:
	case 5:
	case 6:
		step_end(true);
		break;
	case 7:
		if (!roll(3))
			step_lose();
		break;
	case 8:
		step_receive_question(true);
		break;
	case 9:
		step_answer(true);
		break;
	case 10:
		step_join();
		break;
	default:
		step_join_answer();
		break;
	}
	learn();
	recover();
	learn();
}

/* ---- a run --------------------------------------------------------------------------------- */

static bool is_over(void)
{
	int i;

	for (i = 0; i < model.posted; i++) {
		if (model.messages[i].request ||
		    model.messages[i].arrived != all_of(&model.messages[i]))
			return false;
	}
	return true;
}

/* No more faults: all that was posted arrives. */
static void run_end(void)
{
	int turn;

	for (turn = 0; turn < 2000 && !is_over(); turn++) {
		if (model.up)
			socket_empty(false);
		step_grant();
		step_end(false);
		step_receive_question(false);
		step_answer(false);
		learn();
		recover();
		learn();
	}
	assert_true(is_over());
}

static void nothing(struct mesh_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
}

static void run_begin(void **state, int seed)
{
	int i;

	memset(&model, 0, sizeof(model));
	model.random = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);
	model.life = 1;
	model.up = true;
	assert_int_equal(fixture_setup(state), 0);
	fixture.setup.process.config.recovery = 1;
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < 2; i++) {
		fixture.peers[i].timer.expired = nothing;
		fixture.peers[i].control_port = PORT;
		mesh_peer_process_set(&fixture.peers[i], PROCESS_ID);
		mesh_peer_index_add(&fixture.peers[i]);
	}
	mesh_lock_release(&fixture.setup.process.lock);
	model.comm = fixture_comm_open(true);
}

static void run_clean(void **state)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_peer *peer;
	int life;

	mesh_lock_take(&process->lock);
	for (life = 2; life <= model.life; life++)
		model.lives[life].state = MESH_PEER_LOST;
	mesh_lock_release(&process->lock);
	fixture_comm_close(model.comm);
	mesh_lock_take(&process->lock);
	mesh_rejoins_close(process);
	while ((peer = LIST_FIRST(&process->peers)))
		mesh_peer_free(peer);
	for (life = 2; life <= model.life; life++) {
		peer = &model.lives[life];
		mesh_timers_cancel(&process->engine.timers, &peer->timer);
		mesh_peer_index_remove(peer);
		mesh_remote_close(peer->domain, peer->remote);
		close(peer->watch.fd);
		close(model.frames[life]);
		free(peer->out);
	}
	mesh_lock_release(&process->lock);
	assert_int_equal(fixture_teardown(state), 0);
}

static void test_sender(void **state)
{
	int seed, i, resumes = 0, joins = 0;

	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed);
		for (i = 0; i < STEPS && fake.writes.num < FAKE_POSTS_MAX / 2; i++)
			step();
		run_end();
		resumes += model.resumes;
		joins += model.joins;
		run_clean(state);
	}
	/* The steps do what they are for. */
	assert_true(resumes > SEEDS);
	assert_true(joins > SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
