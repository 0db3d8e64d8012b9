/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reporting.h - answers to questions about links: the speaker asks its own neighbours when somebody
 * wants to know (struct mesh_reporting), and passes questions for other nodes on to the next node
 * of their route, and the answers back (struct mesh_forwarding, which sends nothing itself and
 * reads no clock).
 *
 * What a question needs on its way back is kept in a slot, whose number and random token stand in
 * the question that is passed on: an answer counts only if it repeats both. Answers are kept for a
 * second, so that many who ask at once, as all ranks do at the start of a job, cost each link one
 * question. An answer is only given to a question with the very same route behind this node.
 */
#ifndef MESH_NEIGHBOURS_REPORTING_H
#define MESH_NEIGHBOURS_REPORTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "neighbours/asking.h"
#include "neighbours/datagram.h"
#include "neighbours/members.h"

/* Questions on their way; a new one replaces the oldest. Of all that arrive in a second. */
#define MESH_FORWARDING_SLOTS 2048
/* Answers that are kept. */
#define MESH_FORWARDING_KEPT 1024
/*
 * What was heard is used for so long, and a question on its way waits for its answer: who asks has
 * asked again by then. Then all is forgotten.
 */
#define MESH_FORWARDING_KEEP_MS 1000

/* Who has sent us a question, or gets one. */
struct mesh_forwarding_asker {
	unsigned int ifindex; /* of our NIC */
	struct mesh_addr addr;
	uint16_t port;
};

struct mesh_forwarding_slot;
struct mesh_forwarding_kept;

struct mesh_forwarding {
	uint64_t node_id; /* ours */
	void *owner;
	/* Sends to a neighbour. Returns false if there is none of this id. */
	bool (*ask)(void *owner, uint64_t node_id, const struct mesh_links_question *question);
	/* Sends an answer back. */
	void (*answer)(void *owner, const struct mesh_forwarding_asker *to,
		       const struct mesh_links_answer *answer);
	/* A question for this node. */
	void (*own)(void *owner, const struct mesh_forwarding_asker *from,
		    const struct mesh_links_question *question);
	/* The rest is private. */
	uint64_t key;			    /* random, of the hash */
	struct mesh_forwarding_slot *slots; /* owned; NULL: none is in use */
	struct mesh_forwarding_kept **kept; /* owned; NULL: none */
	int next_slot;
	uint64_t used_ms; /* when it was last used */
};

/** Frees the memory; it may be used again. */
void mesh_forwarding_clear(struct mesh_forwarding *forwarding);

/** A decoded question has arrived. */
void mesh_forwarding_question(struct mesh_forwarding *forwarding,
			      const struct mesh_forwarding_asker *from,
			      const struct mesh_links_question *question, uint64_t now_ms);

/** A decoded answer has arrived. */
void mesh_forwarding_answer(struct mesh_forwarding *forwarding,
			    const struct mesh_links_answer *answer, uint64_t now_ms);

/**
 * Frees the memory if nothing has been passed on for a while. Returns when it is to be called
 * again; UINT64_MAX: not until the next question.
 */
uint64_t mesh_forwarding_expire(struct mesh_forwarding *forwarding, uint64_t now_ms);

/** Bytes of memory that it holds now. */
uint64_t mesh_forwarding_bytes(const struct mesh_forwarding *forwarding);

/* Questions that wait until our neighbours have answered; more are dropped, and come again. */
#define MESH_REPORTING_WAITING 64

struct mesh_reporting_question {
	struct mesh_forwarding_asker from;
	struct mesh_links_question question;
};

struct mesh_reporting {
	const struct mesh_members *members;
	struct mesh_asking survey;   /* on all NICs of this node's processes */
	uint64_t surveyed_ms;	     /* when its latest round began; 0: never */
	struct mesh_timer settled;   /* by then the answers have come */
	struct mesh_timer forgotten; /* frees what forwarding has kept */
	struct mesh_forwarding forwarding;
	struct mesh_reporting_question *waiting; /* owned, num_waiting; NULL: none */
	int num_waiting;
	struct mesh_links_nic down[MESH_NICS_MAX]; /* NICs of this node whose link is down */
	int num_down;
	/* Sends from the speaker's socket. */
	void (*send)(struct mesh_reporting *reporting, const struct mesh_forwarding_asker *to,
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
