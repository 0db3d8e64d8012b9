/* SPDX-License-Identifier: Apache-2.0 */
/* immediate.h - the immediate of an RMA write: which comm, request and segment it belongs to. */
#ifndef MESH_WIRE_IMMEDIATE_H
#define MESH_WIRE_IMMEDIATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * It names comm, request and segment, so that a duplicate segment is recognised. That takes 31
 * bits; verbs has 32. tcp has 64, and the upper half carries the true size of the message. So one
 * of 32 bits only announces a message that fills its grant.
 */
#define MESH_IMMEDIATE_COMM_BITS 14
#define MESH_IMMEDIATE_SEQ_BITS 6
#define MESH_IMMEDIATE_SEGMENT_BITS 10

#define MESH_COMM_IDS (1u << MESH_IMMEDIATE_COMM_BITS)
#define MESH_SEGMENTS_MAX (1u << MESH_IMMEDIATE_SEGMENT_BITS)

struct mesh_immediate {
	uint32_t comm;	  /* index of the receiver's comm in its domain */
	uint32_t seq;	  /* lowest MESH_IMMEDIATE_SEQ_BITS of the sequence number */
	uint32_t segment; /* from 0 */
	bool last;	  /* the message has segment + 1 segments */
	uint32_t size;	  /* bytes of the whole message; 0: it fills its grant */
};

/** True if an immediate of so many bits announces a write of a message that fills its grant. */
static inline bool mesh_immediate_suffices(int bits, bool full)
{
	return bits >= 64 || (bits >= 32 && full);
}

static inline uint64_t mesh_immediate_encode(const struct mesh_immediate *immediate)
{
	return (uint64_t)immediate->size << 32 | immediate->comm << 18 |
	       (immediate->seq & 0x3f) << 12 | immediate->segment << 2 |
	       (uint32_t)immediate->last << 1;
}

static inline struct mesh_immediate mesh_immediate_decode(uint64_t immediate)
{
	const uint32_t bits = (uint32_t)immediate;

	return (struct mesh_immediate){
		.size = (uint32_t)(immediate >> 32),
		.comm = bits >> 18,
		.seq = bits >> 12 & 0x3f,
		.segment = bits >> 2 & 0x3ff,
		.last = bits >> 1 & 1,
	};
}

#endif
