/* SPDX-License-Identifier: Apache-2.0 */
/* flags.c - messages of NCCL's LL128, in whose lines a GPU polls flags while they land. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "transport/counters.h"
#include "transport/flags.h"

#define FLAG_AT (MESH_LINE_BYTES - sizeof(uint64_t)) /* from the begin of a line */
#define FLAG_END ((uint64_t)1 << 48)

_Static_assert(MESH_UNFLAGGED_BYTES % MESH_LINE_BYTES == 0, "segments are whole lines");

static uint64_t line_flag(const char *data, size_t line)
{
	uint64_t flag;

	memcpy(&flag, data + line * MESH_LINE_BYTES + FLAG_AT, sizeof(flag));
	return flag;
}

uint64_t mesh_flag_find(const void *data, size_t size)
{
	size_t lines = size / MESH_LINE_BYTES, i;
	uint64_t flag;

	if (!lines || size % MESH_LINE_BYTES)
		return 0;
	flag = line_flag(data, 0);
	if (!flag || flag >= FLAG_END || flag != line_flag(data, lines - 1))
		return 0;
	for (i = 1; i < lines; i++) {
		if (line_flag(data, i) != flag)
			return 0;
	}
	return flag;
}

void mesh_flag_leave_out(void *to, const void *from, size_t size)
{
	char *at = (char *)to + FLAG_AT;

	mesh_bytes_copy(to, from, size);
	for (; size >= MESH_LINE_BYTES; size -= MESH_LINE_BYTES, at += MESH_LINE_BYTES)
		memset(at, 0, sizeof(uint64_t));
}

void mesh_flag_store(void *to, size_t size, uint64_t flag)
{
	char *at = (char *)to + FLAG_AT;

	for (; size >= MESH_LINE_BYTES; size -= MESH_LINE_BYTES, at += MESH_LINE_BYTES) {
		if ((uintptr_t)at % sizeof(flag))
			memcpy(at, &flag, sizeof(flag)); /* no buffer of NCCL's: nobody polls it */
		else
			__atomic_store_n((uint64_t *)(void *)at, flag, __ATOMIC_RELEASE);
	}
}

bool mesh_request_is_flagged(const struct mesh_request *request)
{
	const struct mesh_comm *comm = request->comm;
	bool reorders = comm->reorders;
	int i;

	mesh_comm_assert_locked(comm);
	if (request->size > MESH_SEGMENTS_MAX * MESH_UNFLAGGED_BYTES ||
	    !mesh_flag_find(request->data, request->size))
		return false;
	for (i = 0; i < comm->num_up; i++)
		reorders |= mesh_path_reorders(comm->up[i]);
	return reorders;
}

bool mesh_write_unflag(struct mesh_path *path, struct mesh_segment *segment,
		       struct mesh_write *write)
{
	mesh_comm_assert_locked(path->comm);
	segment->copy = mesh_path_buffer_get(path);
	if (!segment->copy) {
		mesh_count(&path->counters->busy, 1);
		mesh_path_poll_await(path);
		return false;
	}
	assert(write->size <= path->payload_max);
	mesh_flag_leave_out(segment->copy->bytes, write->data, write->size);
	write->data = segment->copy->bytes;
	write->mr = segment->copy->domain->slab_mr;
	return true;
}
