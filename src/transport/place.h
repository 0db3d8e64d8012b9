/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - the lines of NCCL's LL128, in which a GPU polls flags while they land: copies a message
 * into a receive buffer, cuts one into segments, and sends the flags behind them where the order of
 * the bytes is not known (docs/protocol/data.md, "Flags inside the receive buffer").
 */
#ifndef MESH_TRANSPORT_PLACE_H
#define MESH_TRANSPORT_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "fabric/remote.h"
#include "transport/comm.h"

/*
 * Bytes whose last word is a flag in NCCL's LL128 protocol (NCCL_LL128_LINESIZE, device.h).
 * Segments are cut at multiples of it, too.
 */
#define MESH_LINE_BYTES 128
/*
 * Bytes that one write has of a message whose flags travel behind it: a message buffer holds the
 * copy. Messages of more than MESH_SEGMENTS_MAX of them are none of LL128, whose largest has
 * 614,400 bytes (NCCL_LL128_ELEMS_PER_THREAD, device.h).
 */
#define MESH_UNFLAGGED_BYTES ((size_t)8 << 10)

/**
 * Copies @size bytes to @to so that a reader who polls flags inside @to never sees a flag before
 * its data: in order of address, in stores that keep each 8 bytes together (LL has 4 bytes of data
 * and a flag there), and the last word of each 128-byte line after the rest of the line (LL128).
 *
 * @to: lines count from here; fastest and atomic where it is 8-byte aligned, as NCCL's buffers are
 */
void mesh_place(void *to, const void *from, size_t size);

/** Bytes of each segment but the last of a message of @size bytes: whole lines of 128 bytes. */
size_t mesh_segment_size(const struct mesh_comm *comm, size_t size);

/**
 * The flag that each line of a message of LL128 has in its last 8 bytes: the same in all of them,
 * not 0, and below 2^48 (the number of a step, sendProxyProgress() in net.cc). Other data may look
 * so, too; that costs it speed, and nothing else.
 *
 * Returns the flag; 0 if this is no such message.
 */
uint64_t mesh_flag_find(const void *data, size_t size);

/**
 * Copies whole lines, with 0 in place of their flags.
 *
 * @size: bytes, a multiple of MESH_LINE_BYTES
 */
void mesh_flag_leave_out(void *to, const void *from, size_t size);

/** Gives each whole line of @to its flag: a reader who sees one sees what was stored before. */
void mesh_flag_store(void *to, size_t size, uint64_t flag);

/** True if the message has flags, and a path that may carry it may not keep their order. */
MESH_HOLDS(comm)
bool mesh_request_is_flagged(const struct mesh_request *request);

/**
 * True if what is written over the path may arrive in any order. A NIC keeps that of an RDMA write;
 * what the last relay has is not known here.
 */
static inline bool mesh_path_reorders(const struct mesh_path *path)
{
	return !path->is_acknowledged || mesh_path_has_relay(path);
}

/** The flag of a message that is being sent; 0: it has none, or it need not follow. */
MESH_HOLDS(comm)
static inline uint64_t mesh_request_flag(const struct mesh_request *request)
{
	return request->send.flagged ? mesh_flag_find(request->data, MESH_LINE_BYTES) : 0;
}

/** The flag that has to follow what is written over @path; 0: the write has it. */
MESH_HOLDS(comm)
static inline uint64_t mesh_flag_to_follow(const struct mesh_request *request,
					   const struct mesh_path *path)
{
	return mesh_path_reorders(path) ? mesh_request_flag(request) : 0;
}

/**
 * Makes @write, of @segment over @path, one of a copy that lacks the flags. The copy lives until
 * mesh_segment_copy_put(). comm->lock held.
 *
 * Returns false if there is no buffer for it: tried again after the next poll.
 */
MESH_HOLDS(comm)
bool mesh_write_unflag(struct mesh_path *path, struct mesh_segment *segment,
		       struct mesh_write *write);

/** The write is over, or was not posted: nothing reads its copy, if it has one. */
static inline void mesh_segment_copy_put(struct mesh_segment *segment)
{
	if (segment->copy)
		mesh_buffer_put(segment->copy);
	segment->copy = NULL;
}

#endif
