/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forwarding.h - passes questions about links on to the next node of their route, and the answers
 * back. It sends nothing itself and reads no clock.
 *
 * What a question needs on its way back is kept in a slot, whose number and random token stand in
 * the question that is passed on: an answer counts only if it repeats both. Answers are kept for a
 * second, so that many who ask at once, as all ranks do at the start of a job, cost each link one
 * question. An answer is only given to a question with the very same route behind this node.
 */
#ifndef MESH_NEIGHBOURS_FORWARDING_H
#define MESH_NEIGHBOURS_FORWARDING_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"
#include "wire/links.h"

/* Questions on their way; a new one replaces the oldest. Of all that arrive in a second. */
#define MESH_FORWARDING_SLOTS 2048
/* Answers that are kept. */
#define MESH_FORWARDING_KEPT 1024
#define MESH_FORWARDING_KEEP_MS 1000

/* Who has sent us a question. */
struct mesh_forwarding_asker {
	unsigned int ifindex; /* of our NIC */
	struct mesh_addr addr;
	uint16_t port;
	bool all; /* the answer goes to all nodes of the link */
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
	uint64_t used_ms;			      /* when it was last used */
	uint64_t passed, repeated, returned, refused; /* counts of datagrams */
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

#endif
