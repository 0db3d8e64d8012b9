/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_chain.h - a line of nodes in one process: two ends, which the test plays, and between them
 * one to three relays, which are the product's. What they send each other waits in queues until the
 * test has it go on, in the order of each connection; a link may break at any moment, and each of
 * its two ends learns that when the test says so.
 *
 * The provider is fake_fabric.h's. A test that uses this has the ldflags of test_circuit_frames.
 */
#ifndef MESH_TESTS_RELAY_CHAIN_H
#define MESH_TESTS_RELAY_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "control/peer.h"
#include "relay/relay.h"
#include "wire/frame.h"
#include "wire/message.h"

#include "fake_fabric.h"

#define CHAIN_RELAYS_MAX 3
#define CHAIN_NODES_MAX (CHAIN_RELAYS_MAX + 2)
/* The largest small message, in bytes. */
#define CHAIN_PAYLOAD_MAX 1024
/* The id of node @i; the name is a letter, from 'a' on. */
#define CHAIN_NODE_ID(i) (100u + (uint64_t)(i))

/* A message or an RMA write that one end of a link has posted. */
struct chain_post {
	TAILQ_ENTRY(chain_post) entry;
	bool is_write;
	bool delivered; /* it is at the other end, or will never be */
	bool lost;	/* it will never be */
	bool completed; /* the provider is done with it */
	bool held;	/* it completes only when its end is fenced */
	const void *domain;
	void *context;	       /* NULL: nobody waits for its completion */
	const uint8_t *source; /* of a write */
	uint8_t *bytes;	       /* owned: the message */
	size_t size;
	uint64_t address, key;
};

struct chain_frame {
	TAILQ_ENTRY(chain_frame) entry;
	struct mesh_frame frame;
};

TAILQ_HEAD(chain_posts, chain_post);
TAILQ_HEAD(chain_frames, chain_frame);

/* One end of a link, at a node. */
struct chain_end {
	int node, link;
	struct chain_end *other; /* the link's other end */
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	struct mesh_peer peers[2];     /* of a relay: that which it connects to, that which came */
	struct chain_posts posts;      /* from here, in order */
	struct chain_frames frames[2]; /* from here, over the connection of each of the peers */
	bool broken;		       /* the link is: nothing from here is delivered */
	bool knows;		       /* the node has learned it */
	bool cut;		       /* it has fenced the link: nothing comes from there */
};

struct chain_node {
	struct mesh_process process;
	struct chain_end *left, *right; /* NULL: there is no node */
};

struct chain {
	int num_nodes;
	struct chain_node nodes[CHAIN_NODES_MAX];
	struct chain_end ends[2 * (CHAIN_NODES_MAX - 1)]; /* of link i: 2 * i, and 2 * i + 1 */
	uint32_t stopped; /* bits: nodes whose processes are: no frame is handled there */
	int fences;	  /* seen */
	bool fences_fail; /* on tcp: all of them, from now on */
	int fences_begun; /* those in steps that are in progress */
	int fence_steps;  /* of the next one on verbs */
	/* What comes to a node that the test plays. @out: over the connection that it has made. */
	void (*frame_came)(struct chain_end *end, bool out, const struct mesh_frame *frame);
};

extern struct chain chain;

/** Makes the nodes. Every second link has verbs, and the others tcp. */
void chain_open(int num_relays);

/** Fails the test if a relay still has a circuit, memory, or a registration. */
void chain_close(void);

/** The end of node @node towards node @other. */
struct chain_end *chain_end_of(int node, int other);

/** Sends a frame as a node that the test plays. @out: over the connection that this node made. */
void chain_frame_send(struct chain_end *end, bool out, struct mesh_frame *frame,
		      enum mesh_frame_type type);

/** The same for a message. */
void chain_message_send(struct chain_end *end, const struct mesh_message_header *header,
			const void *payload);

/** Each does one thing, and returns false if there is none. */
bool chain_frame_step(void);   /* the next frame of a connection arrives */
bool chain_deliver_step(void); /* the next message or write of a link arrives */
bool chain_complete_step(void);
bool chain_learn_step(void); /* an end of a broken link learns it */

/** Relays look at their circuits, @ms later. */
void chain_time_step(uint64_t ms);

/** The link that ends there breaks: some of what is in flight does not arrive. */
void chain_break(struct chain_end *end);

/** Circuits that the relay has. */
int chain_circuits(int node);

/* Between the fixture's own files. */
int chain_num_ends(void);
bool chain_is_relay(int node);
struct chain_end *chain_end_of_domain(const void *domain); /* libfabric's */
void chain_post_free(struct chain_end *end, struct chain_post *post);
/* Runs before each call of the provider, so that what was posted is taken in its order. */
void chain_posts_take(enum fake_call call);
void chain_poll(struct chain_end *end);
void chain_wire_reset(void);

#endif
