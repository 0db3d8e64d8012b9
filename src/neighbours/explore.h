/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explore.h - which nodes the mesh has and how they are linked: what one
 * question (searching.h) has been answered with. It sends nothing and reads no
 * clock.
 */
#ifndef MESH_NEIGHBOURS_EXPLORE_H
#define MESH_NEIGHBOURS_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/graph.h"
#include "wire/neighbour.h"

/* Datagrams of an answer: a node with more entries than fit into these is not known. */
#define MESH_EXPLORE_ANSWERS_MAX 4

/* A node of which somebody has reported a link, or which has answered. */
struct mesh_explored {
	uint64_t id;
	bool known; /* all of its answer is there */
	int parent; /* who has reported it first; our own node: -1 */
	/* What has come of its answer: the cursors of its datagrams. */
	uint16_t cursors[MESH_EXPLORE_ANSWERS_MAX];
	int num_cursors;
	int num_entries;	 /* of the whole answer, if the last datagram has come */
	bool ends;		 /* it has */
	uint8_t flags, protocol; /* of its answer */
	uint16_t num_ranks;	 /* the same */
	uint32_t first_rank;
	char node[MESH_NODE_NAME_MAX];
	char site[MESH_SITE_NAME_MAX];
	struct mesh_links_nic *nics;   /* owned, num_nics */
	struct mesh_graph_link *links; /* owned, num_links */
	int num_nics, num_links;
};

struct mesh_explore {
	struct mesh_graph graph;     /* what has been reported; our own node is in it */
	struct mesh_explored *nodes; /* owned; the first is our own */
	int num_nodes, num_known;
	struct mesh_id_index index; /* of nodes */
	uint64_t token;
	uint32_t site; /* our own: mesh_neighbour_site_number() */
};

/**
 * Begins.
 *
 * @self: our node id
 * @token: of the question
 */
int mesh_explore_begin(struct mesh_explore *explore, uint64_t self, uint64_t token);

/** Frees the memory. The doubts of the graph may be copied before. */
void mesh_explore_finish(struct mesh_explore *explore);

/** Our own links, at the begin and when more of our neighbours have answered. 0 or -ENOMEM. */
int mesh_explore_links_set(struct mesh_explore *explore, const struct mesh_graph_link *links,
			   int num_links);

/** Takes a decoded answer, the first one of each node. */
void mesh_explore_answer(struct mesh_explore *explore, const struct mesh_links_answer *answer);

/** True if each node that was reported has answered. */
static inline bool mesh_explore_is_complete(const struct mesh_explore *explore)
{
	return explore->num_known == explore->num_nodes;
}

/** The name of a node that has answered, or NULL. */
const char *mesh_explore_node_name(const struct mesh_explore *explore, uint64_t node_id);

#endif
