/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - the plugin's operations without NCCL's types. src/nccl translates NCCL's calls into
 * these; everything below knows nothing of NCCL.
 *
 * No function here blocks, except mesh_registration_close(), mesh_comm_close() and
 * mesh_net_close(), which wait a bounded time for operations in flight
 * (docs/protocol/closing.md).
 */
#ifndef MESH_TRANSPORT_NET_H
#define MESH_TRANSPORT_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/nic.h"
#include "wire/handle.h"

/* Requests that one comm can have outstanding: NCCL_NET_MAX_REQUESTS (nccl_net.h). */
#define MESH_COMM_REQUESTS 32
/* Largest message in bytes: NCCL_MAX_NET_SIZE (collectives.h), 2^30. */
#define MESH_MESSAGE_MAX ((size_t)1 << 30)

struct mesh_net;	  /* one initialisation of the plugin: NCCL's ctx */
struct mesh_listener;	  /* NCCL's listenComm */
struct mesh_comm;	  /* NCCL's sendComm or recvComm */
struct mesh_registration; /* NCCL's mhandle */
struct mesh_request;	  /* NCCL's request */

/**
 * Opens one use of the plugin. The first one reads the settings and the NIC table, which then
 * stay the same for the life of the process. Thread-safe; may be called any number of times.
 *
 * Returns 0; -ENODEV if no NIC is usable (the log says why, NIC by NIC); another negative errno.
 */
int mesh_net_open(struct mesh_net **net);

/**
 * Closes what mesh_net_open() gave, with every listener, pending connect and comm of it that is
 * still open (NCCL leaves them behind on abort). NULL is allowed.
 */
void mesh_net_close(struct mesh_net *net);

/** Number of mesh NICs, 0 before the first mesh_net_open(). Thread-safe. */
int mesh_net_num_nics(void);

/** The NIC that NCCL calls @dev, for the life of the process; NULL if out of range. Thread-safe. */
const struct mesh_nic *mesh_net_nic(int dev);

/**
 * Starts to listen and writes @handle (MESH_HANDLE_BYTES bytes, any alignment).
 * @dev is a hint about the NIC that NCCL would like.
 */
int mesh_net_listen(struct mesh_net *net, int dev, void *handle, struct mesh_listener **listener);

/** Ends listening; connections that nobody accepted are refused. NULL is allowed. */
void mesh_listener_close(struct mesh_listener *listener);

/**
 * Connects to the listener behind @handle, which came from another process and is not trusted.
 * Call it again with the same @handle buffer until *comm is not NULL: state is kept in the buffer
 * (MESH_HANDLE_BYTES bytes, writable, any alignment).
 *
 * Returns 0, with *comm NULL while the connection is not ready; or a negative errno, with *comm
 * NULL, after which the attempt is over.
 */
int mesh_net_connect(struct mesh_net *net, int dev, void *handle, struct mesh_comm **comm);

/** The receiving side of mesh_net_connect(); the same rules. */
int mesh_listener_accept(struct mesh_listener *listener, struct mesh_comm **comm);

/**
 * Closes a send or receive comm. Waits a bounded time for operations in flight; afterwards nothing
 * reads or writes the memory of its requests. NULL is allowed.
 */
void mesh_comm_close(struct mesh_comm *comm);

/**
 * Registers host memory for the comm. May run beside send, receive and test of the same comm.
 *
 * @size: bytes, may be 0
 */
int mesh_registration_open(struct mesh_comm *comm, void *data, size_t size,
			   struct mesh_registration **registration);

/** Ends a registration; operations of the comm that use it are ended first. NULL is allowed. */
void mesh_registration_close(struct mesh_comm *comm, struct mesh_registration *registration);

/**
 * Starts to send @size bytes. *request is NULL if nothing could be started: call again later.
 *
 * @registration: covers the data; may be NULL if @size is 0
 *
 * Returns 0; -EINVAL for a receive comm, a message over MESH_MESSAGE_MAX or outside its
 * registration. On a comm that has failed a request is started all the same, and fails in
 * mesh_request_test(), as in NCCL's own transports; the comm's error (negative errno) only if it is
 * closing, or has no request left.
 */
int mesh_comm_send(struct mesh_comm *comm, const void *data, size_t size,
		   struct mesh_registration *registration, struct mesh_request **request);

/** Starts to receive up to @size bytes; the same rules as mesh_comm_send(). */
int mesh_comm_receive(struct mesh_comm *comm, void *data, size_t size,
		      struct mesh_registration *registration, struct mesh_request **request);

/**
 * Makes progress and asks whether @request is complete. Once it is, the request is gone.
 *
 * @done: always written
 * @size: bytes received or sent, written when done; may be NULL
 *
 * Returns 0, or the comm's error (negative errno), with *done false.
 */
int mesh_request_test(struct mesh_request *request, bool *done, size_t *size);

#endif
