/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - runs batches of sessions: one pair, or all of this rank's pairs at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "session.h"
#include "worker.h"

#define WAIT_MS 100
/* How often registration is tried beside data. */
#define SCRATCH_NS (20 * NS_PER_MS)
#define SCRATCH_BYTES 65536

/* The sessions that run together. */
struct batch {
	struct worker *worker;
	const struct plugin *plugin;
	struct session *sessions;
	size_t num_sessions;
};

static void say(struct worker *worker, enum frame_type type, uint32_t pair, const char *text)
{
	mailbox_put(worker->outbox, frame_new_text(type, (uint16_t)worker->options->rank,
						   FRAME_COORDINATOR, pair, text));
}

/* --- progress thread --- */

static struct session *find_session(struct batch *batch, uint32_t pair)
{
	for (size_t i = 0; i < batch->num_sessions; i++)
		if (batch->sessions[i].pair == pair)
			return &batch->sessions[i];
	return NULL;
}

/* What is for a session that is gone is dropped. */
static bool take_frames(struct batch *batch)
{
	struct frame *frame;
	struct session *session;
	bool any = false;

	while ((frame = mailbox_take(batch->worker->inbox))) {
		session = find_session(batch, frame->pair);
		if (session && frame->type >= FRAME_HANDLES && frame->from == session->peer)
			session_frame(session, frame);
		free(frame);
		any = true;
	}
	return any;
}

/* NCCL's progress thread sleeps, too, while it has no operation to move. */
static bool only_waiting(const struct batch *batch)
{
	for (size_t i = 0; i < batch->num_sessions; i++)
		if (batch->sessions[i].state == SESSION_DATA &&
		    !session_is_waiting(&batch->sessions[i]))
			return false;
	return true;
}

static bool any_in(const struct batch *batch, enum session_state first, enum session_state last)
{
	for (size_t i = 0; i < batch->num_sessions; i++)
		if (batch->sessions[i].state >= first && batch->sessions[i].state <= last)
			return true;
	return false;
}

/* When asked to stop: says how far everything has come, for the message about a hang. */
static void leave_details(struct batch *batch)
{
	char text[ACTIVITY_DETAILS_MAX];

	for (size_t i = 0; i < batch->num_sessions; i++) {
		if (batch->sessions[i].state == SESSION_OVER)
			continue;
		session_describe(&batch->sessions[i], text, sizeof(text));
		activity_details(batch->worker->activity, "%s%s", i ? " | " : "", text);
	}
}

static void *progress_main(void *arg)
{
	struct batch *batch = arg;
	struct activity *activity = batch->worker->activity;
	uint64_t progress_ns = now_ns();
	bool progress;

	activity_thread_is(ACTIVITY_PROGRESS);
	while (any_in(batch, SESSION_DATA, SESSION_DATA)) {
		if (activity_stopped(activity)) {
			leave_details(batch);
			return NULL;
		}
		progress = take_frames(batch);
		for (size_t i = 0; i < batch->num_sessions; i++)
			if (batch->sessions[i].state == SESSION_DATA)
				progress |= session_data_pass(&batch->sessions[i]);
		if (progress) {
			activity_progress(activity);
			progress_ns = now_ns();
		} else if (only_waiting(batch)) {
			mailbox_sleep(batch->worker->inbox, WAIT_MS);
		} else {
			poll_pause(progress_ns);
		}
	}
	return NULL;
}

/* --- service thread --- */

static void try_registration(struct batch *batch, void *scratch)
{
	struct session *s;

	for (size_t i = 0; i < batch->num_sessions; i++) {
		s = &batch->sessions[i];
		if (!atomic_load(&s->checking) || s->scratch_error[0])
			continue;
		if (!comm_register_scratch(&s->sends[0], scratch, SCRATCH_BYTES, s->scratch_error))
			comm_register_scratch(&s->receives[0], scratch, SCRATCH_BYTES,
					      s->scratch_error);
	}
}

static void wait_beside(struct batch *batch, pthread_t thread)
{
	void *scratch = aligned_alloc(4096, SCRATCH_BYTES);
	struct timespec until;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += (long)SCRATCH_NS;
		if (until.tv_nsec >= (long)NS_PER_S) {
			until.tv_sec++;
			until.tv_nsec -= (long)NS_PER_S;
		}
		if (pthread_timedjoin_np(thread, NULL, &until) != ETIMEDOUT)
			break;
		if (scratch)
			try_registration(batch, scratch);
	}
	free(scratch);
}

static void fail_all(struct batch *batch, const char *why)
{
	for (size_t i = 0; i < batch->num_sessions; i++) {
		if (batch->sessions[i].state == SESSION_OVER)
			continue;
		snprintf(batch->sessions[i].error, COMM_ERROR_MAX, "%s", why);
		session_fail(&batch->sessions[i]);
	}
}

static void move_data(struct batch *batch)
{
	pthread_t thread;

	if (!any_in(batch, SESSION_DATA, SESSION_DATA))
		return;
	if (pthread_create(&thread, NULL, progress_main, batch)) {
		fail_all(batch, "cannot start the progress thread");
		return;
	}
	wait_beside(batch, thread);
}

