/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answering.h - one answer of this node to each question. The speaker answers the first and the
 * third time that something is asked, the deputy the second, so that one of them may be stopped. A
 * speaker alone answers each time.
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
	unsigned int ifindex; /* 0: of all NICs */
};

/*
 * All that comes to the port: IPv6, IPv4. What comes to the group, for the deputy: IPv6 of each
 * NIC, IPv4. The kernel gives each of both a datagram to the group, and the speaker the others.
 */
enum mesh_answering_scope {
	MESH_ANSWERING_ALL,
	MESH_ANSWERING_GROUP
};
#define MESH_ANSWERING_SOCKETS (MESH_NICS_MAX + 1)

struct mesh_answering {
	struct mesh_engine *engine;
	const struct mesh_members *members;
	enum mesh_answering_scope scope;
	struct mesh_answering_socket sockets[MESH_ANSWERING_SOCKETS];
	int num_sockets;
	struct mesh_reporting reporting;
	struct mesh_timer timer; /* opens what could not be opened, and ends a pause */
	int tries;
	/* Datagrams that may still be taken; grows with time up to a limit. */
	uint64_t credit, credit_ms;
	struct mesh_log_limit floods;
	uint64_t answered, dropped; /* questions; datagrams that were none */
};

/** Zeroes @answering: it has no sockets. */
void mesh_answering_init(struct mesh_answering *answering, struct mesh_engine *engine,
			 const struct mesh_neighbour_self *self,
			 const struct mesh_members *members);

/**
 * Opens the sockets, in place of those that are open. If another program has the port, it tries
 * again some times, and then logs it.
 */
MESH_HOLDS(process)
void mesh_answering_open(struct mesh_answering *answering, enum mesh_answering_scope scope);

MESH_HOLDS(process)
void mesh_answering_close(struct mesh_answering *answering);

#endif
