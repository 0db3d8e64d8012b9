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

int mesh_sink_add(struct mesh_domain *domain, struct mesh_sink *sink)
{
	uint32_t tries;
	int ret = -ENOSPC;

	mesh_domain_lock(domain);
	for (tries = 0; tries < MESH_COMM_IDS; tries++) {
		uint32_t id = domain->next_sink++;

		if (domain->sinks[SINK_INDEX(id)])
			continue;
		sink->id = id;
		domain->sinks[SINK_INDEX(id)] = sink;
		ret = 0;
		break;
	}
	mesh_domain_unlock(domain);
	return ret;
}

void mesh_sink_remove(struct mesh_domain *domain, struct mesh_sink *sink)
{
	mesh_domain_assert_locked(domain);
	if (domain->sinks[SINK_INDEX(sink->id)] == sink)
		domain->sinks[SINK_INDEX(sink->id)] = NULL;
}

struct mesh_sink *mesh_sink_find(const struct mesh_domain *domain, uint32_t id)
{
	struct mesh_sink *sink = domain->sinks[SINK_INDEX(id)];

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