/* All connects and accepts of all peers in turn, never waiting in one (proxy.cc). */
static void set_up(struct batch *batch)
{
	struct activity *activity = batch->worker->activity;
	uint64_t begin_ns = now_ns();
	bool progress;

	for (size_t i = 0; i < batch->num_sessions; i++)
		session_open(&batch->sessions[i]);
	while (any_in(batch, SESSION_LISTEN, SESSION_CONNECT)) {
		if (activity_stopped(activity)) {
			leave_details(batch);
			return;
		}
		progress = take_frames(batch);
		for (size_t i = 0; i < batch->num_sessions; i++)
			progress |= session_setup_pass(&batch->sessions[i]);
		if (progress)
			activity_progress(activity);
		else
			poll_pause(begin_ns);
	}
}

static void end_sessions(struct batch *batch)
{
	char *result;

	for (size_t i = 0; i < batch->num_sessions; i++) {
		session_teardown(&batch->sessions[i]);
		result = session_result(&batch->sessions[i]);
		say(batch->worker, FRAME_RESULT, batch->sessions[i].pair, result ? result : "");
		free(result);
		session_close(&batch->sessions[i]);
	}
}

static void init_session(struct batch *batch, struct session *s, uint32_t pair, unsigned int from,
			 unsigned int to)
{
	struct worker *worker = batch->worker;

	s->pair = pair;
	s->from = from;
	s->to = to;
	s->self = (unsigned int)worker->options->rank;
	s->peer = s->self == from ? to : from;
	s->leads = s->self == from;
	s->options = worker->options;
	s->plugin = batch->plugin;
	s->activity = worker->activity;
	s->outbox = worker->outbox;
	snprintf(s->name, sizeof(s->name), "pair %u (%.40s) -> %u (%.40s)", from,
		 worker->hosts[from], to, worker->hosts[to]);
}

/* The pairs of a START frame in which this rank takes part. */
static void add_sessions(struct batch *batch, const struct frame *start)
{
	unsigned int world = (unsigned int)batch->worker->options->world;
	unsigned int self = (unsigned int)batch->worker->options->rank, from, to;
	uint32_t ranks;

	for (uint32_t i = 0; i + 8 <= start->size; i += 8) {
		ranks = frame_get_u32(start->body + i + 4);
		from = ranks >> 16;
		to = ranks & 0xffff;
		if (from >= world || to >= world || from == to || (from != self && to != self))
			continue;
		init_session(batch, &batch->sessions[batch->num_sessions++],
			     frame_get_u32(start->body + i), from, to);
	}
}

static void run_batch(struct worker *worker, const struct plugin *plugin, const struct frame *start)
{
	struct batch batch = {.worker = worker, .plugin = plugin};

	batch.sessions = calloc(start->size / 8 + 1, sizeof(*batch.sessions));
	if (!batch.sessions) {
		say(worker, FRAME_FAIL, 0, "out of memory");
		return;
	}
	add_sessions(&batch, start);
	set_up(&batch);
	move_data(&batch);
	end_sessions(&batch);
	free(batch.sessions);
}

/* Until rank 0 says that there are no more pairs. */
static void serve(struct worker *worker, const struct plugin *plugin)
{
	struct activity *activity = worker->activity;
	struct frame *frame;
	bool finished = false;

	while (!finished && !activity_stopped(activity)) {
		atomic_store(&activity->busy, false);
		frame = mailbox_wait(worker->inbox, WAIT_MS);
		if (!frame)
			continue;
		atomic_store(&activity->busy, true);
		if (frame->type == FRAME_START)
			run_batch(worker, plugin, frame);
		finished = frame->type == FRAME_FINISH;
		free(frame);
	}
}

static int start_plugin(struct worker *worker)
{
	const struct options *options = worker->options;
	struct plugin *plugin = &worker->plugin;
	char error[PLUGIN_ERROR_MAX], words[PLUGIN_ERROR_MAX];
	int rc;

	activity_step(worker->activity, "starting the plugin");
	rc = plugin_start(plugin, options->rank, options->verbose, error);
	if (rc) {
		say(worker, FRAME_FAIL, 0, error);
		return rc;
	}
	snprintf(words, sizeof(words), "plugin '%s' from %s, net ABI v%d, %d device%s",
		 plugin->adapter.plugin_name, plugin->file, plugin->adapter.abi,
		 plugin->num_devices, plugin->num_devices == 1 ? "" : "s");
	say(worker, FRAME_LOADED, 0, words);
	return 0;
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	char error[PLUGIN_ERROR_MAX] = "";

	activity_thread_is(ACTIVITY_SERVICE);
	atomic_store(&worker->activity->busy, true);
	if (!start_plugin(worker)) {
		serve(worker, &worker->plugin);
		atomic_store(&worker->activity->busy, true);
		activity_step(worker->activity, "unloading the plugin");
		plugin_stop(&worker->plugin, error);
		say(worker, FRAME_BYE, 0, error);
	}
	atomic_store(&worker->activity->busy, false);
	atomic_store(&worker->ended, true);
	return NULL;
}

int worker_start(struct worker *worker)
{
	return -pthread_create(&worker->thread, NULL, worker_main, worker);
}

int worker_stop(struct worker *worker, int timeout_ms)
{
	struct timespec until;

	atomic_store(&worker->activity->stop, true);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout_ms / 1000 + 1;
	return -pthread_timedjoin_np(worker->thread, NULL, &until);
}
