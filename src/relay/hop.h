/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hop.h - writes into the memory that a circuit has in the next relay: the connecting node's way
 * into the first relay, and each relay's into the next one. And the last relay's writes to where
 * the receiver's grant has said: one of these has arrived when it is complete.
 *
 * A segment is a plain write with RELAYED behind it on the same path. Its granules are in use until
 * ARRIVED says that the receiver has the segment: then the write into them has ended as well, so
 * the next one cannot meet it. So the writer knows which granules are in use, and needs no message
 * to find room.
 *
 * Each circuit has memory of its own in each relay, so no circuit waits for another, and none for
 * itself: its last relay writes into what the receiver has granted, and a piece of a segment waits
 * for the one before, which is on its way. Nothing can deadlock, in any graph.
 *
 * Lock: the owner's (a comm's or a circuit's) covers a hop; domain->lock is held where noted.
 */
#ifndef MESH_RELAY_HOP_H
#define MESH_RELAY_HOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "fabric/remote.h"
#include "wire/frame.h"
#include "wire/message.h"

struct mesh_hop;

/* The smallest granule of a circuit, in bytes. */
#define MESH_GRANULE_MIN ((size_t)512)

/* Of a segment's write, and of ARRIVED for it, which may come first. */
enum mesh_hop_state {
	MESH_HOP_FREE,
	MESH_HOP_WRITING,
	MESH_HOP_ARRIVED, /* the receiver has it, and the write is not complete */
	MESH_HOP_WRITTEN  /* the other way round */
};

/* One segment in the next relay's memory. */
struct mesh_hop_segment {
	struct mesh_op op;
	struct mesh_hop *hop;
	struct mesh_buffer *behind; /* RELAYED, still to be sent when the write is complete */
	void *owner;		    /* for the caller */
	size_t size;		    /* bytes */
	uint64_t posted_ns;
	unsigned int granules;
	enum mesh_hop_state state;
	int error; /* of the write, or of the circuit; else 0 */
};

struct mesh_hop {
	struct mesh_domain *domain;
	struct mesh_remote *remote;
	uint64_t address, key;
	size_t granule;	 /* bytes; 0: to the receiver, or not open */
	uint64_t used;	 /* one bit a granule */
	uint32_t writes; /* that were started, ever */
	/* The write is complete; domain->lock held. The owner calls mesh_hop_written(). */
	void (*written)(struct mesh_hop_segment *segment, int error);
	struct mesh_hop_segment *segments; /* by first granule; owned */
};

_Static_assert(MESH_GRANULES == 64, "one bit a granule");

/**
 * Opens a hop, to the receiver if @opened is NULL; the caller has set domain, remote and written.
 *
 * Returns 0 or -ENOMEM.
 */
int mesh_hop_open(struct mesh_hop *hop, const struct mesh_frame_opened *opened);

/** Bytes of the next relay's memory. */
static inline size_t mesh_hop_bytes(const struct mesh_hop *hop)
{
	return hop->granule * MESH_GRANULES;
}

/** Frees its memory; no write is in flight. */
void mesh_hop_close(struct mesh_hop *hop);

/** True if a segment of @size bytes has room in the memory now. If not, ARRIVED makes room. */
bool mesh_hop_has_room(const struct mesh_hop *hop, size_t size);

/**
 * Starts to write a segment. For a relay the caller has prepared RELAYED in write->behind, all of
 * it but the granule and what comes from @write: the receiver's address and key, and the length.
 *
 * Returns 0; -EAGAIN if there is no room in the memory, or in the provider; another negative errno.
 * After an error write->behind is still the caller's.
 */
int mesh_hop_write(struct mesh_hop *hop, const struct mesh_write *write, void *owner);

/*
 * These return the owner of a segment that is done, and whose granules are free now; NULL: it is
 * not, or there is none left.
 */

/**
 * Notes that the write is complete. domain->lock held.
 *
 * @error: of the write; set to the segment's
 * @unsent: NULL, or a RELAYED that is never sent, because the write has failed. The caller
 * completes it with that error, without its own lock
 */
void *mesh_hop_written(struct mesh_hop_segment *segment, int *error, struct mesh_buffer **unsent);

/**
 * Notes that the segments from these granules on have arrived; they are not trusted. To be called
 * until it returns NULL.
 *
 * @granules: bits; those of segments that were looked at are cleared
 */
void *mesh_hop_arrived(struct mesh_hop *hop, uint64_t *granules);

/**
 * Takes a segment that will never arrive: the circuit is broken. Its error is @error. One that is
 * being written gets that error as well, and is done later.
 */
void *mesh_hop_abandon(struct mesh_hop *hop, int error);

#endif
