/* SPDX-License-Identifier: Apache-2.0 */
/* end.c - one side of a measurement, by the plugin's own connections. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "transport/comm.h"
#include "transport/data.h"
#include "wire/handle.h"

#include "common/interrupt.h"
#include "peer/end.h"
#include "peer/figures.h"
#include "transport/comm_life.h"

/* NCCL has as many slots of this size in flight on one connection (NCCL_BUFFSIZE, NCCL_STEPS). */
#define MESSAGE_BYTES ((size_t)512 << 10)
#define MESSAGES 8
#define PAGE 4096
#define MEMORY_BYTES ((MESSAGES + 1) * MESSAGE_BYTES + PAGE)
/* A connection, also over relays that exist, is there within 3 s. */
#define CONNECT_S 15
/* The time for messages in flight at the end of the measurement to arrive. */
#define DRAIN_MS 10000

/* A small message. */
struct ping {
	uint32_t seq;
	uint32_t is_answer; /* 0: it is to be returned */
};

struct end_send {
	struct mesh_request *request; /* NULL: this place is free */
	bool large;
};

struct peer_end {
	struct mesh_net *guest; /* owned */
	struct mesh_listener *listener;
	struct mesh_comm *send, *receive; /* NULL: not up yet */
	struct mesh_registration *send_memory, *receive_memory;
	/* MESSAGES to receive into, one to send from, a page of pings to send. Owned. */
	uint8_t *memory;
	uint8_t theirs[MESH_HANDLE_BYTES]; /* mesh_net_connect() keeps its state there */
	bool meeting;			   /* theirs is there */
	struct mesh_request *receives[MESSAGES];
	int next_receive; /* the oldest one */
	struct end_send sends[MESSAGES];
	struct ping answer; /* is due */
	bool answer_due;
	uint32_t answered; /* the latest one that came back */
	int error;	   /* sticky; negative errno */
	bool sending;	   /* large messages are posted */
	uint64_t bytes, started_ns, ended_ns, until_ns;
	struct peer_since up; /* since when both are up; 0: they are not */
};

/* ---- what the plugin's code says ------------------------------------------------------------ */

/* The log's sink has no argument, and the plugin's threads call it. */
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static char words[MESH_LOG_LINE_MAX];

static void words_keep(enum mesh_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level != MESH_LOG_WARN)
		return;
	pthread_mutex_lock(&words_lock);
	snprintf(words, sizeof(words), "%s", text);
	pthread_mutex_unlock(&words_lock);
}

const char *peer_end_words(char *text, size_t size)
{
	pthread_mutex_lock(&words_lock);
	snprintf(text, size, "%s", words);
	pthread_mutex_unlock(&words_lock);
	mesh_text_clean(text);
	return text;
}

/* ---- opening and closing ------------------------------------------------------------------ */

int peer_end_open(const char *nic, uint64_t job, uint8_t *handle, struct peer_end **end)
{
	struct peer_end *opened = calloc(1, sizeof(*opened));
	int ret = -ENOMEM;

	if (!opened)
		return ret;
	mesh_log_sink_set(words_keep);
	opened->memory = aligned_alloc(PAGE, MEMORY_BYTES);
	if (opened->memory) {
		memset(opened->memory, 0x5a, MEMORY_BYTES);
		ret = mesh_net_guest_open(nic, job, CONNECT_S, &opened->guest);
	}
	if (!ret)
		ret = mesh_net_listen(opened->guest, 0, handle, &opened->listener);
	if (ret)
		peer_end_close(opened);
	else
		*end = opened;
	return ret;
}

void peer_end_hang_up(struct peer_end *end)
{
	mesh_comm_close(end->send);
	mesh_comm_close(end->receive);
	end->send = end->receive = NULL;
}

void peer_end_close(struct peer_end *end)
{
	if (!end)
		return;
	peer_end_hang_up(end);
	mesh_listener_close(end->listener);
	mesh_net_close(end->guest);
	free(end->memory);
	free(end);
}

void peer_end_meet(struct peer_end *end, const uint8_t *handle)
{
	memcpy(end->theirs, handle, sizeof(end->theirs));
	end->meeting = true;
}

/* Each returns 0 or a negative errno; nothing has changed while it is not ready. */

static int send_connect(struct peer_end *end)
{
	int ret;

	if (!end->meeting || end->send)
		return 0;
	ret = mesh_net_connect(end->guest, 0, end->theirs, &end->send);
	if (!ret && end->send)
		ret = mesh_registration_open(end->send, end->memory, MEMORY_BYTES,
					     &end->send_memory);
	return ret;
}

static int receive_accept(struct peer_end *end)
{
	int ret;

	if (end->receive)
		return 0;
	ret = mesh_listener_accept(end->listener, &end->receive);
	if (!ret && end->receive)
		ret = mesh_registration_open(end->receive, end->memory, MEMORY_BYTES,
					     &end->receive_memory);
	return ret;
}

/* ---- messages ----------------------------------------------------------------------------- */

static int receives_post(struct peer_end *end)
{
	int i, k, ret;

	for (k = 0; k < MESSAGES; k++) {
		i = (end->next_receive + k) % MESSAGES;
		if (end->receives[i])
			continue;
		ret = mesh_comm_receive(end->receive, end->memory + (size_t)i * MESSAGE_BYTES,
					MESSAGE_BYTES, end->receive_memory, &end->receives[i]);
		if (ret || !end->receives[i])
			return ret;
	}
	return 0;
}

