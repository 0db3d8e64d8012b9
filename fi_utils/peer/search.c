/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - finds the mesh that this node belongs to. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"

#include "common/interrupt.h"
#include "peer/search.h"

#define LIMIT_MS 5000
#define SOCKETS (2 * MESH_ASKING_SOCKETS)

/* Until something arrives or is due. */
static int step(struct peer_search *search)
{
	struct pollfd fds[SOCKETS + 1];
	uint64_t now_ms = mesh_clock_ms();
	uint64_t until_ms = mesh_searching_due_ms(&search->searching, now_ms);
	int i, ret;

	if (search->asking.began_ms && search->asking.due_ms < until_ms)
		until_ms = search->asking.due_ms;
	for (i = 0; i < MESH_ASKING_SOCKETS; i++) {
		fds[i] =
			(struct pollfd){.fd = search->asking.sockets[i].watch.fd, .events = POLLIN};
		fds[MESH_ASKING_SOCKETS + i] = (struct pollfd){
			.fd = search->searching.sockets[i].watch.fd, .events = POLLIN};
	}
	ret = interrupt_poll(fds, SOCKETS, until_ms);
	now_ms = mesh_clock_ms();
	for (i = 0; i < MESH_ASKING_SOCKETS; i++) {
		if (search->asking.sockets[i].watch.fd >= 0)
			mesh_asking_take(&search->asking, search->asking.sockets[i].watch.fd,
					 now_ms);
		if (search->searching.sockets[i].watch.fd >= 0)
			mesh_searching_take(&search->searching,
					    search->searching.sockets[i].watch.fd, now_ms);
	}
	mesh_asking_advance(&search->asking, now_ms);
	mesh_searching_advance(&search->searching, now_ms);
	return ret == -EINTR ? ret : 0;
}

int peer_search_run(struct peer_search *search, const struct peer_self *node)
{
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	uint64_t now_ms = mesh_clock_ms();
	int ret;

	search->self.node_id = node->node_id;
	memcpy(search->self.node, node->name, sizeof(search->self.node));
	mesh_neighbour_site_set(&search->self, node->config.site);
	mesh_asking_init(&search->asking, &search->self);
	mesh_searching_init(&search->searching, &search->asking);
	mesh_asking_links_set(&search->asking, links, peer_self_links(node, &search->self, links));
	ret = mesh_asking_begin(&search->asking, now_ms);
	if (!ret)
		ret = mesh_searching_begin(&search->searching, 0, LIMIT_MS, now_ms);
	if (!ret)
		mesh_searching_advance(&search->searching, now_ms);
	while (!ret && search->searching.until_ms)
		ret = step(search);
	return ret;
}

void peer_search_finish(struct peer_search *search)
{
	mesh_searching_finish(&search->searching);
	mesh_asking_finish(&search->asking);
}
