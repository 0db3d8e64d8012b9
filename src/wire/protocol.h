/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocol.h - common to all data that two nodes exchange: the version, the byte order, limits.
 *
 * There are two channels. Frames (frame.h) travel on the control connection, a TCP connection
 * between the same two NICs: they open and close comms. Messages (message.h) travel through
 * libfabric, as do the RMA writes with their immediates (message.h). The handle (handle.h)
 * travels through NCCL. docs/protocol.md describes when each is sent; these files are the
 * reference.
 *
 * All integers are little-endian: every machine that runs NCCL is. A port to another byte order
 * starts by converting in this folder.
 */
#ifndef MESH_WIRE_PROTOCOL_H
#define MESH_WIRE_PROTOCOL_H

#include <endian.h>

#if __BYTE_ORDER != __LITTLE_ENDIAN
#error "the wire format is little-endian: convert the fields in src/wire"
#endif

/* Must be equal on both ends. Raised with any change of handle, frames, messages or immediates. */
#define MESH_PROTOCOL_VERSION 24
/*
 * From this version on a handle leads to its listener, and a HELLO names it, in all versions: a
 * connector of another version dials the listener, so that both ends learn why it fails.
 */
#define MESH_DIALLED_VERSION_MIN 11

/* Endpoint names of the supported providers: sockaddr_in (16 bytes) or sockaddr_in6 (28). */
#define MESH_ENDPOINT_NAME_MAX 64
#define MESH_NODE_NAME_MAX 64

/* HELLO: the sender asks for no listener, but for circuits through the addressee. */
#define MESH_LISTEN_RELAY UINT32_MAX
/* Relays between two nodes. */
#define MESH_RELAYS_MAX 15
/* The names of the relays of a path in a message; cut if they are longer. */
#define MESH_VIA_MAX 128
/* Parts of the memory that a circuit has in a relay. */
#define MESH_GRANULES 64

/* Paths of one comm. */
#define MESH_PATHS_MAX 8
/* Endpoints of one NIC on tcp: each is the end of at most one path of a comm. */
#define MESH_LANES_MAX MESH_PATHS_MAX
/* A site's name with its zero byte. */
#define MESH_SITE_NAME_MAX 16

#endif