static void message_take(struct peer_end *end, const uint8_t *bytes, int64_t size)
{
	struct ping ping;

	if (size != sizeof(ping))
		return; /* a large one: its sender counts it */
	memcpy(&ping, bytes, sizeof(ping));
	if (ping.is_answer) {
		end->answered = ping.seq;
	} else {
		end->answer = (struct ping){.seq = ping.seq, .is_answer = 1};
		end->answer_due = true;
	}
}

/* In the order in which they were posted. */
static int receives_take(struct peer_end *end)
{
	int64_t size;
	int i, k;

	for (k = 0; k < MESSAGES; k++) {
		i = end->next_receive;
		if (!end->receives[i])
			break;
		size = mesh_request_test(end->receives[i]);
		if (size == MESH_REQUEST_PENDING)
			break;
		if (size < 0)
			return (int)size;
		end->receives[i] = NULL;
		end->next_receive = (i + 1) % MESSAGES;
		message_take(end, end->memory + (size_t)i * MESSAGE_BYTES, size);
	}
	return receives_post(end);
}

/* @ping: NULL: a large one. Returns 0; -EAGAIN: no more at present; another negative errno. */
static int message_send(struct peer_end *end, const struct ping *ping)
{
	uint8_t *data = end->memory + MESSAGES * MESSAGE_BYTES;
	size_t size = MESSAGE_BYTES;
	struct end_send *send;
	int i, ret;

	for (i = 0; i < MESSAGES && end->sends[i].request; i++)
		;
	if (i == MESSAGES)
		return -EAGAIN;
	send = &end->sends[i];
	if (ping) {
		data += MESSAGE_BYTES + (size_t)i * sizeof(*ping);
		size = sizeof(*ping);
		memcpy(data, ping, size);
	}
	send->large = !ping;
	ret = mesh_comm_send(end->send, data, size, end->send_memory, &send->request);
	if (ret)
		send->request = NULL;
	return ret || send->request ? ret : -EAGAIN;
}

static int sends_take(struct peer_end *end)
{
	struct end_send *send;
	int64_t size;

	for (send = end->sends; send < end->sends + MESSAGES; send++) {
		if (!send->request)
			continue;
		size = mesh_request_test(send->request);
		if (size == MESH_REQUEST_PENDING)
			continue;
		if (size < 0)
			return (int)size;
		send->request = NULL;
		if (!send->large)
			continue;
		end->bytes += (uint64_t)size;
		end->ended_ns = mesh_clock_ns();
	}
	return 0;
}

static bool is_sending(const struct peer_end *end)
{
	int i;

	for (i = 0; i < MESSAGES; i++)
		if (end->sends[i].request)
			return true;
	return false;
}

static int messages_move(struct peer_end *end)
{
	int ret = receives_take(end);

	if (!ret)
		ret = sends_take(end);
	if (!ret && end->answer_due) {
		ret = message_send(end, &end->answer);
		if (!ret)
			end->answer_due = false;
	}
	return ret == -EAGAIN ? 0 : ret;
}

int peer_end_poll(struct peer_end *end)
{
	int ret = end->error;

	if (!ret)
		ret = send_connect(end);
	if (!ret)
		ret = receive_accept(end);
	if (!ret && end->send && end->receive) {
		if (!end->up.wall_ns)
			end->up = peer_since_now();
		ret = messages_move(end);
	}
	end->error = ret;
	return ret || end->up.wall_ns ? ret : -EAGAIN;
}

/* ---- there and back ----------------------------------------------------------------------- */

int peer_end_ping(struct peer_end *end, uint32_t seq, uint64_t deadline_ms)
{
	const struct ping ping = {.seq = seq};
	int ret = message_send(end, &ping);

	while (!ret && end->answered != seq) {
		ret = peer_end_poll(end);
		if (!ret && interrupt_happened())
			ret = -EINTR;
		else if (!ret && end->answered != seq && mesh_clock_ms() >= deadline_ms)
			ret = -ETIMEDOUT;
	}
	return ret;
}

/* ---- large messages ----------------------------------------------------------------------- */

void peer_end_run(struct peer_end *end, uint32_t ms)
{
	end->bytes = 0;
	end->started_ns = end->ended_ns = mesh_clock_ns();
	end->until_ns = end->started_ns + (uint64_t)ms * 1000000u;
	end->sending = true;
}

int peer_end_step(struct peer_end *end, uint64_t *bytes, uint64_t *ns)
{
	uint64_t now = mesh_clock_ns();
	int ret = peer_end_poll(end);

	if (now >= end->until_ns || ret)
		end->sending = false;
	while (end->sending && !ret)
		ret = message_send(end, NULL);
	if (ret)
		return ret;
	if (is_sending(end))
		return now < end->until_ns + DRAIN_MS * 1000000ull ? -EAGAIN : -ETIMEDOUT;
	*bytes = end->bytes;
	*ns = end->ended_ns - end->started_ns;
	return 0;
}

/* ---- what it has -------------------------------------------------------------------------- */

double peer_end_cpu_share(const struct peer_end *end)
{
	return peer_cpu_share(&end->up);
}

int peer_end_num_paths(const struct peer_end *end)
{
	const struct mesh_path *path = end->send->paths;
	int num = end->send->num_paths, up = 0;

	/* The last relay of one that joins is not known yet. */
	for (; up < num && (!path[up].has_relay || path[up].via); up++)
		;
	return up;
}

const char *peer_end_via(const struct peer_end *end, int path)
{
	return mesh_path_describe(&end->send->paths[path]).via_text;
}

const char *peer_end_nic(const struct peer_end *end, int path)
{
	return mesh_path_describe(&end->send->paths[path]).nic;
}
