/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - finds the sink of an arrived message or write. Ids and tokens are untrusted. */
#include <errno.h>

#include "fabric/sink.h"

#define SINK_INDEX(id) ((id) & (MESH_COMM_IDS - 1))

static void stranger_count(struct mesh_domain *domain)
{
	/* Dropped: the comm is closed, or this is noise. */
	atomic_fetch_add_explicit(&domain->strangers, 1, memory_order_relaxed);
}

/* The place of the sink with this id. */
MESH_HOLDS(domain)
static struct mesh_sink **place_of(struct mesh_domain *domain, uint32_t id)
{
	return &domain->sinks[SINK_INDEX(id)];
}

int mesh_sink_add(struct mesh_domain *domain, struct mesh_sink *sink)
{
	struct mesh_sink **place;
	uint32_t tries, id;
	int ret = -ENOSPC;

	mesh_domain_lock(domain);
	for (tries = 0; tries < MESH_COMM_IDS && ret; tries++) {
		if (!domain->next_sink)
			domain->next_sink++; /* in frames 0 names none */
		id = domain->next_sink++;
		place = place_of(domain, id);
		if (*place)
			continue;
		sink->id = id;
		*place = sink;
		ret = 0;
	}
	mesh_domain_unlock(domain);
	return ret;
}

void mesh_sink_remove(struct mesh_domain *domain, struct mesh_sink *sink)
{
	struct mesh_sink **place = place_of(domain, sink->id);

	mesh_domain_assert_locked(domain);
	if (*place == sink)
		*place = NULL;
}

struct mesh_sink *mesh_sink_find(struct mesh_domain *domain, uint32_t id)
{
	struct mesh_sink *sink = *place_of(domain, id);

	mesh_domain_assert_locked(domain);
	return sink && sink->id == id ? sink : NULL;
}

void mesh_sink_message(struct mesh_domain *domain, const struct mesh_message_header *header,
		       const void *payload)
{
	struct mesh_sink *sink = mesh_sink_find(domain, header->comm);

	if (!sink || sink->token != header->token)
		stranger_count(domain);
	else
		sink->message(sink, header, payload);
}

void mesh_sink_written(struct mesh_domain *domain, uint64_t immediate)
{
	struct mesh_immediate decoded = mesh_immediate_decode(immediate);
	struct mesh_sink *sink = domain->sinks[decoded.comm];

	mesh_domain_assert_locked(domain);
	if (sink && sink->written)
		sink->written(sink, &decoded);
	else
		stranger_count(domain);
}
