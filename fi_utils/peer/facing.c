/* SPDX-License-Identifier: Apache-2.0 */
/* facing.c - asks which node is at the other end of each cable. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer/facing.h"
#include "peer/search.h"

/* Texts of a datagram are printable, and end. Of a node of another version the id is not known. */
static void heard_take(struct peer_facing *facing, const struct mesh_asked *asked)
{
	struct peer_faced *faced;
	int i;

	facing->error = asked->error;
	for (i = 0; i < asked->num_heard && facing->num_heard < PEER_FACING_MAX; i++) {
		const struct mesh_heard *heard = asked->heard[i];

		if (heard->error)
			continue;
		faced = &facing->heard[facing->num_heard++];
		faced->node_id = heard->about.node_id;
		faced->from = heard->from;
		snprintf(faced->peer_netdev, sizeof(faced->peer_netdev), "%s", heard->about.netdev);
		snprintf(faced->peer, sizeof(faced->peer), "%s", heard->about.node);
	}
}

void peer_facing_ask(const struct peer_self *self, struct peer_facing *facing)
{
	struct mesh_asking *asking = calloc(1, sizeof(*asking));
	struct mesh_neighbour_self about;
	int i, k, ret = asking ? peer_neighbours_ask(self, &about, asking) : -ENOMEM;

	for (i = 0; i < self->num_nics; i++) {
		facing[i] = (struct peer_facing){.error = ret ? ret : -EADDRNOTAVAIL};
		for (k = 0; !ret && k < asking->num_links; k++) {
			if (asking->asked[k].ifindex == self->table.nics[i].ifindex)
				heard_take(&facing[i], &asking->asked[k]);
		}
	}
	if (asking)
		mesh_asking_finish(asking);
	free(asking);
}

const struct peer_faced *peer_facing_find(const struct peer_facing *facing, uint64_t node_id,
					  const char *netdev)
{
	int i;

	for (i = 0; i < facing->num_heard; i++)
		if (facing->heard[i].node_id == node_id &&
		    (!netdev || !strcmp(facing->heard[i].peer_netdev, netdev)))
			return &facing->heard[i];
	return NULL;
}
