/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - the map of a mesh: nodes, NICs and links, and how it is made. */
#ifndef MESH_FI_UTILS_TOPO_MAP_H
#define MESH_FI_UTILS_TOPO_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "nic/addr.h"
#include "nic/nic.h"
#include "plan/cable_list.h"
#include "plan/shape.h"
#include "wire/protocol.h"

/* ---- a mesh to be drawn: nodes, their NICs, and the links between these ---------------------- */

enum topo_state {
	TOPO_PLANNED, /* on paper */
	TOPO_UP,      /* the node reports it as a mesh NIC */
	TOPO_DOWN,    /* the node reports it, and cannot use it */
};

struct topo_nic {
	int node;
	char name[MESH_RDMA_NAME_MAX]; /* netdev */
	struct mesh_addr addr;	       /* family NONE: it has none */
	int rate_mbps;		       /* 0: unknown */
	enum topo_state state;
	enum mesh_provider_id provider; /* NONE: unknown, as in a plan */
	char note[MESH_NIC_REASON_MAX]; /* why it is not used, or "" */
	int link;			/* of the NIC; -1: no other NIC is on its subnet */
	int wire;			/* asked: a NIC on the same wire, or itself */
	int physical;			/* plan: number of its physical cable; 0: none */
	bool rates_known;
	double sends, receives; /* bytes a second, now; through the kernel and past it */
};

struct topo_node {
	char name[MESH_PLAN_NAME_MAX];
	char site[MESH_SITE_NAME_MAX]; /* "" where it is not known */
	int first_nic;
	int num_nics;
};

/*
 * A cable, or a switched subnet with more than two NICs. A cable whose ends are several NICs each,
 * as a DGX Spark's, is as many links: its halves.
 */
struct topo_link {
	struct mesh_addr subnet;
	int first; /* its NICs are members[first] .. members[first + num - 1] */
	int num;
	int cable; /* the first link of the same physical cable, often itself */
};

/* How many cables and halves of cables there are. */
struct topo_cables {
	int num;    /* physical cables */
	int halves; /* links with two NICs: equal to num where no cable has halves */
	int each;   /* halves of each cable; 0: not the same for all */
};

struct topo_map {
	bool planned;
	bool asked;		 /* the nodes have said which NICs share a wire */
	struct mesh_shape shape; /* of a plan, else MESH_SHAPE_CABLES */
	struct topo_node *nodes; /* owned */
	int num_nodes;
	struct topo_nic *nics; /* owned; those of a node side by side */
	int num_nics;
	struct topo_link *links; /* owned */
	int num_links;
	int *members; /* indices of NICs, owned */
};

/** Adds a node. Returns 0; -EINVAL (reported): bad name, or too many nodes; -ENOMEM. */
int topo_map_node_add(struct topo_map *map, const char *name);

/** Sets the site of the node that was added last, as far as a site's name has room. */
void topo_map_site_set(struct topo_map *map, const char *site);

/**
 * Adds a NIC to the node that was added last.
 *
 * @nic: node and link are filled in
 *
 * Returns 0; -E2BIG (reported); -ENOMEM.
 */
int topo_map_nic_add(struct topo_map *map, const struct topo_nic *nic);

/**
 * Joins NICs on the same subnet, after all were added. Link-local addresses join nothing: every
 * link has the same subnet.
 *
 * Returns 0; -EINVAL (reported): two nodes have the same name; -ENOMEM.
 */
int topo_map_join(struct topo_map *map);

/** Notes that two NICs share a wire. */
void topo_map_wire(struct topo_map *map, int a, int b);

/** The first NIC of the wire: the one that stands for itself. */
int topo_map_wire_of(const struct topo_map *map, int nic);

/**
 * Joins NICs on the same wire, after all were noted. Where just two nodes share one, they count as
 * the halves of a cable (a switch looks the same): those on one subnet belong to each other, the
 * others in their order.
 *
 * Returns as topo_map_join() does.
 */
int topo_map_wires_join(struct topo_map *map);

/** Counts the cables. */
struct topo_cables topo_map_cables(const struct topo_map *map);

/** True if both links are halves of one physical cable, or the same link. */
bool topo_link_is_half_of(const struct topo_map *map, int link, int other);

void topo_map_free(struct topo_map *map);

/** The node of this name, or -1. */
int topo_map_node_find(const struct topo_map *map, const char *name);

/** The NIC of @node with this name, or -1. */
int topo_map_nic_find(const struct topo_map *map, int node, const char *name);

/** The worst state of the link's NICs. */
enum topo_state topo_link_state(const struct topo_map *map, int link);

/** The slowest rate that is known of the link's NICs, in Mb/s; 0: none is known. */
int topo_link_rate(const struct topo_map *map, int link);

/**
 * What passes over the link in both directions, in bytes a second: what a NIC of a cable sends and
 * receives, or what all NICs of a switch receive. Returns false if it is not known.
 */
bool topo_link_traffic(const struct topo_map *map, int link, double *bytes);

/** True if the rates of some NIC are known. */
bool topo_map_has_rates(const struct topo_map *map);

/** "planned", "up", "down". */
const char *topo_state_text(enum topo_state state);

/* ---- makes the map of a mesh: from neighbour to neighbour, or from files --------------------- */

/* ---- finds the mesh that this node belongs to: asks from neighbour to neighbour -------------- */

/**
 * Asks the neighbours, and those behind them, for up to 5 s, and makes the map of all nodes that
 * have answered. What has not answered is reported on standard error. This node is the map's first.
 *
 * @with_rates: also what its NICs move meanwhile, for a second at least
 *
 * Returns 0; -EINTR after Ctrl-C; another negative errno (reported).
 */
int topo_ask(struct topo_map *map, bool with_rates);

/* ---- reads plans and reports of nodes into a map --------------------------------------------- */

/**
 * Reads one document of `fi_mesh plan --json` or `fi_mesh nics --json` into @map.
 *
 * @text: @size bytes, any of them
 * @source: where it came from, for messages; its last part without ".json" is the node's name if
 * the report has none
 *
 * Returns 0; -EINVAL (reported) for anything else; -ENOMEM. After an error @map is incomplete: only
 * topo_map_free() may be called with it.
 */
int topo_document_read(struct topo_map *map, const char *text, size_t size, const char *source);

#endif
