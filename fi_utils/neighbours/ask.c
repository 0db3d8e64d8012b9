/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - asks on each mesh NIC of this node which node is there. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"

#include "common/interrupt.h"
#include "neighbours/ask.h"

/* Long enough for three questions, and for a node that is busy. */
#define ASK_MS 500
/* On a switch others may answer after the first. */
#define MORE_MS 100

/* Until @until_ms, or the next question. */
static int answers_take(struct mesh_asking *asking, uint64_t until_ms)
{
	struct pollfd fds[MESH_ASKING_SOCKETS + 1];
	int i, ret;

	for (i = 0; i < MESH_ASKING_SOCKETS; i++)
		fds[i] = (struct pollfd){.fd = asking->sockets[i].watch.fd, .events = POLLIN};
	if (asking->due_ms < until_ms)
		until_ms = asking->due_ms;
	ret = interrupt_poll(fds, MESH_ASKING_SOCKETS, until_ms);
	for (i = 0; i < MESH_ASKING_SOCKETS; i++) {
		if (asking->sockets[i].watch.fd >= 0)
			mesh_asking_take(asking, asking->sockets[i].watch.fd, mesh_clock_ms());
	}
	return ret == -EINTR ? ret : 0;
}

int neighbours_ask(const struct peer_self *node, struct mesh_neighbour_self *self,
		   struct mesh_asking *asking)
{
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	uint64_t begin_ms = mesh_clock_ms(), now_ms = begin_ms;
	int ret;

	memset(self, 0, sizeof(*self));
	self->node_id = node->node_id;
	memcpy(self->node, node->name, sizeof(self->node));
	mesh_neighbour_site_set(self, node->config.site);
	mesh_asking_init(asking, self);
	mesh_asking_links_set(asking, links, peer_self_links(node, self, links));
	ret = mesh_asking_begin(asking, now_ms);
	while (!ret && asking->began_ms && now_ms < begin_ms + ASK_MS &&
	       (now_ms < begin_ms + MORE_MS || !mesh_asking_all_answered(asking))) {
		mesh_asking_advance(asking, now_ms);
		ret = answers_take(asking, mesh_asking_all_answered(asking) ? begin_ms + MORE_MS
									    : begin_ms + ASK_MS);
		now_ms = mesh_clock_ms();
	}
	return ret;
}
