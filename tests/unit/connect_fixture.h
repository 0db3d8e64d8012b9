/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_fixture.h - a connection attempt with routed candidates, and relays that it may use
 * instead, without a network.
 */
#ifndef TESTS_UNIT_CONNECT_FIXTURE_H
#define TESTS_UNIT_CONNECT_FIXTURE_H

#include <string.h>

#include "neighbours/neighbours.h"
#include "relay/relay.h"
#include "setup/connect_relay.h"
#include "setup/connecting.h"
#include "setup/setup.h"

#include "log_capture.h"

#define START 100000 /* of the attempt */
#define NODE 7	     /* the other one */
#define PEERS 2	     /* its NICs */

static struct mesh_setup setup_state;
static struct mesh_process *const process = &setup_state.process;
static struct mesh_net net = {.setup = &setup_state, .process = &setup_state.process};
static struct mesh_relay relay;
static struct mesh_neighbours neighbours; /* who know of no other node */
static struct mesh_nic nic;
static struct mesh_domain domain;
static struct mesh_peer peers[PEERS];
static struct mesh_connect attempt;

/* The attempt has so many candidates without RDMA, and tries all of them. */
static inline void candidates_make(int num, enum mesh_path_class class)
{
	int i;

	attempt.choice.num_candidates = attempt.num_peers = num;
	for (i = 0; i < num; i++) {
		attempt.choice.candidates[i] = (struct mesh_path_candidate){
			.remote = (uint8_t)i,
			.provider = MESH_PROVIDER_TCP,
			.class = class,
		};
		attempt.pairs[i] = attempt.choice.candidates[i];
		attempt.peers[i] = &peers[i];
		peers[i].users = 2;
	}
}

/* Makes an attempt with routed candidates, of which none has answered, and takes the lock. */
static inline void attempt_make(void)
{
	int i;

	memset(&setup_state, 0, sizeof(setup_state));
	memset(&attempt, 0, sizeof(attempt));
	memset(peers, 0, sizeof(peers));
	mesh_lock_init(&process->lock);
	process->engine.wake_fd = process->engine.epoll_fd = -1;
	process->relay = &relay;
	process->node_id = NODE + 1;
	process->config.max_paths = PEERS;
	strcpy(process->config.relay, "any");
	relay.process = process;
	relay.neighbours = setup_state.neighbours = &neighbours;
	domain.nic = &nic;
	attempt.net = &net;
	attempt.state = MESH_CONNECT_PEERS;
	attempt.started_ms = START;
	attempt.handle.node_id = NODE;
	attempt.handle.num_endpoints = PEERS;
	mesh_addr_parse("10.7.1.2/24", &attempt.handle.endpoints[0].addr);
	mesh_addr_parse("10.7.2.2/24", &attempt.handle.endpoints[1].addr);
	for (i = 0; i < PEERS; i++)
		peers[i] = (struct mesh_peer){
			.process = process,
			.domain = &domain,
			.watch = {.fd = -1},
			.state = MESH_PEER_CONNECTING,
		};
	candidates_make(PEERS, MESH_PATH_ROUTED);
	log_capture_start();
	mesh_lock_take(&process->lock);
}

static inline int attempt_end(void **state)
{
	(void)state;
	mesh_connect_relay_close(&attempt);
	mesh_lock_release(&process->lock);
	mesh_lock_destroy(&process->lock);
	log_capture_stop();
	return 0;
}

#endif
