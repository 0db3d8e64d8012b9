/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - the processes of one node find each other, so that one of them answers for all.
 *
 * The process that binds a certain name in the abstract space of Unix sockets, which belongs to the
 * network namespace like the NICs, is the speaker. The others are its members: each connects to it,
 * sends what it is once, and sends it again when its NICs change. When the speaker ends, the kernel
 * closes these connections, and one of the members becomes the speaker.
 *
 * A speaker that is stopped, or in a debugger, has not ended. Therefore the first of the others
 * binds a second name: it is the deputy (deputy.h). All but the speaker are its members as well. It
 * pings the speaker when there is something to answer. Nothing else is sent.
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

/* A process holds one of them at most. */
enum mesh_post_kind {
	MESH_POST_SPEAKER,
	MESH_POST_DEPUTY,
	MESH_POSTS
};

struct mesh_post {
	struct mesh_members *members;
	bool held;		    /* by this process */
	int tries;		    /* that failed, since the latest success */
	uint64_t joined_ms;	    /* when it became a member */
	struct mesh_watch listener; /* of who holds it; else fd -1 */
	struct mesh_watch uplink;   /* a member's connection to who holds it; else fd -1 */
	struct mesh_timer timer;    /* the next try */
};

struct mesh_members {
	struct mesh_engine *engine;
	const struct mesh_neighbour_self *self;
	const struct mesh_neighbour_link *links; /* ours; num_links */
	int num_links;
	/* Called when this process gets a post, with the engine's lock held. */
	void (*posted)(struct mesh_members *members);
	/* The same when the speaker has answered the deputy's ping. */
	void (*speaker_lives)(struct mesh_members *members);
	struct mesh_post posts[MESH_POSTS];
	struct mesh_neighbour_process speaker; /* the deputy's; role 0: not known */
	/* The members of our post; owned, NULL: never used. */
	struct mesh_member *all[MESH_MEMBERS_MAX];
};

/**
 * Makes this process the speaker, the deputy or a member. If none of them works, it tries again
 * some times, and then logs why.
 *
 * @members: engine, self, posted and speaker_lives are set, the rest is zero
 */
MESH_HOLDS(process)
void mesh_members_open(struct mesh_members *members);

/**
 * Asks the speaker for a sign of life; only the deputy does.
 *
 * Returns 0, or a negative errno if there is no speaker.
 */
MESH_HOLDS(process)
int mesh_members_ping(struct mesh_members *members);

/** Our NICs have changed: informs the speaker and the deputy. @links must stay. */
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
 * True if a process of this node has marked the NIC as drained: one that describes it first may not
 * know of the mark, as `fi_mesh serve`, or have another user's.
 */
MESH_HOLDS(process)
bool mesh_members_drained(const struct mesh_members *members, unsigned int ifindex);

/**
 * The NICs of all processes of this node, each once, as mesh_members_link() gives them, and with
 * the mark of mesh_members_drained().
 *
 * Returns their number, @max or less.
 */
MESH_HOLDS(process)
int mesh_members_links(const struct mesh_members *members, struct mesh_neighbour_link *links,
		       int max);

/** True if a rank runs on this node, and, unless @job is 0, belongs to that job. */
MESH_HOLDS(process)
bool mesh_members_have_rank(const struct mesh_members *members, uint64_t job);

/**
 * Counts the ranks of a job, or of all jobs if @job is 0, that run on this node.
 *
 * @first: the lowest of them plus 1; 0 if one does not know its rank, or there is none
 */
MESH_HOLDS(process)
int mesh_members_ranks(const struct mesh_members *members, uint64_t job, uint32_t *first);

/** True if `fi_mesh serve --relay` relays for that job on this node. */
MESH_HOLDS(process)
bool mesh_members_serve(const struct mesh_members *members, uint64_t job);

/**
 * Lists the processes of this node in @answer: those of the job answer->job first, then those that
 * relay for it, then the others.
 */
MESH_HOLDS(process)
void mesh_members_list(const struct mesh_members *members, struct mesh_neighbour *answer);

#endif
