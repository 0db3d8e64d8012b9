/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - the plugin's operations without NCCL's types. src/nccl translates NCCL's calls into
 * these; the layers below do not depend on NCCL.
 *
 * No function here blocks, except mesh_registration_close(), mesh_comm_close() and
 * mesh_net_close(), which wait a bounded time for operations in flight
 * (docs/protocol/closing.md).
 */
#ifndef MESH_SETUP_NET_H
#define MESH_SETUP_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/nic.h"
#include "wire/handle.h"

struct mesh_comm;
struct mesh_net; /* one initialisation of the plugin: NCCL's ctx */

/**
 * Opens one use of the plugin. The first one reads the settings and the NICs that NCCL sees, which
 * then stay the same for the life of the process. Thread-safe; may be called any number of times.
 *
 * Returns 0; -ENODEV if no NIC is usable (the log has the reason for each NIC); -EBUSY if a thread
 * of the last use has not ended for NCCL_MESH_CONNECT_TIMEOUT; another negative errno.
 */
int mesh_net_open(struct mesh_net **net);

/**
 * Opens the plugin in a process without NCCL, which relays for other nodes and nothing else: for
 * the job of this process's environment; without one, or with NCCL_MESH_RELAY=any, for all.
 *
 * Returns as mesh_net_open(); -EPERM with NCCL_MESH_RELAY=off or NCCL_MESH_NEIGHBOURS=off; -EBUSY
 * if mesh_net_open() was called before.
 */
int mesh_net_relay_open(struct mesh_net **net);

/**
 * Opens the plugin in a process without NCCL, which measures and relays for nobody.
 *
 * @nic: the netdev over which its connections go, and over no other; NULL: over relays only, never
 * over a link or a route of its own
 * @job: the key of the job whose ranks, and the services for it, are asked to relay; 0: all that
 * relay for all jobs
 * @connect_s: a connection attempt is given up after so many seconds
 *
 * Returns as mesh_net_open(); -EPERM over relays with NCCL_MESH_RELAY=off or
 * NCCL_MESH_NEIGHBOURS=off; -EBUSY if this process has opened the plugin before.
 */
int mesh_net_guest_open(const char *nic, uint64_t job, uint32_t connect_s, struct mesh_net **net);

/** True if a process that mesh_net_relay_open() has made relays for all jobs. */
bool mesh_net_relays_all(const struct mesh_net *net);

/**
 * Closes what mesh_net_open() gave, with every listener, pending connect and comm of it that is
 * still open (NCCL leaves them behind on abort). NULL is allowed. The last one waits 5 s at most
 * for the plugin's threads: what one uses that has not ended by then is closed behind it.
 */
void mesh_net_close(struct mesh_net *net);

/**
 * Connects to the listener behind @handle, which came from another process and is not trusted.
 * Call it again with the same @handle buffer until *comm is not NULL: state is kept in the buffer
 * (MESH_HANDLE_BYTES bytes, writable, any alignment).
 *
 * Returns 0, with *comm NULL while the connection is not ready; or a negative errno, with *comm
 * NULL, after which the attempt is over.
 */
int mesh_net_connect(struct mesh_net *net, int dev, void *handle, struct mesh_comm **comm);

/** Number of mesh NICs, 0 before the first mesh_net_open(). Thread-safe. */
int mesh_net_num_nics(void);

/** The NIC that NCCL calls @dev, for the life of the process; NULL if out of range. Thread-safe. */
const struct mesh_nic *mesh_net_nic(int dev);

#endif
