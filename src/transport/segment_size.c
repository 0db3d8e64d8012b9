/* SPDX-License-Identifier: Apache-2.0 */
/* segment_size.c - into how large segments a message is cut. */
#include "transport/place.h"
#include "transport/segment_size.h"

/*
 * With several paths a message is cut into this many segments for each path, within these bounds in
 * bytes. The upper bound is a quarter of tcp's window (MESH_PACE_WINDOW_MIN), so that a fast path
 * always has a segment to send.
 */
#define SEGMENTS_PER_PATH 2
#define SEGMENT_MIN ((size_t)64 << 10)
#define SEGMENT_MAX ((size_t)512 << 10)

/*
 * Several paths: a segment is small enough that all paths end together, large enough that its fixed
 * cost does not matter. @most: bytes
 */
static size_t segment_share(const struct mesh_comm *comm, size_t size, size_t most)
{
	size_t share = size / ((size_t)comm->num_paths * SEGMENTS_PER_PATH);

	if (share > SEGMENT_MAX)
		share = SEGMENT_MAX;
	if (share < SEGMENT_MIN)
		share = SEGMENT_MIN;
	return share < most ? share : most;
}

/* One path: the largest segment, because each one has a fixed cost. */
size_t mesh_segment_size(const struct mesh_comm *comm, size_t size)
{
	size_t segment = comm->segment_bytes;
	size_t least = (size + MESH_SEGMENTS_MAX - 1) / MESH_SEGMENTS_MAX;

	if (comm->num_paths > 1)
		segment = segment_share(comm, size, segment);
	if (segment < least)
		segment = least;
	/* Whole lines, so that no flag of LL128 is separated from its data. */
	segment = (segment + MESH_LINE_BYTES - 1) / MESH_LINE_BYTES * MESH_LINE_BYTES;
	return segment < comm->segment_max ? segment : comm->segment_max;
}
