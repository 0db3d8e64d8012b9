/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle.h - the 128 bytes that NCCL carries from the listener to the connector: the listener's
 * identity and all addresses at which it can be reached.
 */
#ifndef MESH_WIRE_HANDLE_H
#define MESH_WIRE_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/addr.h"
#include "wire/protocol.h"

/* NCCL_NET_HANDLE_MAXSIZE (nccl_net.h), in bytes. */
#define MESH_HANDLE_BYTES 128
/*
 * Room for addresses: 10 NICs with IPv4 (8 bytes each) or 4 with IPv6 (20 bytes each). What they
 * leave holds the node's name, or its beginning.
 */
#define MESH_HANDLE_ENTRY_BYTES 82

struct mesh_handle {
	uint64_t node_id;
	uint64_t cookie;       /* of the listener: only a CONNECT with it is accepted */
	uint64_t connect_id;   /* state of the connector between its calls; 0 from the listener */
	uint32_t listen_id;    /* which listener of the process */
	uint16_t control_port; /* TCP, the same on each address, host order */
	uint8_t dev;	       /* the NIC that NCCL chose on the listening side: a hint */
	uint16_t near;	       /* bit mask of the NICs' numbers: those near @dev, and itself */
	uint8_t total_nics;    /* NICs of the node, of which num_endpoints fitted into the handle */
	bool foreign;	       /* of another protocol version */
	char node[MESH_NODE_NAME_MAX]; /* the listener's name, cut to what fits; may be "" */
	int num_endpoints;
	struct mesh_endpoint_addr endpoints[MESH_NICS_MAX];
};

/**
 * Writes @handle into MESH_HANDLE_BYTES at @bytes (any alignment). Endpoints are written in
 * order as long as they fit.
 *
 * Returns the number of endpoints that fitted.
 */
int mesh_handle_encode(const struct mesh_handle *handle, void *bytes);

/**
 * Reads MESH_HANDLE_BYTES untrusted bytes. A handle of another protocol version, from
 * MESH_DIALLED_VERSION_MIN on, leads to its listener as well: it is @handle->foreign.
 *
 * Returns 0; -EPROTO if this is not a handle of this plugin, or a damaged one; -EPROTONOSUPPORT for
 * an older one, or a damaged one of another version. @handle is written on success only.
 */
int mesh_handle_decode(const void *bytes, struct mesh_handle *handle);

/** True if the handle had no room for all NICs of its node, and they are not known otherwise. */
static inline bool mesh_handle_lacks_nics(const struct mesh_handle *handle)
{
	return handle->num_endpoints < handle->total_nics;
}

/**
 * Adds a NIC of the handle's node to a decoded handle, unless that has its address or is full.
 * Returns true if it was added.
 */
bool mesh_handle_nic_add(struct mesh_handle *handle, const struct mesh_endpoint_addr *endpoint);

/** The protocol version that wrote a handle of this plugin: its first bytes never change. */
uint8_t mesh_handle_protocol(const void *bytes);

/**
 * Copies the name of the node that wrote a handle of this plugin into @node (MESH_NODE_NAME_MAX
 * bytes), or "" where it has none. Its place is the same in all versions from 5 on.
 */
void mesh_handle_node(const void *bytes, char *node);

/* "b (id 0123456789abcdef)" fits. */
#define MESH_HANDLE_NODE_TEXT_MAX (MESH_NODE_NAME_MAX + 32)

/** Writes the node of a decoded handle for a message; returns @text. */
const char *mesh_handle_node_text(const struct mesh_handle *handle, char *text);

/** Writes the connector's connect_id into an encoded handle (any alignment). */
void mesh_handle_connect_id_set(void *bytes, uint64_t connect_id);

#endif
