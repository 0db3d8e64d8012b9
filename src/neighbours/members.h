/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - the processes of one node find each other, so that one of them answers for all.
 *
 * The process that binds a certain name in the abstract space of Unix sockets, which belongs to the
 * network namespace like the NICs, is the speaker. The others are its members: each connects to it,
 * sends what it is once, and sends it again when its NICs change. When the speaker ends, the kernel
 * closes these connections, and one of the members becomes the speaker. Nothing else is sent.
 */
#ifndef MESH_NEIGHBOURS_MEMBERS_H
#define MESH_NEIGHBOURS_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/engine.h"
#include "neighbours/self.h"

/* More processes of a node are not listed, and NICs that only these have do not answer. */
#define MESH_MEMBERS_MAX 128

struct mesh_members;

/* What one process has sent to the speaker. */
struct mesh_member {
	struct mesh_watch watch; /* fd -1: this slot is free */
	struct mesh_members *members;
	struct mesh_neighbour_process process;
	int num_links;
	struct mesh_neighbour_link links[MESH_NICS_MAX];
};

struct mesh_members {
	struct mesh_engine *engine;
	const struct mesh_neighbour_self *self;
	const struct mesh_neighbour_link *links; /* ours; num_links */
	int num_links;
	/* Called when this process becomes the speaker, with the engine's lock held. */
	void (*speaks)(struct mesh_members *members);
	bool speaker;
	int tries;		    /* that failed, since the latest success */
	uint64_t joined_ms;	    /* when it became a member */
	struct mesh_watch listener; /* the speaker's; else fd -1 */
	struct mesh_watch uplink;   /* a member's connection to the speaker; else fd -1 */
	struct mesh_timer timer;    /* the next try */
	struct mesh_member *all[MESH_MEMBERS_MAX]; /* the speaker's; owned, NULL: never used */
};

/**
 * Makes this process the speaker, or a member. If neither works, it tries again some times, and
 * then logs why.
 *
 * @self, @links: must stay until mesh_members_close()
 */
MESH_HOLDS(process)
void mesh_members_open(struct mesh_members *members, struct mesh_engine *engine,
		       const struct mesh_neighbour_self *self,
		       void (*speaks)(struct mesh_members *members));

/** Our NICs have changed: informs the speaker. */
MESH_HOLDS(process)
void mesh_members_links_set(struct mesh_members *members, const struct mesh_neighbour_link *links,
			    int num_links);

/** Closes all connections. */
MESH_HOLDS(process)
void mesh_members_close(struct mesh_members *members);

/**
 * The NIC with this index, as this process or the first of its members describes it; NULL if it is
 * none of the mesh.
 */
MESH_HOLDS(process)
const struct mesh_neighbour_link *mesh_members_link(const struct mesh_members *members,
						    unsigned int ifindex);

/**
 * Lists the processes of this node in @answer, those of the job answer->job first.
 */
MESH_HOLDS(process)
void mesh_members_list(const struct mesh_members *members, struct mesh_neighbour *answer);

#endif
