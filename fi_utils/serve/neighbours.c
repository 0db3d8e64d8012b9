/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - `fi_mesh serve` answers the questions of neighbours. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptors.h"
#include "base/random.h"
#include "neighbours/neighbours.h"
#include "system/nic_table.h"

#include "serve/neighbours.h"

struct serve_neighbours {
	struct mesh_lock lock;
	struct mesh_engine engine;
	struct mesh_neighbours *neighbours;
	int netlink_fd;
};

static int never(void *owner)
{
	(void)owner;
	return -1;
}

static void nothing(void *owner)
{
	(void)owner;
}

/* All of it is done by watches and timers. */
static const struct mesh_engine_work no_work = {.timeout = never, .tick = nothing};

MESH_NOT_ANALYSED
void serve_neighbours_refresh(struct serve_neighbours *neighbours, const struct peer_self *self)
{
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	const struct mesh_nic *down[MESH_NICS_MAX];
	int i, num_links, num_down = 0;

	if (!neighbours)
		return;
	num_links = peer_self_links(self, &neighbours->neighbours->self, links);
	for (i = 0; i < self->table.num_nics && num_down < MESH_NICS_MAX; i++) {
		if (self->table.nics[i].verdict == MESH_NIC_LINK_DOWN)
			down[num_down++] = &self->table.nics[i];
	}
	mesh_lock_take(&neighbours->lock);
	mesh_neighbours_links_set(neighbours->neighbours, links, num_links, false);
	mesh_answering_down_set(&neighbours->neighbours->answering, down, num_down);
	mesh_lock_release(&neighbours->lock);
}

MESH_NOT_ANALYSED
static int service_open(struct serve_neighbours *neighbours, const struct peer_self *self)
{
	struct mesh_neighbour_self about = {
		.node_id = self->node_id,
		.process = {.protocol = MESH_PROTOCOL_VERSION, .role = MESH_NEIGHBOUR_SERVICE},
	};
	int ret = mesh_random(&about.process.process_id, sizeof(about.process.process_id));

	if (ret)
		return ret;
	memcpy(about.node, self->name, sizeof(about.node));
	mesh_neighbour_site_set(&about, self->config.site);
	mesh_lock_take(&neighbours->lock);
	neighbours->neighbours = mesh_neighbours_open(&neighbours->engine, &about);
	mesh_lock_release(&neighbours->lock);
	return neighbours->neighbours ? 0 : -ENOMEM;
}

MESH_NOT_ANALYSED
struct serve_neighbours *serve_neighbours_open(const struct peer_self *self)
{
	struct serve_neighbours *neighbours;
	int ret;

	if (!self->config.neighbours)
		return NULL;
	neighbours = calloc(1, sizeof(*neighbours));
	ret = neighbours ? 0 : -ENOMEM;
	if (ret)
		goto report;
	mesh_lock_init(&neighbours->lock);
	ret = mesh_engine_open(&neighbours->engine, &neighbours->lock, &no_work, neighbours);
	if (ret)
		goto free_it;
	ret = service_open(neighbours, self);
	if (!ret)
		ret = mesh_engine_start(&neighbours->engine);
	if (ret)
		goto close_engine;
	neighbours->netlink_fd = mesh_netlink_watch_open();
	serve_neighbours_refresh(neighbours, self);
	return neighbours;
close_engine:
	mesh_neighbours_close(neighbours->neighbours);
	mesh_engine_close(&neighbours->engine);
free_it:
	mesh_lock_destroy(&neighbours->lock);
	free(neighbours);
report:
	fprintf(stderr, "fi_mesh serve: cannot answer questions of neighbours: %s\n",
		strerror(-ret));
	return NULL;
}

int serve_neighbours_fd(const struct serve_neighbours *neighbours)
{
	return neighbours && neighbours->netlink_fd >= 0 ? neighbours->netlink_fd : -1;
}

bool serve_neighbours_changed(struct serve_neighbours *neighbours)
{
	struct pollfd ready = {.fd = serve_neighbours_fd(neighbours), .events = POLLIN};

	if (ready.fd < 0 || poll(&ready, 1, 0) <= 0)
		return false;
	mesh_netlink_watch_drain(ready.fd);
	return true;
}

MESH_NOT_ANALYSED
void serve_neighbours_close(struct serve_neighbours *neighbours)
{
	if (!neighbours)
		return;
	mesh_engine_stop(&neighbours->engine);
	mesh_lock_take(&neighbours->lock);
	mesh_neighbours_close(neighbours->neighbours);
	mesh_lock_release(&neighbours->lock);
	mesh_engine_close(&neighbours->engine);
	if (neighbours->netlink_fd >= 0)
		mesh_descriptor_close(neighbours->netlink_fd);
	mesh_lock_destroy(&neighbours->lock);
	free(neighbours);
}
