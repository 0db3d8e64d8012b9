/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - another process as one of our NICs reaches it, whoever of the two sends: all peers with
 * the same process, domain and address. They live and are lost together.
 *
 * While somebody waits for the process, the engine looks at the kernel's figures of all TCP
 * connections with it, a few times a second (mesh/liveness.h). Else nothing is done.
 */
#ifndef MESH_TRANSPORT_LINK_H
#define MESH_TRANSPORT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/peer.h"

struct mesh_link;

/**
 * Puts a peer that is up on its link, and makes that if it is the first. Without memory it has
 * none: then the kernel alone ends its control connection. node->lock held, as for all the others.
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

/**
 * Declares all peers of @peer's link lost, at once: nothing more can arrive from there.
 *
 * @tell: what they are told before, if they can still hear; 0 for nothing
 */
void mesh_link_lose(struct mesh_peer *peer, const char *reason, enum mesh_refusal tell);

/** mesh_link_lose(), because nothing has come from there for NCCL_MESH_DEAD_PEER_TIMEOUT. */
void mesh_link_timed_out(struct mesh_peer *peer);

/**
 * The other process has given a link up: the one that the frame came over, or the one that @detail
 * names (mesh_link_name()), if it is not 0.
 */
void mesh_link_given_up(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t detail);

/** Looks at the links that are due, and loses those that are dead. */
void mesh_links_tick(struct mesh_node *node, uint64_t now_ms);

/** True while a link must be looked at though nobody polls. */
bool mesh_links_pending(const struct mesh_node *node);

#endif
