/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - the layout of the plugin's counters in a shared page, one file for each process.
 *
 * The plugin maps the file and adds to its counters with plain stores; a reader such as `fi_mesh
 * watch` reads the file. Writer and reader share the machine, so numbers are in its own byte order:
 * a file of another order, version or size is refused.
 *
 * Each counter has a single writer: the thread that holds the lock of the counter's user
 * (comm->lock for a path's counters, circuit->lock for a circuit's, node->lock for the process's).
 * Entries are added and removed under node->lock, while `sequence` is odd: a reader that finds it
 * odd or changed reads again.
 */
#ifndef MESH_WIRE_STATS_H
#define MESH_WIRE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/addr.h"

#define MESH_STATS_MAGIC 0x5354534dU /* "MSTS" on a little-endian machine */
#define MESH_STATS_VERSION 4
/* Paths of one process that have an entry; `unlisted` of the process counts the others. */
#define MESH_STATS_PATHS 512
/* The same for circuits, which lead through this process. */
#define MESH_STATS_CIRCUITS 128
/* MESH_NODE_NAME_MAX and IF_NAMESIZE, with their zero byte. */
#define MESH_STATS_NAME_MAX 64
#define MESH_STATS_NIC_MAX 16

/* The traffic of one path, counted since the path was opened. */
struct mesh_counters {
	uint64_t messages; /* complete messages, counted on the path of their last part */
	uint64_t bytes;	   /* of messages, without headers */
	uint64_t segments; /* RMA writes */
	uint64_t small;	   /* messages that travelled in the control stream */
	uint64_t busy;	   /* retries because the provider accepted no operation (-FI_EAGAIN) */
	uint64_t errors;   /* operations that failed */
	uint64_t losses;   /* times that the path was lost and the connection went on */
	uint64_t resent;   /* bytes that were sent again over this path after a loss */
};
_Static_assert(sizeof(struct mesh_counters) == 64, "page layout");

/* Connection counters of the process. */
struct mesh_process_counters {
	uint64_t comms_opened;
	uint64_t comms_failed;
	uint64_t peers_up;   /* peers connected over a link, by either side */
	uint64_t peers_lost; /* of those */
	uint64_t retries;    /* attempts to reach a peer that failed and were repeated */
	uint64_t refused;    /* connections and requests that this process refused */
	uint64_t unlisted;   /* paths and circuits that found no free entry */
	uint64_t reserved;
};
_Static_assert(sizeof(struct mesh_process_counters) == 64, "page layout");

enum mesh_stats_entry_state {
	MESH_STATS_FREE = 0,
	MESH_STATS_OPEN = 1,   /* one path of one comm */
	MESH_STATS_CLOSED = 2, /* the sum of the closed paths between these two NICs */
};

/* Whether a path is out of use, because a NIC of its link is being drained. */
enum mesh_stats_parked {
	MESH_STATS_IN_USE = 0,	/* also where the connection has no other path */
	MESH_STATS_DRAINED = 2, /* nothing new is sent on it */
	MESH_STATS_PARKEDS
};

/* How a path leads to the peer. */
enum mesh_stats_via {
	MESH_STATS_DIRECT = 0,
	MESH_STATS_ROUTED = 1, /* the kernels' routes connect the two NICs */
	MESH_STATS_RELAY = 2,  /* the remote NIC belongs to a relay */
	MESH_STATS_VIAS
};

/*
 * Entries of paths and of circuits are of one size and begin and end alike: state, number and begin
 * of what they count; from `local_scope` or `origin` on what identifies it, in all bytes up to
 * MESH_STATS_KEY_END; what is so now; and eight counters, which can be added.
 */
#define MESH_STATS_ENTRY_BYTES 256
#define MESH_STATS_KEY 16
#define MESH_STATS_KEY_END 190

/* Two NICs and a direction. */
struct mesh_stats_entry {
	uint32_t state;	      /* enum mesh_stats_entry_state */
	uint32_t paths;	      /* OPEN: 1; CLOSED: how many are in the sum */
	uint64_t opened_ms;   /* since 1970; CLOSED: of the first */
	uint32_t local_scope; /* interface index of link-local addresses, else 0 */
	uint8_t sending;      /* 1: to the peer, 0: from it */
	uint8_t provider;     /* enum mesh_provider_id */
	uint8_t family;	      /* 4 or 6, of both addresses */
	uint8_t via;	      /* enum mesh_stats_via */
	uint8_t local[16];    /* addresses; IPv4 in the first four bytes */
	uint8_t remote[16];
	char nic[MESH_STATS_NIC_MAX];	/* netdev; ends in a zero byte */
	char peer[MESH_STATS_NAME_MAX]; /* the peer's node; ends in a zero byte */
	uint8_t reserved[54];
	uint8_t down;	/* OPEN: 1 while the path carries nothing, because its link is lost */
	uint8_t parked; /* OPEN: enum mesh_stats_parked */
	struct mesh_counters counters;
};
_Static_assert(sizeof(struct mesh_stats_entry) == MESH_STATS_ENTRY_BYTES, "page layout");
_Static_assert(offsetof(struct mesh_stats_entry, local_scope) == MESH_STATS_KEY, "page layout");
_Static_assert(offsetof(struct mesh_stats_entry, down) == MESH_STATS_KEY_END, "page layout");
_Static_assert(offsetof(struct mesh_stats_entry, counters) == 192, "page layout");

/* What one circuit has forwarded from the connecting node to the other one. */
struct mesh_circuit_counters {
	uint64_t bytes;	   /* of segments */
	uint64_t segments; /* writes into the memory of the next node */
	uint64_t messages; /* of both directions, without segments: small messages and grants */
	uint64_t copied;   /* bytes of NCCL's that the CPU copied here: of small messages only */
	/* Of open circuits: */
	uint64_t memory; /* bytes that the circuit has here */
	uint64_t slots;	 /* parts of that memory */
	uint64_t used;	 /* of these, now: by segments that have not arrived */
	uint64_t reserved;
};
_Static_assert(sizeof(struct mesh_circuit_counters) == 64, "page layout");

/* From a node to another, through this process. */
struct mesh_stats_circuit {
	uint32_t state;	    /* enum mesh_stats_entry_state; CLOSED: of these nodes and NICs */
	uint32_t circuits;  /* OPEN: 1; CLOSED: how many are in the sum */
	uint64_t opened_ms; /* since 1970; CLOSED: of the first */
	char origin[MESH_STATS_NAME_MAX]; /* the node that connects; ends in a zero byte */
	char target[MESH_STATS_NAME_MAX]; /* the node that listens; ends in a zero byte */
	char nic_up[MESH_STATS_NIC_MAX];  /* netdev towards the origin; ends in a zero byte */
	char nic_down[MESH_STATS_NIC_MAX];
	uint8_t reserved[16];
	struct mesh_circuit_counters counters;
};
_Static_assert(sizeof(struct mesh_stats_circuit) == MESH_STATS_ENTRY_BYTES, "page layout");
_Static_assert(offsetof(struct mesh_stats_circuit, origin) == MESH_STATS_KEY, "page layout");
_Static_assert(offsetof(struct mesh_stats_circuit, counters) == 192, "page layout");

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
	uint32_t circuit_size;		   /* bytes */
	uint32_t num_circuits;
	uint8_t reserved[16];
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
	struct mesh_stats_circuit circuits[MESH_STATS_CIRCUITS];
};

