/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answering.h - one answer of this node to each question: the speaker's. If it is about links, the
 * speaker asks its own neighbours, and passes the question on to all nodes of its other links, and
 * their answers back (struct mesh_forwarding, which sends nothing itself and reads no clock).
 *
 * A question is known by its random token. It is passed on a moment after it came, over the links
 * on which it has not come by then: where all nodes share two switches, all have it from who asks,
 * and nobody repeats it.
 */
#ifndef MESH_NEIGHBOURS_ANSWERING_H
#define MESH_NEIGHBOURS_ANSWERING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/log.h"
#include "control/engine.h"
#include "neighbours/asking.h"
#include "neighbours/datagram.h"
#include "neighbours/members.h"

/* Questions of which the answers are passed back. Of all that arrive in a second. */
#define MESH_FORWARDING_SLOTS 2048
/* It is passed on so long after it came, and answered by then at the soonest. */
#define MESH_FORWARDING_DELAY_MS 2

/* Who has sent us a question. */
struct mesh_forwarding_asker {
	unsigned int ifindex; /* of our NIC */
	struct mesh_addr addr;
	uint16_t port;
};

struct mesh_forwarding_slot {
	struct mesh_forwarding_asker asker;
	uint64_t token, job, node_id; /* of the question */
	uint64_t came_ms;	      /* 0: the slot is free */
	uint32_t links;		      /* a bit for each on which it has come */
	uint8_t hops;
	bool passed, answered;
};

/* Zeros, but for what its owner sets. */
struct mesh_forwarding {
	uint64_t node_id; /* ours */
	void *owner;
	/* Sends to all nodes of each link but those of @links. */
	void (*ask)(void *owner, uint32_t links, const struct mesh_links_question *question);
	/* Sends an answer back. */
	void (*answer)(void *owner, const struct mesh_forwarding_asker *to,
		       const struct mesh_links_answer *answer);
	/* Answers for this node; returns false if it cannot yet. */
	bool (*own)(void *owner, const struct mesh_forwarding_slot *slot);
	struct mesh_forwarding_slot slots[MESH_FORWARDING_SLOTS];
};

/**
 * A decoded question has arrived. mesh_forwarding_advance() is to follow after
 * MESH_FORWARDING_DELAY_MS.
 *
 * @link: of ours, 0 to 31
 */
void mesh_forwarding_question(struct mesh_forwarding *forwarding, int link,
			      const struct mesh_forwarding_asker *from,
			      const struct mesh_links_question *question, uint64_t now_ms);

/** A decoded answer has arrived. */
void mesh_forwarding_answer(struct mesh_forwarding *forwarding,
			    const struct mesh_links_answer *answer, uint64_t now_ms);

/** Answers and passes on what can be. Returns true if there is more: call it again as late. */
bool mesh_forwarding_advance(struct mesh_forwarding *forwarding, uint64_t now_ms);

struct mesh_answering;

struct mesh_answering_socket {
	struct mesh_watch watch; /* fd -1: not open */
	struct mesh_answering *answering;
	enum mesh_family family;
};

/* IPv6, IPv4. */
#define MESH_ANSWERING_SOCKETS 2

struct mesh_answering {
	struct mesh_engine *engine;
	const struct mesh_members *members;
	struct mesh_answering_socket sockets[MESH_ANSWERING_SOCKETS];
	struct mesh_timer timer; /* ends a pause */
	/* Datagrams that may still be taken; grows with time up to a limit. */
	uint64_t credit, credit_ms;
	struct mesh_log_limit floods;
	uint64_t answered, dropped; /* questions; datagrams that were none */
	/* Questions about links: */
	struct mesh_asking survey; /* on all NICs of this node's processes */
	uint64_t surveyed_ms;	   /* when its latest round began; 0: never */
	struct mesh_timer passing; /* questions are to be answered and passed on */
	struct mesh_forwarding forwarding;
	struct mesh_links_nic down[MESH_NICS_MAX]; /* NICs of this node whose link is down */
	int num_down;
};

/** Zeroes all but what is given. */
void mesh_answering_init(struct mesh_answering *answering, struct mesh_engine *engine,
			 const struct mesh_neighbour_self *self,
			 const struct mesh_members *members);

/** This process is the speaker: opens the sockets. */
MESH_HOLDS(process)
void mesh_answering_open(struct mesh_answering *answering);

MESH_HOLDS(process)
void mesh_answering_close(struct mesh_answering *answering);

/**
 * Sets the NICs whose link is down. They are reported, so that `fi_mesh topo` at another node draws
 * them, but for those that another process of this node uses.
 *
 * @nics: @num of them; only read during the call
 */
MESH_HOLDS(process)
void mesh_answering_down_set(struct mesh_answering *answering, const struct mesh_nic *const *nics,
			     int num);

#endif
