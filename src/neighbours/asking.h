/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asking.h - asks on each of our NICs which node is there, keeps the answers, and says what they
 * mean for our cables. It runs in an engine. Without one, the caller waits on the sockets and until
 * the next question is due.
 */
#ifndef MESH_NEIGHBOURS_ASKING_H
#define MESH_NEIGHBOURS_ASKING_H

#include <stdbool.h>
#include <stdint.h>

#include "control/engine.h"
#include "neighbours/datagram.h"

/* Kept for one NIC: a cable has one, a switch may have many. The oldest answer is replaced. */
#define MESH_HEARD_MAX 64
/*
 * Our neighbours are waited for so long: a NIC whose cable leads nowhere has no answer at all. If
 * the first question was lost, the second one follows after 50 ms.
 */
#define MESH_ASKING_SETTLE_MS 80
/* IPv6, and IPv4 for NICs that have no IPv6. */
#define MESH_ASKING_SOCKETS 2

struct mesh_asking;

struct mesh_asking_socket {
	struct mesh_watch watch; /* fd -1: not open */
	struct mesh_asking *asking;
};

/* One NIC of another node (or of ours), as it answered on one of our NICs. */
struct mesh_heard {
	struct mesh_neighbour about;
	struct mesh_addr from; /* with its scope */
	int error; /* -EPROTONOSUPPORT: another version, of which only names are known */
	uint64_t heard_ms;
};

/* What one of our NICs has heard. */
struct mesh_asked {
	unsigned int ifindex;
	int error;     /* why the latest question could not be sent; 0 if it was */
	bool answered; /* in this round */
	struct mesh_heard *heard[MESH_HEARD_MAX]; /* owned; num_heard */
	int num_heard;
};

struct mesh_asking {
	const struct mesh_neighbour_self *self;
	struct mesh_engine *engine; /* NULL: there is none */
	/* Called by the engine after answers have come and after questions were due, or NULL. */
	void (*stepped)(struct mesh_asking *asking, uint64_t now_ms);
	/* Called with each answer about links that has come to the sockets, or NULL. */
	void (*links_answered)(void *links_owner, const struct mesh_links_answer *answer);
	void *links_owner;
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	struct mesh_asked asked[MESH_NICS_MAX]; /* beside links */
	int num_links;
	struct mesh_asking_socket sockets[MESH_ASKING_SOCKETS]; /* closed between two rounds */
	struct mesh_timer timer;
	uint64_t token;	   /* of this round */
	uint64_t sought;   /* asked for on each NIC until this node answers; 0: none */
	int sent;	   /* questions of this round */
	uint64_t began_ms; /* 0: no round goes on */
	uint64_t due_ms;   /* of the next question, or the end of the round */
};

/** Without an engine: that is the caller's to set. @self: must stay as long as @asking is used. */
void mesh_asking_init(struct mesh_asking *asking, const struct mesh_neighbour_self *self);

/** Frees what was heard and closes the sockets. */
void mesh_asking_finish(struct mesh_asking *asking);

/**
 * Sets our NICs. What a NIC has heard is kept, unless it is new or its addresses have changed.
 *
 * Returns true if one of them is new or has changed.
 */
bool mesh_asking_links_set(struct mesh_asking *asking, const struct mesh_neighbour_link *links,
			   int num_links);

/**
 * Begins a round, and asks. If one goes on, its next question is sent at once, but not sooner than
 * 50 ms after its latest.
 *
 * Returns 0, or a negative errno if no socket can be opened.
 */
int mesh_asking_begin(struct mesh_asking *asking, uint64_t now_ms);

/**
 * The same, for a node that may be behind any of our NICs: the questions of this round are repeated
 * where it has not answered, also if others have. One node at a time: the latest.
 */
int mesh_asking_seek(struct mesh_asking *asking, uint64_t node_id, uint64_t now_ms);

/** True if each NIC that can ask has an answer in this round. */
bool mesh_asking_all_answered(const struct mesh_asking *asking);

/**
 * What our NICs have heard of nodes of this version since then, one after the other.
 *
 * @node_id: of that one; 0: of all but our own
 * @at: zeros at first; @link is the NIC of the one that is returned
 *
 * Returns NULL behind the last one.
 */
struct mesh_heard_at {
	int link, next;
};
const struct mesh_heard *mesh_asking_heard_next(const struct mesh_asking *asking, uint64_t node_id,
						uint64_t since_ms, struct mesh_heard_at *at);

/** Sends what is due; ends the round when its time is over, and closes the sockets. */
void mesh_asking_advance(struct mesh_asking *asking, uint64_t now_ms);

/** Takes the answers that have arrived. */
void mesh_asking_take(struct mesh_asking *asking, int fd, uint64_t now_ms);

/** While a round goes on: sends a finished datagram to all nodes of each link. */
void mesh_asking_send_all(struct mesh_asking *asking, const void *datagram, size_t size);

/** True if the answer is one of this node: a cable, or a switch, leads back. */
bool mesh_heard_is_own(const struct mesh_asking *asking, const struct mesh_heard *heard);

/** The index of our NIC with this ifindex, or -1. */
int mesh_asking_link_find(const struct mesh_asking *asking, unsigned int ifindex);

enum mesh_cable_far {
	MESH_CABLE_SILENT, /* no other node answers */
	MESH_CABLE_UNSURE, /* only NICs of ours: both ends, or halves whose other end is silent */
	MESH_CABLE_LOOP,   /* both ends are ports of this node */
	MESH_CABLE_LEADS,  /* to one other node */
	MESH_CABLE_SWITCH, /* to several */
};

/*
 * A cable, or a switch, as this node sees it. Its end may be several NICs, which hear each other
 * and all NICs of the other end: a port of a DGX Spark is two, the halves of the cable.
 */
struct mesh_asked_cable {
	enum mesh_cable_far far;
	int nics[MESH_NICS_MAX]; /* ours, as indices; num_nics */
	int num_nics;
	const struct mesh_heard
		*heard[MESH_HEARD_MAX]; /* other nodes' NICs, each once; num_heard */
	int num_heard;
};

/** Finds the cable of our NIC @index. */
void mesh_cable_find(const struct mesh_asking *asking, int index, struct mesh_asked_cable *cable);

/** Another of our NICs on the cable, of another port if that is known; -1: there is none. */
int mesh_cable_other(const struct mesh_asking *asking, const struct mesh_asked_cable *cable,
		     int index);

/**
 * The other half of a cable whose ends have several NICs each; -1: it has no halves. Two ports on
 * one switch with those of one other node look the same where the kernel does not know the ports.
 */
int mesh_cable_half(const struct mesh_asking *asking, const struct mesh_asked_cable *cable,
		    int index);

/**
 * The NIC of the other end that belongs to ours: one on its subnet, or else one that belongs to
 * none of ours.
 *
 * @node: any NIC of the node that is meant
 *
 * Returns NULL if the node has fewer NICs there than we; @node itself if it has another version.
 */
const struct mesh_heard *mesh_cable_partner(const struct mesh_asking *asking,
					    const struct mesh_asked_cable *cable, int index,
					    const struct mesh_heard *node);

/** The next node at the other end: a NIC of it. @at: 0 at first. NULL behind the last one. */
const struct mesh_heard *mesh_cable_node_next(const struct mesh_asked_cable *cable, int *at);

#endif
