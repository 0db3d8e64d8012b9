/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - the protocol between `fi_mesh check --peer` and `fi_mesh serve`. It is not the plugin's
 * protocol (src/wire) and shares only the numbers of the providers with it.
 *
 * Frames travel on one TCP connection for each link, from the checking NIC's address to the served
 * one's. The checker asks, the server answers; each question has one answer, or an ERROR.
 *
 *   HELLO         -> HELLO         who I am, all my NICs
 *   UDP_OPEN      -> UDP_READY     a UDP port for frames of full size
 *   UDP_SEND      -> UDP_SENT      send me a datagram of this size, not to be cut into fragments
 *   (a datagram)  -> UDP_GOT       it arrived, with so many bytes
 *   MEASURE_BEGIN -> MEASURE_READY  open the plugin for this link alone, or for relays of this job
 *   MEASURE_MEET  -> MEASURE_MET   connect to my handle; both connections are up
 *   MEASURE_RUN   -> MEASURE_RAN   send to me over them for so long
 *   MEASURE_END   -> MEASURE_RAN   close them (its numbers mean nothing)
 *
 * All integers are little-endian, as in wire.h. Texts end in a zero byte.
 *
 * The header and ERROR are the same in all versions. A server answers a frame of another version
 * with an ERROR of that version, which names both, and closes the connection.
 */
#ifndef MESH_FI_UTILS_PEER_WIRE_H
#define MESH_FI_UTILS_PEER_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "nic/addr.h"
#include "wire/handle.h"
#include "wire/protocol.h"

#define MESH_CHECK_MAGIC 0x4b48434du /* "MCHK" */
#define MESH_CHECK_VERSION 4
/* TCP; not assigned by IANA. */
#define MESH_CHECK_PORT 18620
/* Bytes behind a header, at most: those of HELLO. */
#define MESH_CHECK_PAYLOAD_MAX sizeof(struct mesh_check_hello)
#define MESH_CHECK_TEXT_MAX 160
#define MESH_CHECK_NETDEV_MAX 16
/* Longest measurement that a server takes part in. */
#define MESH_CHECK_RUN_MS_MAX 5000

enum mesh_check_type {
	MESH_CHECK_HELLO = 1,
	MESH_CHECK_UDP_OPEN,
	MESH_CHECK_UDP_READY,
	MESH_CHECK_UDP_SEND,
	MESH_CHECK_UDP_SENT,
	MESH_CHECK_UDP_GOT,
	MESH_CHECK_ERROR = 17, /* the same in all versions */
	MESH_CHECK_MEASURE_BEGIN,
	MESH_CHECK_MEASURE_READY,
	MESH_CHECK_MEASURE_MEET,
	MESH_CHECK_MEASURE_MET,
	MESH_CHECK_MEASURE_RUN,
	MESH_CHECK_MEASURE_RAN,
	MESH_CHECK_MEASURE_END,
	MESH_CHECK_TYPES
};

struct mesh_check_header {
	uint32_t magic;
	uint8_t version;
	uint8_t type;	   /* enum mesh_check_type */
	uint16_t reserved; /* 0 */
	uint32_t length;   /* bytes behind this header */
	uint32_t number;   /* of the question; its answer has the same */
};
_Static_assert(offsetof(struct mesh_check_header, version) == 4, "wire format");
_Static_assert(offsetof(struct mesh_check_header, type) == 5, "wire format");
_Static_assert(offsetof(struct mesh_check_header, length) == 8, "wire format");
_Static_assert(offsetof(struct mesh_check_header, number) == 12, "wire format");
_Static_assert(sizeof(struct mesh_check_header) == 16, "wire format");

/* One NIC that carries the mesh. */
struct mesh_check_nic {
	uint8_t family; /* 4 or 6, of its source address */
	uint8_t prefix_len;
	uint8_t provider;    /* enum mesh_provider_id; 0: libfabric has no provider for it */
	uint8_t carrier;     /* 1: its link is up */
	uint32_t mtu;	     /* bytes */
	uint32_t speed_mbps; /* 0: unknown */
	uint32_t reserved;
	uint8_t addr[16];
	char netdev[MESH_CHECK_NETDEV_MAX];
};
_Static_assert(sizeof(struct mesh_check_nic) == 48, "wire format");

