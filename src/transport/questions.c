/* SPDX-License-Identifier: Apache-2.0 */
/*
 * questions.c - a path whose peer is lost: a receiver fences it, and answers about messages in
 * doubt once nothing late arrives over it.
 */
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "fabric/poll.h"
#include "transport/comm_life.h"
#include "transport/data.h"
#include "wire/stats.h"

/*
 * True if the peer has stopped the path's present life. One that it has stopped before was fenced:
 * the path has another one.
 */
MESH_HOLDS(process)
static bool is_named(const struct mesh_path *path, const struct mesh_frame_resume *resume)
{
	long i = path - path->comm->paths;

	return resume->dead >> i & 1 && !mesh_seq_before(resume->epochs[i], path->epoch);
}

/* ---- a lost path ----------------------------------------------------------------------------- */

/* The lost path's peer has stopped and was fenced: the path is down. Takes domain->lock. */
MESH_HOLDS(process)
static void path_fenced(struct mesh_path *path)
{
	if (mesh_path_is(path, MESH_PATH_SUSPECT))
		mesh_path_down(path, MESH_PATH_SUSPECT);
}

/* The last relay of a receiving comm's path has no write in flight, and posts none. */
MESH_HOLDS(process)
static void path_drained(struct mesh_path *path)
{
	path->drained = true;
	if (!mesh_path_is(path, MESH_PATH_SUSPECT))
		return;
	mesh_domain_poll(path->domain); /* what has arrived is counted */
	path_fenced(path);
}

/*
 * The peer has stopped the path: gives up its link, and fences it. On verbs that takes a while: it
 * is down after a later call, which a question about it makes.
 */
MESH_HOLDS(process)
static void path_fence(struct mesh_path *path)
{
	struct mesh_peer *peer = path->peer;

	if (peer->state == MESH_PEER_UP)
		mesh_link_lose(peer, "its process has given the link up", MESH_REFUSAL_BROKEN);
	mesh_peer_bury(peer);
	if (!mesh_path_is(path, MESH_PATH_SUSPECT))
		return; /* the comm is at its end */
	if (peer->fenced != MESH_FENCED && !mesh_peer_fence(peer))
		return;
	peer->fenced = MESH_FENCED;
	path_fenced(path);
}

/* When the last relay of a path has had its time: one that is silent had some before. */
MESH_HOLDS(process)
static uint64_t report_limit_ms(const struct mesh_path *path)
{
	uint64_t since_ms = path->drain_asked_ms;

	if (path->question.asked_ms && path->question.asked_ms < since_ms)
		since_ms = path->question.asked_ms;
	return since_ms + mesh_link_resumed_limit_ms(path->comm->process);
}

/*
 * The sending end has given up a path through relays. The link to the last relay carries other
 * connections: the relay's report replaces the fence.
 */
MESH_HOLDS(process)
static void circuit_fence(struct mesh_path *path)
{
	struct mesh_domain *domain = path->peer->domain;

	path->broken = true;
	if (mesh_path_is(path, MESH_PATH_UP)) {
		mesh_domain_lock(domain);
		path->user.ops->lost(&path->user);
		mesh_domain_unlock(domain);
	}
	if (path->drained)
		path_drained(path);
	else if (!path->drain_asked_ms)
		mesh_path_drain_ask(path);
	if (path->drain_asked_ms && mesh_clock_ms() >= report_limit_ms(path))
		path_fence(path);
}

void mesh_path_given_up(struct mesh_path *path)
{
	if (mesh_path_is(path, MESH_PATH_DOWN))
		return;
	if (path->peer->state == MESH_PEER_UP && mesh_path_has_relay(path))
		circuit_fence(path);
	else
		path_fence(path);
}

/* ---- answering ------------------------------------------------------------------------------- */

/* What has arrived of message @seq. */
MESH_HOLDS(comm)
static void have_fill(struct mesh_comm *comm, uint32_t seq, struct mesh_frame_have *have)
{
	const struct mesh_request *request = mesh_comm_request(comm, seq);

	mesh_comm_assert_locked(comm);
	if (!mesh_seq_before(seq, comm->next_seq))
		return; /* no receive is posted for it */
	have->complete = request->seq != seq || !mesh_request_is_open(request);
	if (!have->complete && request->state == MESH_REQUEST_MOVING)
		memcpy(have->arrived, request->receive.marks->arrived, sizeof(have->arrived));
}

