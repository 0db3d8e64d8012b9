/* SPDX-License-Identifier: Apache-2.0 */
/* receiver_model.c - a model of the receiver of a sending comm. */
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
#include "transport/answer.h"
#include "transport/frames.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"
#include "transport/rejoin_frames.h"
#include "transport/request.h"

#include "receiver_model.h"

#define SMALL ((size_t)64)
#define LARGE_MAX ((size_t)1 << 20)
#define SEGMENTS 4 /* of each large message: two for each path */
#define PORT 999
#define LONG_MS 100000
#define LIFE_ID(life) (0x1000u + (uint32_t)(life))

struct receiver_model receiver;

uint32_t receiver_roll(uint32_t sides)
{
	receiver.random ^= receiver.random << 13;
	receiver.random ^= receiver.random >> 7;
	receiver.random ^= receiver.random << 17;
	return (uint32_t)(receiver.random >> 20) % sides;
}

static bool is_small(const struct receiver_message *message)
{
	return message->size == SMALL;
}

static uint64_t all_of(const struct receiver_message *message)
{
	return is_small(message) ? 1 : (1u << SEGMENTS) - 1;
}

/* The second path's socket has been read, or is gone: then some of what it held may have come. */
static void socket_empty(bool gone)
{
	int i;

	for (i = 0; i < receiver.posted; i++) {
		if (receiver.messages[i].in_socket && (!gone || receiver_roll(2)))
			receiver.messages[i].arrived = 1;
		receiver.messages[i].in_socket = false;
	}
}

static void loss_learn(void)
{
	if (!receiver.up || receiver.comm->paths[1].state == MESH_PATH_UP)
		return;
	receiver.up = false;
	socket_empty(true);
}

void receiver_socket_read(void)
{
	if (receiver.up)
		socket_empty(false);
}

/* ---- what the sender does ------------------------------------------------------------------ */

static int life_of_id(uint32_t id)
{
	int life;

	if (id == FIXTURE_REMOTE_ID)
		return 0;
	if (id == FIXTURE_REMOTE_ID + 1)
		return 1;
	for (life = 2; life <= RECEIVER_LIVES && id != LIFE_ID(life); life++)
		continue;
	assert_true(life <= RECEIVER_LIVES);
	return life;
}

static void write_learn(int i)
{
	const struct fake_post *post = &fake.writes.posts[i];
	const struct mesh_immediate immediate = mesh_immediate_decode(post->data);
	struct receiver_write *write = &receiver.writes[i];
	struct receiver_message *message;
	int path;

	*write = (struct receiver_write){.life = life_of_id(immediate.comm)};
	/* Numbers of 6 bits: fewer than 64 messages are posted. */
	write->seq = (int)immediate.seq;
	write->segment = (int)immediate.segment;
	assert_true(write->seq < receiver.posted);
	message = &receiver.messages[write->seq];
	path = write->life ? 1 : 0;
	assert_true(!path || (receiver.up && write->life == receiver.life));
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
	assert_true(!life || (receiver.up && life == receiver.life));
	assert_true((int)header->seq < RECEIVER_MESSAGES);
	if (life)
		receiver.messages[header->seq].in_socket = true;
	else
		receiver.messages[header->seq].arrived = 1;
}

/* A receiver that closes takes nothing more, but what it has is sent. */
static void failure_check(int seq)
{
	const struct receiver_message *message = &receiver.messages[seq];

	assert_true(receiver.closing);
	assert_true(seq >= (int)receiver.closed_count);
	assert_true(receiver.closed || message->arrived != all_of(message));
}

static void request_learn(int seq)
{
	struct receiver_message *message = &receiver.messages[seq];
	int64_t size;

	if (!message->request)
		return;
	size = mesh_request_test(message->request);
	if (size == MESH_REQUEST_PENDING)
		return;
	message->request = NULL;
	if (size == -EPIPE) {
		failure_check(seq);
		return;
	}
	assert_int_equal(size, message->size);
	assert_int_equal(message->in_flight, 0); /* it may still be read */
	assert_true(is_small(message) || message->arrived == all_of(message));
}

