/* SPDX-License-Identifier: Apache-2.0 */
/* session_data.c - the phases of a session: NCCL's order of sends, receives and tests. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "session.h"

/* Calls of isend without a receive that count as "the send came first". */
#define TRIES 100

static void send_number(struct session *s, enum frame_type type)
{
	uint8_t body[8];

	frame_put_u64(body, s->phase.number);
	mailbox_put(s->outbox, frame_new(type, (uint16_t)s->self, (uint16_t)s->peer, s->pair, body,
					 sizeof(body)));
}

static void start_phase(struct session *s)
{
	char words[200];
	struct plan plan;
	int rc = 0;

	for (uint32_t i = 0; i < s->options->channels && !rc; i++) {
		plan = phase_plan(&s->phase, i, !s->leads);
		rc = comm_begin(&s->sends[i], &plan);
		plan = phase_plan(&s->phase, i, s->leads);
		if (!rc)
			rc = comm_begin(&s->receives[i], &plan);
	}
	phase_describe(&s->phase, words, sizeof(words));
	activity_step(s->activity, "%s: %s", s->name, words);
	if (rc) {
		snprintf(s->error, sizeof(s->error),
			 "a phase that does not fit the buffers: %.200s", words);
		session_fail(s);
		return;
	}
	s->ready_sent = s->peer_ready = s->peer_done = false;
	s->start_ns = 0;
	s->step = SESSION_RUN;
	atomic_store(&s->checking, s->phase.kind == PHASE_CHECK);
}

static void lead(struct session *s)
{
	uint8_t wire[PHASE_WIRE];

	if (!leader_next(&s->leader, &s->phase)) {
		mailbox_put(s->outbox, frame_new(FRAME_END, (uint16_t)s->self, (uint16_t)s->peer,
						 s->pair, NULL, 0));
		s->finished = true;
		s->state = SESSION_OVER;
		atomic_store(&s->checking, false);
		return;
	}
	phase_encode(&s->phase, wire);
	mailbox_put(s->outbox, frame_new(FRAME_PHASE, (uint16_t)s->self, (uint16_t)s->peer, s->pair,
					 wire, sizeof(wire)));
	start_phase(s);
	if (!s->failed && s->phase.kind == PHASE_PINGPONG && s->phase.count <= s->leader.stamps_max)
		s->receives[0].stamps = s->leader.stamps;
}

static bool receives_finished(const struct session *s)
{
	for (uint32_t i = 0; i < s->options->channels; i++)
		if (!comm_finished(&s->receives[i]))
			return false;
	return true;
}

static bool all_finished(const struct session *s)
{
	for (uint32_t i = 0; i < s->options->channels; i++)
		if (!comm_finished(&s->sends[i]))
			return false;
	return receives_finished(s);
}

/* How many messages of a phase this side may have sent so far. */
static uint64_t allowed(const struct session *s)
{
	if (s->phase.order == PHASE_EARLY && !s->peer_ready)
		return 0;
	if (s->phase.kind == PHASE_PINGPONG)
		return s->receives[0].done + (s->leads ? 1 : 0);
	/* The answer to a stream says that all of it has come and was verified. */
	if (s->phase.kind == PHASE_STREAM && !s->leads)
		return receives_finished(s) ? 1 : 0;
	return UINT64_MAX;
}

static bool window_posted(const struct comm *comm)
{
	return comm->posted == comm->plan.count || comm->posted == comm->done + comm->plan.window;
}

static bool is_ready(const struct session *s)
{
	for (uint32_t i = 0; i < s->options->channels; i++) {
		if (s->phase.order == PHASE_EARLY && !window_posted(&s->receives[i]))
			return false;
		if (s->phase.order == PHASE_LATE && !window_posted(&s->sends[i]) &&
		    s->sends[i].attempts < TRIES)
			return false;
	}
	return true;
}

static int move_sends(struct session *s)
{
	uint64_t limit = allowed(s);
	int rc, progress = 0;

	if (limit && !s->start_ns)
		s->start_ns = now_ns();
	for (uint32_t i = 0; i < s->options->channels; i++) {
		rc = comm_send_pass(&s->sends[i], limit);
		if (rc < 0)
			return rc;
		progress += rc;
	}
	return progress;
}

