/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - the path that the plugin takes between two nodes of a map, and why. */
#ifndef MESH_FI_UTILS_TOPO_PATH_H
#define MESH_FI_UTILS_TOPO_PATH_H

#include "common/provider_reason.h"
#include "common/relay_choice.h"
#include "nic/path_choice.h"
#include "topo/map.h"

/* Paths of all pairs are listed up to so many: 128 nodes have 8,128. */
#define TOPO_PATHS_MAX 8128
#define TOPO_REASON_MAX 200

struct topo_path {
	int from, to;			/* nodes */
	int local, remote;		/* NICs; -1: there is no path, or only through relays */
	int num_cables;			/* that join the two directly */
	bool routed;			/* there is no cable: the kernel of this node has a route */
	bool replaceable;		/* which has no RDMA: relays_replace() */
	enum mesh_provider_id provider; /* NONE: unknown */
	enum provider_reason provider_why; /* where it is known */
	enum mesh_path_reason why;	   /* UNKNOWN: there is no path */
	bool link_down;			   /* the two have a cable, which is down */
	struct relay_routes via;	   /* where nodes relay */
	char reason[TOPO_REASON_MAX];
};

/** True if the two nodes reach each other, as far as the map shows. */
static inline bool topo_path_exists(const struct topo_path *path)
{
	return path->local >= 0 || path->via.num > 0;
}

/** True if the link is part of the path. */
bool topo_path_has_link(const struct topo_map *map, const struct topo_path *path, int link);

/**
 * Asks the plugin's own choice (src/nic/path_choice.h) without NCCL's hints, which only choose
 * between equal candidates. NICs that are down are skipped, as in the plugin.
 */
void topo_path_find(const struct topo_map *map, int from, int to, struct topo_path *path);

/**
 * Finds the paths of all pairs, each once (from < to), in their order.
 *
 * Returns them, to be freed, and their number in *@num; NULL without memory, or if there are more
 * than @max pairs (*@num has the number then, too).
 */
struct topo_path *topo_paths_find(const struct topo_map *map, long max, long *num);

#endif