struct mesh_check_hello {
	uint64_t node_id;
	uint16_t plugin_protocol; /* MESH_PROTOCOL_VERSION of the plugin beside it */
	uint8_t num_nics;
	uint8_t reserved[5];
	char node[MESH_NODE_NAME_MAX];
	char site[MESH_SITE_NAME_MAX];		   /* "": none is set */
	struct mesh_check_nic nics[MESH_NICS_MAX]; /* num_nics of them are sent */
};
_Static_assert(offsetof(struct mesh_check_hello, plugin_protocol) == 8, "wire format");
_Static_assert(offsetof(struct mesh_check_hello, num_nics) == 10, "wire format");
_Static_assert(offsetof(struct mesh_check_hello, node) == 16, "wire format");
_Static_assert(offsetof(struct mesh_check_hello, site) == 80, "wire format");
_Static_assert(offsetof(struct mesh_check_hello, nics) == 96, "wire format");

struct mesh_check_udp {
	uint16_t port; /* UDP_READY: where to send to; UDP_SEND: where to */
	uint16_t reserved;
	uint32_t size;	/* bytes of the datagram, without its headers */
	uint32_t id;	/* of the datagram */
	uint32_t error; /* UDP_SENT: errno of the sender's kernel, or 0 */
	uint64_t token; /* in each datagram of this session */
};
_Static_assert(sizeof(struct mesh_check_udp) == 24, "wire format");

/* One side of a measurement. */
struct mesh_check_measure {
	uint64_t job; /* BEGIN: mesh_job_key() of the job for which the relays are asked; 0: none */
	uint64_t bytes;	       /* RAN: sent, and arrived */
	uint64_t ns;	       /* RAN: in this time */
	uint32_t ms;	       /* RUN: for so long */
	uint32_t cpu_permille; /* RAN: of a processor, what the speaker had: 1000 is all of one */
	uint32_t over_relays;  /* BEGIN: 0: over the link of this connection, and nothing else */
	uint32_t reserved;
	uint8_t handle[MESH_HANDLE_BYTES]; /* READY, MEET: of the speaker's listener */
};
_Static_assert(offsetof(struct mesh_check_measure, ms) == 24, "wire format");
_Static_assert(offsetof(struct mesh_check_measure, over_relays) == 32, "wire format");
_Static_assert(offsetof(struct mesh_check_measure, handle) == 40, "wire format");
_Static_assert(sizeof(struct mesh_check_measure) == 168, "wire format");

struct mesh_check_error {
	uint32_t error; /* errno: EBUSY, EPROTO, ... */
	uint32_t reserved;
	char text[MESH_CHECK_TEXT_MAX];
};
_Static_assert(offsetof(struct mesh_check_error, text) == 8, "wire format");
_Static_assert(sizeof(struct mesh_check_error) == 168, "wire format");

/* A whole frame. */
struct mesh_check_frame {
	struct mesh_check_header header;
	union {
		struct mesh_check_hello hello;
		struct mesh_check_udp udp;
		struct mesh_check_measure measure;
		struct mesh_check_error error;
	};
};

/** Fills in the header; returns the bytes to send. */
size_t mesh_check_finish(struct mesh_check_frame *frame, enum mesh_check_type type,
			 uint32_t number);

/** A header with @length bytes behind it. */
void mesh_check_header_fill(struct mesh_check_header *header, enum mesh_check_type type,
			    uint32_t number, size_t length);

/**
 * Looks for one whole frame at the start of @size foreign bytes and checks it: type, length,
 * counts, text ends, addresses. What cannot be printed of its texts is a '?'.
 *
 * @frame: written on success; unused parts are zero
 *
 * Returns the bytes taken; 0 if more are needed; -EPROTONOSUPPORT for another version (whose ERROR
 * is read nevertheless); -EPROTO if this is no frame.
 */
int mesh_check_decode(const void *bytes, size_t size, struct mesh_check_frame *frame);

/**
 * The version of frames that begin with these @size foreign bytes; 0: they are none, or too few.
 */
uint8_t mesh_check_version_of(const void *bytes, size_t size);

/** The address of a checked NIC. */
void mesh_check_nic_addr(const struct mesh_check_nic *nic, struct mesh_addr *addr);

/* ---- datagrams ---------------------------------------------------------------------------- */

#define MESH_CHECK_PROBE_MAGIC 0x4250434du /* "MCPB" */

/* Starts a datagram of full size; zeros follow. */
struct mesh_check_probe {
	uint32_t magic;
	uint32_t id;
	uint64_t token;
};
_Static_assert(sizeof(struct mesh_check_probe) == 16, "wire format");

/** Checks a probe. Returns 0 or -EPROTO; @probe is written on success only. */
int mesh_check_probe_decode(const void *bytes, size_t size, struct mesh_check_probe *probe);

#endif
