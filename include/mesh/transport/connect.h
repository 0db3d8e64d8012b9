/* SPDX-License-Identifier: Apache-2.0 */
/* connect.h - a connection in the making: NCCL calls connect() again until it is there. */
#ifndef MESH_TRANSPORT_CONNECT_H
#define MESH_TRANSPORT_CONNECT_H

#include <stdint.h>
#include <sys/queue.h>

#include <mesh/mesh/handle.h>
#include <mesh/mesh/path_choice.h>
#include <mesh/transport/comm.h>

enum mesh_connect_state {
	MESH_CONNECT_PEER, /* waiting until the peer of the current candidate is up */
	MESH_CONNECT_SENT, /* CONNECT is sent, waiting for ACCEPT */
	MESH_CONNECT_DONE, /* the comm is there for NCCL to take */
	MESH_CONNECT_FAILED,
	MESH_CONNECT_STATES
};

struct mesh_connect {
	LIST_ENTRY(mesh_connect) entry; /* node->connects; all under node->lock */
	struct mesh_net *net;
	uint64_t id; /* NCCL's handle buffer carries it between calls */
	enum mesh_connect_state state;
	struct mesh_handle handle;
	struct mesh_path_choice choice;
	int current;		/* candidate */
	struct mesh_peer *peer; /* of that candidate; one user of it is us */
	struct mesh_comm *comm; /* from SENT on */
	uint64_t started_ms, deadline_ms;
	uint64_t candidate_ms; /* since when the current candidate is tried */
	uint64_t refused_ms;   /* since when every candidate was refused; 0 if one was not */
	bool slow_told;	       /* the user knows that it takes long */
	int error;	       /* FAILED: negative errno */
};

/** Moves one connection on as far as it goes now. node->lock held. */
void mesh_connect_advance(struct mesh_connect *connect, uint64_t now_ms);

/** The peer answered our CONNECT. node->lock held. */
void mesh_connect_accepted(struct mesh_connect *connect, uint32_t remote_id, uint32_t remote_token);
void mesh_connect_refused(struct mesh_connect *connect, enum mesh_refusal refusal);

/** Gives up, with everything it holds. node->lock held. */
void mesh_connect_free(struct mesh_connect *connect);

#endif