void receiver_learn(void)
{
	int i, error;

	for (; receiver.num_writes < fake.writes.num; receiver.num_writes++)
		write_learn(receiver.num_writes);
	for (; receiver.seen_sends < fake.sends.num; receiver.seen_sends++)
		send_learn(&fake.sends.posts[receiver.seen_sends]);
	for (i = 0; i < receiver.posted; i++)
		request_learn(i);
	error = *comm_inside(receiver.comm).error;
	assert_true(!error || (receiver.closing && error == -EPIPE));
}

static void question_read(const struct mesh_frame_resume *resume)
{
	assert_int_equal(receiver.messages[resume->seq].in_flight, 0);
	assert_true(!(resume->dead & ~2u));
	if (resume->dead)
		assert_int_equal(resume->ids[1], receiver.comm->paths[1].remote_id);
	receiver.resumes++;
	if (receiver.num_questions < RECEIVER_QUESTIONS)
		receiver.questions[receiver.num_questions++] = *resume;
}

/* Over the first path's control connection. */
static void frames_learn(void)
{
	struct mesh_frame frame;

	while (fixture_next_frame(&frame)) {
		if (frame.header.type == MESH_FRAME_RESUME) {
			question_read(&frame.resume);
			continue;
		}
		assert_true(receiver.closing);
		if (frame.header.type == MESH_FRAME_CLOSED)
			receiver.sender_closed = true;
		else
			assert_int_equal(frame.header.type, MESH_FRAME_CLOSE);
	}
}

void receiver_recover(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comms_asked_tick(&fixture.setup.process, mesh_clock_ms());
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
	loss_learn();
	frames_learn();
	fixture_sends_complete();
}

/* ---- the steps ----------------------------------------------------------------------------- */

void receiver_step_post(void)
{
	struct receiver_message *message = &receiver.messages[receiver.posted];
	int i, open = 0;

	for (i = 0; i < receiver.posted; i++)
		open += !!receiver.messages[i].request;
	if (receiver.posted == RECEIVER_MESSAGES || open >= RECEIVER_OUTSTANDING ||
	    *comm_inside(receiver.comm).error)
		return;
	message->size = receiver_roll(3) ? (LARGE_MAX >> 2) << receiver_roll(3) : SMALL;
	receiver.posted++;
	message->request = fixture_post(receiver.comm, message->size);
	fixture_sends_complete();
}

/* A receiver posts at most MESH_COMM_REQUESTS receives that are not complete. */
void receiver_step_grant(void)
{
	int first = 0;

	while (first < receiver.posted &&
	       receiver.messages[first].arrived == all_of(&receiver.messages[first]))
		first++;
	if (receiver.closing || receiver.granted == RECEIVER_MESSAGES ||
	    receiver.granted >= first + MESH_COMM_REQUESTS / 2)
		return;
	fixture_grant(receiver.comm, (uint32_t)receiver.granted++, 1, LARGE_MAX);
	fixture_sends_complete();
}

static void write_end(struct receiver_write *write, bool arrives, bool fails)
{
	const struct fake_post *post = &fake.writes.posts[write - receiver.writes];
	struct receiver_message *message = &receiver.messages[write->seq];

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
	if (receiver.comm->paths[1].state != MESH_PATH_UP)
		receiver.up = false;
}

/* One that is in flight ends. On a path that is lost it fails, or completes late. */
void receiver_step_end(bool faults)
{
	struct receiver_write *write;
	bool living, fails;
	int i, num = 0;

	for (i = 0; i < receiver.num_writes; i++)
		num += !receiver.writes[i].ended;
	if (!num)
		return;
	num = (int)receiver_roll((uint32_t)num);
	for (write = receiver.writes; write->ended || num--; write++)
		continue;
	living = !write->life || (receiver.up && write->life == receiver.life);
	fails = living ? faults && write->life && !receiver_roll(8) : receiver_roll(4);
	if (write->decided)
		write_end(write, write->arrives, fails || !write->arrives);
	else
		write_end(write, !fails || !receiver_roll(2), fails);
	fixture_sends_complete();
}

