/* SPDX-License-Identifier: Apache-2.0 */
/*
 * searching.h - which nodes the mesh has and how they are linked: asks the whole mesh for its links
 * (struct mesh_searching) while a round of questions to our neighbours goes on (asking.h), from the
 * same sockets and at the same times, and keeps the answers (struct mesh_explore, which sends
 * nothing and reads no clock).
 */
#ifndef MESH_NEIGHBOURS_SEARCHING_H
#define MESH_NEIGHBOURS_SEARCHING_H

#include <stdbool.h>
#include <stdint.h>

#include "neighbours/asking.h"
#include "nic/graph.h"
#include "wire/neighbour.h"

/*
 * Times that a search asks, each with a token of its own: the first one's and those that follow it.
 * So a node takes the second question for a new one, and passes it on and answers it.
 */
#define MESH_EXPLORE_TRIES 2

/* A node that has answered, or of which another reports a link. Its links are in the graph. */
struct mesh_explored {
	uint64_t id;
	bool known;		 /* all of its answer is there */
	int parent;		 /* who has reported it first; our own node: -1 */
	int num_entries;	 /* of its answer that are here: the cursor of the next datagram */
	uint8_t flags, protocol; /* of its answer */
	uint16_t num_ranks;	 /* the same */
	uint32_t first_rank;
	char node[MESH_NODE_NAME_MAX];
	char site[MESH_SITE_NAME_MAX];
	struct mesh_links_nic nics[MESH_NICS_MAX]; /* num_nics */
	int num_nics;
};

struct mesh_explore {
	struct mesh_graph graph;     /* what has been reported; the first node is our own */
	struct mesh_explored *nodes; /* owned; beside those of the graph */
	int num_nodes, num_known;
	uint64_t token;
};

/**
 * Begins.
 *
 * @self: our node id
 * @token: of the first question
 */
int mesh_explore_begin(struct mesh_explore *explore, uint64_t self, uint64_t token);

/** Frees the memory. */
void mesh_explore_finish(struct mesh_explore *explore);

/** Our own links, at the begin and when more of our neighbours have answered. 0 or -ENOMEM. */
int mesh_explore_links_set(struct mesh_explore *explore, const struct mesh_graph_link *links,
			   int num_links);

/**
 * Takes a decoded answer, the first one of each node. Its datagrams come in their order, as a cable
 * keeps it; the first of them begins the answer anew, if one of an earlier answer was lost.
 */
void mesh_explore_answer(struct mesh_explore *explore, const struct mesh_links_answer *answer);

/** True if each node that was reported has answered. */
static inline bool mesh_explore_is_complete(const struct mesh_explore *explore)
{
	return explore->num_known == explore->num_nodes;
}

/** The name of a node that has answered, or NULL. */
const char *mesh_explore_node_name(const struct mesh_explore *explore, uint64_t node_id);

struct mesh_searching {
	struct mesh_asking *asking;
	struct mesh_explore explore; /* zeros before the first search; its result stays */
	uint64_t began_ms;	     /* of the latest search; 0: none */
	bool goes_on;
	uint8_t tries; /* questions so far */
	int num_own;   /* of our own links that are entered */
};

/** @asking: must stay as long as @searching is used */
void mesh_searching_init(struct mesh_searching *searching, struct mesh_asking *asking);

/** Frees what was found. */
void mesh_searching_finish(struct mesh_searching *searching);

/**
 * Begins a search in place of the present one, and a round of @asking. It ends when all nodes have
 * answered, or with the round.
 *
 * Returns 0 or a negative errno.
 */
int mesh_searching_begin(struct mesh_searching *searching, uint64_t now_ms);

/** Sends what is due; to be called after each step of @asking. */
void mesh_searching_advance(struct mesh_searching *searching, uint64_t now_ms);

#endif
