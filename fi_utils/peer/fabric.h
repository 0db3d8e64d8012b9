/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.h - one side of a measurement through libfabric: the NIC's domain as the plugin opens it,
 * a message that is returned, and RMA writes into the other side's memory.
 *
 * One thread uses it. Nothing here waits, except peer_fabric_ping(), which has a deadline.
 */
#ifndef MESH_FI_UTILS_PEER_FABRIC_H
#define MESH_FI_UTILS_PEER_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"
#include "nic/nic.h"
#include "peer/wire.h"

struct peer_fabric;

/**
 * Opens the domain of @nic, as the plugin does, and registers memory to be written.
 *
 * @text: MESH_CHECK_TEXT_MAX bytes; why it failed
 *
 * Returns 0 or a negative errno.
 */
int peer_fabric_open(const struct mesh_nic *nic, enum mesh_provider_id provider,
		     struct peer_fabric **fabric, char *text);

/** Closes it; nothing is written into its memory afterwards. NULL is allowed. */
void peer_fabric_close(struct peer_fabric *fabric);

/** Fills in what the other side must know about this one. */
void peer_fabric_offer(const struct peer_fabric *fabric, struct mesh_check_fabric *mine);

/**
 * Takes what the other side reported in @theirs; its endpoint is at @remote. Messages are answered
 * from now on. Returns 0 or a negative errno.
 */
int peer_fabric_meet(struct peer_fabric *fabric, const struct mesh_addr *remote,
		     const struct mesh_check_fabric *theirs);

/** The domain, to be polled. */
struct mesh_domain *peer_fabric_domain(struct peer_fabric *fabric);

/** A peer_ping_once: also returns -EINTR after Ctrl-C, and the error of a message. */
int peer_fabric_ping(void *fabric, uint32_t seq, uint64_t deadline_ms);

/** Begins to write into the other side's memory, for @ms. */
void peer_fabric_write(struct peer_fabric *fabric, uint32_t ms);

/** A peer_send_step: posts and polls. Also returns -ETIMEDOUT if writes do not complete. */
int peer_fabric_step(void *fabric, uint64_t *bytes, uint64_t *ns);

/** peer_cpu_share() since peer_fabric_meet(). */
double peer_fabric_cpu_share(const struct peer_fabric *fabric);

#endif