/* First post what can be posted; test only in a pass without posting (net.cc). */
static int move_receives(struct session *s)
{
	int rc, progress = 0;

	if (s->phase.order == PHASE_LATE && !s->peer_ready)
		return 0;
	for (uint32_t i = 0; i < s->options->channels; i++) {
		rc = comm_post_pass(&s->receives[i]);
		if (rc < 0)
			return rc;
		progress += rc;
	}
	for (uint32_t i = 0; i < s->options->channels && !progress; i++) {
		rc = comm_test_pass(&s->receives[i]);
		if (rc < 0)
			return rc;
		progress += rc;
	}
	return progress;
}

static void end_phase(struct session *s)
{
	s->end_ns = now_ns();
	if (!s->start_ns)
		s->start_ns = s->end_ns;
	for (uint32_t i = 0; i < s->options->channels; i++) {
		comm_end(&s->sends[i]);
		comm_end(&s->receives[i]);
	}
	send_number(s, FRAME_DONE);
	s->step = s->leads ? SESSION_WAIT_DONE : SESSION_IDLE;
}

static bool run(struct session *s)
{
	int sent = move_sends(s), received = 0;

	if (sent >= 0)
		received = move_receives(s);
	if (sent < 0 || received < 0) {
		session_fail(s);
		return true;
	}
	if (s->phase.order != PHASE_FREE && !s->ready_sent && is_ready(s)) {
		s->ready_sent = true;
		send_number(s, FRAME_READY);
	}
	if (all_finished(s) && (s->phase.order == PHASE_FREE || s->ready_sent))
		end_phase(s);
	return sent + received > 0;
}

bool session_data_pass(struct session *s)
{
	switch (s->step) {
	case SESSION_IDLE:
		if (!s->leads)
			return false;
		lead(s);
		return true;
	case SESSION_RUN:
		return run(s);
	case SESSION_WAIT_DONE:
		if (!s->peer_done)
			return false;
		leader_note(&s->leader, &s->phase, s->start_ns, s->end_ns);
		s->step = SESSION_IDLE;
		return true;
	}
	return false;
}

bool session_is_waiting(const struct session *s)
{
	return s->step == SESSION_WAIT_DONE || (s->step == SESSION_IDLE && !s->leads);
}

/* --- what the peer says --- */

static void confused(struct session *s, const char *what)
{
	snprintf(s->error, sizeof(s->error), "the peer sent %s at the wrong time or malformed",
		 what);
	session_fail(s);
}

static void take_handles(struct session *s, const struct frame *frame)
{
	if (s->state != SESSION_LISTEN || frame->size != s->options->channels * NCCL_HANDLE_SIZE) {
		confused(s, "handles");
		return;
	}
	for (uint32_t i = 0; i < s->options->channels; i++)
		memcpy(s->sends[i].handle, frame->body + i * NCCL_HANDLE_SIZE, NCCL_HANDLE_SIZE);
	s->state = SESSION_CONNECT;
	activity_step(s->activity, "%s: connect and accept", s->name);
}

static void take_phase(struct session *s, const struct frame *frame)
{
	struct phase phase;

	if (s->leads || s->step != SESSION_IDLE || phase_decode(frame->body, frame->size, &phase)) {
		confused(s, "a phase");
		return;
	}
	s->phase = phase;
	start_phase(s);
}

static void take_number(struct session *s, const struct frame *frame, bool *flag)
{
	if (frame->size != 8 || frame_get_u64(frame->body) != s->phase.number)
		confused(s, "a phase number");
	else
		*flag = true;
}

void session_frame(struct session *s, const struct frame *frame)
{
	if (s->state == SESSION_OVER)
		return;
	activity_progress(s->activity);
	switch (frame->type) {
	case FRAME_HANDLES:
		take_handles(s, frame);
		break;
	case FRAME_PHASE:
		take_phase(s, frame);
		break;
	case FRAME_READY:
		take_number(s, frame, &s->peer_ready);
		break;
	case FRAME_DONE:
		if (s->leads)
			take_number(s, frame, &s->peer_done);
		break;
	case FRAME_END:
		s->finished = true;
		s->state = SESSION_OVER;
		atomic_store(&s->checking, false);
		break;
	case FRAME_PAIR_FAIL:
		s->peer_failed = true;
		s->failed = true;
		s->state = SESSION_OVER;
		atomic_store(&s->checking, false);
		break;
	default:
		confused(s, "a message");
		break;
	}
}
