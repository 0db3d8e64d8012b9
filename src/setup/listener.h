/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - a listener, and the comms that were made for it and wait for NCCL to accept. */
#ifndef MESH_SETUP_LISTENER_H
#define MESH_SETUP_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "control/peer.h"
#include "setup/setup.h"
#include "transport/comm.h"

/*
 * Comms that wait for accept(). NCCL accepts one; another program may make many before it accepts.
 */
#define MESH_LISTENER_QUEUE 64

/* What has become of the process that last sent the listener's cookie, in HELLO or CONNECT. */
enum mesh_accept_peer {
	MESH_ACCEPT_HERE,    /* or there was none */
	MESH_ACCEPT_LOST,    /* no connection with it is left, and the last one was not complete */
	MESH_ACCEPT_LOST_UP, /* the same, and that was */
	MESH_ACCEPT_GAVE_UP, /* it has sent a final WITHDRAW */
	MESH_ACCEPT_REFUSED, /* one runs another protocol version: nothing else counts any more */
};

/* All under process->lock. */
struct mesh_accept_wait {
	struct mesh_process *process; /* constant */
	uint64_t deadline_ms;	      /* set by the first accept() */
	uint64_t since_ms;	      /* of the first accept(); 0 before that */
	bool warned;		      /* a WARN reported that it takes long */
	uint64_t process_id;	      /* of that one; 0: none so far */
	char name[MESH_PEER_TEXT_MAX];
	enum mesh_accept_peer state;
	uint64_t gone_ms;		   /* since when that, and not HERE */
	char reason[MESH_PEER_REASON_MAX]; /* why that ended; "" if it did not */
};

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
void mesh_listener_peer_lost(struct mesh_peer *peer);

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
