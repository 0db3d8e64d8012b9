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
 *
 * A second question is "which links does the mesh have?". Each node answers for itself, and passes
 * the question on, once, to all nodes of its other links. The answers come back over the node from
 * which it came first; so each datagram comes from a neighbour, and the way back needs no address.
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

/* Earlier versions set 2 as well, in a question for the second time. */
enum mesh_neighbour_flags {
	MESH_NEIGHBOUR_DRAINED = 1, /* a user drains the NIC: it is used if there is no other way */
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

/* ---- links ----------------------------------------------------------------------------------- */

/* The two types between are of earlier versions, which asked each node for itself. */
enum mesh_links_type {
	MESH_LINKS_QUESTION = MESH_NEIGHBOUR_TYPES + 2,
	MESH_LINKS_ANSWER,
};

/* Links that a question passes: a route has 15 relays at most. */
#define MESH_LINKS_HOPS_MAX 16
/* What a node has heard is used for so long, and its answers to a question are passed back. */
#define MESH_LINKS_KEEP_MS 1000
/* Links of a node in one answer. */
#define MESH_LINKS_MAX 128

/* What is called frozen above. */
struct mesh_links_head {
	uint32_t magic;
	uint8_t version;
	uint8_t type; /* enum mesh_links_type */
	uint16_t length;
	char product[MESH_VERSION_MAX];
	char node[MESH_NODE_NAME_MAX]; /* of the node that asks, or answers */
};
_Static_assert(sizeof(struct mesh_links_head) == MESH_NEIGHBOUR_FROZEN_BYTES, "wire format");

struct mesh_links_question {
	struct mesh_links_head head;
	uint64_t token;	     /* random; the answers repeat it */
	uint64_t job;	     /* of the process that asks, or 0 */
	uint64_t node_id;    /* of its node */
	uint8_t hops;	     /* that it may still pass, this one included */
	uint8_t reserved[7]; /* 0 */
};
_Static_assert(offsetof(struct mesh_links_question, hops) == 120, "wire format");
_Static_assert(sizeof(struct mesh_links_question) == 128, "wire format");

enum mesh_links_nic_flags {
	MESH_LINKS_NIC_DOWN = 1,    /* its link is down: no entry refers to its index, which is 0 */
	MESH_LINKS_NIC_DRAINED = 2, /* a user drains it */
};

/* A NIC of the node that answers. */
struct mesh_links_nic {
	char netdev[IF_NAMESIZE];
	struct mesh_neighbour_addr addr; /* that its endpoint is bound to; family 0: it has none */
	uint32_t mtu;
	uint32_t speed_mbps; /* 0: unknown */
	uint8_t nic;	     /* index in the node's stable order */
	uint8_t providers;   /* bit N: enum mesh_provider_id N */
	uint8_t flags;	     /* enum mesh_links_nic_flags; others are ignored */
	uint8_t reserved;    /* 0 */
};
_Static_assert(offsetof(struct mesh_links_nic, flags) == 46, "wire format");
_Static_assert(sizeof(struct mesh_links_nic) == 48, "wire format");

/* A NIC of another node that has answered on one of these NICs. */
struct mesh_links_link {
	uint64_t node_id;
	uint32_t speed_mbps;   /* of that NIC; 0: unknown */
	uint8_t nic, peer_nic; /* the answering node's, and the other one's */
	uint16_t reserved;     /* 0 */
};
_Static_assert(sizeof(struct mesh_links_link) == 16, "wire format");

enum mesh_links_flags {
	MESH_LINKS_SAME_JOB = 1, /* a rank of the asking job runs on this node */
	MESH_LINKS_RELAY = 2,	 /* `fi_mesh serve --relay` relays there for the asking job */
};

#define MESH_LINKS_ENTRIES_BYTES 1080

/* First the NICs, then the links: both count as entries, in this order. */
struct mesh_links_answer {
	struct mesh_links_head head;
	uint64_t node_id; /* of the node that answers */
	uint64_t token;
	uint16_t reserved; /* 0 */
	uint16_t cursor;   /* entries before these: they are in earlier answers */
	uint16_t next;	   /* cursor of the rest; 0: this is the last answer */
	uint8_t num_nics, num_links;
	uint8_t flags; /* enum mesh_links_flags */
	uint8_t protocol;
	uint16_t num_ranks;	       /* of the asking job that run on this node */
	uint32_t first_rank;	       /* the lowest of them, plus 1; 0 where unknown */
	char site[MESH_SITE_NAME_MAX]; /* of that node; "" where none is set */
	_Alignas(uint64_t) uint8_t entries[MESH_LINKS_ENTRIES_BYTES];
};
_Static_assert(offsetof(struct mesh_links_answer, cursor) == 114, "wire format");
_Static_assert(offsetof(struct mesh_links_answer, num_ranks) == 122, "wire format");
_Static_assert(offsetof(struct mesh_links_answer, first_rank) == 124, "wire format");
_Static_assert(offsetof(struct mesh_links_answer, site) == 128, "wire format");
_Static_assert(offsetof(struct mesh_links_answer, entries) == 144, "wire format");
_Static_assert(sizeof(struct mesh_links_answer) <= 1232, "never cut into fragments");

/* Either of them, as it is received. */
union mesh_links {
	struct mesh_links_head head;
	struct mesh_links_question question;
	struct mesh_links_answer answer;
};

/** Fills in magic, version, type and length; returns the bytes of the datagram to send. */
size_t mesh_links_question_finish(struct mesh_links_question *question);

/**
 * Fills an answer with entries from @cursor on, as many as it has room for, and finishes it. node,
 * node_id, token, flags and protocol are the caller's.
 *
 * Returns the bytes of the datagram to send.
 */
size_t mesh_links_answer_fill(struct mesh_links_answer *answer, uint16_t cursor,
			      const struct mesh_links_nic *nics, int num_nics,
			      const struct mesh_links_link *links, int num_links);

/** Entry @i of a decoded answer. */
void mesh_links_nic_get(const struct mesh_links_answer *answer, int i, struct mesh_links_nic *nic);
void mesh_links_link_get(const struct mesh_links_answer *answer, int i,
			 struct mesh_links_link *link);

/**
 * Checks a datagram of @size untrusted bytes: magic, version, type, length, counts, text ends,
 * indices, addresses. Unprintable characters of its texts become '?'.
 *
 * @links: written on success; unused parts are zero
 *
 * Returns 0; -EPROTO if it is not such a datagram of this version.
 */
int mesh_links_decode(const void *bytes, size_t size, union mesh_links *links);

#endif
