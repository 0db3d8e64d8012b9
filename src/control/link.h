/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - another process as one of our NICs reaches it, whoever of the two sends: all peers with
 * the same process, domain and address. They live and are lost together.
 *
 * While somebody waits for the process, the engine looks at the kernel's figures of all TCP
 * connections with it, a few times a second (liveness.h). Else nothing is done.
 */
#ifndef MESH_CONTROL_LINK_H
#define MESH_CONTROL_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "control/liveness.h"
#include "control/peer.h"
#include "fabric/provider_sockets.h"

/* The kernel's questions in a time of silence; as many again are ours. */
#define MESH_LINK_QUESTIONS 60

struct mesh_link {
	LIST_ENTRY(mesh_link) entry; /* process->links */
	struct mesh_process *process;
	struct mesh_domain *domain;
	uint64_t process_id;
	struct mesh_addr address;
	int num_peers;
	bool eager; /* keep-alive asks often, and does not end the connection */
	struct mesh_liveness liveness;
	struct mesh_remote_sockets sockets;
	uint64_t searched_ms; /* for the sockets; 0: never */
	uint64_t poked_ms;
	uint64_t sent_ms; /* a frame, which may not be acknowledged yet; 0: none */
};

/**
 * Puts a peer that is up on its link, and makes that if it is the first. Without memory it has
 * none: then the kernel alone ends its control connection. process->lock held, as for all of
 * these.
 */
void mesh_link_join(struct mesh_peer *peer);

/** Takes the peer off its link, if it is on one; the last one frees it. */
void mesh_link_leave(struct mesh_peer *peer);

/** Somebody waits for the peer's process, from now on until @until_ms. */
void mesh_link_want(struct mesh_peer *peer, uint64_t until_ms);

/** A frame was sent: its acknowledgement is waited for as well. */
void mesh_link_sent(struct mesh_peer *peer);

/** False in a silence: what is sent now would only slow down the next sign of life. */
bool mesh_link_is_fresh(const struct mesh_peer *peer, uint64_t now_ms);

/**
 * Looks at once. True if the provider's sockets with the peer hold nothing any longer of what they
 * held at @since_ms: its kernel has acknowledged it, or the connection has ended.
 */
bool mesh_link_is_drained(struct mesh_peer *peer, uint64_t since_ms, uint64_t now_ms);

/** Looks at all TCP connections with the process over this link, and judges. */
enum mesh_liveness_verdict mesh_link_look(struct mesh_link *link, uint64_t now_ms);

/** Sets keep-alive on all of its control connections: what is set anew, the kernel asks at once. */
void mesh_link_keepalives_set(const struct mesh_link *link);

/** Counts one of its peers off; the last one frees the link. */
void mesh_link_put(struct mesh_link *link);

#endif
