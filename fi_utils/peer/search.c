/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - asks the neighbours of this node, and those behind them. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"

#include "common/interrupt.h"
#include "peer/search.h"

/* For the neighbours: long enough for three questions, and for a node that is busy. */
#define ASK_MS 500
/* On a switch others may answer after the first. */
#define MORE_MS 100

/* @self: receives what is asked. */
static void asking_init(const struct peer_self *node, struct mesh_neighbour_self *self,
			struct mesh_asking *asking)
{
	struct mesh_neighbour_link links[MESH_NICS_MAX];

	memset(self, 0, sizeof(*self));
	self->node_id = node->node_id;
	memcpy(self->node, node->name, sizeof(self->node));
	mesh_neighbour_site_set(self, node->config.site);
	mesh_asking_init(asking, self);
	mesh_asking_links_set(asking, links, peer_self_links(node, self, links));
}

void peer_search_finish(struct peer_search *search)
{
	mesh_searching_finish(&search->searching);
	mesh_asking_finish(&search->asking);
}

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

int peer_neighbours_ask(const struct peer_self *node, struct mesh_neighbour_self *self,
			struct mesh_asking *asking)
{
	uint64_t begin_ms = mesh_clock_ms(), now_ms = begin_ms;
	int ret;

	asking_init(node, self, asking);
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

int peer_search_run(struct peer_search *search, const struct peer_self *node)
{
	uint64_t now_ms = mesh_clock_ms();
	int ret;

	asking_init(node, &search->self, &search->asking);
	mesh_searching_init(&search->searching, &search->asking);
	ret = mesh_searching_begin(&search->searching, now_ms);
	while (!ret && search->searching.goes_on) {
		ret = answers_take(&search->asking, UINT64_MAX);
		now_ms = mesh_clock_ms();
		mesh_asking_advance(&search->asking, now_ms);
		mesh_searching_advance(&search->searching, now_ms);
	}
	return ret;
}
