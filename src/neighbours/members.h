/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - the processes of one node find each other, so that one of them answers for all.
 *
 * The process that binds a certain name in the abstract space of Unix sockets, which belongs to the
 * network namespace like the NICs, is the speaker. The others are its members: each connects to it,
 * sends what it is once, and sends it again when its NICs change; the speaker sends back what it is
 * itself. When the speaker ends, the kernel closes these connections, and one of the members
 * becomes the speaker.
 *
 * A speaker that is stopped, or in a debugger, has not ended. Therefore the first of the others
 * binds a second name: it is the deputy, which answers what is asked again (answering.h). All but
 * the speaker are its members as well.
 */
#ifndef MESH_NEIGHBOURS_MEMBERS_H
#define MESH_NEIGHBOURS_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/engine.h"
#include "neighbours/datagram.h"

/* What could not be opened is tried again so often, after this time times the number of tries. */
#define MESH_MEMBERS_TRIES 10
#define MESH_MEMBERS_AGAIN_MS 20
/* Without a free descriptor, or in a flood, sockets are not read for so long. */
#define MESH_MEMBERS_PAUSE_MS 100
/* More processes of a node are not listed, and NICs that only these have do not answer. */
#define MESH_MEMBERS_MAX 128

struct mesh_members;

/*
 * What processes of one node send each other. It never leaves the node, but another user's process
 * may have made it.
 */
struct mesh_member_report {
	struct mesh_neighbour_process process;
	uint32_t num_links;				 /* 0 from who holds a post */
	uint32_t reserved;				 /* 0 */
	struct mesh_neighbour_link links[MESH_NICS_MAX]; /* num_links are sent */
};

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
	int tries;		    /* that failed, since the latest success */
	struct mesh_watch listener; /* of this process, if it holds the post; else fd -1 */
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
	struct mesh_post posts[MESH_POSTS];
	struct mesh_neighbour_process speaker; /* if it is another process; role 0: not known */
	/* The members of our post; owned, NULL: never used. */
	struct mesh_member *all[MESH_MEMBERS_MAX];
};

/**
 * Makes this process the speaker, the deputy or a member. If none of them works, it tries again
 * some times, and then logs why.
 *
 * @members: engine, self and posted are set, the rest is zero
 */
MESH_HOLDS(process)
void mesh_members_open(struct mesh_members *members);

/** True if this process holds the post. */
static inline bool mesh_members_hold(const struct mesh_members *members, enum mesh_post_kind kind)
{
	return members->posts[kind].listener.fd >= 0;
}

/** Our NICs have changed: informs the speaker and the deputy. @links must stay. */
MESH_HOLDS(process)
void mesh_members_links_set(struct mesh_members *members, const struct mesh_neighbour_link *links,
			    int num_links);

/** Closes all connections. */
MESH_HOLDS(process)
void mesh_members_close(struct mesh_members *members);

/** True if another process is a member of this one. */
MESH_HOLDS(process)
bool mesh_members_any(const struct mesh_members *members);

/**
 * The NICs of all processes of this node, each once, as this process or the first of its members
 * describes it. It is drained if any of them says so: one that describes it first may not know of
 * the mark, as `fi_mesh serve`, or have another user's.
 *
 * Returns their number, @max or less.
 */
MESH_HOLDS(process)
int mesh_members_links(const struct mesh_members *members, struct mesh_neighbour_link *links,
		       int max);

/** The one with this index; returns false if it is none of the mesh. */
MESH_HOLDS(process)
bool mesh_members_link(const struct mesh_members *members, unsigned int ifindex,
		       struct mesh_neighbour_link *link);

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

/** Bytes of a report with so many links. */
static inline size_t mesh_member_report_size(int num_links)
{
	return offsetof(struct mesh_member_report, links) +
	       (size_t)num_links * sizeof(struct mesh_neighbour_link);
}

/** True if @size received bytes are a report. */
bool mesh_member_report_is_valid(const struct mesh_member_report *report, size_t size);

#endif
