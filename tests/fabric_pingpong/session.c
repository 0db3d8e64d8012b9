/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - set-up, teardown and result of one side of a pair. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

static void send_to_peer(struct session *s, enum frame_type type, const void *body, size_t size)
{
	mailbox_put(s->outbox,
		    frame_new(type, (uint16_t)s->self, (uint16_t)s->peer, s->pair, body, size));
}

/* True if the plugin has warned since the session began, also from a thread of its own. */
static bool plugin_has_warned(const struct session *s, char *warning)
{
	return plugin_last_warning(warning) != s->warnings_before;
}

/* What the plugin logged since the session began is the best reason that there is. */
static void add_plugin_reason(struct session *s)
{
	char warning[PLUGIN_WARNING_MAX];
	size_t used = strlen(s->error);

	if (plugin_has_warned(s, warning) && !strstr(s->error, warning))
		snprintf(s->error + used, sizeof(s->error) - used,
			 ". The plugin's last warning: %s", warning);
}

void session_fail(struct session *s)
{
	if (s->failed)
		return;
	add_plugin_reason(s);
	s->failed = true;
	s->state = SESSION_OVER;
	atomic_store(&s->checking, false);
	send_to_peer(s, FRAME_PAIR_FAIL, s->error, strlen(s->error));
}

/* The NIC that this rank names, as NCCL would: each GPU has one nearby. */
static int dev_of(const struct session *s, uint32_t channel)
{
	int dev = s->options->dev;

	if (dev == OPTIONS_DEV_CHANNEL)
		dev = (int)channel;
	else if (dev == OPTIONS_DEV_RANK)
		dev = (int)s->self;
	return dev % s->plugin->num_devices;
}

static void init_comm(struct session *s, struct comm *comm, bool sender, uint32_t channel)
{
	comm->adapter = &s->plugin->adapter;
	comm->error = s->error;
	comm->sender = sender;
	comm->from = sender ? s->self : s->peer;
	comm->to = sender ? s->peer : s->self;
	comm->reply = comm->from != s->from;
	comm->channel = channel;
	comm->dev = dev_of(s, channel);
}

static int make_comms(struct session *s)
{
	int rc = 0;

	s->sends = calloc(s->options->channels, sizeof(*s->sends));
	s->receives = calloc(s->options->channels, sizeof(*s->receives));
	if (!s->sends || !s->receives ||
	    (s->leads && leader_open(&s->leader, s->options, s->pair))) {
		snprintf(s->error, sizeof(s->error), "out of memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->options->channels && !rc; i++) {
		init_comm(s, &s->sends[i], true, i);
		init_comm(s, &s->receives[i], false, i);
		rc = comm_open(&s->sends[i], s->options);
		if (!rc)
			rc = comm_open(&s->receives[i], s->options);
	}
	return rc;
}

static int listen_all(struct session *s)
{
	uint8_t handles[OPTIONS_CHANNELS_MAX * NCCL_HANDLE_SIZE];
	int rc;

	for (uint32_t i = 0; i < s->options->channels; i++) {
		rc = comm_listen(&s->receives[i]);
		if (rc)
			return rc;
		memcpy(handles + i * NCCL_HANDLE_SIZE, s->receives[i].handle, NCCL_HANDLE_SIZE);
	}
	send_to_peer(s, FRAME_HANDLES, handles, s->options->channels * NCCL_HANDLE_SIZE);
	return 0;
}

void session_open(struct session *s)
{
	char warning[PLUGIN_WARNING_MAX];

	activity_step(s->activity, "%s: listen", s->name);
	s->warnings_before = plugin_last_warning(warning);
	if (s->leads)
		nic_counters_read(&s->counters);
	if (make_comms(s) || listen_all(s))
		session_fail(s);
}

/* One call for each comm that is not connected, in turn. Returns the number that became so. */
static int poll_comms(struct session *s, bool *all)
{
	struct comm *comms[2];
	int progress = 0;

	*all = true;
	for (uint32_t i = 0; i < s->options->channels; i++) {
		comms[0] = &s->sends[i];
		comms[1] = &s->receives[i];
		for (int side = 0; side < 2; side++) {
			if (comms[side]->connected)
				continue;
			if (comm_poll_setup(comms[side])) {
				session_fail(s);
				return 1;
			}
			progress += comms[side]->connected;
			*all = *all && comms[side]->connected;
		}
	}
	return progress;
}

static int hint(struct session *s)
{
	enum nccl_result result = adapter_hint(&s->plugin->adapter, 1, (int)s->options->channels);

	if (!result)
		return 0;
	snprintf(s->error, sizeof(s->error), "setNetAttr() returned %s",
		 adapter_result_text(result));
	return -EIO;
}

bool session_setup_pass(struct session *s)
{
	bool all;
	int progress;

	if (s->state != SESSION_CONNECT)
		return false;
	progress = poll_comms(s, &all);
	if (all && !s->failed) {
		if (hint(s))
			session_fail(s);
		else
			s->state = SESSION_DATA;
	}
	return progress > 0;
}

/* The first error counts; what teardown says after a failure is only a consequence. */
static void close_comm(struct session *s, struct comm *comm)
{
	char first[COMM_ERROR_MAX];

	memcpy(first, s->error, sizeof(first));
	if (comm_close(comm)) {
		s->failed = true;
		if (first[0])
			memcpy(s->error, first, sizeof(first));
	}
	activity_progress(s->activity);
}

void session_teardown(struct session *s)
{
	activity_step(s->activity, "%s: deregMr and close", s->name);
	for (uint32_t i = 0; s->sends && s->receives && i < s->options->channels; i++) {
		close_comm(s, &s->sends[i]);
		close_comm(s, &s->receives[i]);
	}
}

/* The ways that the pair's own direction takes, as the sender knows them. */
static json_t *find_paths(struct session *s)
{
	struct path_list list = {.num_paths = 0};

	for (uint32_t i = 0; s->sends && i < s->options->channels; i++)
		paths_merge(&list, &s->sends[i].words.paths);
	if (!list.num_paths && s->finished)
		nic_counters_guess(&s->counters, &list);
	return paths_json(&list);
}

static void add_error(json_t *errors, const struct session *s, const char *error)
{
	char text[COMM_ERROR_MAX + 40];
	json_t *string;

	if (!error[0])
		return;
	snprintf(text, sizeof(text), "rank %u: %s", s->self, error);
	string = json_string(text);
	json_array_append_new(errors, string ? string : json_string("not UTF-8"));
}

char *session_result(struct session *s)
{
	json_t *result = json_object(), *errors = json_array();
	char *text;

	if (s->leads) {
		json_object_set_new(result, "paths", find_paths(s));
		json_object_set_new(result, "sizes", leader_json(&s->leader));
	}
	add_error(errors, s, s->error);
	add_error(errors, s, s->scratch_error);
	if (!s->finished && !s->failed)
		add_error(errors, s, "not finished");
	json_object_set_new(result, "errors", errors);
	json_object_set_new(result, "finished", json_boolean(s->finished && !s->failed));
	text = json_dumps(result, JSON_COMPACT);
	json_decref(result);
	return text;
}

void session_close(struct session *s)
{
	if (s->leads)
		leader_close(&s->leader);
	free(s->sends);
	free(s->receives);
	s->sends = s->receives = NULL;
}

/* --- words for a hang --- */

static void append(char *text, size_t size, const char *more)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s", more);
}

