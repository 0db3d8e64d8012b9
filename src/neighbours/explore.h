/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explore.h - which nodes the mesh has and how they are linked: asks our neighbours for their
 * links, then the nodes behind these, and so on. It sends nothing itself and reads no clock.
 *
 * Each node answers for itself, so a node that lies can invent nodes, which only it reaches. The
 * questions are therefore shared out: of those that are still to be sent behind a node, each of its
 * neighbours gets the same share, whatever it has reported. A node that invents a thousand others
 * cannot use up the questions that find the rest.
 *
 * A node may also forge the answers of those that are asked over it. Then the true neighbours of
 * such a node have reported links that are missing from its answer, and it is asked again over one
 * of them. All its answers count together, so that what is true is found beside what is forged.
 */
#ifndef MESH_NEIGHBOURS_EXPLORE_H
#define MESH_NEIGHBOURS_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/graph.h"
#include "wire/neighbour.h"

/* Questions on their way at once, and when the answer is given up. */
#define MESH_EXPLORE_WINDOW 32
#define MESH_EXPLORE_TIMEOUT_MS 150
#define MESH_EXPLORE_TRIES 3
/* Once the target is found, and all nodes that are not farther, larger meshes are asked no more. */
#define MESH_EXPLORE_SMALL 64

enum mesh_explored_state {
	MESH_EXPLORED_ASKED,  /* a question is on its way */
	MESH_EXPLORED_KNOWN,  /* it has answered */
	MESH_EXPLORED_SILENT, /* it has not */
};

struct mesh_explored {
	uint64_t id;
	enum mesh_explored_state state;
	bool again; /* this id was asked before, over another node */
	int parent; /* who leads to it; our own node: -1 */
	int depth;  /* hops to it */
	int served; /* nodes behind it that were asked */
	int own;    /* of those, the ones that it has reported itself */
	int seen;   /* its links before this one lead to nodes that were asked */
	int tries, answers;
	uint64_t sent_ms;
	uint16_t cursor;
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
	int num_nodes;
	struct mesh_id_index index; /* of nodes */
	uint64_t token, job;
	uint64_t target;     /* 0: the whole mesh is wanted */
	uint32_t site;	     /* our own: mesh_neighbour_site_number() */
	uint8_t relay_flags; /* enum mesh_links_flags: a node with one of them relays for us */
	int hops_max;	     /* MESH_LINKS_ROUTE_MAX or less */
	int asked[MESH_EXPLORE_WINDOW]; /* the nodes whose answers are awaited, num_asked */
	int num_asked;
	int depth_max; /* of nodes whose neighbours are still asked */
	bool changed;  /* answers have come since it was last seen who is to be asked again */
	uint64_t sent; /* questions so far */
};

/**
 * Begins.
 *
 * @self: our node id
 * @token: random
 * @job: see wire/neighbour.h
 */
int mesh_explore_begin(struct mesh_explore *explore, uint64_t self, uint64_t token, uint64_t job);

/** Frees the memory. The doubts of the graph may be copied before. */
void mesh_explore_finish(struct mesh_explore *explore);

/** Our own links, at the begin and when more of our neighbours have answered. 0 or -ENOMEM. */
int mesh_explore_links_set(struct mesh_explore *explore, const struct mesh_graph_link *links,
			   int num_links);

/**
 * The next question that is to be sent now, to the neighbour question->route[0]. node and product
 * are the caller's. Call it until it returns false, after each answer and when a timeout is due.
 */
bool mesh_explore_next(struct mesh_explore *explore, uint64_t now_ms,
		       struct mesh_links_question *question);

/** Takes a decoded answer. Returns false if it answers none of our questions. */
bool mesh_explore_answer(struct mesh_explore *explore, const struct mesh_links_answer *answer);

/** When mesh_explore_next() may have a question again without an answer; UINT64_MAX: never. */
uint64_t mesh_explore_due_ms(const struct mesh_explore *explore);

/** True if this node, and all that may be on routes as short as the one to it, are known. */
bool mesh_explore_has_found(const struct mesh_explore *explore, uint64_t node_id);

/** The name of a node that has answered, or NULL. */
const char *mesh_explore_node_name(const struct mesh_explore *explore, uint64_t node_id);

/** True if no question is on its way and none is left. mesh_explore_next() has returned false. */
bool mesh_explore_is_over(const struct mesh_explore *explore);

#endif
