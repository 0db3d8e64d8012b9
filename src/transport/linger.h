/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linger.h - closes comms for NCCL, many at the same time.
 *
 * A sender that has nothing in flight needs only the receiver's word that everything has arrived,
 * because its process may end. NCCL closes its comms one after the other, so a close does not wait
 * for that word while the process has other comms, if the receiver's kernel or NIC has acknowledged
 * every byte: the comm lingers, and the engine frees it. The close of the last comm waits for all
 * that linger; so do mesh_net_close() and exit(). A process that ends without them loses nothing.
 *
 * A receiver whose paths are resumed lingers as well: its CLOSED may be lost with a link, and the
 * sender's doubt about what has arrived ends with it.
 */
#ifndef MESH_TRANSPORT_LINGER_H
#define MESH_TRANSPORT_LINGER_H

#include "base/lock.h"
#include "control/process.h"
#include "transport/comm.h"

/**
 * Closes a send or receive comm. Waits a bounded time for operations in flight; afterwards nothing
 * reads or writes the memory of its requests. NULL is allowed. No lock held.
 */
void mesh_comm_close(struct mesh_comm *comm);

/** A frame about the comm has come: frees it if it lingers and the peer has answered. */
MESH_HOLDS(process)
void mesh_comm_linger_check(struct mesh_comm *comm);

/** Waits a bounded time until no comm lingers. No lock held. */
void mesh_comms_linger_await(struct mesh_process *process);

#endif
