/* SPDX-License-Identifier: Apache-2.0 */
/* hop.c - writes into the memory that a circuit has in the next relay, or to the receiver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "fabric/flow.h"
#include "relay/hop.h"

int mesh_hop_open(struct mesh_hop *hop, const struct mesh_frame_opened *opened)
{
	hop->segments = calloc(MESH_GRANULES, sizeof(*hop->segments));
	if (!hop->segments)
		return -ENOMEM;
	if (!opened)
		return 0;
	hop->address = opened->address;
	hop->key = opened->key;
	hop->granule = opened->granule;
	return 0;
}

void mesh_hop_close(struct mesh_hop *hop)
{
	free(hop->segments);
	hop->segments = NULL;
	hop->granule = 0;
}

/* @count bits from @first on. */
static uint64_t bits_of(unsigned int first, unsigned int count)
{
	uint64_t bits = count < MESH_GRANULES ? ((uint64_t)1 << count) - 1 : UINT64_MAX;

	return bits << first;
}

/* Granules for @size bytes, at least 1. */
static unsigned int granules_of(const struct mesh_hop *hop, size_t size)
{
	return size && hop->granule ? (unsigned int)((size - 1) / hop->granule + 1) : 1;
}

/* The first of so many adjacent granules that are free, the lowest ones; -EAGAIN: no room. */
static int granules_find(const struct mesh_hop *hop, unsigned int count)
{
	unsigned int first;

	for (first = 0; first + count <= MESH_GRANULES; first++) {
		if (!(hop->used & bits_of(first, count)))
			return (int)first;
	}
	return -EAGAIN;
}

bool mesh_hop_has_room(const struct mesh_hop *hop, size_t size)
{
	return granules_find(hop, granules_of(hop, size)) >= 0;
}

MESH_HOLDS(domain)
static void write_completed(struct mesh_op *op, int error)
{
	struct mesh_hop_segment *segment = mesh_container_of(op, struct mesh_hop_segment, op);
	struct mesh_hop *hop = segment->hop;

	/* Into a relay's memory a plain completion on tcp means only "written to the socket". */
	mesh_flow_completed(hop->domain, hop->remote->flow, segment->size, segment->posted_ns,
			    !error && !(hop->granule && hop->domain->delivery_flag));
	hop->written(segment, error);
}

/* Completes RELAYED, which the caller has begun. */
static void relayed_finish(const struct mesh_write *write, unsigned int granule)
{
	struct mesh_message_relayed *relayed = mesh_message_relayed_of(write->behind->bytes);

	relayed->address = write->address;
	relayed->key = write->key;
	relayed->length = (uint32_t)write->size;
	relayed->granule = (uint8_t)granule;
}

int mesh_hop_write(struct mesh_hop *hop, const struct mesh_write *write, void *owner)
{
	unsigned int count = granules_of(hop, write->size);
	struct mesh_write into = *write;
	struct mesh_hop_segment *segment;
	int first = granules_find(hop, count), ret;

	if (first < 0)
		return first;
	segment = &hop->segments[first];
	memset(segment, 0, sizeof(*segment));
	segment->op.complete = write_completed;
	segment->hop = hop;
	segment->owner = owner;
	segment->size = write->size;
	segment->posted_ns = write->now_ns;
	segment->granules = count;
	if (hop->granule) {
		relayed_finish(write, (unsigned int)first);
		into.address = hop->address + (size_t)first * hop->granule;
		into.key = hop->key;
	}
	into.delivery = !hop->granule; /* ARRIVED says more */
	ret = mesh_domain_write(hop->domain, hop->remote, &into, &segment->op);
	if (ret < 0)
		return ret;
	segment->state = MESH_HOP_WRITING;
	hop->used |= bits_of((unsigned int)first, count);
	segment->behind = ret == MESH_WRITE_ALONE ? write->behind : NULL;
	hop->writes++;
	return 0;
}

static void *segment_end(struct mesh_hop_segment *segment)
{
	struct mesh_hop *hop = segment->hop;

	segment->state = MESH_HOP_FREE;
	hop->used &= ~bits_of((unsigned int)(segment - hop->segments), segment->granules);
	return segment->owner;
}

void *mesh_hop_written(struct mesh_hop_segment *segment, int *error, struct mesh_buffer **unsent)
{
	bool arrived = segment->state == MESH_HOP_ARRIVED || !segment->hop->granule;

	*unsent = *error ? segment->behind : NULL;
	if (segment->behind && !*error)
		mesh_remote_send(segment->behind); /* what the provider did not accept before */
	segment->behind = NULL;
	segment->state = MESH_HOP_WRITTEN;
	if (!*error)
		*error = segment->error;
	return arrived || *error ? segment_end(segment) : NULL;
}

void *mesh_hop_arrived(struct mesh_hop *hop, uint64_t *granules)
{
	struct mesh_hop_segment *segment;

	while (hop->granule && *granules) {
		segment = &hop->segments[__builtin_ctzll(*granules)];
		*granules &= *granules - 1;
		if (segment->state == MESH_HOP_WRITTEN)
			return segment_end(segment);
		if (segment->state == MESH_HOP_WRITING)
			segment->state = MESH_HOP_ARRIVED;
	}
	return NULL;
}

void *mesh_hop_abandon(struct mesh_hop *hop, int error)
{
	unsigned int i;

	for (i = 0; hop->granule && i < MESH_GRANULES; i++) {
		struct mesh_hop_segment *segment = &hop->segments[i];

		if (segment->state == MESH_HOP_FREE || segment->error)
			continue;
		segment->error = error;
		if (segment->state == MESH_HOP_WRITTEN)
			return segment_end(segment);
	}
	return NULL;
}