/** The name of an enum mesh_stats_via: "direct", "routed" or "relay". */
const char *mesh_stats_via_text(uint8_t via);

/** Says whether the path of these counters, which mesh_stats_open() returned, is down now. */
void mesh_stats_down_set(struct mesh_counters *counters, bool down);

/** The same for whether it is out of use. */
void mesh_stats_parked_set(struct mesh_counters *counters, enum mesh_stats_parked parked);

/** Adds to a counter whose lock the caller holds; a reader sees the old value or the new one. */
static inline void mesh_count(uint64_t *counter, uint64_t more)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + more,
			 __ATOMIC_RELAXED);
}

/* The two NICs, the peer and the direction of an entry. */
struct mesh_stats_link {
	struct mesh_addr local, remote; /* of one family */
	const char *nic, *peer;
	bool sending;
	enum mesh_stats_via via;
	enum mesh_provider_id provider;
};

/** Initializes an empty page. @now_ms: since 1970. Longer names are cut. */
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
 * Closes such an entry: its counters are added to the sum of the closed paths of its link. Under
 * the same lock; the caller no longer adds to @counters.
 */
void mesh_stats_close(struct mesh_stats_page *page, struct mesh_counters *counters);

/**
 * Takes an entry for a circuit between two nodes, with its NICs here. Under the same lock.
 *
 * Returns its counters, or NULL if none is free (counted).
 */
struct mesh_circuit_counters *mesh_stats_circuit_open(struct mesh_stats_page *page,
						      const char *origin, const char *target,
						      const char *nic_up, const char *nic_down,
						      uint64_t now_ms);

/** Closes such an entry, as mesh_stats_close(). */
void mesh_stats_circuit_close(struct mesh_stats_page *page, struct mesh_circuit_counters *counters);

/** True if two paths' entries, or two circuits', have the same NICs, nodes and direction. */
bool mesh_stats_is_same(const void *a, const void *b);

/** Adds the counters of an entry, @from, to others of its kind. */
void mesh_stats_add(void *sum, const void *from);

/** An event of the process. Rare, so that any lock or none may be held. */
static inline void mesh_count_event(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif
