/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - a listener, and the comms that were made for it and wait for NCCL to accept. */
#ifndef MESH_TRANSPORT_LISTENER_H
#define MESH_TRANSPORT_LISTENER_H

#include <stdint.h>
#include <sys/queue.h>

#include "transport/accept_wait.h"
#include "transport/comm.h"

/* Comms that wait for accept(). NCCL accepts one; another program may be late with many. */
#define MESH_LISTENER_QUEUE 64

struct mesh_listener {
	LIST_ENTRY(mesh_listener) entry; /* node->listeners; all under node->lock */
	struct mesh_net *net;
	uint32_t id;
	uint64_t cookie;
	int dev;
	uint64_t deadline_ms; /* set by the first accept() */
	struct mesh_accept_wait wait;
	struct mesh_comm *waiting[MESH_LISTENER_QUEUE]; /* whole or still growing */
	int num_waiting;
	int num_left; /* comms whose connector dropped them before they were connected */
};

/** A CONNECT came from @peer: makes the comm, or adds a path, and answers. node->lock held. */
void mesh_listener_connect(struct mesh_peer *peer, const struct mesh_frame_connect *request);

/** @peer's connector drops a comm that its NCCL never had. node->lock held. */
void mesh_listener_withdrawn(struct mesh_peer *peer, const struct mesh_frame_withdraw *withdraw);

/** The listener with this id and cookie, or NULL. node->lock held. */
struct mesh_listener *mesh_listener_find(struct mesh_node *node, uint32_t id, uint64_t cookie);

/** True if NCCL has no comm of @peer yet: all wait in a listener. node->lock held, no comm's. */
bool mesh_listener_holds_all(const struct mesh_peer *peer);

/** Drops the comms that failed before all of their paths were there. node->lock held. */
void mesh_listener_tick(struct mesh_listener *listener);

/** Opens and closes the control listeners of all domains. node->lock held. */
int mesh_controls_open(struct mesh_node *node);
void mesh_controls_close(struct mesh_node *node);

/**
 * Accepts peers on this NIC if its domain is open, refuses them if that has failed; until then they
 * wait in the kernel's queue. node->lock held.
 */
void mesh_control_start(struct mesh_node *node, int dev);

/** True while a control listener waits for file descriptors. node->lock held. */
bool mesh_controls_paused(const struct mesh_node *node);

/** Listens again where accept() had run out of file descriptors. node->lock held. */
void mesh_controls_tick(struct mesh_node *node, uint64_t now_ms);

#endif
