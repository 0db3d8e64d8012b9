/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - a listener, and the comms that were made for it and wait for NCCL to accept. */
#ifndef MESH_SETUP_LISTENER_H
#define MESH_SETUP_LISTENER_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "setup/accept_wait.h"
#include "setup/setup.h"
#include "transport/comm.h"

/*
 * Comms that wait for accept(). NCCL accepts one; another program may make many before it accepts.
 */
#define MESH_LISTENER_QUEUE 64

struct mesh_listener {
	LIST_ENTRY(mesh_listener) entry; /* setup->listeners; all under process->lock */
	struct mesh_net *net;
	uint32_t id;
	int dev;
	struct mesh_accept_wait wait;
	struct mesh_comm *waiting[MESH_LISTENER_QUEUE]; /* complete, or still without some paths */
	int num_waiting;
};

/** Handles CONNECT of @peer: makes the comm, or adds a path, and answers. process->lock held. */
MESH_HOLDS(process)
void mesh_listener_connect(struct mesh_peer *peer, const struct mesh_frame_connect *request);

/**
 * Handles WITHDRAW of @peer: its connector drops a comm that its NCCL never had. process->lock
 * held.
 */
MESH_HOLDS(process)
void mesh_listener_withdrawn(struct mesh_peer *peer, const struct mesh_frame *frame);

/** The functions of struct mesh_peer_events. */
MESH_HOLDS(process)
void mesh_listener_introduced(struct mesh_peer *peer, const struct mesh_frame_hello *hello);

/** A process of another protocol version has sent HELLO: accept() of that listener fails. */
MESH_HOLDS(process)
void mesh_listener_foreign(struct mesh_peer *peer, const struct mesh_frame_hello *hello,
			   const char *reason);
MESH_HOLDS(process)
void mesh_listener_peer_lost(struct mesh_peer *peer, bool missed);

/**
 * Starts to listen and writes @handle (MESH_HANDLE_BYTES bytes, any alignment). @dev is a hint
 * about the NIC that NCCL prefers.
 */
int mesh_net_listen(struct mesh_net *net, int dev, void *handle, struct mesh_listener **listener);

/** The receiving side of mesh_net_connect(); the same rules. */
int mesh_listener_accept(struct mesh_listener *listener, struct mesh_comm **comm);

/** Stops listening, and refuses the connections that were not accepted. NULL is allowed. */
void mesh_listener_close(struct mesh_listener *listener);

#endif
