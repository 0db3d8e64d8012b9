/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answering.h - one answer of this node to each question: the speaker's.
 */
#ifndef MESH_NEIGHBOURS_ANSWERING_H
#define MESH_NEIGHBOURS_ANSWERING_H

#include <stdint.h>

#include "base/lock.h"
#include "base/log.h"
#include "control/engine.h"
#include "neighbours/members.h"
#include "neighbours/reporting.h"

struct mesh_answering;

struct mesh_answering_socket {
	struct mesh_watch watch; /* fd -1: not open */
	struct mesh_answering *answering;
	enum mesh_family family;
};

/* IPv6, IPv4. */
#define MESH_ANSWERING_SOCKETS 2

struct mesh_answering {
	struct mesh_engine *engine;
	const struct mesh_members *members;
	struct mesh_answering_socket sockets[MESH_ANSWERING_SOCKETS];
	struct mesh_reporting reporting;
	struct mesh_timer timer; /* ends a pause */
	/* Datagrams that may still be taken; grows with time up to a limit. */
	uint64_t credit, credit_ms;
	struct mesh_log_limit floods;
	uint64_t answered, dropped; /* questions; datagrams that were none */
};

/** Zeroes @answering: it has no sockets. */
void mesh_answering_init(struct mesh_answering *answering, struct mesh_engine *engine,
			 const struct mesh_neighbour_self *self,
			 const struct mesh_members *members);

/** Opens the sockets. If another program has the port, it logs that. */
MESH_HOLDS(process)
void mesh_answering_open(struct mesh_answering *answering);

MESH_HOLDS(process)
void mesh_answering_close(struct mesh_answering *answering);

#endif
