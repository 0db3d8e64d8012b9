/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relayed_end.h - one side of a measurement over relays: a listener and a connection to that of the
 * other side, made by the plugin's own layers as NCCL's are, small messages that are returned, and
 * large ones.
 *
 * One thread uses it. Nothing here waits, except peer_relayed_end_ping(), which has a deadline, and
 * peer_relayed_end_close().
 */
#ifndef MESH_FI_UTILS_PEER_RELAYED_END_H
#define MESH_FI_UTILS_PEER_RELAYED_END_H

#include <stddef.h>
#include <stdint.h>

#include "setup/net.h"

struct peer_relayed_end;

/**
 * Joins the mesh as a guest: mesh_net_guest_open(). From now on peer_guest_words() has what the
 * plugin's code logs, in place of the terminal.
 *
 * Returns 0 or a negative errno.
 */
int peer_guest_open(uint64_t job, struct mesh_net **guest);

/** Leaves the mesh. NULL is allowed. */
void peer_guest_close(struct mesh_net *guest);

/** Writes the plugin's latest WARN, or "", into @text, of @size bytes; returns @text. */
const char *peer_guest_words(char *text, size_t size);

/**
 * Listens.
 *
 * @handle: MESH_HANDLE_BYTES for the other side
 *
 * Returns 0 or a negative errno.
 */
int peer_relayed_end_open(struct mesh_net *guest, uint8_t *handle, struct peer_relayed_end **end);

/** Closes it; waits a bounded time for what is in flight. NULL is allowed. */
void peer_relayed_end_close(struct peer_relayed_end *end);

/** Begins to connect to the other side, whose handle is not trusted. */
void peer_relayed_end_meet(struct peer_relayed_end *end, const uint8_t *handle);

/**
 * Connects, receives, and returns small messages. To be called all the time.
 *
 * Returns 0 if both connections are up; -EAGAIN before that; another negative errno, the same in
 * each later call, if the measurement is over: peer_guest_words() has the reason.
 */
int peer_relayed_end_poll(struct peer_relayed_end *end);

/** A peer_ping_once: also returns -EINTR after Ctrl-C. Both connections are up. */
int peer_relayed_end_ping(void *end, uint32_t seq, uint64_t deadline_ms);

/** Begins to send large messages, for @ms. */
void peer_relayed_end_run(struct peer_relayed_end *end, uint32_t ms);

/** A peer_send_step: polls, too. Also returns -ETIMEDOUT if messages do not arrive. */
int peer_relayed_end_step(void *end, uint64_t *bytes, uint64_t *ns);

/** peer_cpu_share() since both connections are up. */
double peer_relayed_end_cpu_share(const struct peer_relayed_end *end);

/** The number of paths of the connection to the other side, which is up. */
int peer_relayed_end_num_paths(const struct peer_relayed_end *end);

/** The relays of one of them, "b,c", and our NIC that it begins with. Valid while it is open. */
const char *peer_relayed_end_via(const struct peer_relayed_end *end, int path);
const char *peer_relayed_end_nic(const struct peer_relayed_end *end, int path);

#endif