void receiver_step_lose(void)
{
	if (!receiver.up)
		return;
	mesh_lock_take(&receiver.comm->lock);
	mesh_path_suspect(&receiver.comm->paths[1], -ECONNRESET);
	mesh_lock_release(&receiver.comm->lock);
	loss_learn();
	receiver_recover();
}

/* The receiver fences the path: what has not arrived now never does. Then it answers. */
void receiver_step_question(bool faults)
{
	struct mesh_frame_resume question;
	struct mesh_frame_have *have;
	struct receiver_message *message;
	int i, which;

	if (!receiver.num_questions || receiver.num_answers == RECEIVER_QUESTIONS)
		return;
	which = (int)receiver_roll((uint32_t)receiver.num_questions);
	question = receiver.questions[which];
	if (!faults || receiver_roll(4)) /* else it comes once more */
		receiver.questions[which] = receiver.questions[--receiver.num_questions];
	for (i = 0; i < receiver.num_writes && question.dead; i++) {
		struct receiver_write *write = &receiver.writes[i];

		if (write->ended || write->decided || !write->life ||
		    (receiver.up && write->life == receiver.life))
			continue;
		write->decided = true;
		write->arrives = receiver_roll(2);
		if (write->arrives)
			receiver.messages[write->seq].arrived |= 1ull << write->segment;
	}
	message = &receiver.messages[question.seq];
	have = &receiver.answers[receiver.num_answers++];
	*have = (struct mesh_frame_have){.seq = question.seq, .round = question.round};
	have->complete = message->arrived == all_of(message);
	if (!have->complete)
		have->arrived[0] = message->arrived;
}

void receiver_step_answer(bool faults)
{
	struct mesh_frame frame;
	int which;

	if (!receiver.num_answers)
		return;
	which = (int)receiver_roll((uint32_t)receiver.num_answers);
	memset(&frame, 0, sizeof(frame));
	frame.have = receiver.answers[which];
	frame.have.to_comm = receiver.comm->paths[0].sink.id;
	if (!faults || receiver_roll(4))
		receiver.answers[which] = receiver.answers[--receiver.num_answers];
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_have_frame_handle(&fixture.peers[0], &frame);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_sends_complete();
}

static bool life_begin(void)
{
	struct mesh_peer *before = &fixture.peers[1], *peer = &receiver.lives[receiver.life + 1];
	int ends[2];

	if (receiver.life == RECEIVER_LIVES)
		return false;
	receiver.life++;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	peer->process = before->process;
	peer->domain = before->domain;
	peer->address = before->address;
	peer->state = MESH_PEER_UP;
	peer->watch.fd = ends[0];
	receiver.frames[receiver.life] = ends[1];
	mesh_lock_take(&fixture.setup.process.lock);
	assert_int_equal(mesh_remote_open(peer->domain, before->remote->name,
					  before->remote->name_len, &peer->remote),
			 0);
	fixture_peer_enter(peer, RECEIVER_PROCESS_ID, PORT);
	mesh_lock_release(&fixture.setup.process.lock);
	return true;
}

/* The link works again, and the sender asks for its path. */
void receiver_step_join(void)
{
	const int first = fixture.frames;
	struct mesh_frame frame;

	if (receiver.up || receiver.join || receiver.comm->paths[1].state != MESH_PATH_DOWN)
		return;
	if (receiver.life < 2 || receiver.lives[receiver.life].state != MESH_PEER_UP) {
		if (!life_begin())
			return;
	}
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_timers_run(&fixture.setup.process.engine.timers,
			mesh_clock_ms() + ++receiver.looks * LONG_MS);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture.frames = receiver.frames[receiver.life];
	if (!fixture_no_frame()) {
		frame = fixture_frame(MESH_FRAME_JOIN);
		receiver.join = frame.connect.comm;
		receiver.joins++;
	}
	fixture.frames = first;
}

