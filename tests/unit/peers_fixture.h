/* SPDX-License-Identifier: Apache-2.0 */
/* peers_fixture.h - two peers of comm_fixture.h's, one at each NIC, with the process locked. */
#ifndef TESTS_UNIT_PEERS_FIXTURE_H
#define TESTS_UNIT_PEERS_FIXTURE_H

#include <unistd.h>

#include "control/link.h"
#include "control/peer_index.h"
#include "control/peer_life.h"

#include "comm_fixture.h"

static struct mesh_peer *peer; /* the first of the fixture's */

static inline int setup(void)
{
	int i;

	fixture_setup();
	fixture_paths_open(MESH_PROVIDER_TCP, 2);
	fixture.setup.process.config.connect_timeout_s = 6;
	for (i = 0; i < fixture.num_paths; i++) {
		LIST_INSERT_HEAD(&fixture.setup.process.peers, &fixture.peers[i], entry);
		fixture.peers[i].address.port = 4321;
	}
	peer = &fixture.peers[0];
	mesh_lock_take(&fixture.setup.process.lock);
	return 0;
}

static inline int teardown(void)
{
	int i;

	/* Those that were greeted have joined a link; the fixture frees no peer. */
	for (i = 0; i < fixture.num_paths; i++)
		mesh_link_leave(&fixture.peers[i]);
	mesh_lock_release(&fixture.setup.process.lock);
	/* A lost peer has closed its socket; the fixture closes it as well. */
	if (peer->watch.fd < 0) {
		close(fixture.frames);
		fixture.frames = -1;
	}
	return fixture_teardown();
}

/* The peer at the first one's address, with this control port and cookie. */
static inline struct mesh_peer *get(uint16_t port, uint64_t cookie)
{
	const struct mesh_endpoint_addr address = fixture.peers[0].address;
	struct mesh_peer *found = NULL;

	assert_int_equal(mesh_peer_get(&fixture.setup.process, fixture.domains[0], &address, port,
				       3, cookie, &found),
			 0);
	return found;
}

#endif
