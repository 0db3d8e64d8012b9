/* SPDX-License-Identifier: Apache-2.0 */
/* connecting.h - a connection in the making: NCCL calls connect() again until it is there. */
#ifndef MESH_SETUP_CONNECTING_H
#define MESH_SETUP_CONNECTING_H

#include <stdint.h>
#include <sys/queue.h>

#include "nic/path_choice.h"
#include "setup/setup.h"
#include "transport/comm.h"
#include "wire/handle.h"

enum mesh_connect_state {
	MESH_CONNECT_PEERS, /* waiting until the peers of this try are up */
	MESH_CONNECT_SENT,  /* CONNECT is sent for the latest path, waiting for its ACCEPT */
	MESH_CONNECT_DONE,  /* the comm is there for NCCL to take */
	MESH_CONNECT_FAILED,
	MESH_CONNECT_STATES
};

struct mesh_connect {
	LIST_ENTRY(mesh_connect) entry; /* setup->connects; all under process->lock */
	struct mesh_net *net;
	uint64_t id; /* NCCL's handle buffer carries it between calls */
	enum mesh_connect_state state;
	struct mesh_handle handle;
	struct mesh_path_choice choice;
	/*
	 * The try that is going on: candidates whose NICs are all different, of which each may
	 * become a path. One user of each peer is us.
	 */
	int first_candidate; /* index into choice */
	int next_candidate;  /* the first one that this try leaves out */
	struct mesh_path_candidate pairs[MESH_PATHS_MAX];
	struct mesh_peer *peers[MESH_PATHS_MAX];
	int num_peers;
	uint64_t try_ms; /* since when */
	uint64_t up_ms;	 /* since when one of the peers is up; 0: none is */

	struct mesh_comm *comm; /* from SENT on */
	int num_accepted;	/* of its paths */
	uint64_t started_ms, deadline_ms;
	uint64_t refused_ms; /* since when every candidate was refused; 0 if one was not */
	bool slow_told;	     /* the user knows that it takes long */
	int error;	     /* FAILED: negative errno */
};

#endif
