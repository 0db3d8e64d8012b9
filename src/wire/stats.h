/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - the plugin's own counters as they lie in a shared page, one file for each process.
 *
 * The plugin maps the file and adds to its counters with plain stores; whoever wants to know reads
 * the file. Writer and reader share the machine, so numbers are in its own byte order: a file of
 * another order, version or size is refused.
 *
 * Single writer for each counter: whoever holds the lock that the counter's user holds anyway
 * (comm->lock for a path's, node->lock for the process's). Entries come and go under node->lock,
 * while `sequence` is odd: a reader who finds it odd or changed reads again.
 */
#ifndef MESH_WIRE_STATS_H
#define MESH_WIRE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/addr.h"
#include "nic/provider_id.h"

#define MESH_STATS_MAGIC 0x5354534dU /* "MSTS" on a little-endian machine */
#define MESH_STATS_VERSION 1
/* Paths of one process that have an entry; more are counted in the process's `unlisted`. */
#define MESH_STATS_PATHS 512
/* MESH_NODE_NAME_MAX and IF_NAMESIZE, with their zero byte. */
#define MESH_STATS_NAME_MAX 64
#define MESH_STATS_NIC_MAX 16

/* What one path has moved. Each is a number since the path was opened. */
struct mesh_counters {
	uint64_t messages; /* complete messages; on the path of their last part */
	uint64_t bytes;	   /* of messages, without headers */
	uint64_t segments; /* RMA writes */
	uint64_t small;	   /* messages that travelled in the control stream */
	uint64_t busy;	   /* times that the provider took nothing and it was tried again */
	uint64_t errors;   /* operations that failed */
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct mesh_counters) == 64, "page layout");

/* What the process did to have paths. */
struct mesh_process_counters {
	uint64_t comms_opened;
	uint64_t comms_failed;
	uint64_t peers_up;   /* processes reached over a link, or that reached us */
	uint64_t peers_lost; /* of those */
	uint64_t retries;    /* attempts to reach a peer that failed and were made again */
	uint64_t refused;    /* connections and requests that we did not take */
	uint64_t unlisted;   /* paths that found no free entry */
	uint64_t reserved;
};
_Static_assert(sizeof(struct mesh_process_counters) == 64, "page layout");

enum mesh_stats_entry_state {
	MESH_STATS_FREE = 0,
	MESH_STATS_OPEN = 1,   /* one path of one comm */
	MESH_STATS_CLOSED = 2, /* the sum of the closed paths between these two NICs */
};

/* Two NICs and a direction. */
struct mesh_stats_entry {
	uint32_t state;	      /* enum mesh_stats_entry_state */
	uint8_t sending;      /* 1: to the peer, 0: from it */
	uint8_t provider;     /* enum mesh_provider_id */
	uint8_t family;	      /* 4 or 6, of both addresses */
	uint8_t relayed;      /* 1: the remote NIC is a node's that forwards */
	uint32_t paths;	      /* OPEN: 1; CLOSED: how many are in the sum */
	uint32_t local_scope; /* interface index of link-local addresses, else 0 */
	uint64_t opened_ms;   /* since 1970; CLOSED: of the first */
	uint8_t local[16];    /* addresses; IPv4 in the first four bytes */
	uint8_t remote[16];
	char nic[MESH_STATS_NIC_MAX];	/* netdev; ends in a zero byte */
	char peer[MESH_STATS_NAME_MAX]; /* the peer's node; ends in a zero byte */
	uint8_t reserved[56];
	struct mesh_counters counters;
};
_Static_assert(sizeof(struct mesh_stats_entry) == 256, "page layout");
_Static_assert(offsetof(struct mesh_stats_entry, opened_ms) == 16, "page layout");
_Static_assert(offsetof(struct mesh_stats_entry, local) == 24, "page layout");
_Static_assert(offsetof(struct mesh_stats_entry, nic) == 56, "page layout");
_Static_assert(offsetof(struct mesh_stats_entry, peer) == 72, "page layout");
_Static_assert(offsetof(struct mesh_stats_entry, counters) == 192, "page layout");

struct mesh_stats_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_size; /* bytes */
	uint32_t entry_size;  /* bytes */
	uint32_t num_entries;
	uint32_t sequence; /* odd while entries change */
	uint32_t pid;
	uint64_t node_id;
	uint64_t started_ms;		   /* since 1970 */
	char node[MESH_STATS_NAME_MAX];	   /* ends in a zero byte */
	char program[MESH_STATS_NAME_MAX]; /* the process's name; ends in a zero byte */
	uint8_t reserved[24];
	struct mesh_process_counters counters;
};
_Static_assert(sizeof(struct mesh_stats_header) == 256, "page layout");
_Static_assert(offsetof(struct mesh_stats_header, sequence) == 16, "page layout");
_Static_assert(offsetof(struct mesh_stats_header, started_ms) == 32, "page layout");
_Static_assert(offsetof(struct mesh_stats_header, node) == 40, "page layout");
_Static_assert(offsetof(struct mesh_stats_header, counters) == 192, "page layout");

struct mesh_stats_page {
	struct mesh_stats_header header;
	struct mesh_stats_entry entries[MESH_STATS_PATHS];
};

/** Adds to a counter whose lock the caller holds; a reader sees the old value or the new one. */
static inline void mesh_count(uint64_t *counter, uint64_t more)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + more,
			 __ATOMIC_RELAXED);
}

/* Whom an entry is about. */
struct mesh_stats_link {
	struct mesh_addr local, remote; /* of one family */
	const char *nic, *peer;
	bool sending;
	bool relayed;
	enum mesh_provider_id provider;
};

/** Makes an empty page. @now_ms: since 1970. Longer names are cut. */
void mesh_stats_init(struct mesh_stats_page *page, uint64_t node_id, uint32_t pid, const char *node,
		     const char *program, uint64_t now_ms);

/**
 * Takes an entry for a new path. Under the lock that covers entries.
 *
 * Returns its counters, or NULL if none is free (counted).
 */
struct mesh_counters *mesh_stats_open(struct mesh_stats_page *page,
				      const struct mesh_stats_link *link, uint64_t now_ms);

/**
 * Ends such an entry: what it counted goes into the sum of the closed paths of its link. Under the
 * same lock; nobody adds to @counters any more.
 */
void mesh_stats_close(struct mesh_stats_page *page, struct mesh_counters *counters);

/**
 * Checks a copy of a page: @size foreign bytes, at any alignment. What cannot be printed of its
 * texts is a '?'.
 *
 * @page: written on success only; entries beyond those of the file are free
 *
 * Returns 0; -EPROTO if this is no such page or a damaged one; -EPROTONOSUPPORT for another
 * version; -EAGAIN if it was copied while its entries changed.
 */
int mesh_stats_decode(const void *bytes, size_t size, struct mesh_stats_page *page);

/** The addresses of a checked entry. */
void mesh_stats_addresses(const struct mesh_stats_entry *entry, struct mesh_addr *local,
			  struct mesh_addr *remote);

/** True if both are about the same two NICs, the same peer and direction. */
bool mesh_stats_same_link(const struct mesh_stats_entry *a, const struct mesh_stats_entry *b);

/** Adds what @from counted to @sum. */
void mesh_counters_add(struct mesh_counters *sum, const struct mesh_counters *from);

#endif