/*
 * Sends HAVE over the path that the question has come over, if that lives: another one may be a
 * circuit of which the sender does not know yet, and which it may give back.
 */
MESH_HOLDS(process)
static void have_send(struct mesh_comm *comm, const struct mesh_path *over, uint32_t seq,
		      uint32_t round)
{
	struct mesh_frame frame;

	if (!mesh_path_lives(over))
		over = mesh_comm_frame_path(comm);
	memset(&frame, 0, sizeof(frame));
	frame.have.to_comm = over->remote_id;
	frame.have.seq = seq;
	frame.have.round = round;
	mesh_comm_lock(comm);
	have_fill(comm, seq, &frame.have);
	mesh_comm_unlock(comm);
	mesh_peer_send(over->peer, &frame, MESH_FRAME_HAVE);
}

/*
 * True if something may still arrive over one of these paths: its fence goes on, or its relay has
 * not reported yet.
 */
MESH_HOLDS(process)
static bool any_is_open(const struct mesh_comm *comm, const struct mesh_frame_resume *resume)
{
	const struct mesh_path *path;

	for (path = comm->paths; path < comm->paths + comm->num_paths; path++) {
		if (is_named(path, resume) && mesh_path_is(path, MESH_PATH_SUSPECT) &&
		    path->peer->fenced != MESH_FENCED_FAILED && /* then the comm has failed */
		    (mesh_peer_is_fencing(path->peer) || mesh_path_has_relay(path)))
			return true;
	}
	return false;
}

/* Answers the RESUME that waits, if all relays have reported and all fences are over. */
MESH_HOLDS(process)
static void questions_answer(struct mesh_comm *comm)
{
	struct mesh_question *question = &comm->receive.question;
	const struct mesh_frame_resume *resume;
	uint32_t i;

	if (!question->over || any_is_open(comm, &question->resume))
		return;
	resume = &question->resume;
	mesh_engine_timer_cancel(&comm->process->engine, &question->timer);
	for (i = 0; i < resume->count && i < MESH_COMM_REQUESTS; i++)
		have_send(comm, question->over, resume->seq + i, resume->round);
	question->over = NULL;
}

static void question_expired(struct mesh_timer *timer, uint64_t now_ms);

/* A fence goes on, or the link of a path is lost: each step is looked for. */
MESH_HOLDS(process)
static void question_wait(struct mesh_comm *comm)
{
	struct mesh_question *question = &comm->receive.question;

	question->timer.expired = question_expired;
	mesh_engine_timer_set(&comm->process->engine, &question->timer,
			      mesh_clock_ms() + MESH_ENGINE_POLL_MS);
}

MESH_HOLDS(process)
static void question_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_comm *comm = mesh_container_of(timer, struct mesh_comm, receive.question.timer);
	struct mesh_question *question = &comm->receive.question;
	struct mesh_path *path;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		if (is_named(path, &question->resume) && mesh_path_is(path, MESH_PATH_SUSPECT) &&
		    (path->peer->state == MESH_PEER_LOST ||
		     (mesh_path_has_relay(path) && now_ms >= report_limit_ms(path))))
			path_fence(path);
	}
	questions_answer(comm);
	if (question->over)
		question_wait(comm);
}

void mesh_resume_came(struct mesh_path *over, const struct mesh_frame_resume *resume)
{
	struct mesh_comm *comm = over->comm;
	struct mesh_question *question = &comm->receive.question;
	int i;

	mesh_process_assert_locked(comm->process);
	if (resume->dead >> comm->num_paths || resume->count > MESH_COMM_REQUESTS)
		mesh_count_event(&comm->process->counters->refused);
	if (question->over && mesh_seq_before(resume->round, question->resume.round))
		return; /* a later loss has made a newer one of it */
	question->over = over;
	question->resume = *resume;
	for (i = 0; i < comm->num_paths; i++) {
		if (is_named(&comm->paths[i], resume))
			mesh_path_given_up(&comm->paths[i]);
	}
	questions_answer(comm);
	if (question->over)
		question_wait(comm);
}

void mesh_path_circuit_drained(struct mesh_path *path, const struct mesh_frame_circuit *event)
{
	struct mesh_comm *comm = path->comm;

	if (comm->sending || !mesh_path_has_relay(path) || !path->broken) {
		mesh_count_event(&comm->process->counters->refused);
		return;
	}
	if (event->unclean)
		path_fence(path);
	else
		path_drained(path);
	questions_answer(comm);
}
