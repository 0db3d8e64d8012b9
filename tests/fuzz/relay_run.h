/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_run.h - one run of fuzz_relay.c: a process with three NICs that relays, its peers, and what
 * is checked of whatever the relay does.
 *
 * Behind each NIC is one node, which has made a connection to us, and to which we have made one.
 * All that it says is the input's, so a peer is a connecting end, a listener, or a relay before or
 * after ours, whatever the frames claim.
 */
#ifndef MESH_TESTS_RELAY_RUN_H
#define MESH_TESTS_RELAY_RUN_H

#include "control/peer.h"
#include "neighbours/neighbours.h"
#include "relay/circuit.h"
#include "relay/relay.h"
#include "setup/setup.h"

#include "check.h"
#include "machine.h"

#define RELAY_NICS 3
#define RELAY_PEERS (2 * RELAY_NICS) /* incoming, then outgoing */
#define RELAY_JOB 77
/* Of the node behind a NIC, and our own. */
#define RELAY_NODE(nic) (100u + (uint64_t)(nic))
#define RELAY_OWN_NODE 99u
#define RELAY_EAGER_LIMIT 1024

/* All of it belongs to the input that runs. */
struct relay_run {
	struct mesh_setup setup;
	struct mesh_process *process; /* setup's */
	struct mesh_nic nics[RELAY_NICS];
	struct mesh_domain *domains[RELAY_NICS];
	struct mesh_remote *remotes[RELAY_NICS];
	struct mesh_peer peers[RELAY_PEERS];
	int reads[RELAY_PEERS]; /* the peers' ends of the control connections */
	uint8_t said[RELAY_PEERS][4096];
	size_t num_said[RELAY_PEERS]; /* bytes of a frame that is not whole yet */
	struct mesh_neighbours neighbours;
	struct mesh_heard heard[RELAY_NICS];
	bool holds; /* what is in flight ends only by a fence, or by a step */
	int seen;   /* by posts_forget() */
};
extern struct relay_run relay_run;

/** Begins; @options of the input say which provider, how much memory, and for whom it relays. */
void relay_begin(uint32_t options);

/** All peers are lost: no circuit may be left soon after, nor anything that one had. */
void relay_end(void);

/** After each step: what the relay has, has posted and has said is in order; no lock is held. */
void relay_check(void);

/** Polls until all that has ended is taken. */
void relay_poll(void);

/** The engine has its turn, @ms later. */
void relay_engine(uint64_t ms);

/** The peer is up, over a new connection. */
void relay_peer_enter(struct mesh_peer *peer);
void relay_peer_leave(struct mesh_peer *peer);
bool relay_peer_is_incoming(const struct mesh_peer *peer);
int relay_peer_nic(const struct mesh_peer *peer);

/** A circuit that the input names; NULL: there is none. */
struct mesh_circuit *relay_circuit_take(void);

/* ---- relay_peer.c: steps of the peers -------------------------------------------------------- */

void relay_step_open(void);
void relay_step_answer(void);
void relay_step_event(void);
void relay_step_frame(void);
void relay_step_message(void);
void relay_step_segment(void);
void relay_step_neighbour(void);

#endif
