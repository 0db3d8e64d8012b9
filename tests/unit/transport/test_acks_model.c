/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_acks_model.c - a sending comm with one path against a model of its receiver, step by random
 * step: writes that the provider acknowledges, and such that only the receiver does, with words
 * that come early, late and more than once; the path is lost and comes back; of what was on its way
 * the end never arrives.
 *
 * What must hold: a request is done only when the receiver has the message; a message that has
 * arrived is not written again; in the end all have arrived, and every request is done.
 */
#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "fabric/sink.h"
#include "transport/path_state.h"
#include "transport/recovery.h"
#include "transport/rejoin.h"
#include "transport/request.h"

#include "comm_fixture.h"

#define SEEDS 2000
#define STEPS 200
#define MESSAGES 60
#define OUTSTANDING 12
#define WORDS 64
#define SMALL_ONE ((size_t)64 << 10)  /* the receiver's word */
#define LARGE_ONE ((size_t)512 << 10) /* the provider's */

struct message {
	struct mesh_request *request; /* NULL: not posted, or done */
	size_t size;
	bool arrived;
};

struct write {
	int seq;
	bool delivery; /* it completes when it has arrived */
	bool arrived, gone, ended;
};

/* All of it belongs to the seed that runs. */
static struct model {
	uint64_t random;
	struct mesh_comm *comm;
	struct message messages[MESSAGES];
	struct write writes[FAKE_POSTS_MAX];
	int posted, granted, num_writes;
	bool up, open_before; /* the path; no loss so far */
	uint32_t words[WORDS];
	int num_words;
	struct mesh_frame_resume questions[MESH_COMM_REQUESTS];
	int num_questions;
} model;

/* Of all seeds: the steps do what they are for. */
static int resumes, rewritten, acknowledged, losses;

static uint32_t roll(uint32_t sides)
{
	model.random ^= model.random << 13;
	model.random ^= model.random >> 7;
	model.random ^= model.random << 17;
	return (uint32_t)(model.random >> 20) % sides;
}

/* Messages that are complete at the receiver, up to the first that is not. */
static uint32_t complete_count(void)
{
	uint32_t i = 0;

	while (i < (uint32_t)model.granted && model.messages[i].arrived)
		i++;
	return i;
}

/* ---- what is seen of the sender -------------------------------------------------------------- */

static void writes_learn(void)
{
	const struct fake_post *post;
	struct write *write;

	for (; model.num_writes < fake.writes.num; model.num_writes++) {
		post = &fake.writes.posts[model.num_writes];
		write = &model.writes[model.num_writes];
		*write = (struct write){
			.seq = (int)mesh_immediate_decode(post->data).seq,
			.delivery = post->flags & FI_DELIVERY_COMPLETE,
		};
		assert_true(model.up);
		assert_true(write->seq < model.granted);
		assert_false(model.messages[write->seq].arrived);
		assert_int_equal(post->size, model.messages[write->seq].size);
		assert_true(write->delivery || (model.open_before && post->size == SMALL_ONE));
		rewritten += !model.open_before && post->size == SMALL_ONE;
	}
}

static void requests_learn(void)
{
	int i;

	for (i = 0; i < model.posted; i++) {
		struct message *message = &model.messages[i];

		if (!message->request || !fixture_is_done(message->request))
			continue;
		assert_true(message->arrived);
		message->request = NULL;
	}
}

