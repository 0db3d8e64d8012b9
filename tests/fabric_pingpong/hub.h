/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub.h - rank 0's switchboard: takes in the ranks, passes frames from rank to rank, and notices
 * when one is gone. It knows nothing of what the frames say. Used by one thread.
 */
#ifndef PINGPONG_HUB_H
#define PINGPONG_HUB_H

#include <poll.h>

#include "frame.h"
#include "options.h"

/* Connections that have not said yet which rank they are. */
#define HUB_STRANGERS_MAX 64
#define HUB_POLL_MAX (1 + HUB_STRANGERS_MAX + OPTIONS_RANKS_MAX)

struct hub_events {
	void *arg;
	/* All ranks but the last few may be missing still. @host: its host name. */
	void (*joined)(void *arg, int rank, const char *host);
	/* A frame for the coordinator; valid during the call. */
	void (*frame)(void *arg, const struct frame *frame);
	/* A rank's connection ended, or a rank said something impossible. */
	void (*lost)(void *arg, int rank, const char *why);
};

struct hub {
	int listener;
	int world;
	uint64_t silence_ns; /* a rank that is silent for so long is lost */
	uint64_t pinged_ns;
	struct hub_events events;
	struct link strangers[HUB_STRANGERS_MAX];
	struct link ranks[OPTIONS_RANKS_MAX];
	bool joined[OPTIONS_RANKS_MAX];
};

/** Takes over @listener; @silence_s: how long a rank may be silent. */
void hub_open(struct hub *hub, int listener, int world, uint32_t silence_s,
	      const struct hub_events *events);

void hub_close(struct hub *hub);

/** Takes in a connection, as if it had come in on the listener. */
void hub_adopt(struct hub *hub, int fd);

/** Fills in what to wait for; returns the number of entries (at most HUB_POLL_MAX). */
int hub_poll_set(const struct hub *hub, struct pollfd *fds);

/** Does all that can be done now without waiting. */
void hub_service(struct hub *hub);

/** Sends to one rank; the frame stays the caller's. */
void hub_send(struct hub *hub, int rank, const struct frame *frame);

/** Sends to all ranks that are there. */
void hub_broadcast(struct hub *hub, enum frame_type type, const void *body, size_t size);

/** True while something waits to be written to a rank. */
bool hub_pending(const struct hub *hub);

#endif
