/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial_fixture.h - a connection attempt that dials the NICs of another node, without a network: the
 * test has made its peers, which the attempt finds by the index, and sets their states.
 */
#ifndef MESH_TESTS_DIAL_FIXTURE_H
#define MESH_TESTS_DIAL_FIXTURE_H

#include <string.h>

#include "control/peer.h"
#include "control/peer_index.h"
#include "nic/addr.h"
#include "setup/connect_try.h"
#include "setup/setup.h"

#include "unit.h"

#define DIAL_NICS_MAX 3 /* of each node */
#define CONTROL_PORT 4000
#define COOKIE 77
/* When the attempt starts, in milliseconds of the clock. */
#define START 100000

static struct mesh_setup setup_state;
static struct mesh_process *const process = &setup_state.process;
static struct mesh_net net = {.setup = &setup_state, .process = &setup_state.process};
static struct mesh_nic nics[DIAL_NICS_MAX];
static struct mesh_domain domains[DIAL_NICS_MAX];
static struct mesh_connect attempt;

/* NIC @i has been opened, or is still being opened. */
static inline void nic_opened(int i, bool opened)
{
	process->domains[i] = opened ? &domains[i] : NULL;
	process->dev_states[i] = opened ? MESH_DEV_OPEN : MESH_DEV_OPENING;
}

static inline void dial_nic_make(int i)
{
	strcpy(nics[i].netdev, "lo"); /* has a carrier */
	process->nics[i] = domains[i].nic = &nics[i];
	process->endpoints[i].nic = (uint8_t)i;
	domains[i].dev = i;
	nic_opened(i, true);
}

/*
 * Makes an attempt without candidates, from @here open NICs of ours to @there of the other node,
 * and takes the lock.
 */
static inline void dial_begin(int here, int there)
{
	struct mesh_handle *handle = &attempt.handle;
	int i;

	memset(&setup_state, 0, sizeof(setup_state));
	memset(nics, 0, sizeof(nics));
	memset(domains, 0, sizeof(domains));
	memset(&attempt, 0, sizeof(attempt));
	mesh_lock_init(&process->lock);
	process->engine.wake_fd = process->engine.epoll_fd = -1;
	process->counters = &process->own_counters;
	process->node_id = 1;
	process->config.max_paths = 8;
	attempt.net = &net;
	attempt.started_ms = START;
	handle->node_id = 2;
	handle->control_port = CONTROL_PORT;
	handle->cookie = COOKIE;
	for (i = 0; i < here; i++)
		dial_nic_make(i);
	for (i = 0; i < there; i++) {
		mesh_addr_parse("10.1.0.2", &handle->endpoints[i].addr);
		handle->endpoints[i].addr.bytes[1] = (uint8_t)i;
	}
	mesh_lock_take(&process->lock);
}

/* A test's teardown. */
static inline int dial_end(void)
{
	mesh_connect_try_end(&attempt);
	mesh_lock_release(&process->lock);
	mesh_lock_destroy(&process->lock);
	return 0;
}

/* The attempt finds @peer when it dials NIC @there from @domain. */
static inline void dial_peer_add(struct mesh_peer *peer, struct mesh_domain *domain, int there)
{
	*peer = (struct mesh_peer){
		.process = process,
		.domain = domain,
		.dev = domain->dev,
		.watch = {.fd = -1},
		.address = attempt.handle.endpoints[there],
		.control_port = CONTROL_PORT,
	};
	LIST_INSERT_HEAD(&process->peers, peer, entry);
	mesh_peer_index_add(peer);
}

/* A candidate from NIC @here to NIC @there; the caller may set its provider and its class. */
static inline struct mesh_path_candidate *candidate_add(int here, int there)
{
	struct mesh_path_candidate *candidate =
		&attempt.choice.candidates[attempt.choice.num_candidates++];

	*candidate = (struct mesh_path_candidate){.local = (uint8_t)here, .remote = (uint8_t)there};
	return candidate;
}

static inline void assert_dials_only(const struct mesh_peer *peer)
{
	assert_int_equal(attempt.num_peers, 1);
	assert_ptr_equal(attempt.peers[0], peer);
}

#endif
