/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.h - a segment that passes through the relays in pieces, because their memory is small. The
 * receiver learns of the last piece only, which follows when all others have arrived.
 */
#ifndef MESH_TRANSPORT_PIECES_H
#define MESH_TRANSPORT_PIECES_H

#include "fabric/flow.h"
#include "relay/hop.h"
#include "transport/path.h"

/* The segment of a relayed path that is cut; one at a time. comm->lock. */
struct mesh_cut {
	struct mesh_path *path;
	struct mesh_hop *hop;
	struct mesh_op *op;	   /* the segment's; NULL: none is cut now */
	struct mesh_write rest;	   /* what is not posted yet */
	struct mesh_waiter waiter; /* for a buffer */
	/* RELAYED as the caller has prepared it, and what its buffer had. */
	uint8_t relayed[sizeof(struct mesh_message_header) + sizeof(struct mesh_message_relayed)];
	void (*sent)(struct mesh_buffer *buffer, int error);
	void *about;
	unsigned int in_flight; /* pieces */
	int error;
};

/** Bytes of the largest piece, and of the largest segment that is not cut. */
static inline size_t mesh_piece_max(const struct mesh_hop *hop)
{
	return mesh_hop_least(hop) / 2;
}

void mesh_cut_init(struct mesh_cut *cut, struct mesh_path *path, struct mesh_hop *hop);

/**
 * Starts to write a segment that is longer than a piece; @op completes with it. The owner of the
 * pieces in the hop is @cut.
 *
 * Returns as mesh_hop_write(); -EAGAIN also if another one is cut.
 */
MESH_HOLDS(comm)
int mesh_cut_begin(struct mesh_cut *cut, const struct mesh_write *write, struct mesh_op *op);

/** Goes on with the segment that is cut, if there is one, and completes it. No comm->lock. */
MESH_HOLDS(domain)
void mesh_cut_step(struct mesh_cut *cut);

/** A piece has arrived, or failed; mesh_cut_step() is to follow. No comm->lock. */
MESH_HOLDS(domain)
void mesh_cut_piece_done(struct mesh_cut *cut, int error);

#endif
