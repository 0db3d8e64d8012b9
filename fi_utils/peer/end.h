/* SPDX-License-Identifier: Apache-2.0 */
/*
 * end.h - one side of a measurement: a listener and a connection to that of the other side, made by
 * the plugin's own layers as NCCL's are, small messages that are returned, and large ones.
 *
 * One thread uses it. Nothing here waits, except peer_end_ping(), which has a deadline, and
 * peer_end_close().
 */
#ifndef MESH_FI_UTILS_PEER_END_H
#define MESH_FI_UTILS_PEER_END_H

#include <stddef.h>
#include <stdint.h>

struct peer_end;

/** Writes the plugin's latest WARN, or "", into @text, of @size bytes; returns @text. */
const char *peer_end_words(char *text, size_t size);

/**
 * Joins the mesh as a guest, and listens. From now on peer_end_words() has what the plugin's code
 * logs, in place of the terminal. A process opens one end in its life.
 *
 * @nic, @job: see mesh_net_guest_open()
 * @handle: MESH_HANDLE_BYTES for the other side
 *
 * Returns 0 or a negative errno.
 */
int peer_end_open(const char *nic, uint64_t job, uint8_t *handle, struct peer_end **end);

/** Closes both connections; waits a bounded time for what is in flight. */
void peer_end_hang_up(struct peer_end *end);

/** Closes it and leaves the mesh; waits as peer_end_hang_up(). NULL is allowed. */
void peer_end_close(struct peer_end *end);

/** Begins to connect to the other side, whose handle is not trusted. */
void peer_end_meet(struct peer_end *end, const uint8_t *handle);

/**
 * Connects, receives, and returns small messages. To be called all the time.
 *
 * Returns 0 if both connections are up; -EAGAIN before that; another negative errno, the same in
 * each later call, if the measurement is over: peer_end_words() has the reason.
 */
int peer_end_poll(struct peer_end *end);

/**
 * Sends a small message, and waits until @deadline_ms for its answer. Both connections are up.
 *
 * Returns 0; -ETIMEDOUT; -EINTR after Ctrl-C; another negative errno.
 */
int peer_end_ping(struct peer_end *end, uint32_t seq, uint64_t deadline_ms);

/** Begins to send large messages, for @ms. */
void peer_end_run(struct peer_end *end, uint32_t ms);

/**
 * Sends, and polls.
 *
 * @bytes, @ns: written on success: what has arrived, and in which time
 *
 * Returns -EAGAIN while it goes on; 0 at the end; -ETIMEDOUT if messages do not arrive; another
 * negative errno.
 */
int peer_end_step(struct peer_end *end, uint64_t *bytes, uint64_t *ns);

/** peer_cpu_share() since both connections are up. */
double peer_end_cpu_share(const struct peer_end *end);

/** The number of paths of the connection to the other side, which is up. */
int peer_end_num_paths(const struct peer_end *end);

/** The relays of one of them, "b,c", and our NIC that it begins with. Valid while it is open. */
const char *peer_end_via(const struct peer_end *end, int path);
const char *peer_end_nic(const struct peer_end *end, int path);

#endif
