/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neighbour.h - the question "which node is at the other end of this link?" and its answer: one UDP
 * datagram each.
 *
 * A process sends the question to all nodes of a link (ff02::1, or 224.0.0.1 where the NIC has no
 * IPv6), port MESH_NEIGHBOUR_PORT. Each node sends one answer, to the address and port that the
 * question came from. Both describe their sender in the same way: node, NIC, processes. Both leave
 * with hop limit 255, and a receiver drops a datagram that has another one: a router lowers it, so
 * what comes from outside of the link is never read.
 */
#ifndef MESH_WIRE_NEIGHBOUR_H
#define MESH_WIRE_NEIGHBOUR_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/version.h"
#include "nic/addr.h"
#include "wire/protocol.h"

/* UDP; not assigned by IANA. `fi_mesh serve` has 18620. */
#define MESH_NEIGHBOUR_PORT 18621
#define MESH_NEIGHBOUR_HOP_LIMIT 255

#define MESH_NEIGHBOUR_MAGIC 0x524e434du /* "MCNR" */
/* Of these datagrams alone: they also connect nodes whose plugins have different protocols. */
#define MESH_NEIGHBOUR_VERSION 2

enum mesh_neighbour_type {
	MESH_NEIGHBOUR_QUESTION = 1,
	MESH_NEIGHBOUR_ANSWER,
	MESH_NEIGHBOUR_TYPES
};

/* Addresses of a NIC, and processes of a node, that a datagram has room for. */
#define MESH_NEIGHBOUR_ADDRS_MAX 8
#define MESH_NEIGHBOUR_PROCESSES_MAX 32

struct mesh_neighbour_addr {
	uint8_t family; /* 4 or 6 */
	uint8_t prefix_len;
	uint16_t reserved; /* 0 */
	uint8_t addr[16];
};
_Static_assert(sizeof(struct mesh_neighbour_addr) == 20, "wire format");

enum mesh_neighbour_role {
	MESH_NEIGHBOUR_RANK = 1, /* a process that runs NCCL */
	/* `fi_mesh serve`; with a control port it relays: for its job, or if that is 0, for all. */
	MESH_NEIGHBOUR_SERVICE = 2,
};

/* One process of the sender's node. */
struct mesh_neighbour_process {
	uint64_t process_id;
	uint64_t job;	       /* mesh_job_key(); 0 where unknown */
	uint16_t control_port; /* TCP; 0: it takes no connections */
	uint8_t protocol;      /* its MESH_PROTOCOL_VERSION */
	uint8_t role;	       /* enum mesh_neighbour_role */
	uint32_t rank;	       /* in its job, plus 1; 0 where unknown */
};
_Static_assert(offsetof(struct mesh_neighbour_process, rank) == 20, "wire format");
_Static_assert(sizeof(struct mesh_neighbour_process) == 24, "wire format");

enum mesh_neighbour_flags {
	MESH_NEIGHBOUR_DRAINED = 1, /* a user drains the NIC: it is used if there is no other way */
	/* A question for the second time: the node's deputy answers, not its speaker. */
	MESH_NEIGHBOUR_AGAIN = 2,
};

/*
 * The header and the two texts are the same in all versions, so that nodes of versions that share
 * nothing else can still name each other. Texts end in a zero byte. The first address is the one
 * that the NIC's endpoint is bound to.
 */
struct mesh_neighbour {
	uint32_t magic;
	uint8_t version;
	uint8_t type;	 /* enum mesh_neighbour_type */
	uint16_t length; /* bytes of the datagram */
	char product[MESH_VERSION_MAX];
	char node[MESH_NODE_NAME_MAX];
	uint8_t protocol; /* of the plugin: MESH_PROTOCOL_VERSION */
	uint8_t nic;	  /* index of the NIC in the node's stable order */
	uint8_t num_addrs;
	uint8_t num_processes;	  /* listed here */
	uint16_t total_processes; /* that the node has */
	uint8_t providers;	  /* bit N: enum mesh_provider_id N */
	uint8_t flags;		  /* enum mesh_neighbour_flags; others are ignored */
	uint64_t node_id;
	uint64_t token;	     /* random; an answer repeats that of its question */
	uint64_t job;	     /* of the process that asks, or 0: its processes are listed first */
	uint32_t mtu;	     /* bytes */
	uint32_t speed_mbps; /* 0 where unknown */
	char netdev[IF_NAMESIZE];
	char site[MESH_SITE_NAME_MAX]; /* "" where none is set */
	struct mesh_neighbour_addr addrs[MESH_NEIGHBOUR_ADDRS_MAX];
	struct mesh_neighbour_process processes[MESH_NEIGHBOUR_PROCESSES_MAX]; /* num_processes */
};
#define MESH_NEIGHBOUR_FROZEN_BYTES offsetof(struct mesh_neighbour, protocol)
_Static_assert(IF_NAMESIZE == 16, "wire format");
_Static_assert(offsetof(struct mesh_neighbour, node) == 32, "frozen");
_Static_assert(MESH_NEIGHBOUR_FROZEN_BYTES == 96, "frozen");
_Static_assert(offsetof(struct mesh_neighbour, node_id) == 104, "wire format");
_Static_assert(offsetof(struct mesh_neighbour, mtu) == 128, "wire format");
_Static_assert(offsetof(struct mesh_neighbour, netdev) == 136, "wire format");
_Static_assert(offsetof(struct mesh_neighbour, addrs) == 168, "wire format");
_Static_assert(offsetof(struct mesh_neighbour, processes) == 328, "wire format");
/* What the smallest MTU of IPv6 (RFC 8200: 1280) carries behind the IPv6 and UDP headers. */
_Static_assert(sizeof(struct mesh_neighbour) <= 1232, "never cut into fragments");

/** Bytes of a datagram that lists so many processes. */
static inline size_t mesh_neighbour_size(int num_processes)
{
	return offsetof(struct mesh_neighbour, processes) +
	       (size_t)num_processes * sizeof(struct mesh_neighbour_process);
}

/** Fills in magic, version, type and length; returns the bytes of the datagram to send. */
size_t mesh_neighbour_finish(struct mesh_neighbour *neighbour, enum mesh_neighbour_type type);

/**
 * Checks a datagram of @size untrusted bytes: magic, version, type, length, counts, text ends,
 * addresses. Unprintable characters of its texts become '?'.
 *
 * @neighbour: written on success; unused parts are zero. For another version only the frozen bytes
 *	       are written
 *
 * Returns 0; -EPROTONOSUPPORT for another version; -EPROTO if it is not such a datagram.
 */
int mesh_neighbour_decode(const void *bytes, size_t size, struct mesh_neighbour *neighbour);

/** Appends an address; returns false if there is no room. */
bool mesh_neighbour_addr_add(struct mesh_neighbour *neighbour, const struct mesh_addr *addr);

/** The address of an entry of a decoded datagram. It has no scope. */
void mesh_neighbour_addr_get(const struct mesh_neighbour_addr *entry, struct mesh_addr *addr);

/** True if the sender's NIC has this address; prefix length and scope are ignored. */
bool mesh_neighbour_has_addr(const struct mesh_neighbour *neighbour, const struct mesh_addr *addr);

/** True for `fi_mesh serve --relay`, if it relays for this job; 0: for a job that is not known. */
static inline bool mesh_neighbour_serves(const struct mesh_neighbour_process *process, uint64_t job)
{
	return process->role == MESH_NEIGHBOUR_SERVICE && process->control_port &&
	       (!process->job || process->job == job);
}

#endif
