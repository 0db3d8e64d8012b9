/* SPDX-License-Identifier: Apache-2.0 */
/* relay_tried.c - which relays a search has asked, and when they may be asked again. */
#include <string.h>

#include "nic/graph_routes.h"
#include "relay/next.h"
#include "setup/relay_tried.h"

/* What is remembered of a process on this link; NULL: nothing. */
static struct mesh_relay_tried *tried_find(struct mesh_relays_tried *tried,
					   const struct mesh_next *next)
{
	int i;

	for (i = 0; i < tried->num; i++) {
		if (tried->all[i].cookie == next->way.cookie &&
		    mesh_addr_equal(&tried->all[i].address, &next->way.address.addr))
			return &tried->all[i];
	}
	return NULL;
}

struct mesh_relay_tried *mesh_relay_tried_get(struct mesh_relays_tried *tried,
					      const struct mesh_next *next)
{
	struct mesh_relay_tried *found = tried_find(tried, next);
	struct mesh_relay_tried *oldest = &tried->all[0];
	int i;

	if (found)
		return found;
	for (i = 0; i < tried->num; i++) {
		if (tried->all[i].not_before_ms < oldest->not_before_ms)
			oldest = &tried->all[i];
	}
	if (tried->num < MESH_RELAYS_TRIED)
		oldest = &tried->all[tried->num++];
	memset(oldest, 0, sizeof(*oldest));
	oldest->cookie = next->way.cookie;
	oldest->address = next->way.address.addr;
	oldest->node_id = next->node_id;
	memcpy(oldest->node, next->node, sizeof(oldest->node));
	return oldest;
}

uint64_t mesh_relays_refused_ms(const struct mesh_relays_tried *tried,
				const struct mesh_route *route)
{
	uint64_t latest_ms = 0;
	int i;

	for (i = 0; i < tried->num; i++) {
		if (tried->all[i].node_id == route->hops[0] &&
		    latest_ms < tried->all[i].not_before_ms)
			latest_ms = tried->all[i].not_before_ms;
	}
	return latest_ms;
}

int mesh_relays_least_recent(struct mesh_relays_tried *tried, const struct mesh_next *nexts,
			     int num, uint32_t unusable, bool drained)
{
	uint64_t asked_ms, oldest_ms = UINT64_MAX;
	const struct mesh_relay_tried *of_next;
	int i, found = -1;

	for (i = 0; i < num; i++) {
		of_next = tried_find(tried, &nexts[i]);
		asked_ms = of_next ? of_next->not_before_ms : 0;
		if (nexts[i].drained && !drained && found >= 0 && !nexts[found].drained)
			break;
		if (unusable >> i & 1 || asked_ms >= oldest_ms)
			continue;
		oldest_ms = asked_ms;
		found = i;
	}
	return found;
}
