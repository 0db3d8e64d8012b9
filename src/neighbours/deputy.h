/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deputy.h - answers for the node while its speaker does not run: because it is stopped, or in a
 * debugger. The deputy has sockets of its own that get each question to the group. It keeps the
 * question and pings the speaker; without an answer to that it takes the speaker's place, until the
 * answer comes. While no question arrives, it does nothing.
 */
#ifndef MESH_NEIGHBOURS_DEPUTY_H
#define MESH_NEIGHBOURS_DEPUTY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "neighbours/answering.h"
#include "neighbours/datagram.h"
#include "neighbours/members.h"

/* The speaker answers a ping within this, or the deputy answers the questions. */
#define MESH_DEPUTY_WAIT_MS 40
/* Questions kept until then; more are dropped, and come again. */
#define MESH_DEPUTY_KEPT_MAX 64

struct mesh_deputy {
	struct mesh_members *members;
	struct mesh_answering *answering;
	struct mesh_timer timer;    /* the speaker's silence is long enough */
	bool on;		    /* this process is the deputy */
	bool pinged;		    /* the speaker has not answered yet */
	bool speaks;		    /* in its place */
	struct mesh_datagram *kept; /* owned, num_kept; NULL: none */
	int num_kept;
	int times; /* that it took the speaker's place */
};

void mesh_deputy_init(struct mesh_deputy *deputy, struct mesh_members *members,
		      struct mesh_answering *answering);

/** This process has become the deputy, or the NICs of the deputy have changed. */
MESH_HOLDS(process)
void mesh_deputy_begin(struct mesh_deputy *deputy);

/** It is the deputy no longer. The sockets of @answering are the caller's. */
MESH_HOLDS(process)
void mesh_deputy_end(struct mesh_deputy *deputy);

/** mesh_answering.keep: true if the question waits for a sign of life of the speaker. */
MESH_HOLDS(process)
bool mesh_deputy_keep(struct mesh_deputy *deputy, const struct mesh_datagram *question);

/** The speaker has answered a ping. */
MESH_HOLDS(process)
void mesh_deputy_speaker_lives(struct mesh_deputy *deputy);

#endif