/* How many are not connected; *words is what the plugin logged of one of them, if anything. */
static uint32_t count_waiting(const struct session *s, const struct comm *comms, const char **words)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->options->channels; i++) {
		if (comms[i].connected)
			continue;
		n++;
		if (comms[i].words.warning[0])
			*words = comms[i].words.warning;
	}
	return n;
}

/* A connect's reason says more than an accept's, which only knows that no peer came. */
static void describe_setup(const struct session *s, char *text, size_t size)
{
	char counts[120], warning[PLUGIN_WARNING_MAX];
	const char *words = NULL;
	uint32_t accepts = count_waiting(s, s->receives, &words);
	uint32_t connects = count_waiting(s, s->sends, &words);

	if (!words && plugin_has_warned(s, warning))
		words = warning;
	snprintf(counts, sizeof(counts), "%u connections to rank %u and %u from it are not made",
		 connects, s->peer, accepts);
	append(text, size, counts);
	if (s->state == SESSION_LISTEN)
		append(text, size, "; that rank has not begun to listen");
	if (words) {
		append(text, size, ". The plugin's reason: ");
		append(text, size, words);
	}
}

static void describe_data(const struct comm *comm, char *text, size_t size)
{
	char name[120], words[400];

	if (comm_finished(comm))
		return;
	comm_describe(comm, name, sizeof(name));
	snprintf(words, sizeof(words),
		 "; %s: %llu of %llu messages done, %llu more posted, %llu calls of %s", name,
		 (unsigned long long)comm->done, (unsigned long long)comm->plan.count,
		 (unsigned long long)(comm->posted - comm->done),
		 (unsigned long long)comm->attempts, comm->sender ? "isend" : "irecv");
	append(text, size, words);
}

void session_describe(const struct session *s, char *text, size_t size)
{
	static const char *const steps[] = {"between two phases", "moving messages",
					    "done, but the peer is not"};
	char words[200];

	snprintf(text, size, "%s: ", s->name);
	if (!s->sends || !s->receives)
		return;
	if (s->state != SESSION_DATA) {
		describe_setup(s, text, size);
		return;
	}
	phase_describe(&s->phase, words, sizeof(words));
	append(text, size, words);
	append(text, size, ": ");
	append(text, size, steps[s->step]);
	for (uint32_t i = 0; i < s->options->channels; i++) {
		describe_data(&s->sends[i], text, size);
		describe_data(&s->receives[i], text, size);
	}
}
