/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - messages through libfabric: grants, small messages, and announcements of writes. */
#ifndef MESH_WIRE_MESSAGE_H
#define MESH_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/protocol.h"

enum mesh_message_type {
	/* First message on a link, in both directions: proves that the fabric works. */
	MESH_MESSAGE_GREET = 1,
	MESH_MESSAGE_GRANT,   /* receiver: where these receives may be written */
	MESH_MESSAGE_POSTED,  /* receiver: the number of posted receives; what is complete */
	MESH_MESSAGE_WANT,    /* sender: requests the grant of this sequence number */
	MESH_MESSAGE_DATA,    /* sender: a small message itself */
	MESH_MESSAGE_WRITTEN, /* sender: a segment is written, if no immediate says all of it */
	MESH_MESSAGE_RELAYED, /* to a relay: a segment is in its memory, to be written on */
	MESH_MESSAGE_ARRIVED, /* from a relay: these segments have arrived at the receiver */
};

struct mesh_message_header {
	uint8_t type;	 /* enum mesh_message_type */
	uint8_t count;	 /* GRANT: grants behind this header; else 0 */
	uint8_t paths;	 /* GRANT: targets in each grant; else 0 */
	uint8_t acked;	 /* GRANT, POSTED: MESH_ACKED, or 0; else 0 */
	uint32_t length; /* bytes behind this header */
	uint32_t comm;	 /* the receiver's comm id; GREET: peer id */
	uint32_t token;	 /* the receiver's token */
	/* Of the message; GRANT: of its first grant; POSTED: the number posted; GREET: 0. */
	uint32_t seq;
	union {
		uint32_t size;	/* WRITTEN, RELAYED: bytes of the whole message */
		uint32_t lives; /* GRANT: as in ACCEPT. It has the targets of these. */
				/* In all others 0. */
	};
};
_Static_assert(sizeof(struct mesh_message_header) == 24, "wire format");

/*
 * In mesh_message_header.acked: so many of the receiver's messages are complete, counted from the
 * first. Of a number that is at most MESH_COMM_REQUESTS behind the sender's, 7 bits are enough.
 */
#define MESH_ACKED_MASK 0x7fu
#define MESH_ACKED(count) ((uint8_t)(0x80u | ((count)&MESH_ACKED_MASK)))

/* Where a receive may be written over one path. */
struct mesh_target {
	uint64_t address; /* argument of fi_write: an address or an offset, as the receiver chose */
	uint64_t key;
};
_Static_assert(sizeof(struct mesh_target) == 16, "wire format");

/* One receive. On the wire only the targets of the comm's paths follow the size. */
struct mesh_grant {
	uint64_t size; /* bytes */
	struct mesh_target targets[MESH_PATHS_MAX];
};
_Static_assert(offsetof(struct mesh_grant, targets) == 8, "wire format");

/** Bytes of one grant of a comm with so many paths. */
static inline size_t mesh_grant_size(int num_paths)
{
	return offsetof(struct mesh_grant, targets) +
	       (size_t)num_paths * sizeof(struct mesh_target);
}

/*
 * One segment of a message has been written into its grant. It follows the write over the same
 * path. Without segments: nothing was written, because the message is larger than its grant.
 */
struct mesh_message_written {
	uint32_t segment;      /* from 0 */
	uint32_t num_segments; /* of the message, at most MESH_SEGMENTS_MAX */
	/*
	 * Not 0: the last 8 bytes of each MESH_LINE_BYTES, which the write has left out. The
	 * receiver stores them once all of the message has arrived: docs/protocol/data.md, "Flags
	 * inside the receive buffer".
	 */
	uint64_t flag;
};
_Static_assert(sizeof(struct mesh_message_written) == 16, "wire format");

/*
 * One segment lies in the relay's memory, from granule @granule on. The relay writes it to @address
 * of the receiver, which the grant has named, or into the memory of the next relay. It follows the
 * write over the same path; header.seq and header.size are those of WRITTEN.
 */
struct mesh_message_relayed {
	uint64_t address;
	uint64_t key;
	uint32_t length; /* bytes, at least 1 */
	uint32_t segment;
	uint32_t num_segments;
	uint8_t granule;  /* the first, below MESH_GRANULES */
	uint8_t full;	  /* 1: the message fills its grant; else 0 */
	uint8_t more;	  /* 1: a piece of the segment, and not the last one; else 0 */
	uint8_t reserved; /* 0 */
	uint64_t flag;	  /* as in mesh_message_written */
};
_Static_assert(offsetof(struct mesh_message_relayed, granule) == 28, "wire format");
_Static_assert(sizeof(struct mesh_message_relayed) == 40, "wire format");

/** The payload of a RELAYED that begins, with its header, at @bytes. */
static inline struct mesh_message_relayed *mesh_message_relayed_of(void *bytes)
{
	return (struct mesh_message_relayed *)((struct mesh_message_header *)bytes + 1);
}

/* One bit for each segment, by its first granule: the memory is the sender's again. */
struct mesh_message_arrived {
	uint64_t granules;
};
_Static_assert(sizeof(struct mesh_message_arrived) == 8, "wire format");

/* Grants that one message may carry: as many as NCCL posts at once (NCCL_STEPS, device.h). */
#define MESH_GRANTS_PER_MESSAGE 8

/**
 * Checks a message of @size untrusted bytes, aligned as a header is: type, count, segment, and that
 * header and payload fill the bytes exactly.
 *
 * Returns the header, at @bytes, which the payload follows; NULL if it is not a message.
 */
const struct mesh_message_header *mesh_message_check(const void *bytes, size_t size);

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
