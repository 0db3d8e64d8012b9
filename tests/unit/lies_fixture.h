/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lies_fixture.h - a peer that lies at random, seed by seed: the process at the other end, to which
 * two links are up.
 */
#ifndef MESH_TESTS_LIES_FIXTURE_H
#define MESH_TESTS_LIES_FIXTURE_H

#include "control/peer_life.h"
#include "transport/rejoin.h"

#include "comm_fixture.h"

#define PROCESS_ID 0x1234 /* the other end's */
#define PORT 999	  /* where it listens, if we are the sender */

/* All of it belongs to the seed that runs. */
static struct mesh_comm *comm; /* the test opens it */
static uint64_t random_state;

/* A number below @sides. */
static inline uint32_t roll(uint32_t sides)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 20) % sides;
}

static inline void lies_begin(void **state, int seed, bool sending)
{
	struct mesh_process *process = &fixture.setup.process;
	int i;

	random_state = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);
	assert_int_equal(fixture_setup(state), 0);
	process->config.recovery = 1;
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	assert_int_equal(mesh_addr_parse("10.7.1.2", &fixture.peers[1].address.addr), 0);
	mesh_lock_take(&process->lock);
	for (i = 0; i < 2; i++)
		fixture_peer_enter(&fixture.peers[i], PROCESS_ID, sending ? PORT : 0);
	mesh_lock_release(&process->lock);
}

/* Closes the comm, and what tried to renew its links. */
static inline void lies_end(void **state)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_peer *peer;

	fixture_comm_close(comm);
	mesh_lock_take(&process->lock);
	mesh_rejoins_close(process);
	while ((peer = LIST_FIRST(&process->peers)))
		mesh_peer_free(peer);
	mesh_lock_release(&process->lock);
	assert_int_equal(fixture_teardown(state), 0);
}

#endif
