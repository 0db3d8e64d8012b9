/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.h - the question "which links do you have?" and its answer, one UDP datagram each, on the
 * port and with the hop limit of wire/neighbour.h, whose first bytes they share.
 *
 * A question carries the route to the node that is asked. Each node on it passes the rest on to its
 * neighbour, with a token of its own, and passes the answer back; so each datagram comes from a
 * neighbour, and the way back needs no address. The route gets shorter with each node: nothing can
 * circle.
 */
#ifndef MESH_WIRE_LINKS_H
#define MESH_WIRE_LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "wire/neighbour.h"

enum mesh_links_type {
	MESH_LINKS_QUESTION = MESH_NEIGHBOUR_TYPES,
	MESH_LINKS_ANSWER,
};

/* Nodes on a question's route, the one that is asked included: 15 relays and the target. */
#define MESH_LINKS_ROUTE_MAX 16
/* Links of a node in one answer. */
#define MESH_LINKS_MAX 128

/* What wire/neighbour.h calls frozen. */
struct mesh_links_head {
	uint32_t magic;
	uint8_t version;
	uint8_t type; /* enum mesh_links_type */
	uint16_t length;
	char product[MESH_VERSION_MAX];
	char node[MESH_NODE_NAME_MAX]; /* of the node that asks, or answers */
};
_Static_assert(sizeof(struct mesh_links_head) == MESH_NEIGHBOUR_FROZEN_BYTES, "wire format");

struct mesh_links_question {
	struct mesh_links_head head;
	uint64_t token; /* random; the answer repeats it */
	uint64_t job;	/* of the process that asks, or 0 */
	uint16_t number;
	uint16_t cursor;   /* entries of the answer to leave out: they came in earlier answers */
	uint8_t num_route; /* at least 1 */
	uint8_t tries;	   /* 0: the first; later ones go to all nodes of a link */
	uint16_t reserved; /* 0 */
	uint64_t route
		[MESH_LINKS_ROUTE_MAX]; /* node ids: who gets this datagram, ..., who answers */
};
_Static_assert(offsetof(struct mesh_links_question, number) == 112, "wire format");
_Static_assert(offsetof(struct mesh_links_question, route) == 120, "wire format");

/** As MESH_NEIGHBOUR_AGAIN, at each node of the route. */
static inline bool mesh_links_is_again(const struct mesh_links_question *question)
{
	return question->tries & 1;
}

enum mesh_links_nic_flags {
	MESH_LINKS_NIC_DOWN = 1,    /* its link is down: no entry refers to its index, which is 0 */
	MESH_LINKS_NIC_DRAINED = 2, /* a user drains it */
};

/* A NIC of the node that answers. */
struct mesh_links_nic {
	char netdev[IF_NAMESIZE];
	struct mesh_neighbour_addr addr; /* that its endpoint is bound to; family 0: it has none */
	uint32_t mtu;
	uint32_t speed_mbps; /* 0: unknown */
	uint8_t nic;	     /* index in the node's stable order */
	uint8_t providers;   /* bit N: enum mesh_provider_id N */
	uint8_t flags;	     /* enum mesh_links_nic_flags; others are ignored */
	uint8_t reserved;    /* 0 */
};
_Static_assert(offsetof(struct mesh_links_nic, flags) == 46, "wire format");
_Static_assert(sizeof(struct mesh_links_nic) == 48, "wire format");

/* A NIC of another node that has answered on one of these NICs. */
struct mesh_links_link {
	uint64_t node_id;
	uint32_t speed_mbps;   /* of that NIC; 0: unknown */
	uint8_t nic, peer_nic; /* the answering node's, and the other one's */
	uint16_t reserved;     /* 0 */
};
_Static_assert(sizeof(struct mesh_links_link) == 16, "wire format");

enum mesh_links_flags {
	MESH_LINKS_SAME_JOB = 1, /* a rank of the asking job runs on this node */
	MESH_LINKS_RELAY = 2,	 /* `fi_mesh serve --relay` relays there for the asking job */
};

#define MESH_LINKS_ENTRIES_BYTES 1080

/* First the NICs, then the links: both count as entries, in this order. */
struct mesh_links_answer {
	struct mesh_links_head head;
	uint64_t node_id; /* of the node that answers */
	uint64_t token;
	uint16_t number;
	uint16_t cursor; /* of the question */
	uint16_t next;	 /* the cursor for the rest; 0: this is the last answer */
	uint8_t num_nics, num_links;
	uint8_t flags; /* enum mesh_links_flags */
	uint8_t protocol;
	uint16_t num_ranks;	       /* of the asking job that run on this node */
	uint32_t first_rank;	       /* the lowest of them, plus 1; 0 where unknown */
	char site[MESH_SITE_NAME_MAX]; /* of that node; "" where none is set */
	_Alignas(uint64_t) uint8_t entries[MESH_LINKS_ENTRIES_BYTES];
};
_Static_assert(offsetof(struct mesh_links_answer, number) == 112, "wire format");
_Static_assert(offsetof(struct mesh_links_answer, num_ranks) == 122, "wire format");
_Static_assert(offsetof(struct mesh_links_answer, first_rank) == 124, "wire format");
_Static_assert(offsetof(struct mesh_links_answer, site) == 128, "wire format");
_Static_assert(offsetof(struct mesh_links_answer, entries) == 144, "wire format");
_Static_assert(sizeof(struct mesh_links_answer) <= 1232, "never cut into fragments");

/* Either of them, as it is received. */
union mesh_links {
	struct mesh_links_head head;
	struct mesh_links_question question;
	struct mesh_links_answer answer;
};

/** Fills in magic, version, type and length; returns the bytes of the datagram to send. */
size_t mesh_links_question_finish(struct mesh_links_question *question);

/**
 * Fills an answer with entries from question->cursor on, as many as it has room for, and finishes
 * it. node, node_id, flags and protocol are the caller's.
 *
 * Returns the bytes of the datagram to send.
 */
size_t mesh_links_answer_fill(struct mesh_links_answer *answer,
			      const struct mesh_links_question *question,
			      const struct mesh_links_nic *nics, int num_nics,
			      const struct mesh_links_link *links, int num_links);

/** Entry @i of a decoded answer. */
void mesh_links_nic_get(const struct mesh_links_answer *answer, int i, struct mesh_links_nic *nic);
void mesh_links_link_get(const struct mesh_links_answer *answer, int i,
			 struct mesh_links_link *link);

/**
 * Checks a datagram of @size untrusted bytes: magic, version, type, length, counts, text ends,
 * indices, addresses. Unprintable characters of its texts become '?'.
 *
 * @links: written on success; unused parts are zero
 *
 * Returns 0; -EPROTO if it is not such a datagram of this version.
 */
int mesh_links_decode(const void *bytes, size_t size, union mesh_links *links);

#endif
