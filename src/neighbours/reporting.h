/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reporting.h - the speaker's answers to questions about links: it asks its own neighbours when
 * somebody wants to know, and passes questions for other nodes on.
 */
#ifndef MESH_NEIGHBOURS_REPORTING_H
#define MESH_NEIGHBOURS_REPORTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "neighbours/asking.h"
#include "neighbours/datagram.h"
#include "neighbours/forwarding.h"
#include "neighbours/members.h"

/* Questions that wait until our neighbours have answered; more are dropped, and come again. */
#define MESH_REPORTING_WAITING 64

struct mesh_reporting_question {
	struct mesh_forwarding_asker from;
	struct mesh_links_question question;
};

struct mesh_reporting {
	const struct mesh_members *members;
	struct mesh_asking survey;   /* on all NICs of this node's processes */
	uint64_t surveyed_ms;	     /* when its latest round began; 0: never */
	struct mesh_timer settled;   /* by then the answers have come */
	struct mesh_timer forgotten; /* frees what forwarding has kept */
	struct mesh_forwarding forwarding;
	struct mesh_reporting_question *waiting; /* owned, num_waiting; NULL: none */
	int num_waiting;
	struct mesh_links_nic down[MESH_NICS_MAX]; /* NICs of this node whose link is down */
	int num_down;
	/* Sends from the speaker's socket; @to: family and address, or the group if @all. */
	void (*send)(struct mesh_reporting *reporting, unsigned int ifindex, bool all,
		     const struct mesh_addr *to, uint16_t port,
		     const struct mesh_links_head *links);
};

/** Zeroes all but what is given. */
void mesh_reporting_init(struct mesh_reporting *reporting, struct mesh_engine *engine,
			 const struct mesh_neighbour_self *self,
			 const struct mesh_members *members);

MESH_HOLDS(process)
void mesh_reporting_finish(struct mesh_reporting *reporting);

/**
 * Sets the NICs whose link is down. They are reported, so that `fi_mesh topo` at another node draws
 * them, but for those that another process of this node uses.
 *
 * @nics: @num of them; only read during the call
 */
MESH_HOLDS(process)
void mesh_reporting_down_set(struct mesh_reporting *reporting, const struct mesh_nic *const *nics,
			     int num);

/** A datagram about links that has arrived at the speaker. */
MESH_HOLDS(process)
void mesh_reporting_take(struct mesh_reporting *reporting, const struct mesh_datagram *datagram,
			 uint64_t now_ms);

#endif
