/* SPDX-License-Identifier: Apache-2.0 */
/* hub.c - takes in the ranks, switches frames, pings. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "hub.h"

/* A stranger that has not said who it is by then is dropped. */
#define STRANGER_NS (10 * NS_PER_S)
#define PING_NS NS_PER_S
#define HOST_MAX 256

void hub_open(struct hub *hub, int listener, int world, uint32_t silence_s,
	      const struct hub_events *events)
{
	memset(hub, 0, sizeof(*hub));
	hub->listener = listener;
	hub->world = world;
	hub->silence_ns = silence_s * NS_PER_S;
	hub->events = *events;
	for (int i = 0; i < HUB_STRANGERS_MAX; i++)
		hub->strangers[i].fd = -1;
	for (int i = 0; i < OPTIONS_RANKS_MAX; i++)
		hub->ranks[i].fd = -1;
}

void hub_close(struct hub *hub)
{
	for (int i = 0; i < HUB_STRANGERS_MAX; i++)
		link_close(&hub->strangers[i]);
	for (int i = 0; i < OPTIONS_RANKS_MAX; i++)
		link_close(&hub->ranks[i]);
	if (hub->listener >= 0)
		close(hub->listener);
	hub->listener = -1;
}

void hub_adopt(struct hub *hub, int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (int i = 0; i < HUB_STRANGERS_MAX; i++) {
		if (hub->strangers[i].fd < 0) {
			link_open(&hub->strangers[i], fd);
			return;
		}
	}
	close(fd);
}

static void add_link(const struct link *link, struct pollfd *fds, int *n)
{
	if (link->fd < 0)
		return;
	fds[*n].fd = link->fd;
	fds[*n].events = link_pending(link) ? POLLIN | POLLOUT : POLLIN;
	fds[(*n)++].revents = 0;
}

int hub_poll_set(const struct hub *hub, struct pollfd *fds)
{
	int n = 0;

	if (hub->listener >= 0) {
		fds[n].fd = hub->listener;
		fds[n].events = POLLIN;
		fds[n++].revents = 0;
	}
	for (int i = 0; i < HUB_STRANGERS_MAX; i++)
		add_link(&hub->strangers[i], fds, &n);
	for (int i = 0; i < hub->world; i++)
		add_link(&hub->ranks[i], fds, &n);
	return n;
}

static void lose(struct hub *hub, int rank, const char *why)
{
	link_close(&hub->ranks[rank]);
	hub->events.lost(hub->events.arg, rank, why);
}

/* Why this HELLO cannot be taken, or NULL. */
static const char *refusal(const struct hub *hub, const struct frame *hello)
{
	if (hello->size < 8 || hello->size > 8 + HOST_MAX)
		return "a message that cannot be parsed";
	if (frame_get_u32(hello->body) != FRAME_VERSION)
		return "another version of fabric_pingpong";
	if (frame_get_u32(hello->body + 4) != (uint32_t)hub->world)
		return "another WORLD_SIZE than rank 0 has";
	if (hello->from >= hub->world)
		return "a rank outside WORLD_SIZE";
	if (hub->joined[hello->from])
		return "a rank that another process already has";
	return NULL;
}

static void refuse(struct hub *hub, struct link *stranger, const struct frame *hello,
		   const char *why)
{
	char text[200];
	struct frame *abort_frame;

	snprintf(text, sizeof(text), "a process that says it is rank %u came with %s", hello->from,
		 why);
	abort_frame = frame_new_text(FRAME_ABORT, FRAME_COORDINATOR, hello->from, 0, text);
	link_send(stranger, abort_frame);
	link_flush(stranger);
	free(abort_frame);
	hub->events.lost(hub->events.arg, -1, text);
}

/* The first frame of a connection says which rank it is. */
static void welcome_stranger(struct hub *hub, struct link *stranger)
{
	struct frame *hello = NULL;
	const char *why;
	int rc = link_fill(stranger);

	if (!rc)
		rc = link_next(stranger, &hello);
	if (!rc && !hello && now_ns() - stranger->heard_ns < STRANGER_NS)
		return;
	if (rc || !hello || hello->type != FRAME_HELLO) {
		/* A port scanner, a health check: nothing of ours. */
		link_close(stranger);
		free(hello);
		return;
	}
	why = refusal(hub, hello);
	if (why) {
		refuse(hub, stranger, hello, why);
		link_close(stranger);
	} else {
		hub->ranks[hello->from] = *stranger;
		hub->joined[hello->from] = true;
		memset(stranger, 0, sizeof(*stranger));
		stranger->fd = -1;
		hub->events.joined(hub->events.arg, hello->from, (char *)hello->body + 8);
	}
	free(hello);
}

void hub_send(struct hub *hub, int rank, const struct frame *frame)
{
	link_send(&hub->ranks[rank], frame);
}

void hub_broadcast(struct hub *hub, enum frame_type type, const void *body, size_t size)
{
	struct frame *frame;

	for (int rank = 0; rank < hub->world; rank++) {
		frame = frame_new(type, FRAME_COORDINATOR, (uint16_t)rank, 0, body, size);
		hub_send(hub, rank, frame);
		free(frame);
	}
}

static void pass_on(struct hub *hub, int rank, const struct frame *frame)
{
	if (frame->type == FRAME_PING)
		return;
	if (frame->from != rank)
		lose(hub, rank, "sent a message in another rank's name");
	else if (frame->to == FRAME_COORDINATOR)
		hub->events.frame(hub->events.arg, frame);
	else if (frame->to < hub->world && frame->type >= FRAME_HANDLES)
		hub_send(hub, frame->to, frame);
	else
		lose(hub, rank, "sent a message that cannot be parsed");
}

static void read_rank(struct hub *hub, int rank)
{
	struct link *link = &hub->ranks[rank];
	struct frame *frame;
	int ended = link_fill(link), rc;

	for (;;) {
		rc = link_next(link, &frame);
		if (rc || !frame)
			break;
		pass_on(hub, rank, frame);
		free(frame);
		if (link->fd < 0)
			return;
	}
	if (rc)
		lose(hub, rank, "sent bytes that cannot be parsed");
	else if (ended)
		lose(hub, rank, "its process ended or its connection broke");
	else if (now_ns() - link->heard_ns > hub->silence_ns)
		lose(hub, rank, "it no longer answers");
}

static void accept_strangers(struct hub *hub)
{
	int fd;

	while (hub->listener >= 0) {
		fd = accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			return;
		hub_adopt(hub, fd);
	}
}

static void ping(struct hub *hub)
{
	if (now_ns() - hub->pinged_ns < PING_NS)
		return;
	hub->pinged_ns = now_ns();
	hub_broadcast(hub, FRAME_PING, NULL, 0);
}

void hub_service(struct hub *hub)
{
	accept_strangers(hub);
	for (int i = 0; i < HUB_STRANGERS_MAX; i++)
		if (hub->strangers[i].fd >= 0)
			welcome_stranger(hub, &hub->strangers[i]);
	for (int rank = 0; rank < hub->world; rank++)
		if (hub->ranks[rank].fd >= 0)
			read_rank(hub, rank);
	ping(hub);
	for (int rank = 0; rank < hub->world; rank++)
		if (hub->ranks[rank].fd >= 0 && link_flush(&hub->ranks[rank]))
			lose(hub, rank, "its connection broke");
}

bool hub_pending(const struct hub *hub)
{
	for (int rank = 0; rank < hub->world; rank++)
		if (link_pending(&hub->ranks[rank]))
			return true;
	return false;
}