static void learn(void)
{
	struct mesh_frame frame;

	writes_learn();
	requests_learn();
	while (fixture_next_frame(&frame)) {
		assert_int_equal(frame.header.type, MESH_FRAME_RESUME);
		model.questions[model.num_questions++] = frame.resume;
		resumes++;
	}
	assert_int_equal(*comm_inside(model.comm).error, 0);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void step_post(void)
{
	struct message *message = &model.messages[model.posted];
	int i, open = 0;

	for (i = 0; i < model.posted; i++)
		open += !!model.messages[i].request;
	if (model.posted == MESSAGES || open == OUTSTANDING)
		return;
	message->size = roll(3) ? SMALL_ONE : LARGE_ONE;
	message->request = fixture_post(model.comm, message->size);
	model.posted++;
}

static void step_grant(void)
{
	if (!model.up || model.granted == MESSAGES ||
	    model.granted >= (int)complete_count() + MESH_COMM_REQUESTS)
		return;
	fixture.acked = roll(2) ? MESH_ACKED(complete_count()) : 0;
	fixture_grant(model.comm, (uint32_t)model.granted++, 1, LARGE_ONE);
	fixture.acked = 0;
}

/* The word that is true now, or an earlier one again. */
static void step_word(void)
{
	uint32_t word = complete_count();

	if (!model.up)
		return;
	model.words[model.num_words++ % WORDS] = word;
	if (!roll(3))
		word = model.words[roll(
			(uint32_t)(model.num_words < WORDS ? model.num_words : WORDS))];
	fixture.acked = MESH_ACKED(word);
	fixture_message(model.comm, 0, MESH_MESSAGE_POSTED, (uint32_t)model.granted, NULL, 0);
	fixture.acked = 0;
	acknowledged++;
}

/* The oldest write that is on its way arrives: they share one connection. */
static bool step_arrive(void)
{
	int i;

	for (i = 0; i < model.num_writes; i++) {
		if (model.writes[i].arrived || model.writes[i].gone)
			continue;
		model.writes[i].arrived = model.messages[model.writes[i].seq].arrived = true;
		return true;
	}
	return false;
}

static void write_end(struct write *write, int error)
{
	const struct fake_post *post = &fake.writes.posts[write - model.writes];

	write->ended = true;
	if (error)
		fake_complete_error(post->context, error);
	else
		fake_complete(post);
	fixture_poll();
}

/* The provider reports one: the socket has it, or it has arrived; of what is lost as it likes. */
static bool step_end(void)
{
	struct write *write = model.writes;
	int i, num = 0;

	for (i = 0; i < model.num_writes; i++)
		num += !model.writes[i].ended;
	if (!num)
		return false;
	for (num = (int)roll((uint32_t)num); write->ended || num--; write++)
		continue;
	if (write->gone)
		write_end(write, write->delivery || roll(2) ? FI_ECONNRESET : 0);
	else if (!write->delivery || write->arrived)
		write_end(write, 0);
	return true;
}

static void step_lose(void)
{
	struct mesh_process *process = &fixture.setup.process;
	int i, arriving = (int)roll(6);

	if (!model.up)
		return;
	while (arriving-- && step_arrive())
		continue;
	for (i = 0; i < model.num_writes; i++)
		model.writes[i].gone |= !model.writes[i].arrived;
	model.up = model.open_before = false;
	model.num_questions = 0; /* they were on that connection, or their answers are */
	mesh_lock_take(&process->lock);
	mesh_domain_lock(fixture.domains[0]);
	fixture.peers[0].state = MESH_PEER_LOST;
	mesh_path_lost(&model.comm->paths[0]);
	mesh_domain_unlock(fixture.domains[0]);
	mesh_lock_release(&process->lock);
	losses++;
}

/* All operations of the earlier life have ended before the link is used again. */
static void step_return(void)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_path *path = &model.comm->paths[0];
	int i;

	if (model.up)
		return;
	for (i = 0; i < model.num_writes; i++) {
		if (model.writes[i].gone && !model.writes[i].ended)
			write_end(&model.writes[i], FI_ECONNRESET);
	}
	model.up = true;
	mesh_lock_take(&process->lock);
	fixture.peers[0].state = MESH_PEER_UP;
	assert_int_equal(mesh_sink_add(fixture.domains[0], &path->sink), 0);
	mesh_comm_lock(model.comm);
	mesh_path_state_set(path, MESH_PATH_JOINING);
	mesh_comm_unlock(model.comm);
	mesh_path_accepted(path, FIXTURE_REMOTE_ID, FIXTURE_REMOTE_TOKEN);
	mesh_comm_lock(model.comm);
	mesh_send_push(model.comm);
	mesh_comm_recover_soon(model.comm);
	mesh_comm_unlock(model.comm);
	mesh_lock_release(&process->lock);
}

static void step_recover(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comms_recover(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void step_answer(void)
{
	struct mesh_frame_have have = {0};
	int which;

	if (!model.up || !model.num_questions)
		return;
	which = (int)roll((uint32_t)model.num_questions);
	have.seq = model.questions[which].seq;
	have.round = model.questions[which].round;
	have.complete = model.messages[have.seq].arrived;
	model.questions[which] = model.questions[--model.num_questions];
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_have_came(model.comm, &have);
	mesh_lock_release(&fixture.setup.process.lock);
}

static void step(void)
{
	switch (roll(14)) {
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
		step_word();
		break;
	case 6:
	case 7:
		step_arrive();
		break;
	case 8:
	case 9:
	case 10:
		step_end();
		break;
	case 11:
		if (!roll(4))
			step_lose();
		break;
	case 12:
		step_return();
		break;
	default:
		step_recover();
		step_answer();
		break;
	}
	learn();
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void run_begin(void **state, int seed)
{
	memset(&model, 0, sizeof(model));
	model.random = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);
	model.up = model.open_before = true;
	assert_int_equal(fixture_setup(state), 0);
	fixture.setup.process.config.recovery = 1;
	model.comm = fixture_open(MESH_PROVIDER_TCP, 1, true);
}

/* No more faults: all that was posted arrives. */
static void run_end(void)
{
	int turn, i, open = 1;

	for (turn = 0; turn < 3000 && open; turn++) {
		step_return();
		step_recover();
		step_answer();
		step_grant();
		step_arrive();
		step_end();
		step_word();
		learn();
		for (i = 0, open = 0; i < model.posted; i++)
			open += !!model.messages[i].request;
	}
	assert_int_equal(open, 0);
	for (i = 0; i < model.posted; i++)
		assert_true(model.messages[i].arrived);
}

static void run_clean(void **state)
{
	fixture_comm_close(model.comm);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_rejoins_close(&fixture.setup.process);
	mesh_lock_release(&fixture.setup.process.lock);
	assert_int_equal(fixture_teardown(state), 0);
}

static void test_sender(void **state)
{
	int seed, i;

	for (seed = 0; seed < SEEDS; seed++) {
		run_begin(state, seed);
		for (i = 0; i < STEPS && fake.writes.num < FAKE_POSTS_MAX / 2; i++)
			step();
		run_end();
		run_clean(state);
	}
	/* The steps do what they are for. */
	assert_true(losses > SEEDS);
	assert_true(resumes > SEEDS);
	assert_true(rewritten > SEEDS / 2);
	assert_true(acknowledged > 10 * SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