void receiver_step_join_answer(void)
{
	struct mesh_frame_accept accept = {.to_comm = receiver.join, .token = 0xdef};
	struct mesh_frame_refuse refuse = {.comm = receiver.join,
					   .refusal = MESH_REFUSAL_RESOURCES};
	struct mesh_peer *peer = &receiver.lives[receiver.life];

	if (!receiver.join)
		return;
	accept.comm = LIFE_ID(receiver.life);
	mesh_lock_take(&fixture.setup.process.lock);
	if (receiver_roll(4)) {
		receiver.up = true;
		assert_true(mesh_rejoin_accepted(peer, &accept));
		assert_false(mesh_rejoin_accepted(peer, &accept));
	} else {
		assert_true(mesh_rejoin_refused(peer, &refuse));
	}
	mesh_lock_release(&fixture.setup.process.lock);
	receiver.join = 0;
	fixture_sends_complete();
}

/* Messages that are complete, up to the first that is not. */
static uint32_t complete_count(void)
{
	int i = 0;

	while (i < receiver.granted && i < receiver.posted &&
	       receiver.messages[i].arrived == all_of(&receiver.messages[i]))
		i++;
	return (uint32_t)i;
}

void receiver_step_close(void)
{
	struct mesh_frame_closed closed;

	mesh_lock_take(&fixture.setup.process.lock);
	if (!receiver.closing) {
		receiver.closing = true;
		mesh_comm_close_came(receiver.comm);
	} else if (!receiver.closed) {
		receiver.closed = true;
		receiver.closed_count = complete_count();
		receiver.closed_in_doubt = receiver.num_questions || receiver.num_answers;
		closed = (struct mesh_frame_closed){.sent = receiver.closed_count};
		mesh_comm_closed_came(receiver.comm, &closed);
	}
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_sends_complete();
}

bool receiver_is_over(void)
{
	int i;

	for (i = 0; i < receiver.posted; i++) {
		if (receiver.messages[i].request ||
		    (!receiver.closing &&
		     receiver.messages[i].arrived != all_of(&receiver.messages[i])))
			return false;
	}
	return !receiver.closed || receiver.sender_closed;
}

/* ---- a run --------------------------------------------------------------------------------- */

void receiver_begin(void **state, int seed)
{
	int i;

	memset(&receiver, 0, sizeof(receiver));
	receiver.random = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);
	receiver.life = 1;
	receiver.up = true;
	assert_int_equal(fixture_setup(state), 0);
	fixture.setup.process.config.recovery = 1;
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	mesh_lock_take(&fixture.setup.process.lock);
	for (i = 0; i < 2; i++)
		fixture_peer_enter(&fixture.peers[i], RECEIVER_PROCESS_ID, PORT);
	mesh_lock_release(&fixture.setup.process.lock);
	receiver.comm = fixture_comm_open(true);
}

void receiver_clean(void **state)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_peer *peer;
	int life;

	mesh_lock_take(&process->lock);
	for (life = 2; life <= receiver.life; life++)
		receiver.lives[life].state = MESH_PEER_LOST;
	mesh_lock_release(&process->lock);
	fixture_comm_close(receiver.comm);
	mesh_lock_take(&process->lock);
	mesh_rejoins_close(process);
	while ((peer = LIST_FIRST(&process->peers)))
		mesh_peer_free(peer);
	for (life = 2; life <= receiver.life; life++) {
		peer = &receiver.lives[life];
		mesh_timers_cancel(&process->engine.timers, &peer->timer);
		mesh_peer_index_remove(peer);
		mesh_remote_close(peer->domain, peer->remote);
		close(peer->watch.fd);
		close(receiver.frames[life]);
		free(peer->out);
	}
	mesh_lock_release(&process->lock);
	assert_int_equal(fixture_teardown(state), 0);
}
