/* SPDX-License-Identifier: Apache-2.0 */
/* peer_internal.h - what the files of a peer share with each other only. */
#ifndef MESH_TRANSPORT_PEER_INTERNAL_H
#define MESH_TRANSPORT_PEER_INTERNAL_H

#include "transport/peer.h"

/* All with node->lock held. */

/** The only way to change a peer's state; asserts the legal steps. */
void mesh_peer_state_set(struct mesh_peer *peer, enum mesh_peer_state state);

/** Ends this attempt; an outgoing peer tries again soon, an incoming one is lost. */
void mesh_peer_retry(struct mesh_peer *peer, const char *reason);

/** Starts to greet: HELLO has told both sides where. */
void mesh_peer_greet(struct mesh_peer *peer);

/* ---- peer_socket.c ---- */

/** A socket bound to our NIC's address, connecting. Returns it, or a negative errno. */
int mesh_peer_socket_connect(const struct mesh_peer *peer);

/** The kernel notices a silent peer in time, even while nothing is sent. */
void mesh_peer_keepalive_set(const struct mesh_peer *peer, int fd);

/** Writes what its error means into @reason, MESH_PEER_REASON_MAX bytes. */
void mesh_peer_errno_explain(int error, char *reason);

/* ---- peer_loss.c ---- */

/**
 * Logs the end of @peer for its reason: one WARN if somebody uses it, whatever the number of comms;
 * INFO for the rest: of an attempt to connect, the connect tells how it ended.
 */
void mesh_peer_loss_log(struct mesh_peer *peer);

/* ---- peer_frames.c ---- */

/** Introduces ourselves. */
void mesh_peer_hello_send(struct mesh_peer *peer);

/** Tells the peer which of its provider's sockets is ours. */
void mesh_peer_port_send(struct mesh_peer *peer);

/** Handles the whole frames in peer->in. */
void mesh_peer_frames_handle(struct mesh_peer *peer);

/** Sends what waits in peer->out, as far as the socket takes it. */
void mesh_peer_flush(struct mesh_peer *peer);

#endif
