/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - the processes of one node find each other, so that one of them answers for all.
 *
 * The process that binds a certain name in the abstract space of Unix sockets, which belongs to the
 * network namespace like the NICs, is the speaker. The others are its members: each connects to it,
 * sends what it is once, and sends it again when its NICs change. When the speaker ends, the kernel
 * closes these connections, and one of the members becomes the speaker. While the speaker is
 * stopped, or in a debugger, the node does not answer.
 */
#ifndef MESH_NEIGHBOURS_MEMBERS_H
#define MESH_NEIGHBOURS_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "base/retry.h"
#include "control/engine.h"
#include "neighbours/datagram.h"

/* Without a free descriptor, or in a flood, sockets are not read for so long. */
#define MESH_MEMBERS_PAUSE_MS 100
/*
 * More processes of a node are not listed, and NICs that only these have do not answer. Half of the
 * places at most are one other user's.
 */
#define MESH_MEMBERS_MAX 128

struct mesh_members;

/*
 * What processes of one node send each other. It never leaves the node, but another user's process
 * may have made it.
 */
struct mesh_member_report {
	struct mesh_neighbour_process process;
	uint32_t num_links;
	uint32_t reserved;				 /* 0 */
	struct mesh_neighbour_link links[MESH_NICS_MAX]; /* num_links are sent */
};

/* What one process has sent to the speaker. */
struct mesh_member {
	struct mesh_watch watch; /* fd -1: this slot is free */
	struct mesh_members *members;
	uid_t user;
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
	struct mesh_retry retry;    /* of being one of the two */
	struct mesh_watch listener; /* of the speaker; else fd -1 */
	struct mesh_watch uplink;   /* a member's connection to the speaker; else fd -1 */
	struct mesh_timer timer;    /* the next try; of the speaker: a pause */
	/* The speaker's members; owned, NULL: never used. */
	struct mesh_member *all[MESH_MEMBERS_MAX];
};

/**
 * Makes this process the speaker or a member. If neither works, it tries again by the schedule of
 * base/retry.h, and logs why.
 *
 * @members: engine, self and speaks are set, the rest is zero
 */
MESH_HOLDS(process)
void mesh_members_open(struct mesh_members *members);

/** True if this process is the speaker. */
static inline bool mesh_members_speak(const struct mesh_members *members)
{
	return members->listener.fd >= 0;
}

/** Our NICs have changed: informs the speaker. @links must stay. */
MESH_HOLDS(process)
void mesh_members_links_set(struct mesh_members *members, const struct mesh_neighbour_link *links,
			    int num_links);

/** Closes all connections. */
MESH_HOLDS(process)
void mesh_members_close(struct mesh_members *members);

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
 * Enters in @answer, which is zeroed, how many ranks of a job, or of all jobs if @job is 0, run on
 * this node, the lowest of them, if all know theirs, and whether one process relays for that job.
 */
MESH_HOLDS(process)
void mesh_members_count(const struct mesh_members *members, uint64_t job,
			struct mesh_links_answer *answer);

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
