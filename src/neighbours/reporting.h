/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reporting.h - answers to questions about links: the speaker asks its own neighbours when somebody
 * wants to know (struct mesh_reporting), and passes questions on to all nodes of its other links,
 * and their answers back (struct mesh_forwarding, which sends nothing itself and reads no clock).
 *
 * A question is known by its random token. It is passed on a moment after it came, over the links
 * on which it has not come by then: where all nodes share two switches, all have it from who asks,
 * and nobody repeats it.
 */
#ifndef MESH_NEIGHBOURS_REPORTING_H
#define MESH_NEIGHBOURS_REPORTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
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

struct mesh_reporting {
	const struct mesh_members *members;
	struct mesh_asking survey; /* on all NICs of this node's processes */
	uint64_t surveyed_ms;	   /* when its latest round began; 0: never */
	struct mesh_timer timer;   /* questions are to be answered and passed on */
	struct mesh_forwarding forwarding;
	struct mesh_links_nic down[MESH_NICS_MAX]; /* NICs of this node whose link is down */
	int num_down;
	/* Sends from the speaker's socket. @addr: NULL: to all nodes of the link */
	void (*send)(struct mesh_reporting *reporting, unsigned int ifindex,
		     const struct mesh_addr *addr, uint16_t port,
		     const struct mesh_links_head *links);
};

/** Zeroes all but what is given. */
void mesh_reporting_init(struct mesh_reporting *reporting, struct mesh_engine *engine,
			 const struct mesh_neighbour_self *self,
			 const struct mesh_members *members);

MESH_HOLDS(process)
void mesh_reporting_finish(struct mesh_reporting *reporting);

/**
 * Sets the NICs whose link is down. They are reported, so that `fi_mesh topo` at another node draws
 * them, but for those that another process of this node uses.
 *
 * @nics: @num of them; only read during the call
 */
MESH_HOLDS(process)
void mesh_reporting_down_set(struct mesh_reporting *reporting, const struct mesh_nic *const *nics,
			     int num);

/** A datagram about links that has arrived at the speaker. */
MESH_HOLDS(process)
void mesh_reporting_take(struct mesh_reporting *reporting, const struct mesh_datagram *datagram,
			 uint64_t now_ms);

#endif
